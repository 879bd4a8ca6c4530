//! Replaces a small file atomically: a reader sees the old or the new content.

use crate::open_regular;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, renameat, unlinkat};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;

/// Writes `content` to the file `temporary` in the same directory, syncs it and renames it to `name`. A symbolic link with
/// that name is replaced, not followed. No other process may use the temporary name at the same time.
pub fn replace_file(
    directory: BorrowedFd<'_>,
    name: &str,
    temporary: &str,
    content: &[u8],
    mode: Option<Mode>,
) -> io::Result<()> {
    // A crash may have left the file, and another program may have put anything in its place.
    match unlinkat(directory, temporary, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => {
            return Err(io::Error::new(
                io::Error::from(error).kind(),
                format!("cannot remove {temporary}: {error}"),
            ));
        }
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = open_regular(directory, temporary, flags, Mode::from_raw_mode(0o644))?;
    let written = (|| {
        if let Some(mode) = mode {
            fchmod(&file, mode)?;
        }
        file.write_all(content)?;
        file.sync_data()?;
        renameat(directory, temporary, directory, name).map_err(io::Error::from)
    })();
    if written.is_err() {
        // The error of the write is the one to report.
        let _ = unlinkat(directory, temporary, AtFlags::empty());
    }
    written
}
