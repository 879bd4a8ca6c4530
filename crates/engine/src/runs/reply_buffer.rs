//! What an agent has said so far, so that a late joiner sees it and nothing is lost when the agent is.
//!
//! Owns: the finished text equals the chunks. Neighbouring texts and thoughts are one chunk that came in pieces;
//! everything else keeps its own.

use parlor_model::{Chunk, ChunkKind};
use std::sync::Arc;

/// How many chunks that do not flow together, and how many bytes, one reply may have.
#[derive(Debug, Clone, Copy)]
pub struct ReplyLimits {
    pub chunks: usize,
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTooLong;

/// A place in what was said: everything before it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ReplyOffset {
    part: usize,
    byte: usize,
}

impl ReplyOffset {
    /// So many whole parts, and so many bytes of the next.
    pub fn place(self) -> (usize, usize) {
        (self.part, self.byte)
    }
}

#[derive(Debug, Default)]
pub struct ReplyBuffer {
    parts: Vec<ReplyPart>,
    bytes: usize,
}

/// A chunk that may still grow.
#[derive(Debug)]
struct ReplyPart {
    kind: ChunkKind,
    content: String,
    metadata: Option<parlor_model::Payload>,
}

impl ReplyPart {
    fn flows(&self) -> bool {
        self.kind.is_mergeable() && self.metadata.is_none()
    }

    fn chunk(&self, from: usize, to: usize) -> Chunk {
        Chunk { kind: self.kind, content: self.content[from..to].into(), metadata: self.metadata.clone() }
    }
}

impl ReplyBuffer {
    pub fn push(&mut self, chunk: &Chunk, bounds: ReplyLimits) -> Result<(), ReplyTooLong> {
        let metadata = chunk.metadata.as_ref().map_or(0, |metadata| metadata.0.len());
        let bytes = self.bytes + chunk.content.len() + metadata;
        if bytes > bounds.bytes {
            return Err(ReplyTooLong);
        }
        let flows =
            |last: &&mut ReplyPart| last.kind == chunk.kind && last.flows() && chunk.metadata.is_none();
        let full = self.parts.len() >= bounds.chunks;
        if let Some(last) = self.parts.last_mut().filter(flows) {
            last.content.push_str(&chunk.content);
        } else if full {
            return Err(ReplyTooLong);
        } else {
            let (content, metadata) = (chunk.content.as_ref().into(), chunk.metadata.clone());
            self.parts.push(ReplyPart { kind: chunk.kind, content, metadata });
        }
        self.bytes = bytes;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Behind everything that was said.
    pub fn end(&self) -> ReplyOffset {
        match self.parts.last() {
            Some(last) if last.flows() => {
                ReplyOffset { part: self.parts.len() - 1, byte: last.content.len() }
            }
            _ => ReplyOffset { part: self.parts.len(), byte: 0 },
        }
    }

    /// How many bytes lie between the two.
    pub fn length(&self, from: ReplyOffset, to: ReplyOffset) -> usize {
        let parts = self.parts.iter().enumerate().take(to.part + 1).skip(from.part);
        parts
            .map(|(place, part)| {
                let begin = if place == from.part { from.byte } else { 0 };
                let end = if place == to.part { to.byte } else { part.content.len() };
                end - begin
            })
            .sum()
    }

    /// The next piece between the two and the mark behind it; of what flows, at most so many bytes.
    pub fn next(&self, mut from: ReplyOffset, to: ReplyOffset, most: usize) -> Option<(Chunk, ReplyOffset)> {
        while from < to {
            let part = self.parts.get(from.part)?;
            let end = if from.part == to.part { to.byte } else { part.content.len() };
            let next_part = ReplyOffset { part: from.part + 1, byte: 0 };
            if !part.flows() {
                return Some((part.chunk(0, end), next_part));
            }
            if from.byte < end {
                let most = part.content.floor_char_boundary((from.byte + most).min(end));
                // A character that is longer than what is allowed is not cut.
                let until =
                    if most > from.byte { most } else { part.content.ceil_char_boundary(from.byte + 1) };
                let reached = ReplyOffset { byte: until, ..from };
                return Some((part.chunk(from.byte, until), reached));
            }
            from = next_part;
        }
        None
    }

    /// The tools that were called.
    pub fn tools(&self) -> Vec<Chunk> {
        let calls = self.parts.iter().filter(|part| part.kind == ChunkKind::ToolUse);
        calls.map(|part| part.chunk(0, part.content.len())).collect()
    }

    pub fn chunks(&self) -> Vec<Chunk> {
        self.parts.iter().map(|part| part.chunk(0, part.content.len())).collect()
    }

    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter(|part| part.kind == ChunkKind::Text);
        texts.map(|part| part.content.as_str()).collect()
    }

    /// The reply as it is kept. What the agent says it was counts, unless it is only the beginning of what was
    /// heard: then the frame that said so was too small for it.
    pub fn finish(&self, said: Option<&str>) -> (Arc<str>, Vec<Chunk>) {
        let heard = self.text();
        let text = match said {
            Some(said) if !heard.starts_with(said) => said.into(),
            _ => heard.into(),
        };
        (text, self.chunks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDE: ReplyLimits = ReplyLimits { chunks: 5000, bytes: 10_000 };

    fn chunk(kind: ChunkKind, content: &str) -> Chunk {
        Chunk { kind, content: content.into(), metadata: None }
    }

    fn heard(pieces: &[(ChunkKind, &str)]) -> ReplyBuffer {
        let mut reply_buffer = ReplyBuffer::default();
        for (kind, content) in pieces {
            reply_buffer.push(&chunk(*kind, content), WIDE).unwrap();
        }
        reply_buffer
    }

    #[test]
    fn only_neighbouring_texts_and_thoughts_flow_together() {
        use ChunkKind::{Error, Text, Thinking, ToolResult, ToolUse};
        let reply_buffer = heard(&[
            (Thinking, "h"),
            (Thinking, "m"),
            (Text, "a"),
            (Text, "b"),
            (ToolUse, "x"),
            (ToolUse, "y"),
            (ToolResult, "1"),
            (ToolResult, "2"),
            (Error, "e"),
            (Error, "f"),
            (Text, "c"),
        ]);
        let parts: Vec<String> =
            reply_buffer.chunks().iter().map(|chunk| chunk.content.to_string()).collect();
        assert_eq!(parts, ["hm", "ab", "x", "y", "1", "2", "e", "f", "c"]);
        assert_eq!(reply_buffer.text(), "abc");
    }

    #[test]
    fn what_the_agent_says_it_was_counts_unless_more_was_heard() {
        let reply_buffer = heard(&[(ChunkKind::Text, "part1 "), (ChunkKind::Text, "part2")]);
        let text = |said| reply_buffer.finish(said).0.to_string();
        assert_eq!(text(None), "part1 part2");
        assert_eq!(text(Some("part1 ")), "part1 part2", "cut off to fit into a frame");
        assert_eq!(text(Some("")), "part1 part2");
        assert_eq!(text(Some("part1 part2 and more")), "part1 part2 and more", "a piece was lost on its way");
        assert_eq!(text(Some("Error: exit 3")), "Error: exit 3");
        assert_eq!(ReplyBuffer::default().finish(Some("all at once")).0.as_ref(), "all at once");
    }

    #[test]
    fn what_is_too_long_changes_nothing() {
        let narrow = ReplyLimits { chunks: 2, bytes: 5 };
        let mut reply_buffer = ReplyBuffer::default();
        reply_buffer.push(&chunk(ChunkKind::Text, "abc"), narrow).unwrap();
        assert_eq!(reply_buffer.push(&chunk(ChunkKind::Text, "def"), narrow), Err(ReplyTooLong));
        reply_buffer.push(&chunk(ChunkKind::ToolUse, "t"), narrow).unwrap();
        assert_eq!(
            reply_buffer.push(&chunk(ChunkKind::Text, "d"), narrow),
            Err(ReplyTooLong),
            "a third that does not flow"
        );
        assert_eq!(reply_buffer.text(), "abc");
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn the_text_is_that_of_the_pieces_in_order(pieces in prop::collection::vec((any::<bool>(), ".{0,5}"), 0..40)) {
            let mut rollup = ReplyBuffer::default();
            let mut expected = String::new();
            for (spoken, content) in &pieces {
                let kind = if *spoken { ChunkKind::Text } else { ChunkKind::ToolUse };
                rollup.push(&chunk(kind, content), WIDE).unwrap();
                if *spoken {
                    expected.push_str(content);
                }
            }
            prop_assert_eq!(rollup.text(), expected.clone());
            prop_assert_eq!(rollup.finish(None).0, expected.into());
        }
    }
}
