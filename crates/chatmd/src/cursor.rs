//! The position of a reader in `chat.md`, and the file that stores it.

use crate::Workplace;
use crate::locked_file::LockedFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the cursor file of `parlor watch`.
pub const CURSOR: &str = ".parlor-cursor";

/// Bytes before the position that the digest of a cursor covers.
pub const TAIL_BYTES: usize = 256;

/// Maximum size of a cursor file.
const MAX_FILE_BYTES: u64 = 16 * 1024;

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
pub struct CursorFile(LockedFile);

impl CursorFile {
    /// Locks the cursor file `name` (one path component, such as [`CURSOR`]). Fails with
    /// [`io::ErrorKind::WouldBlock`] if another process holds the lock.
    pub fn lock(workplace: &Workplace, name: &str) -> io::Result<Self> {
        LockedFile::lock(workplace, name, "another watch runs on this project and uses").map(Self)
    }

    /// Reads the stored cursor; `None` if there is no file. A damaged file is an error of the kind
    /// [`io::ErrorKind::InvalidData`].
    pub fn read(&self) -> io::Result<Option<Cursor>> {
        self.0.read_json(MAX_FILE_BYTES)
    }

    /// Replaces the stored cursor atomically and durably.
    pub fn save(&self, cursor: &Cursor) -> io::Result<()> {
        self.0.replace(&serde_json::to_vec(cursor)?)
    }
}

/// Returns a new random id of a generation.
pub(crate) fn new_generation() -> io::Result<String> {
    let mut id = [0; 12];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&id))
}

pub(crate) fn tail_digest(birth: Option<SystemTime>, tail: &[u8]) -> String {
    let birth = birth.and_then(|birth| birth.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let digest = Sha256::new().chain_update(birth.as_nanos().to_le_bytes()).chain_update(tail).finalize();
    hex(&digest[..16])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String accepts every write");
    }
    text
}
