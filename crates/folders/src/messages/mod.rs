//! The mirror of mail in `.messages`: one file per mailbox, to which the hub appends.
//!
//! The store decides. A file of another program is imported once; from then on the hub appends each new message of the
//! mailbox, and a message again when its status changes, so that the last line of an id counts. Where the hub continues
//! after a crash follows from the file itself, so that no message is left out or appended twice.

mod line;
mod mirror;
mod names;
mod unmatched;

pub use mirror::{Existence, Mirror};

/// Directory of the files, in the root.
pub const MESSAGES: &str = ".messages";
