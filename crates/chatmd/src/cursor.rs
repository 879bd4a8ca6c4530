//! The position of a reader in `chat.md`, and the file that stores it.

use crate::Workplace;
use serde::{Deserialize, Serialize};
use std::io;

/// Name of the cursor file of `parlor watch`.
pub const CURSOR: &str = ".parlor-cursor";

/// Position in one generation of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Random id of this generation of the file. A truncated, replaced or recreated file is a new generation.
    pub generation: String,
    pub inode: u64,
    pub device: u64,
    /// Offset of the first byte that was not consumed: always the start of a line.
    pub offset: u64,
    /// Number of lines before `offset`.
    pub lines: u64,
    /// Digest of the last bytes before `offset` (at most 256) and of the birth time of the file. It detects a
    /// file that was rewritten, or recreated with the same inode, while no follower was running.
    pub tail: String,
}

/// The file that stores a cursor, locked against other processes as long as this value exists.
pub struct CursorFile {
    _workplace: Workplace,
}

impl CursorFile {
    /// Locks the cursor file `name` (one path component, such as [`CURSOR`]). Fails if another process holds
    /// the lock.
    pub fn lock(workplace: &Workplace, _name: &str) -> io::Result<Self> {
        Ok(Self { _workplace: workplace.clone() })
    }

    /// Reads the stored cursor; `None` if there is no file. A damaged file is an error.
    pub fn read(&self) -> io::Result<Option<Cursor>> {
        Ok(None)
    }

    /// Replaces the stored cursor atomically.
    pub fn save(&self, _cursor: &Cursor) -> io::Result<()> {
        Ok(())
    }
}
