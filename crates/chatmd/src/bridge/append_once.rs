//! Appends the text of a pending append exactly once, even if a process was killed while it appended.
//!
//! The pending append is saved before the file changes, with the length that the file had. The text is then
//! searched from that length on: text that is complete is not appended again, and a message that was written
//! in part is completed if nothing follows it.

use super::state::{FileLength, PendingAppend};
use crate::Workplace;
use crate::append::{append, lock_chat};
use crate::follow::read_up_to;
use crate::workplace::{CHAT, FileId};
use memchr::memmem::Finder;
use rustix::fs::{AtFlags, OFlags, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Bytes of the file that one step of the search reads.
const SEARCH_BYTES: usize = 1024 * 1024;

/// Location of the appended messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendedOnce {
    pub device: u64,
    pub inode: u64,
    /// Offset of each message of the pending append.
    pub offsets: Vec<u64>,
    /// Incomplete message that a killed process left in the file: its offset and its text.
    pub fragment: Option<(u64, String)>,
}

/// Returns the length of `chat.md`; `None` if there is no such file.
pub fn length(workplace: &Workplace) -> io::Result<Option<FileLength>> {
    match statat(workplace.descriptor(), CHAT, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            let FileId { device, inode } = FileId::of(&stat);
            Ok(Some(FileLength { device, inode, bytes: stat.st_size as u64 }))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Appends the text unless it is in the file already. Blocks while another process holds the lock of the file.
pub fn append_once(workplace: &Workplace, pending: &PendingAppend) -> io::Result<AppendedOnce> {
    let (mut file, id) = lock_chat(workplace, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
    let found = find(&file, id, pending)?.unwrap_or(Found { offset: 0, bytes: 0, is_at_end: false });
    let text = pending.text.as_bytes();
    let mut offsets = Vec::with_capacity(pending.messages.len());
    let mut end = 0;
    // The complete messages, and the start of the first one that is not.
    for message in &pending.messages {
        if end + message.bytes > found.bytes {
            break;
        }
        offsets.push(found.offset + end as u64);
        end += message.bytes;
    }
    let mut appended = AppendedOnce { device: id.device, inode: id.inode, offsets, fragment: None };
    if end == text.len() {
        return Ok(appended);
    }
    let fragment = found.bytes - end;
    if fragment > 0 && found.is_at_end {
        file.write_all(&text[found.bytes..])?;
        file.sync_data()?;
        push_offsets(&mut appended.offsets, found.offset + end as u64, pending);
        return Ok(appended);
    }
    if fragment > 0 {
        let left = String::from_utf8_lossy(&text[end..found.bytes]).into_owned();
        appended.fragment = Some((found.offset + end as u64, left));
    }
    // `append` takes the lock itself.
    drop(file);
    let written = append(workplace, &text[end..], true)?;
    (appended.device, appended.inode) = (written.device, written.inode);
    push_offsets(&mut appended.offsets, written.range.start, pending);
    Ok(appended)
}

/// Adds the offsets of the remaining messages, of which the first is at `start`.
fn push_offsets(offsets: &mut Vec<u64>, start: u64, pending: &PendingAppend) {
    let mut offset = start;
    for message in &pending.messages[offsets.len()..] {
        offsets.push(offset);
        offset += message.bytes as u64;
    }
}

/// The longest part of the pending text in the file.
struct Found {
    offset: u64,
    /// Number of bytes of the text that are at `offset`.
    bytes: usize,
    /// Whether the file ends behind them.
    is_at_end: bool,
}

fn find(file: &File, id: FileId, pending: &PendingAppend) -> io::Result<Option<Found>> {
    let length = file.metadata()?.len();
    let text = pending.text.as_bytes();
    // Another file took the place of the earlier one, or it was truncated: the text may be anywhere.
    let from = pending
        .before
        .filter(|before| (before.device, before.inode) == (id.device, id.inode) && before.bytes <= length);
    let mut from = from.map_or(0, |before| before.bytes);
    // A shorter match could be the start of a line that another program is writing.
    let Some(start) =
        text.iter().position(|byte| *byte == b':').map(|colon| &text[..(colon + 3).min(text.len())])
    else {
        return Ok(None);
    };
    let finder = Finder::new(start);
    let mut best: Option<Found> = None;
    let mut buffer = vec![0; (SEARCH_BYTES + start.len()).min((length - from) as usize)];
    while from < length {
        let read = read_up_to(file, &mut buffer, from)?;
        for at in finder.find_iter(&buffer[..read]) {
            let offset = from + at as u64;
            if !is_line_start(file, offset)? {
                continue;
            }
            let bytes = common_prefix(file, offset, text)?;
            if best.as_ref().is_none_or(|best| best.bytes < bytes) {
                best = Some(Found { offset, bytes, is_at_end: offset + bytes as u64 == length });
            }
        }
        let is_last = from + read as u64 >= length || read < buffer.len();
        if is_last || best.as_ref().is_some_and(|best| best.bytes == text.len()) {
            break;
        }
        // The next part overlaps, so that a match across the boundary is found.
        from += (read + 1 - start.len()) as u64;
    }
    Ok(best)
}

fn is_line_start(file: &File, offset: u64) -> io::Result<bool> {
    let mut before = [b'\n'];
    if offset > 0 {
        file.read_exact_at(&mut before, offset - 1)?;
    }
    Ok(before == [b'\n'])
}

/// Returns how many bytes of `text` are in the file at `offset`.
fn common_prefix(file: &File, offset: u64, text: &[u8]) -> io::Result<usize> {
    let mut buffer = vec![0; text.len().min(SEARCH_BYTES)];
    let mut same = 0;
    while same < text.len() {
        let wanted = buffer.len().min(text.len() - same);
        let read = read_up_to(file, &mut buffer[..wanted], offset + same as u64)?;
        let equal =
            buffer[..read].iter().zip(&text[same..]).take_while(|(left, right)| left == right).count();
        same += equal;
        if equal < wanted {
            break;
        }
    }
    Ok(same)
}

#[cfg(test)]
mod tests;
