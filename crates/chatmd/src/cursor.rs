//! The position of a reader in `chat.md`, and the file that stores it.

use crate::Workplace;
use crate::replace::replace_file;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
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
pub struct CursorFile {
    workplace: Workplace,
    name: String,
    /// Holds the lock. It is a file of its own, because saving replaces the cursor file.
    _lock: File,
}

impl CursorFile {
    /// Locks the cursor file `name` (one path component, such as [`CURSOR`]). Fails with
    /// [`io::ErrorKind::WouldBlock`] if another process holds the lock.
    pub fn lock(workplace: &Workplace, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = workplace.open_file(&format!("{name}.lock"), flags, Mode::from_raw_mode(0o644))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { workplace: workplace.clone(), name: name.to_owned(), _lock: lock }),
            Err(Errno::WOULDBLOCK) => {
                let path = workplace.path().join(name);
                let message = format!("another process uses the cursor {}", path.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, message))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the stored cursor; `None` if there is no file. A damaged file is an error of the kind
    /// [`io::ErrorKind::InvalidData`].
    pub fn read(&self) -> io::Result<Option<Cursor>> {
        let file = match self.workplace.open_file(&self.name, OFlags::RDONLY, Mode::empty()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            let path = self.workplace.path().join(&self.name);
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged: {error}", path.display()))
        })
    }

    /// Replaces the stored cursor atomically and durably.
    pub fn save(&self, cursor: &Cursor) -> io::Result<()> {
        let text = serde_json::to_vec(cursor)?;
        replace_file(&self.workplace, &self.name, &text, None)
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

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String accepts every write");
    }
    text
}
