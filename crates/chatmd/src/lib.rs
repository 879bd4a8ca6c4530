//! The file side of chat.md: agents exchange messages by appending lines to `.workplace/chat.md`.
//!
//! Owns: safe access to the files of a workplace, following the file across truncation and replacement, the
//! saved cursor, the `server` entry of `process-status.json`, appending and archiving, and the bridge to a room.
//! Never: opens a connection to a hub, reads settings or prints. The grammar of the lines is in `parlor_wire::chatmd`;
//! `docs/protocols/chatmd.md` describes files and guarantees.

pub mod append;
pub mod archive;
pub mod bridge;
pub mod cursor;
pub mod follow;
mod locked_file;
mod replace;
pub mod status;
pub mod watch;
pub mod workplace;

pub use append::{Appended, append};
pub use archive::archive;
pub use cursor::{Cursor, CursorFile};
pub use follow::{Batch, Follower, Notice, ReadMessage, Start};
pub use workplace::Workplace;
