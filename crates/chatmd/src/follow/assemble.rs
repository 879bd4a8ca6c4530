//! Assembles lines into messages: a header line and the indented lines directly below it.

use super::known_names::KnownNames;
use super::source::{LinePosition, Source};
use super::{Batch, Notice, ReadMessage};
use crate::Workplace;
use parlor_wire::chatmd::LineMessage;
use parlor_wire::chatmd::grammar::{self, Continuations, Header};

/// Maximum length of the continuation lines of a message in bytes.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

pub struct Assembler {
    context: Context,
    pub known: KnownNames,
    /// Whether the names of agents were refreshed since the last [`Assembler::begin`].
    refreshed: bool,
}

/// Meaning of an indented line at this place.
enum Context {
    /// It continues no message.
    Free,
    /// It continues this message, which was not returned yet.
    Pending(Box<Pending>),
    /// It continues a message that was returned already.
    Returned,
    /// It continues a message whose body reached the limit.
    Full,
}

struct Pending {
    line: LineMessage,
    continuations: Continuations,
    /// Start of the header line.
    start: LinePosition,
    /// Start of the line behind the last continuation line.
    end: LinePosition,
}

impl Assembler {
    /// Creates an assembler. `after_message`: the first line may directly follow a message that was returned before.
    pub fn new(known: KnownNames, after_message: bool) -> Self {
        let context = if after_message { Context::Returned } else { Context::Free };
        Self { context, known, refreshed: false }
    }

    /// Must be called before the lines of a batch.
    pub fn begin(&mut self) {
        self.refreshed = false;
    }

    /// Returns the start of the message that was not returned yet.
    pub fn pending(&self) -> Option<LinePosition> {
        match &self.context {
            Context::Pending(pending) => Some(pending.start),
            _ => None,
        }
    }

    /// Takes the complete line from `start` to `end`, without its line feed in `line`.
    pub fn line(
        &mut self,
        line: &[u8],
        (start, end): (LinePosition, LinePosition),
        source: &Source,
        workplace: &Workplace,
        batch: &mut Batch,
    ) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if grammar::is_indented(line) {
            return self.indented(line, (start, end), source, batch);
        }
        self.flush(source, batch);
        self.context = match line.first() {
            Some(b'[') => self.header(line, (start, end), workplace),
            _ => Context::Free,
        };
    }

    /// Takes a line over the limit.
    pub fn too_long(&mut self, start: LinePosition, bytes: u64, source: &Source, batch: &mut Batch) {
        self.flush(source, batch);
        self.context = Context::Free;
        batch.notices.push(Notice::LineTooLong { line_number: start.lines + 1, bytes });
    }

    /// Returns the pending message: its continuation lines are complete.
    pub fn flush(&mut self, source: &Source, batch: &mut Batch) {
        if let Context::Pending(_) = &self.context
            && let Context::Pending(pending) = std::mem::replace(&mut self.context, Context::Returned)
        {
            let Pending { mut line, continuations, start, end } = *pending;
            line.body = continuations.body(&line.message);
            let (line_number, cursor) = (start.lines + 1, source.cursor(end));
            batch.messages.push(ReadMessage { line, line_number, offset: start.offset, cursor });
        }
    }

    /// Forgets the context of a file that is not followed any more. The caller flushed before.
    pub fn start_file(&mut self, after_message: bool) {
        self.context = if after_message { Context::Returned } else { Context::Free };
    }

    fn header(
        &mut self,
        line: &[u8],
        (start, end): (LinePosition, LinePosition),
        workplace: &Workplace,
    ) -> Context {
        let line = String::from_utf8_lossy(line);
        let Some(header) = Header::parse(&line) else { return Context::Free };
        if header.is_ambiguous() && !self.refreshed {
            self.known.refresh(workplace);
            self.refreshed = true;
        }
        let line = header.message(self.known.all());
        Context::Pending(Box::new(Pending { line, continuations: Continuations::default(), start, end }))
    }

    fn indented(
        &mut self,
        line: &[u8],
        (start, end): (LinePosition, LinePosition),
        source: &Source,
        batch: &mut Batch,
    ) {
        let line_number = start.lines + 1;
        match &mut self.context {
            Context::Pending(pending) if pending.continuations.bytes() + line.len() > MAX_BODY_BYTES => {
                self.flush(source, batch);
                self.context = Context::Full;
                batch.notices.push(Notice::BodyTooLong { line_number });
            }
            Context::Pending(pending) => {
                pending.continuations.push(&String::from_utf8_lossy(line));
                pending.end = end;
            }
            Context::Returned => {
                if !line.trim_ascii().is_empty() {
                    batch.notices.push(Notice::LateContinuation { line_number });
                }
            }
            Context::Free => {
                if grammar::is_message_like(&String::from_utf8_lossy(line)) {
                    batch.notices.push(Notice::IgnoredIndented { line_number });
                }
            }
            Context::Full => {}
        }
    }
}
