//! Observations of a follower that are no messages.

use std::fmt;

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
    /// Another file with the same content has taken the place of the followed one. Reading goes on behind it.
    Continued,
    /// The old file ended with an incomplete line when another file took its place.
    UnreadRemainder { line_number: u64, bytes: u64 },
    /// The file of the saved cursor was not found. Lines of it that were not read are lost.
    PreviousFileMissing,
    /// The file cannot be read now, with the reason. It is tried again.
    Unusable(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LateContinuation { line_number } => {
                write!(f, "line {line_number} continues a message that was already printed, and is ignored")
            }
            Self::LineTooLong { line_number, bytes } => {
                write!(f, "line {line_number} has {bytes} bytes and is ignored: a line has at most 4 MiB")
            }
            Self::BodyTooLong { line_number } => write!(
                f,
                "line {line_number} and the following continuation lines are ignored: a message has at most 4 MiB"
            ),
            Self::IgnoredIndented { line_number } => {
                write!(f, "line {line_number} is ignored: it is indented and continues no message")
            }
            Self::Truncated => f.write_str("chat.md became shorter: reading it from its beginning"),
            Self::Rewritten => f.write_str("chat.md was rewritten: reading it from its beginning"),
            Self::Edited => {
                f.write_str("lines of chat.md that were already read have changed: they are not read again")
            }
            Self::Replaced => f.write_str("chat.md is another file now: reading it from its beginning"),
            Self::Continued => {
                f.write_str("chat.md is another file with the same content: going on behind it")
            }
            Self::UnreadRemainder { line_number, bytes } => write!(
                f,
                "the replaced chat.md ended with an incomplete line {line_number} of {bytes} bytes, which is ignored"
            ),
            Self::PreviousFileMissing => f.write_str(
                "the file that was read before is gone: lines of it that were not read yet are lost",
            ),
            Self::Unusable(reason) => f.write_str(reason),
        }
    }
}
