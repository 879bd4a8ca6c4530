//! Replaces a small file of the workplace atomically: a reader sees the old or the new content.

use crate::Workplace;
use rustix::fs::Mode;
use std::io;

/// Replaces a file through a temporary one. The caller holds the lock that belongs to the file, so that two processes never
/// use the temporary name at once.
pub(crate) fn replace_file(
    workplace: &Workplace,
    name: &str,
    content: &[u8],
    mode: Option<Mode>,
) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    parlor_safe_files::replace_file(workplace.descriptor(), name, &temporary, content, mode)
}
