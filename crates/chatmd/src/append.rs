//! Appends whole lines to `chat.md`.
//!
//! Owns: the lock of the file. Appending and archiving hold an exclusive `flock` of the file itself, and check
//! after locking that the file still has its name: a program that waited for the lock while the file was
//! archived starts again with the new file.

use crate::Workplace;
use crate::workplace::{CHAT, FileId};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Time for which a lock is awaited.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two attempts to lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Location of appended text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    pub device: u64,
    pub inode: u64,
    /// Bytes of the text in the file.
    pub range: Range<u64>,
}

/// Appends whole lines with one `write` under an exclusive `flock` of the file, creating the file if it is
/// missing. If the file does not end with a line feed, the same `write` adds one before the text. Syncs the
/// file if `durable`. Blocks for at most ten seconds if another process holds the lock.
///
/// The text must end with a line feed. After an error the file has its old length, unless another program
/// appended to it at the same time.
pub fn append(workplace: &Workplace, text: &[u8], durable: bool) -> io::Result<Appended> {
    if !text.ends_with(b"\n") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "appended text must end with a line feed"));
    }
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
    let (mut file, id) = lock_chat(workplace, flags)?;
    let size = file.metadata()?.len();
    let mut last = [b'\n'];
    if size > 0 {
        file.read_exact_at(&mut last, size - 1)?;
    }
    let written = match last {
        [b'\n'] => file.write_all(text),
        _ => file.write_all(&[b"\n", text].concat()),
    };
    if let Err(error) = written {
        take_back(&mut file, size);
        return Err(error);
    }
    // A write with O_APPEND moves the position of the descriptor to the end of the written bytes.
    let end = file.stream_position()?;
    if durable {
        file.sync_data()?;
    }
    Ok(Appended { device: id.device, inode: id.inode, range: end - text.len() as u64..end })
}

/// Opens `chat.md` and locks it. The lock ends when the file is closed.
pub(crate) fn lock_chat(workplace: &Workplace, flags: OFlags) -> io::Result<(File, FileId)> {
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let file = workplace.open_file(CHAT, flags, mode)?;
        wait_for_lock(&file, deadline)?;
        let id = FileId::of(&fstat(&file)?);
        if workplace.chat_id()? == Some(id) {
            return Ok((file, id));
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{CHAT} is replaced all the time")));
        }
    }
}

fn wait_for_lock(file: &File, deadline: Instant) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOCK_INTERVAL),
            Err(Errno::WOULDBLOCK) => {
                let message = format!("another process has locked {CHAT}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes the part of a line that was written before an error, unless another program has appended since.
fn take_back(file: &mut File, size: u64) {
    let own_end = file.stream_position();
    let end = file.metadata().map(|metadata| metadata.len());
    if let (Ok(own_end), Ok(end)) = (own_end, end)
        && own_end == end
        && end > size
    {
        // The error of the write is the one to report.
        let _ = file.set_len(size);
    }
}
