//! Follows `chat.md`: reads complete messages in order, across truncation, replacement and restarts.

use crate::{Cursor, Workplace};
use parlor_wire::chatmd::LineMessage;
use std::io;
use std::time::Instant;

/// Place from which a follower starts to read.
#[derive(Clone, Debug)]
pub enum Start {
    /// The saved position; without one, the end of the file.
    Cursor(Option<Cursor>),
    Beginning,
    End,
}

/// A complete message with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    pub line: LineMessage,
    /// Number of the header line in the file, starting at 1.
    pub line_number: u64,
    /// Offset of the first byte of the header line.
    pub offset: u64,
    /// Position behind the message and its continuation lines.
    pub cursor: Cursor,
}

/// An observation that is no message. Its text is meant for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A continuation line arrived after its message was returned. Its text is not part of any message.
    LateContinuation { line_number: u64 },
    /// A line was longer than the limit and was skipped.
    LineTooLong { line_number: u64, bytes: u64 },
    /// The body of a message reached the limit. The continuation lines from this one on were skipped.
    BodyTooLong { line_number: u64 },
    /// An indented line looks like a message but continues none. It was skipped.
    IgnoredIndented { line_number: u64 },
    /// The file became shorter. It is read again from its beginning.
    Truncated,
    /// The content before the current position changed. The file is read again from its beginning.
    Rewritten,
    /// Lines that were already read changed in place. They are not read again.
    Edited,
    /// Another file has taken the place of the followed one. It is read from its beginning.
    Replaced,
    /// The old file ended with an incomplete line when another file took its place.
    UnreadRemainder { line_number: u64, bytes: u64 },
    /// The file cannot be read now, with the reason. It is tried again.
    Unusable(String),
}

/// Result of one [`Follower::poll`].
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<ReadMessage>,
    pub notices: Vec<Notice>,
    /// More input is available: call [`Follower::poll`] again without waiting.
    pub more: bool,
    /// Time at which [`Follower::poll`] has something to do even if the file does not change.
    pub wake_at: Option<Instant>,
}

/// Reads the messages of a file that other programs append to.
pub struct Follower {
    cursor: Cursor,
}

impl Follower {
    /// Opens `chat.md`, creating it if it is missing.
    pub fn open(_workplace: Workplace, _start: Start) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets names that decide an ambiguous split at `-to-`. The follower itself adds those of
    /// `.workplace/agents/*.md`.
    pub fn set_known_names(&mut self, _names: impl IntoIterator<Item = String>) {}

    /// Reads complete messages, at most about 1 MiB of input. A message is complete when the next line, or
    /// 200 ms without data before `now`, shows that no continuation line follows.
    pub fn poll(&mut self, _now: Instant) -> Batch {
        Batch::default()
    }

    /// Waits until the file may have changed, until `wake_at`, or for at most one second.
    pub async fn changed(&mut self, _wake_at: Option<Instant>) {}

    /// Returns the position behind the last returned message and all lines after it that belong to no message.
    pub fn cursor(&self) -> Cursor {
        self.cursor.clone()
    }
}
