//! Follows `chat.md`: reads complete messages in order, across truncation, replacement and restarts.
//!
//! Owns: the decision which file is read, and when a message is complete. A file that takes the place of the
//! followed one is opened as soon as it is noticed and read after the rest of the old file, so that lines
//! written around the replacement are not lost. [`Follower::poll`] does not wait and takes the time from its
//! caller.

mod assemble;
mod changes;
mod known_names;
mod notice;
mod source;

pub use assemble::MAX_BODY_BYTES;
pub use notice::Notice;
pub use source::MAX_LINE_BYTES;
pub(crate) use source::read_up_to;

use crate::workplace::{CHAT, FileId, MEMORY, names, open_regular};
use crate::{Cursor, Workplace};
use assemble::Assembler;
use changes::Changes;
use known_names::KnownNames;
use parlor_wire::chatmd::LineMessage;
use rustix::fs::{AtFlags, Mode, OFlags, statat};
use source::{LinePosition, Progress, Source};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Time without data after which a message has no further continuation lines.
pub const QUIET_PERIOD: Duration = Duration::from_millis(200);

/// Time for which an old file is read at most after another file took its place. Within that time, the
/// follower goes on with the new file once the old one has been quiet for [`QUIET_PERIOD`].
const REPLACED_FILE_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of replaced files that wait to be read. Each holds a descriptor.
const MAX_SUCCESSORS: usize = 16;

/// Number of replaced files whose position is remembered, in case one returns to its place.
const MAX_PAST: usize = 16;

/// Place from which a follower starts to read.
#[derive(Clone, Debug)]
pub enum Start {
    /// The saved position; without one, the end of the file.
    Cursor(Option<Cursor>),
    Beginning,
    End,
}

/// A complete message with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    pub line: LineMessage,
    /// Number of the header line in the file, starting at 1.
    pub line_number: u64,
    /// Offset of the first byte of the header line.
    pub offset: u64,
    /// Position behind the message and its continuation lines.
    pub cursor: Cursor,
}

/// Result of one [`Follower::poll`].
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<ReadMessage>,
    pub notices: Vec<Notice>,
    /// More input is available: call [`Follower::poll`] again without waiting.
    pub more: bool,
    /// Time at which [`Follower::poll`] has something to do even if the file does not change.
    pub wake_at: Option<Instant>,
}

/// Reads the messages of a file that other programs append to.
pub struct Follower {
    workplace: Workplace,
    source: Source,
    /// Files that took the place of `source`, oldest first.
    successors: VecDeque<Successor>,
    /// Last positions in replaced files.
    past: VecDeque<Cursor>,
    assembler: Assembler,
    consumed: Cursor,
    last_data: Option<Instant>,
    /// Notices about the start, for the first batch.
    initial: Vec<Notice>,
    /// Reason of the last `Notice::Unusable`, which is not repeated while it lasts.
    unusable: Option<String>,
    changes: Option<Changes>,
    /// Scratch space of `Source::read`.
    buffer: Vec<u8>,
}

struct Successor {
    source: Source,
    noticed: Instant,
}

impl Follower {
    /// Opens `chat.md`, creating it if it is missing. Starting at the end reads the whole file once, to count
    /// its lines; starting at a cursor does not.
    ///
    /// A cursor of a file that was renamed within the workplace, or archived, is continued there first. If
    /// the content does not fit the cursor, the file is read from its beginning.
    pub fn open(workplace: Workplace, start: Start) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CREATE;
        let file = workplace.open_file(CHAT, flags, Mode::from_raw_mode(0o644))?;
        let mut source = Source::new(file)?;
        let (mut initial, mut successors) = (Vec::new(), VecDeque::new());
        match start {
            Start::Beginning => {}
            Start::End | Start::Cursor(None) => source.skip_to_end()?,
            Start::Cursor(Some(cursor)) if !source.resume(&cursor)? => {
                if source.id() == (FileId { device: cursor.device, inode: cursor.inode }) {
                    initial.push(Notice::Rewritten);
                } else if let Some(previous) = find_file(&workplace, &cursor) {
                    let successor = std::mem::replace(&mut source, previous);
                    successors.push_back(Successor { source: successor, noticed: Instant::now() });
                } else {
                    initial.extend([Notice::PreviousFileMissing, Notice::Replaced]);
                }
            }
            Start::Cursor(Some(_)) => {}
        }
        let assembler = Assembler::new(KnownNames::default(), source.line.offset > 0);
        let consumed = source.cursor(source.line);
        Ok(Self {
            workplace,
            source,
            successors,
            past: VecDeque::new(),
            assembler,
            consumed,
            last_data: None,
            initial,
            unusable: None,
            changes: None,
            buffer: Vec::new(),
        })
    }

    /// Sets names that decide an ambiguous split at `-to-`. The follower itself adds those of
    /// `.workplace/agents/*.md`.
    pub fn set_known_names(&mut self, names: impl IntoIterator<Item = String>) {
        self.assembler.known.set(names);
    }

    /// Returns the names of `.workplace/agents/*.md`, sorted.
    pub fn agent_names(&mut self) -> &[String] {
        self.assembler.known.refresh(&self.workplace);
        self.assembler.known.agents()
    }

    /// Reads complete messages, at most about 1 MiB of input. A message is complete when the next line, or
    /// 200 ms without data before `now`, shows that no continuation line follows.
    pub fn poll(&mut self, now: Instant) -> Batch {
        let mut batch = Batch { notices: std::mem::take(&mut self.initial), ..Batch::default() };
        self.assembler.begin();
        let looked = self.look_for_successor(now);
        let read = self.read(now, &mut batch);
        let reason = read.and(looked).err().map(|error| error.to_string());
        if reason.is_some() && reason != self.unusable {
            batch.notices.extend(reason.clone().map(Notice::Unusable));
        }
        self.unusable = reason;

        if !batch.more {
            self.complete(now, &mut batch);
        }
        let position = self.assembler.pending().unwrap_or(self.source.line);
        if !self.source.is_at(&self.consumed, position) {
            self.consumed = self.source.cursor(position);
        }
        self.source.forget();
        batch
    }

    /// Waits until the file may have changed, until `wake_at`, or for at most one second.
    pub async fn changed(&mut self, wake_at: Option<Instant>) {
        let changes = self.changes.get_or_insert_with(|| Changes::watch(&self.workplace));
        changes.wait(wake_at).await;
    }

    /// Returns the position behind the last returned message and all lines after it that belong to no message.
    pub fn cursor(&self) -> Cursor {
        self.consumed.clone()
    }

    /// Opens the file that is at the path now, if it is another one.
    fn look_for_successor(&mut self, now: Instant) -> io::Result<()> {
        let newest = self.successors.back().map_or(self.source.id(), |successor| successor.source.id());
        match self.workplace.chat_id()? {
            Some(id) if id != newest && self.successors.len() < MAX_SUCCESSORS => {}
            _ => return Ok(()),
        }
        let opened = self.workplace.open_file(CHAT, OFlags::RDONLY, Mode::empty()).and_then(Source::new);
        match opened {
            Ok(source) if source.id() != newest => {
                self.successors.push_back(Successor { source, noticed: now });
                Ok(())
            }
            // The file was removed or moved back in the meantime.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, now: Instant, batch: &mut Batch) -> io::Result<()> {
        let notice = match self.source.read(&mut self.buffer)? {
            Progress::Idle => return Ok(()),
            Progress::Data { from, full } => {
                self.last_data = Some(now);
                batch.more = full;
                self.take_lines(from, batch);
                return Ok(());
            }
            Progress::Edited => {
                batch.notices.push(Notice::Edited);
                // The digest of the cursor must be the one of the new content. The cursor before a pending message
                // is followed by another one as soon as that message is complete.
                if self.assembler.pending().is_none() {
                    self.consumed = self.source.cursor(self.source.line);
                }
                return Ok(());
            }
            Progress::Linked => {
                return Err(io::Error::other(format!("{CHAT} is not used: it is a hard link")));
            }
            Progress::Truncated => Notice::Truncated,
            Progress::Rewritten => Notice::Rewritten,
        };
        self.assembler.flush(&self.source, batch);
        batch.notices.push(notice);
        self.source.restart()?;
        self.assembler.start_file(false);
        batch.more = true;
        Ok(())
    }

    /// Takes the lines that were completed by the bytes from `from` on.
    fn take_lines(&mut self, from: u64, batch: &mut Batch) {
        let (source, workplace) = (&self.source, &self.workplace);
        let mut start = source.line;
        for newline in memchr::memchr_iter(b'\n', source.bytes_from(from)) {
            let at = from + newline as u64;
            let end = LinePosition { offset: at + 1, lines: start.lines + 1 };
            let bytes = at - start.offset;
            if bytes > MAX_LINE_BYTES {
                self.assembler.too_long(start, bytes, source, batch);
            } else {
                let line = &source.bytes_from(start.offset)[..bytes as usize];
                self.assembler.line(line, (start, end), source, workplace, batch);
            }
            start = end;
        }
        self.source.line = start;
        let incomplete = self.source.unread();
        let may_continue = incomplete.first().is_none_or(|byte| matches!(byte, b' ' | b'\t'));
        if !may_continue || incomplete.len() as u64 > MAX_LINE_BYTES {
            self.assembler.flush(&self.source, batch);
        }
    }

    /// Returns the last message, and goes on with the next file, if the current one has been quiet for long
    /// enough.
    fn complete(&mut self, now: Instant, batch: &mut Batch) {
        let mut wake_at = None;
        if self.assembler.pending().is_some() {
            match self.last_data.map(|last| last + QUIET_PERIOD) {
                Some(quiet_at) if now < quiet_at => wake_at = Some(quiet_at),
                _ => self.assembler.flush(&self.source, batch),
            }
        }
        if let Some(successor) = self.successors.front() {
            let noticed = successor.noticed;
            let quiet_at = self.last_data.map_or(noticed, |last| last.max(noticed)) + QUIET_PERIOD;
            let switch_at = quiet_at.min(noticed + REPLACED_FILE_LIMIT);
            if now < switch_at {
                wake_at = Some(wake_at.map_or(switch_at, |at| at.min(switch_at)));
            } else if let Some(next) = self.successors.pop_front() {
                self.switch(next.source, batch);
            }
        }
        batch.wake_at = wake_at;
    }

    fn switch(&mut self, next: Source, batch: &mut Batch) {
        self.assembler.flush(&self.source, batch);
        let bytes = self.source.end() - self.source.line.offset;
        if bytes > 0 {
            let line_number = self.source.line.lines + 1;
            batch.notices.push(Notice::UnreadRemainder { line_number, bytes });
        } else {
            self.past.push_back(self.source.cursor(self.source.line));
            self.past.drain(..self.past.len().saturating_sub(MAX_PAST));
        }
        batch.notices.push(Notice::Replaced);
        self.source = next;
        // A file that was moved away and back is continued, not read again.
        let position = self.past.iter().rposition(|past| self.source.resume(past).unwrap_or(false));
        position.and_then(|position| self.past.remove(position));
        self.assembler.start_file(position.is_some());
        batch.more = true;
    }
}

/// Searches the workplace and its archive for the file of the cursor, and goes to the position in it.
fn find_file(workplace: &Workplace, cursor: &Cursor) -> Option<Source> {
    let memory = workplace.open_directory(MEMORY).ok().flatten();
    let directories = [Some(workplace.descriptor()), memory.as_ref().map(AsFd::as_fd)];
    directories.into_iter().flatten().find_map(|directory| find_in(directory, cursor))
}

fn find_in(directory: BorrowedFd<'_>, cursor: &Cursor) -> Option<Source> {
    let wanted = FileId { device: cursor.device, inode: cursor.inode };
    let is_wanted = |name: &&String| {
        let stat = statat(directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileId::of(&stat) == wanted)
    };
    let names = names(directory).ok()?;
    let name = names.iter().find(is_wanted)?;
    let file = open_regular(directory, name, OFlags::RDONLY, Mode::empty()).ok()?;
    let mut source = Source::new(file).ok()?;
    source.resume(cursor).ok()?.then_some(source)
}
