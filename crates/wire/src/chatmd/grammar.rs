//! Parses the lines of `chat.md`.
//!
//! A message line matches this expression after white space at its end was removed, where `\s` is Unicode
//! white space:
//!
//! ```text
//! ^\[([a-zA-Z0-9_-]+)-to-([a-zA-Z0-9_-]+)\](?:\s*@\s*\[([^\]]*)\])?\s*:\s*(.+)$
//! ```
//!
//! The parser is written by hand and linear in the length of the line, because lines come from untrusted
//! programs and may have megabytes.

use super::LineMessage;
use std::collections::HashSet;
use std::hash::BuildHasher;

/// Maximum length of a known name in bytes. Longer names do not take part in the choice of a split, which
/// keeps the choice cheap for hostile headers.
pub const MAX_KNOWN_NAME_BYTES: usize = 256;

/// Parses a message line without its line break. `known` decides between several possible splits at `-to-`:
/// the last split of two known names wins, otherwise the last split of all.
///
/// Returns `None` if the line is not a message. An indented line never is one. The body is left empty,
/// because it depends on the following lines.
pub fn parse<S: BuildHasher>(line: &str, known: &HashSet<String, S>) -> Option<LineMessage> {
    Header::parse(line).map(|header| header.message(known))
}

/// Returns whether the line continues the message directly above it.
pub fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// Returns whether the line has the form of a message, apart from its indentation.
pub fn is_message_like(line: &str) -> bool {
    Header::parse(line.trim_start_matches([' ', '\t'])).is_some()
}

/// Returns the text of a continuation line: one level of indentation (two spaces, one tab or one space) and
/// white space at the end are removed.
pub fn continuation(line: &str) -> &str {
    let line = line.trim_end();
    ["  ", "\t", " "].iter().find_map(|indentation| line.strip_prefix(indentation)).unwrap_or(line)
}

/// The continuation lines of a message, collected into its body.
#[derive(Clone, Debug, Default)]
pub struct Continuations {
    /// Text of the lines up to the last one that is not blank, each with a line feed before it.
    text: String,
    /// Blank lines after `text`. They become part of the body only if another line follows.
    blank_lines: usize,
}

impl Continuations {
    /// Adds a continuation line without its line break.
    pub fn push(&mut self, line: &str) {
        let text = continuation(line);
        if text.is_empty() {
            self.blank_lines += 1;
            return;
        }
        self.text.extend(std::iter::repeat_n('\n', std::mem::take(&mut self.blank_lines) + 1));
        self.text.push_str(text);
    }

    /// Returns the length of the collected text in bytes, including blank lines at its end.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.blank_lines
    }

    /// Returns the body of a message with this text in its header line, or `None` if all lines are blank.
    pub fn body(&self, message: &str) -> Option<String> {
        (!self.text.is_empty()).then(|| [message, &self.text].concat())
    }
}

/// The parts of a message line before the names are split.
pub struct Header<'a> {
    /// Text between the first brackets: at least one valid split at `-to-`.
    names: &'a str,
    broadcast: &'a str,
    message: &'a str,
}

impl<'a> Header<'a> {
    pub fn parse(line: &'a str) -> Option<Self> {
        let rest = line.trim_end().strip_prefix('[')?;
        let end = rest.bytes().position(|byte| !is_name_byte(byte))?;
        let names = &rest[..end];
        let rest = rest[end..].strip_prefix(']')?.trim_start();
        splits(names).next()?;
        let (broadcast, rest) = match rest.strip_prefix('@') {
            Some(list) => list.trim_start().strip_prefix('[')?.split_once(']')?,
            None => ("", rest),
        };
        let message = rest.trim_start().strip_prefix(':')?.trim_start();
        (!message.is_empty()).then_some(Self { names, broadcast, message })
    }

    /// Returns whether known names can change the split.
    pub fn is_ambiguous(&self) -> bool {
        self.names.len() <= 2 * MAX_KNOWN_NAME_BYTES + SEPARATOR.len() && splits(self.names).nth(1).is_some()
    }

    /// Returns the message, with the names split as [`parse`] does.
    pub fn message<S: BuildHasher>(&self, known: &HashSet<String, S>) -> LineMessage {
        let (sender, recipient) = self.split(known);
        LineMessage {
            sender: sender.to_owned(),
            recipient: recipient.to_owned(),
            broadcast: self.observers().map(str::to_owned).collect(),
            message: self.message.to_owned(),
            body: None,
        }
    }

    fn split<S: BuildHasher>(&self, known: &HashSet<String, S>) -> (&'a str, &'a str) {
        let is_known = |name: &str| name.len() <= MAX_KNOWN_NAME_BYTES && known.contains(name);
        let of_known_names = || {
            let mut splits = splits(self.names).rev();
            splits.find(|(sender, recipient)| is_known(sender) && is_known(recipient))
        };
        let chosen = if self.is_ambiguous() { of_known_names() } else { None };
        let last = || splits(self.names).next_back().expect("`parse` accepts only names with a split");
        chosen.unwrap_or_else(last)
    }

    fn observers(&self) -> impl Iterator<Item = &'a str> {
        self.broadcast.split(',').map(str::trim).filter(|name| !name.is_empty())
    }
}

const SEPARATOR: &str = "-to-";

/// Returns every split of `names` at `-to-` into two names that are not empty, in the order of the text.
/// Separators may overlap: `a-to-to-b` has two splits.
fn splits(names: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    let last = names.len().saturating_sub(SEPARATOR.len());
    (1..last)
        .filter(|at| names.as_bytes()[*at..].starts_with(SEPARATOR.as_bytes()))
        .map(|at| (&names[..at], &names[at + SEPARATOR.len()..]))
}

/// Returns whether the text is a valid name of a sender or recipient.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_name_byte)
}

/// Returns whether sender and recipient names may contain this byte.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests;
