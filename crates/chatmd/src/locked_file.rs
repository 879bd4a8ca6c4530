//! A small file of the workplace that belongs to one process: locked, and replaced atomically.

use crate::Workplace;
use crate::replace::replace_file;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};

/// A file that no other process uses as long as this value exists.
pub(crate) struct LockedFile {
    workplace: Workplace,
    name: String,
    /// Holds the lock. It is a file of its own, because saving replaces the file.
    _lock: File,
}

impl LockedFile {
    /// Locks the file `name` (one path component), which need not exist. Fails with
    /// [`io::ErrorKind::WouldBlock`] and this message, followed by the path, if another process holds the lock.
    pub fn lock(workplace: &Workplace, name: &str, if_locked: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let lock = workplace.open_file(&format!("{name}.lock"), flags, Mode::from_raw_mode(0o644))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { workplace: workplace.clone(), name: name.to_owned(), _lock: lock }),
            Err(Errno::WOULDBLOCK) => {
                let path = workplace.path().join(name);
                let message = format!("{if_locked} {}", path.display());
                Err(io::Error::new(io::ErrorKind::WouldBlock, message))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the content from JSON; `None` if there is no file. Content that is damaged or longer than
    /// `max_bytes` is an error of the kind [`io::ErrorKind::InvalidData`].
    pub fn read_json<T: DeserializeOwned>(&self, max_bytes: u64) -> io::Result<Option<T>> {
        let file = match self.workplace.open_file(&self.name, OFlags::RDONLY, Mode::empty()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut content = Vec::new();
        file.take(max_bytes).read_to_end(&mut content)?;
        serde_json::from_slice(&content)
            .map(Some)
            .map_err(|error| self.invalid(&format!("is damaged: {error}")))
    }

    /// Returns an error about the content of the file.
    pub fn invalid(&self, why: &str) -> io::Error {
        let path = self.workplace.path().join(&self.name);
        io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", path.display()))
    }

    /// Replaces the content atomically and durably.
    pub fn replace(&self, content: &[u8]) -> io::Result<()> {
        replace_file(&self.workplace, &self.name, content, None)
    }
}
