//! Replaces a small file of the workplace atomically: a reader sees the old or the new content.

use crate::Workplace;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, renameat, unlinkat};
use std::io::{self, Write};

/// Writes `content` to a temporary file in the same directory, syncs it and renames it to `name`. A symbolic
/// link with that name is replaced, not followed. The caller holds the lock that belongs to the file, so that
/// two processes never use the temporary name at once.
pub(crate) fn replace_file(
    workplace: &Workplace,
    name: &str,
    content: &[u8],
    mode: Option<Mode>,
) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    // A crash may have left the file, and another program may have put anything in its place.
    match unlinkat(workplace.descriptor(), &temporary, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => {
            return Err(io::Error::new(
                io::Error::from(error).kind(),
                format!("cannot remove {temporary}: {error}"),
            ));
        }
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = workplace.open_file(&temporary, flags, Mode::from_raw_mode(0o644))?;
    let written = (|| {
        if let Some(mode) = mode {
            fchmod(&file, mode)?;
        }
        file.write_all(content)?;
        file.sync_data()?;
        let directory = workplace.descriptor();
        renameat(directory, &temporary, directory, name).map_err(io::Error::from)
    })();
    if written.is_err() {
        // The error of the write is the one to report.
        let _ = unlinkat(workplace.descriptor(), &temporary, AtFlags::empty());
    }
    written
}
