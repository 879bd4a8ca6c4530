//! The reply of a run, and the position up to which it was sent to the hub.
//!
//! Owns: consecutive text chunks are merged into one growing part, exactly as the hub does, so that both
//! agree on positions after a reconnect; a reply over the size limit is truncated and says so; no frame is
//! larger than the hub accepts. Chunks are cut only when they can be sent, so text that arrives while the
//! connection is busy is sent together.

use parlor_model::{Chunk, ChunkKind, Payload};
use parlor_wire::agentim::gateway::ingress::{MAX_CHUNKS, MAX_REPLY_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Maximum bytes of mergeable text in one frame, in its JSON form.
const MAX_CHUNK_BYTES: usize = 32 * 1024;
/// Maximum bytes of a part that cannot be split, in its JSON form; the rest is cut off.
const MAX_UNSPLIT_BYTES: usize = 160 * 1024;
/// Maximum bytes of a chunk's metadata; larger metadata is left out.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Maximum number of queued run-event frames.
const MAX_SIGNALS: usize = 256;
/// Text appended to a truncated reply.
const TRUNCATION_NOTICE: &str = "\n\n[This reply was longer than 10 MB. The rest is left out.]";
/// Text appended to a part that was cut off.
const SHORTENED: &str = "… [shortened]";
/// Maximum bytes of a reply, with space left for the notice and an error.
const MAX_SENT_REPLY_BYTES: usize = MAX_REPLY_BYTES - 1024;
/// Maximum number of parts of a reply, with space left for the notice and an error.
const MAX_PARTS: usize = MAX_CHUNKS - 8;

#[derive(Debug, Default)]
pub struct Reply {
    parts: Vec<Part>,
    bytes: usize,
    truncated: bool,
    sent: ReplyPosition,
    /// Frames to send between chunks, each with the position of the reply after which it is sent.
    signals: VecDeque<(ReplyPosition, String)>,
}

/// A part of a reply: merged text, or one chunk that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    kind: String,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
}

/// A position in a reply: the number of complete parts, and the bytes of the part after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplyPosition {
    pub part: usize,
    pub byte: usize,
}

/// The next item to send to the hub.
#[derive(Debug, PartialEq, Eq)]
pub enum OutgoingPiece {
    Chunk(Chunk),
    /// A complete frame.
    Signal(String),
}

/// Error: the reply has reached its maximum size and accepts no more chunks.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplyTruncated;

impl Part {
    fn kind(&self) -> ChunkKind {
        ChunkKind::parse(&self.kind).unwrap_or(ChunkKind::Text)
    }

    /// Whether further chunks of the same kind can be appended to this part.
    fn is_mergeable(&self) -> bool {
        self.kind().is_mergeable() && self.metadata.is_none()
    }

    fn chunk(&self, content: &str) -> Chunk {
        let metadata = self.metadata.as_deref().map(|text| Payload(text.into()));
        Chunk { kind: self.kind(), content: content.into(), metadata }
    }
}

impl Reply {
    /// Restores a reply from its stored parts.
    pub fn of(parts: Vec<Part>) -> Self {
        Self { bytes: parts.iter().map(|part| part.content.len()).sum(), parts, ..Self::default() }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The text of the reply, without thinking, tool calls and errors.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter(|part| part.kind() == ChunkKind::Text);
        texts.map(|part| part.content.as_str()).collect()
    }

    /// Appends a chunk. When the reply reaches its maximum size, it is truncated and an error is returned.
    pub fn push(&mut self, chunk: &Chunk) -> Result<(), ReplyTruncated> {
        if self.truncated {
            return Err(ReplyTruncated);
        }
        let mergeable = chunk.kind.is_mergeable() && chunk.metadata.is_none();
        let metadata = chunk.metadata.as_ref().filter(|metadata| metadata.0.len() <= MAX_METADATA_BYTES);
        let metadata_bytes = metadata.map_or(0, |metadata| metadata.0.len());
        let max_bytes = if mergeable { usize::MAX } else { MAX_UNSPLIT_BYTES - metadata_bytes };
        let mut content = head(&chunk.content, max_bytes).to_owned();
        if content.len() < chunk.content.len() {
            content += SHORTENED;
        }
        let remaining = MAX_SENT_REPLY_BYTES.saturating_sub(self.bytes + metadata_bytes);
        let too_long = content.len() > remaining || self.parts.len() >= MAX_PARTS;
        if too_long && mergeable {
            let end = (0..=remaining.min(content.len())).rev().find(|at| content.is_char_boundary(*at));
            content.truncate(end.unwrap_or(0));
        }
        if !too_long || (mergeable && self.parts.len() < MAX_PARTS) {
            self.add(chunk.kind, &content, metadata.map(|metadata| metadata.0.to_string()));
        }
        if too_long {
            self.add(ChunkKind::Text, TRUNCATION_NOTICE, None);
            self.truncated = true;
            return Err(ReplyTruncated);
        }
        Ok(())
    }

    fn add(&mut self, kind: ChunkKind, content: &str, metadata: Option<String>) {
        // An empty text adds no part, but an empty tool result is a part.
        if content.is_empty() && kind.is_mergeable() {
            return;
        }
        self.bytes += content.len() + metadata.as_ref().map_or(0, String::len);
        let can_merge =
            |last: &&mut Part| last.is_mergeable() && last.kind == kind.as_str() && metadata.is_none();
        match self.parts.last_mut().filter(can_merge) {
            Some(last) => last.content.push_str(content),
            None => self.parts.push(Part { kind: kind.as_str().into(), content: content.into(), metadata }),
        }
    }

    /// Appends the reason of a failed run, even if the reply is truncated.
    pub fn fail(&mut self, reason: &str) {
        self.add(ChunkKind::Error, head(reason, MAX_UNSPLIT_BYTES), None);
    }

    /// Queues a frame that is sent after all content that the reply has now.
    pub fn signal(&mut self, frame: String) {
        self.signals.push_back((self.end(), frame));
    }

    pub fn has_space(&self) -> bool {
        self.signals.len() < MAX_SIGNALS
    }

    /// Drops the oldest signals until there is space, for a hub that is disconnected: signals are ephemeral.
    pub fn drop_old_signals(&mut self) {
        while !self.has_space() {
            self.signals.pop_front();
        }
    }

    fn end(&self) -> ReplyPosition {
        match self.parts.last() {
            Some(last) if last.is_mergeable() => {
                ReplyPosition { part: self.parts.len() - 1, byte: last.content.len() }
            }
            _ => ReplyPosition { part: self.parts.len(), byte: 0 },
        }
    }

    /// Continues from the position that the hub has received. An invalid byte position restarts its part.
    pub fn resume(&mut self, received: ReplyPosition) {
        let part = received.part.min(self.parts.len());
        let byte = self.parts.get(part).map_or(0, |part| {
            let valid = part.is_mergeable() && part.content.is_char_boundary(received.byte);
            if valid { received.byte } else { 0 }
        });
        self.sent = ReplyPosition { part, byte };
    }

    pub fn is_sent(&self) -> bool {
        self.signals.is_empty() && self.sent >= self.end()
    }

    pub fn next(&mut self) -> Option<OutgoingPiece> {
        if self.signals.front().is_some_and(|(after, _)| *after <= self.sent) {
            return self.signals.pop_front().map(|(_, frame)| OutgoingPiece::Signal(frame));
        }
        loop {
            let part = self.parts.get(self.sent.part)?;
            if !part.is_mergeable() {
                self.sent = ReplyPosition { part: self.sent.part + 1, byte: 0 };
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
            self.sent = ReplyPosition { part: self.sent.part + 1, byte: 0 };
        }
    }
}

/// The longest prefix of a text whose JSON form has at most `max_bytes` bytes.
pub fn head(text: &str, max_bytes: usize) -> &str {
    if text.len() * 6 <= max_bytes {
        return text;
    }
    let mut length = 0;
    let end = text.char_indices().find(|(_, c)| {
        length += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        length > max_bytes
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

    /// Takes all items that remain to be sent.
    fn drain(reply: &mut Reply) -> Vec<String> {
        let next = |reply: &mut Reply| match reply.next()? {
            OutgoingPiece::Chunk(chunk) => Some(format!("{} {}", chunk.kind.as_str(), chunk.content)),
            OutgoingPiece::Signal(frame) => Some(frame),
        };
        std::iter::from_fn(|| next(reply)).collect()
    }

    #[test]
    fn output_that_waited_is_sent_merged_and_in_order() {
        let mut reply = Reply::default();
        reply.push(&text("a")).unwrap();
        reply.signal("first".into());
        reply.push(&text("b")).unwrap();
        reply.push(&tool("t")).unwrap();
        reply.push(&text("")).unwrap();
        reply.push(&text("c")).unwrap();
        reply.signal("last".into());
        assert!(!reply.is_sent());
        assert_eq!(drain(&mut reply), ["text ab", "first", "tool_use t", "text c", "last"]);
        assert!(reply.is_sent());
        reply.push(&text("d")).unwrap();
        assert_eq!(drain(&mut reply), ["text d"]);
        assert_eq!(reply.text(), "abcd");
    }

    #[test]
    fn sending_resumes_at_the_position_of_the_hub() {
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
            reply.resume(ReplyPosition { part, byte });
            assert_eq!(drain(&mut reply), expected, "{part} {byte}");
        }
    }

    #[test]
    fn a_reply_over_the_limit_is_truncated_and_says_so() {
        let mut reply = Reply::default();
        let piece = "0123456789".repeat(100_000);
        let pushed = (0..20).filter(|_| reply.push(&text(&piece)).is_ok()).count();
        assert_eq!(pushed, 10);
        assert!(reply.text().ends_with(TRUNCATION_NOTICE));
        assert!(reply.text().len() < MAX_REPLY_BYTES);
        let mut many = Reply::default();
        while many.push(&tool("x")).is_ok() {}
        assert_eq!((many.parts.len(), many.text()), (MAX_PARTS + 1, TRUNCATION_NOTICE.to_owned()));
    }

    #[test]
    fn no_chunk_is_larger_than_the_hub_accepts() {
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
        fn no_output_is_lost_or_sent_twice_wherever_connections_break(
            contents in prop::collection::vec(("[a-zé]{0,6}", any::<bool>()), 0..20),
            cuts in prop::collection::vec(0usize..12, 0..6),
        ) {
            let mut reply = Reply::default();
            let mut expected = String::new();
            for (content, is_text) in &contents {
                reply.push(&if *is_text { text(content) } else { tool(content) }).unwrap();
                expected += content;
            }
            // The hub's copy, which merges chunks in the same way. Only the first `few` frames of each
            // connection arrive.
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
            let received: String = hub.parts.iter().map(|part| part.content.as_str()).collect();
            prop_assert_eq!(received, expected);
            prop_assert_eq!(hub.parts, reply.parts);
        }
    }
}
