//! Archives `chat.md`: moves it to `.workplace/memory/` and creates an empty one.

use crate::Workplace;
use crate::append::lock_chat;
use crate::workplace::{CHAT, MEMORY};
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fsync, mkdirat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// Maximum number of archives of one day.
const MAX_PER_DAY: u32 = 10_000;

/// Moves `chat.md` to `memory/chat-DATE.md`, or to `chat-DATE-2.md` and so on if that name is taken, and
/// creates an empty `chat.md` with the same mode. Returns the new path, or `None` if there was nothing to
/// archive. `date` is `YYYY-MM-DD`.
///
/// The file is moved under the lock of [`crate::append`]. A follower reads the rest of the moved file before it
/// goes on with the new one.
pub fn archive(workplace: &Workplace, date: &str) -> io::Result<Option<PathBuf>> {
    let (file, _) = match lock_chat(workplace, OFlags::RDWR) {
        Ok(locked) => locked,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if metadata.len() == 0 {
        return Ok(None);
    }
    match mkdirat(workplace.descriptor(), MEMORY, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let memory = workplace.open_directory(MEMORY)?.ok_or(io::ErrorKind::NotFound)?;
    let name = move_to_free_name(workplace.descriptor(), memory.as_fd(), date)?;
    create(workplace, &file)?;
    fsync(&memory)?;
    fsync(workplace.descriptor())?;
    Ok(Some(workplace.path().join(MEMORY).join(name)))
}

fn move_to_free_name(from: BorrowedFd<'_>, to: BorrowedFd<'_>, date: &str) -> io::Result<String> {
    for number in 1..=MAX_PER_DAY {
        let name = match number {
            1 => format!("chat-{date}.md"),
            _ => format!("chat-{date}-{number}.md"),
        };
        match rename_without_replacing(from, CHAT, to, &name) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("there are {MAX_PER_DAY} archives of {date}")))
}

/// Creates an empty file with the mode of the archived one, unless another program was faster.
fn create(workplace: &Workplace, archived: &File) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    match workplace.open_file(CHAT, flags, Mode::from_raw_mode(0o600)) {
        Ok(file) => {
            let mode = rustix::fs::fstat(archived)?.st_mode;
            fchmod(&file, Mode::from_raw_mode(mode)).map_err(io::Error::from)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn rename_without_replacing(
    from: BorrowedFd<'_>,
    old: &str,
    to: BorrowedFd<'_>,
    new: &str,
) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
            // The file system lacks the operation.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            renamed => return renamed,
        }
    }
    match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
        Err(error) => Err(error),
    }
}
