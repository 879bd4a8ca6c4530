//! Buffer of a streaming reply. Late joiners read it from the start, and it preserves the reply if the agent
//! is lost.
//!
//! Owns: the finished text equals the concatenated text chunks. Adjacent text chunks are merged, and so are
//! adjacent thinking chunks; all other chunks stay separate.

use parlor_model::{Chunk, ChunkKind};
use std::sync::Arc;

/// Maximum number of chunks after merging, and maximum bytes, of one reply.
#[derive(Debug, Clone, Copy)]
pub struct ReplyLimits {
    pub chunks: usize,
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTooLong;

/// Position in a reply; everything before it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ReplyOffset {
    part: usize,
    byte: usize,
}

impl ReplyOffset {
    /// Number of complete parts, and number of bytes of the next part.
    pub fn place(self) -> (usize, usize) {
        (self.part, self.byte)
    }
}

#[derive(Debug, Default)]
pub struct ReplyBuffer {
    parts: Vec<ReplyPart>,
    bytes: usize,
}

/// A chunk that can still grow by merging.
#[derive(Debug)]
struct ReplyPart {
    kind: ChunkKind,
    content: String,
    metadata: Option<parlor_model::Payload>,
}

impl ReplyPart {
    fn is_mergeable(&self) -> bool {
        self.kind.is_mergeable() && self.metadata.is_none()
    }

    fn chunk(&self, from: usize, to: usize) -> Chunk {
        Chunk { kind: self.kind, content: self.content[from..to].into(), metadata: self.metadata.clone() }
    }
}

impl ReplyBuffer {
    pub fn push(&mut self, chunk: &Chunk, limits: ReplyLimits) -> Result<(), ReplyTooLong> {
        let metadata = chunk.metadata.as_ref().map_or(0, |metadata| metadata.0.len());
        let bytes = self.bytes + chunk.content.len() + metadata;
        if bytes > limits.bytes {
            return Err(ReplyTooLong);
        }
        let is_mergeable = |last: &&mut ReplyPart| {
            last.kind == chunk.kind && last.is_mergeable() && chunk.metadata.is_none()
        };
        let full = self.parts.len() >= limits.chunks;
        if let Some(last) = self.parts.last_mut().filter(is_mergeable) {
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

    /// Position after the last byte.
    pub fn end(&self) -> ReplyOffset {
        match self.parts.last() {
            Some(last) if last.is_mergeable() => {
                ReplyOffset { part: self.parts.len() - 1, byte: last.content.len() }
            }
            _ => ReplyOffset { part: self.parts.len(), byte: 0 },
        }
    }

    /// Number of bytes between two positions.
    pub fn length(&self, from: ReplyOffset, to: ReplyOffset) -> usize {
        let parts = self.parts.iter().enumerate().take(to.part + 1).skip(from.part);
        parts
            .map(|(index, part)| {
                let begin = if index == from.part { from.byte } else { 0 };
                let end = if index == to.part { to.byte } else { part.content.len() };
                end - begin
            })
            .sum()
    }

    /// Returns the next chunk between two positions, and the position after it. A mergeable part is split
    /// into chunks of at most `max_bytes` bytes.
    pub fn next(&self, from: ReplyOffset, to: ReplyOffset, max_bytes: usize) -> Option<(Chunk, ReplyOffset)> {
        let (part, from, until, reached) = self.next_range(from, to, max_bytes)?;
        Some((part.chunk(from, until), reached))
    }

    /// Returns the position after the next chunk between two positions.
    pub fn next_offset(&self, from: ReplyOffset, to: ReplyOffset, max_bytes: usize) -> Option<ReplyOffset> {
        self.next_range(from, to, max_bytes).map(|(.., reached)| reached)
    }

    /// The part of the next chunk, its first byte and its end in that part, and the position after it.
    fn next_range(
        &self,
        mut from: ReplyOffset,
        to: ReplyOffset,
        max_bytes: usize,
    ) -> Option<(&ReplyPart, usize, usize, ReplyOffset)> {
        while from < to {
            let part = self.parts.get(from.part)?;
            let end = if from.part == to.part { to.byte } else { part.content.len() };
            let next_part = ReplyOffset { part: from.part + 1, byte: 0 };
            if !part.is_mergeable() {
                return Some((part, 0, end, next_part));
            }
            if from.byte < end {
                let limit = part.content.floor_char_boundary((from.byte + max_bytes).min(end));
                // A character longer than `max_bytes` is not split.
                let until =
                    if limit > from.byte { limit } else { part.content.ceil_char_boundary(from.byte + 1) };
                return Some((part, from.byte, until, ReplyOffset { byte: until, ..from }));
            }
            from = next_part;
        }
        None
    }

    /// Tool calls of the reply.
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

    /// Returns the text and the chunks to store. `final_text`, the full text sent by the agent, wins unless
    /// it is only a prefix of the streamed text: then it was truncated to fit into a frame.
    pub fn finish(&self, final_text: Option<&str>) -> (Arc<str>, Vec<Chunk>) {
        let streamed = self.text();
        let text = match final_text {
            Some(text) if !streamed.starts_with(text) => text.into(),
            _ => streamed.into(),
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

    fn buffer_of(chunks: &[(ChunkKind, &str)]) -> ReplyBuffer {
        let mut reply_buffer = ReplyBuffer::default();
        for (kind, content) in chunks {
            reply_buffer.push(&chunk(*kind, content), WIDE).unwrap();
        }
        reply_buffer
    }

    #[test]
    fn only_adjacent_text_or_thinking_chunks_are_merged() {
        use ChunkKind::{Error, Text, Thinking, ToolResult, ToolUse};
        let reply_buffer = buffer_of(&[
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
    fn the_final_text_wins_unless_it_is_a_prefix_of_the_streamed_text() {
        let reply_buffer = buffer_of(&[(ChunkKind::Text, "part1 "), (ChunkKind::Text, "part2")]);
        let text = |final_text| reply_buffer.finish(final_text).0.to_string();
        assert_eq!(text(None), "part1 part2");
        assert_eq!(text(Some("part1 ")), "part1 part2", "truncated to fit into a frame");
        assert_eq!(text(Some("")), "part1 part2");
        assert_eq!(text(Some("part1 part2 and more")), "part1 part2 and more", "a chunk was lost");
        assert_eq!(text(Some("Error: exit 3")), "Error: exit 3");
        assert_eq!(ReplyBuffer::default().finish(Some("all at once")).0.as_ref(), "all at once");
    }

    #[test]
    fn a_chunk_beyond_the_limits_leaves_the_buffer_unchanged() {
        let narrow = ReplyLimits { chunks: 2, bytes: 5 };
        let mut reply_buffer = ReplyBuffer::default();
        reply_buffer.push(&chunk(ChunkKind::Text, "abc"), narrow).unwrap();
        assert_eq!(reply_buffer.push(&chunk(ChunkKind::Text, "def"), narrow), Err(ReplyTooLong));
        reply_buffer.push(&chunk(ChunkKind::ToolUse, "t"), narrow).unwrap();
        assert_eq!(
            reply_buffer.push(&chunk(ChunkKind::Text, "d"), narrow),
            Err(ReplyTooLong),
            "a third chunk that cannot be merged"
        );
        assert_eq!(reply_buffer.text(), "abc");
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn the_text_is_the_concatenation_of_the_text_chunks(chunks in prop::collection::vec((any::<bool>(), ".{0,5}"), 0..40)) {
            let mut reply_buffer = ReplyBuffer::default();
            let mut expected = String::new();
            for (is_text, content) in &chunks {
                let kind = if *is_text { ChunkKind::Text } else { ChunkKind::ToolUse };
                reply_buffer.push(&chunk(kind, content), WIDE).unwrap();
                if *is_text {
                    expected.push_str(content);
                }
            }
            prop_assert_eq!(reply_buffer.text(), expected.clone());
            prop_assert_eq!(reply_buffer.finish(None).0, expected.into());
        }
    }
}
