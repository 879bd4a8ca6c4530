//! One generation of `chat.md`: an open file and the bytes of it that are still needed.
//!
//! Owns: reading, and the detection of truncation and rewriting. The last bytes before the reading position
//! stay in memory and are compared with the file at every read, so a file that was truncated and grew again
//! between two reads is noticed.

use crate::cursor::{Cursor, TAIL_BYTES, new_generation, tail_digest};
use crate::workplace::FileId;
use rustix::fs::fstat;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::SystemTime;

/// Bytes that one read adds at most.
pub const CHUNK_BYTES: usize = 256 * 1024;
/// Maximum length of a line in bytes, without its line feed.
pub const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

pub struct Source {
    file: File,
    id: FileId,
    generation: String,
    birth: Option<SystemTime>,
    /// Times of the last change that was examined: seconds and nanoseconds of modification and status change.
    changed: [i64; 4],
    /// Content of the file up to `end()`, starting at the offset `start`.
    bytes: Vec<u8>,
    start: u64,
    /// Position of the first line that is not complete.
    pub line: LinePosition,
}

/// Start of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePosition {
    pub offset: u64,
    /// Number of lines before it.
    pub lines: u64,
}

/// Result of [`Source::read`].
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes were added at the offset `from`. `full` if there may be more.
    Data { from: u64, full: bool },
    /// There is nothing new.
    Idle,
    /// Lines that were read changed in place; the last one did not.
    Edited,
    /// The file is shorter than the complete lines that were read.
    Truncated,
    /// The file has other content before the reading position.
    Rewritten,
    /// The file has another hard link and must not be read.
    Linked,
}

impl Source {
    /// Starts at the beginning of the file.
    pub fn new(file: File) -> io::Result<Self> {
        let id = FileId::of(&fstat(&file)?);
        let birth = file.metadata()?.created().ok();
        let line = LinePosition { offset: 0, lines: 0 };
        let generation = new_generation()?;
        Ok(Self { file, id, generation, birth, changed: [0; 4], bytes: Vec::new(), start: 0, line })
    }

    /// Goes to the position of the cursor. Returns false and changes nothing if the file does not have the
    /// content for which the cursor was made.
    pub fn resume(&mut self, cursor: &Cursor) -> io::Result<bool> {
        let plausible = FileId { device: cursor.device, inode: cursor.inode } == self.id
            && cursor.offset <= self.file.metadata()?.len()
            && cursor.lines <= cursor.offset;
        if !plausible {
            return Ok(false);
        }
        let Some(tail) = self.tail_before(cursor.offset)? else { return Ok(false) };
        let ends_a_line = tail.last().is_none_or(|byte| *byte == b'\n');
        if !ends_a_line || tail_digest(self.birth, &tail) != cursor.tail {
            return Ok(false);
        }
        self.generation.clone_from(&cursor.generation);
        self.go_to(LinePosition { offset: cursor.offset, lines: cursor.lines }, tail);
        Ok(true)
    }

    /// Goes to the position of a cursor of another file, if this file has the same bytes before it as far as the
    /// cursor tells. Its lines stay a generation of their own. Returns false and changes nothing otherwise.
    pub fn resume_content(&mut self, cursor: &Cursor) -> io::Result<bool> {
        let plausible =
            (1..=self.file.metadata()?.len()).contains(&cursor.offset) && cursor.lines <= cursor.offset;
        if !plausible {
            return Ok(false);
        }
        let Some(tail) = self.tail_before(cursor.offset)? else { return Ok(false) };
        if tail.last() != Some(&b'\n') || tail_digest(None, &tail) != cursor.content {
            return Ok(false);
        }
        self.go_to(LinePosition { offset: cursor.offset, lines: cursor.lines }, tail);
        Ok(true)
    }

    /// Goes behind the last complete line. Reads the whole file, because the position has a line number.
    pub fn skip_to_end(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 1024 * 1024];
        let (mut end, mut line) = (0, LinePosition { offset: 0, lines: 0 });
        loop {
            let read = self.file.read_at(&mut buffer, end)?;
            if read == 0 {
                break;
            }
            let bytes = &buffer[..read];
            if let Some(last) = memchr::memrchr(b'\n', bytes) {
                line.offset = end + last as u64 + 1;
                line.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
            }
            end += read as u64;
        }
        // A file that was truncated meanwhile is read from its beginning.
        if let Some(tail) = self.tail_before(line.offset)? {
            self.go_to(line, tail);
        }
        Ok(())
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// Returns the offset behind the last byte that was read.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Returns the bytes from the start of the current line on. Empty while a line over the limit is skipped.
    pub fn unread(&self) -> &[u8] {
        match self.line.offset.checked_sub(self.start) {
            Some(at) => self.bytes.get(at as usize..).unwrap_or_default(),
            None => &[],
        }
    }

    /// Returns the bytes from `offset` on, or from the first one that is in memory.
    pub fn bytes_from(&self, offset: u64) -> &[u8] {
        &self.bytes[offset.saturating_sub(self.start) as usize..]
    }

    /// Returns the cursor of a line that starts at or after the current line at the last [`Self::forget`].
    pub fn cursor(&self, at: LinePosition) -> Cursor {
        let end = (at.offset - self.start) as usize;
        let tail = &self.bytes[end.saturating_sub(TAIL_BYTES)..end];
        Cursor {
            generation: self.generation.clone(),
            inode: self.id.inode,
            device: self.id.device,
            offset: at.offset,
            lines: at.lines,
            tail: tail_digest(self.birth, tail),
            content: tail_digest(None, tail),
        }
    }

    /// Returns whether the cursor is at this line of this generation.
    pub fn is_at(&self, cursor: &Cursor, line: LinePosition) -> bool {
        cursor.offset == line.offset && cursor.generation == self.generation
    }

    /// Starts a new generation at the beginning of the same file.
    pub fn restart(&mut self) -> io::Result<()> {
        self.generation = new_generation()?;
        self.go_to(LinePosition { offset: 0, lines: 0 }, Vec::new());
        Ok(())
    }

    /// Reads at most [`CHUNK_BYTES`] more. `buffer` is scratch space.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<Progress> {
        let metadata = self.file.metadata()?;
        if metadata.nlink() > 1 {
            return Ok(Progress::Linked);
        }
        let changed = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        let size = metadata.len();
        if size == self.end() && changed == self.changed {
            return Ok(Progress::Idle);
        }
        self.changed = changed;
        loop {
            let progress = self.read_to(size, buffer)?;
            let differs = matches!(progress, Progress::Truncated | Progress::Rewritten);
            // A writer may take back or change an incomplete line: then every complete line is as before.
            if !differs || !self.drop_incomplete_line() {
                return Ok(progress);
            }
        }
    }

    fn read_to(&mut self, size: u64, buffer: &mut Vec<u8>) -> io::Result<Progress> {
        let end = self.end();
        let Some(new) = size.checked_sub(end) else { return Ok(Progress::Truncated) };
        let tail = &self.bytes[self.bytes.len().saturating_sub(TAIL_BYTES)..];
        buffer.resize(tail.len() + new.min(CHUNK_BYTES as u64) as usize, 0);
        let read = read_up_to(&self.file, buffer, end - tail.len() as u64)?;
        let Some((tail_now, new)) = buffer[..read].split_at_checked(tail.len()) else {
            return Ok(Progress::Truncated);
        };
        if tail_now != tail {
            if !new.is_empty() || !is_only_edited(tail, tail_now) {
                return Ok(Progress::Rewritten);
            }
            self.bytes.truncate(self.bytes.len() - tail_now.len());
            self.bytes.extend_from_slice(tail_now);
            return Ok(Progress::Edited);
        }
        self.bytes.extend_from_slice(new);
        match new.len() {
            0 => Ok(Progress::Idle),
            length => Ok(Progress::Data { from: end, full: length == CHUNK_BYTES }),
        }
    }

    /// Drops the bytes behind the last complete line. Returns false if memory contains no such bytes.
    fn drop_incomplete_line(&mut self) -> bool {
        let kept = self.line.offset.checked_sub(self.start).map(|kept| kept as usize);
        let dropped = kept.filter(|kept| *kept < self.bytes.len());
        dropped.inspect(|kept| self.bytes.truncate(*kept)).is_some()
    }

    /// Drops the bytes that are not needed any more.
    pub fn forget(&mut self) {
        let is_skipping = self.end() - self.line.offset > MAX_LINE_BYTES;
        let needed = if is_skipping { self.end() } else { self.line.offset };
        let keep = needed.saturating_sub(TAIL_BYTES as u64).max(self.start);
        self.bytes.drain(..(keep - self.start) as usize);
        self.start = keep;
        // The buffer of a long line is given back.
        if self.bytes.capacity() > 4 * CHUNK_BYTES && self.bytes.len() < CHUNK_BYTES {
            self.bytes.shrink_to(2 * CHUNK_BYTES);
        }
    }

    fn go_to(&mut self, line: LinePosition, tail: Vec<u8>) {
        self.start = line.offset - tail.len() as u64;
        self.bytes = tail;
        self.line = line;
        self.changed = [0; 4];
    }

    /// Reads the last bytes before `offset`, or `None` if the file is shorter.
    fn tail_before(&self, offset: u64) -> io::Result<Option<Vec<u8>>> {
        let length = offset.min(TAIL_BYTES as u64);
        let mut tail = vec![0; length as usize];
        let read = read_up_to(&self.file, &mut tail, offset - length)?;
        Ok((read == tail.len()).then_some(tail))
    }
}

/// Returns whether the last line that is not blank is the same in both texts, which have the same length.
fn is_only_edited(old: &[u8], new: &[u8]) -> bool {
    let line_feed = memchr::memrchr(b'\n', old.trim_ascii_end());
    line_feed.is_some_and(|at| old[at + 1..] == new[at + 1..])
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
pub(crate) fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
