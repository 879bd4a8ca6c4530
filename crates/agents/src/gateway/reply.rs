//! What an agent has said in a turn, and how much of it the hub was told.
//!
//! Owns: what flows together is one part that grows, as it is for the hub, so that both can say how far they are; a
//! reply that is too long is cut and says so; no frame is larger than a hub takes. Pieces are made when there is
//! room to send them: what came meanwhile goes together.

use parlor_model::{Chunk, ChunkKind, Payload};
use parlor_wire::agentim::gateway::ingress::{LONGEST_REPLY, MOST_CHUNKS};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Of a text that flows, so much goes into one frame, as it is written there.
const MAX_CHUNK_BYTES: usize = 32 * 1024;
/// What does not flow goes as a whole, up to this.
const MAX_UNSPLIT_BYTES: usize = 160 * 1024;
const METADATA: usize = 64 * 1024;
/// What is told besides and waits to be.
const SIGNALS: usize = 256;
const CUT: &str = "\n\n[This reply was longer than 10 MB. The rest is left out.]";
const SHORTENED: &str = "… [shortened]";
const LONGEST: usize = LONGEST_REPLY - 1024;
const MOST_PARTS: usize = MOST_CHUNKS - 8;

#[derive(Debug, Default)]
pub struct Reply {
    parts: Vec<Part>,
    bytes: usize,
    cut: bool,
    sent: Mark,
    signals: VecDeque<(Mark, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    kind: String,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
}

/// So many whole parts, and so many bytes of the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub part: usize,
    pub byte: usize,
}

/// The next thing to tell.
#[derive(Debug, PartialEq, Eq)]
pub enum OutgoingPiece {
    Chunk(Chunk),
    /// A frame as it is.
    Signal(String),
}

/// It is long enough.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplyTruncated;

impl Part {
    fn kind(&self) -> ChunkKind {
        ChunkKind::parse(&self.kind).unwrap_or(ChunkKind::Text)
    }

    fn flows(&self) -> bool {
        self.kind().is_mergeable() && self.metadata.is_none()
    }

    fn chunk(&self, content: &str) -> Chunk {
        let metadata = self.metadata.as_deref().map(|text| Payload(text.into()));
        Chunk { kind: self.kind(), content: content.into(), metadata }
    }
}

impl Reply {
    /// One that was written down.
    pub fn of(parts: Vec<Part>) -> Self {
        Self { bytes: parts.iter().map(|part| part.content.len()).sum(), parts, ..Self::default() }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Everything that was said in words.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter(|part| part.kind() == ChunkKind::Text);
        texts.map(|part| part.content.as_str()).collect()
    }

    pub fn push(&mut self, chunk: &Chunk) -> Result<(), ReplyTruncated> {
        if self.cut {
            return Err(ReplyTruncated);
        }
        let flows = chunk.kind.is_mergeable() && chunk.metadata.is_none();
        let metadata = chunk.metadata.as_ref().filter(|metadata| metadata.0.len() <= METADATA);
        let weight = metadata.map_or(0, |metadata| metadata.0.len());
        let fits = head(&chunk.content, if flows { usize::MAX } else { MAX_UNSPLIT_BYTES - weight });
        let mut content = fits.to_owned();
        if content.len() < chunk.content.len() {
            content += SHORTENED;
        }
        let room = LONGEST.saturating_sub(self.bytes + weight);
        let too_long = content.len() > room || self.parts.len() >= MOST_PARTS;
        if too_long && flows {
            let end = (0..=room.min(content.len())).rev().find(|at| content.is_char_boundary(*at));
            content.truncate(end.unwrap_or(0));
        }
        if !too_long || (flows && self.parts.len() < MOST_PARTS) {
            self.add(chunk.kind, &content, metadata.map(|metadata| metadata.0.to_string()));
        }
        if too_long {
            self.add(ChunkKind::Text, CUT, None);
            self.cut = true;
            return Err(ReplyTruncated);
        }
        Ok(())
    }

    fn add(&mut self, kind: ChunkKind, content: &str, metadata: Option<String>) {
        // An empty text is nothing; an empty result of a tool is one.
        if content.is_empty() && kind.is_mergeable() {
            return;
        }
        self.bytes += content.len() + metadata.as_ref().map_or(0, String::len);
        let flows = |last: &&mut Part| last.flows() && last.kind == kind.as_str() && metadata.is_none();
        match self.parts.last_mut().filter(flows) {
            Some(last) => last.content.push_str(content),
            None => self.parts.push(Part { kind: kind.as_str().into(), content: content.into(), metadata }),
        }
    }

    /// The last words, whatever there is already.
    pub fn fail(&mut self, reason: &str) {
        self.add(ChunkKind::Error, head(reason, MAX_UNSPLIT_BYTES), None);
    }

    /// A frame that goes when everything before it was told.
    pub fn signal(&mut self, frame: String) {
        self.signals.push_back((self.end(), frame));
    }

    pub fn has_room(&self) -> bool {
        self.signals.len() < SIGNALS
    }

    /// Nobody is there to be told: what is only of the moment need not wait for ever.
    pub fn forget_old_signals(&mut self) {
        while !self.has_room() {
            self.signals.pop_front();
        }
    }

    fn end(&self) -> Mark {
        match self.parts.last() {
            Some(last) if last.flows() => Mark { part: self.parts.len() - 1, byte: last.content.len() },
            _ => Mark { part: self.parts.len(), byte: 0 },
        }
    }

    /// The hub has this much.
    pub fn resume(&mut self, heard: Mark) {
        let part = heard.part.min(self.parts.len());
        let byte = self.parts.get(part).map_or(0, |at| {
            let whole = at.flows() && at.content.is_char_boundary(heard.byte);
            if whole { heard.byte } else { 0 }
        });
        self.sent = Mark { part, byte };
    }

    pub fn is_told(&self) -> bool {
        self.signals.is_empty() && self.sent >= self.end()
    }

    pub fn next(&mut self) -> Option<OutgoingPiece> {
        if self.signals.front().is_some_and(|(after, _)| *after <= self.sent) {
            return self.signals.pop_front().map(|(_, frame)| OutgoingPiece::Signal(frame));
        }
        loop {
            let part = self.parts.get(self.sent.part)?;
            if !part.flows() {
                self.sent = Mark { part: self.sent.part + 1, byte: 0 };
                return Some(OutgoingPiece::Chunk(part.chunk(&part.content)));
            }
            let piece = head(&part.content[self.sent.byte..], MAX_CHUNK_BYTES);
            if !piece.is_empty() {
                self.sent.byte += piece.len();
                return Some(OutgoingPiece::Chunk(part.chunk(piece)));
            }
            if self.sent.part + 1 == self.parts.len() {
                return None;
            }
            self.sent = Mark { part: self.sent.part + 1, byte: 0 };
        }
    }
}

/// As much of a text as is no longer than this when it is written as JSON.
pub fn head(text: &str, most: usize) -> &str {
    if text.len() * 6 <= most {
        return text;
    }
    let mut length = 0;
    let end = text.char_indices().find(|(_, c)| {
        length += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        length > most
    });
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(content: &str) -> Chunk {
        Chunk { kind: ChunkKind::Text, content: content.into(), metadata: None }
    }

    fn tool(content: &str) -> Chunk {
        Chunk { kind: ChunkKind::ToolUse, content: content.into(), metadata: Some(Payload("{}".into())) }
    }

    fn told(reply: &mut Reply) -> Vec<String> {
        let next = |reply: &mut Reply| match reply.next()? {
            OutgoingPiece::Chunk(chunk) => Some(format!("{} {}", chunk.kind.as_str(), chunk.content)),
            OutgoingPiece::Signal(frame) => Some(frame),
        };
        std::iter::from_fn(|| next(reply)).collect()
    }

    #[test]
    fn what_came_while_nobody_sent_goes_together_and_in_order() {
        let mut reply = Reply::default();
        reply.push(&text("a")).unwrap();
        reply.signal("first".into());
        reply.push(&text("b")).unwrap();
        reply.push(&tool("t")).unwrap();
        reply.push(&text("")).unwrap();
        reply.push(&text("c")).unwrap();
        reply.signal("last".into());
        assert!(!reply.is_told());
        assert_eq!(told(&mut reply), ["text ab", "first", "tool_use t", "text c", "last"]);
        assert!(reply.is_told());
        reply.push(&text("d")).unwrap();
        assert_eq!(told(&mut reply), ["text d"]);
        assert_eq!(reply.text(), "abcd");
    }

    #[test]
    fn it_goes_on_where_the_hub_is() {
        let mut reply = Reply::default();
        reply.push(&text("häy")).unwrap();
        reply.push(&tool("t")).unwrap();
        reply.push(&text("end")).unwrap();
        let cases = [
            ((0, 0), vec!["text häy", "tool_use t", "text end"]),
            ((0, 3), vec!["text y", "tool_use t", "text end"]),
            ((0, 4), vec!["tool_use t", "text end"]),
            ((1, 0), vec!["tool_use t", "text end"]),
            ((2, 1), vec!["text nd"]),
            ((2, 3), vec![]),
            ((9, 9), vec![]),
        ];
        for ((part, byte), expected) in cases {
            reply.resume(Mark { part, byte });
            assert_eq!(told(&mut reply), expected, "{part} {byte}");
        }
    }

    #[test]
    fn a_reply_that_is_too_long_is_cut_and_says_so() {
        let mut reply = Reply::default();
        let piece = "0123456789".repeat(100_000);
        let pushed = (0..20).filter(|_| reply.push(&text(&piece)).is_ok()).count();
        assert_eq!(pushed, 10);
        assert!(reply.text().ends_with(CUT));
        assert!(reply.text().len() < LONGEST_REPLY);
        let mut many = Reply::default();
        while many.push(&tool("x")).is_ok() {}
        assert_eq!((many.parts.len(), many.text()), (MOST_PARTS + 1, CUT.to_owned()));
    }

    #[test]
    fn no_frame_is_larger_than_a_hub_takes() {
        let mut reply = Reply::default();
        reply.push(&tool(&"\u{1}".repeat(1_000_000))).unwrap();
        reply.push(&text(&"\u{1}\"".repeat(1_000_000))).unwrap();
        while let Some(OutgoingPiece::Chunk(chunk)) = reply.next() {
            let written = serde_json::to_string(&*chunk.content).unwrap();
            assert!(written.len() <= MAX_UNSPLIT_BYTES + 100, "{}", written.len());
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn whatever_is_cut_where_nothing_is_lost_or_said_twice(
            said in prop::collection::vec(("[a-zé]{0,6}", any::<bool>()), 0..20),
            cuts in prop::collection::vec(0usize..12, 0..6),
        ) {
            let mut reply = Reply::default();
            let mut expected = String::new();
            for (content, flows) in &said {
                reply.push(&if *flows { text(content) } else { tool(content) }).unwrap();
                expected += content;
            }
            // What the hub has, as it merges what comes; of each connection only the first few frames arrive.
            let mut hub = Reply::default();
            for few in cuts.into_iter().chain([usize::MAX]) {
                reply.resume(hub.end());
                let mut left = few;
                while let Some(next) = reply.next() {
                    let OutgoingPiece::Chunk(chunk) = next else { continue };
                    if left == 0 { break }
                    left -= 1;
                    hub.push(&chunk).unwrap();
                }
            }
            let heard: String = hub.parts.iter().map(|part| part.content.as_str()).collect();
            prop_assert_eq!(heard, expected);
            prop_assert_eq!(hub.parts, reply.parts);
        }
    }
}
