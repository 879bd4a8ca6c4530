//! Renders a message as lines of `chat.md`.
//!
//! The result ends with a line feed, contains no control character except tabs, and parses back to the same
//! sender, recipient, broadcast and text. Text never becomes a message line of its own: its further lines are
//! indented.

use super::names::{self, NameError};
use std::fmt::Write;

/// Maximum length of a rendered line in bytes, without its line feed. Longer lines are cut.
pub const MAX_RENDERED_LINE_BYTES: usize = 1024 * 1024;

/// Text of a message that has no visible text of its own.
pub const NO_TEXT: &str = "(no text)";

const CUT: &str = " … (cut)";
const INDENTATION: &str = "  ";

/// Renders one message with its continuation lines. Names that the grammar forbids are refused; use
/// [`names::encode`] to write them as aliases.
///
/// Leading and trailing blank lines of the text are dropped, as is white space at the end of each line.
pub fn render<S: AsRef<str>>(
    sender: &str,
    recipient: &str,
    broadcast: &[S],
    text: &str,
) -> Result<String, NameError> {
    for name in [sender, recipient].into_iter().chain(broadcast.iter().map(AsRef::as_ref)) {
        names::check(name)?;
    }
    let mut lines = String::with_capacity(text.len() + 64);
    write!(lines, "[{sender}-to-{recipient}]").expect("a String accepts every write");
    if !broadcast.is_empty() {
        let names: Vec<&str> = broadcast.iter().map(AsRef::as_ref).collect();
        write!(lines, " @ [{}]", names.join(", ")).expect("a String accepts every write");
    }
    lines.push_str(": ");
    let header = lines.len();

    let text = escaped(text);
    let mut rest = text.lines().map(str::trim_end).skip_while(|line| line.is_empty()).peekable();
    lines.push_str(rest.next().map_or(NO_TEXT, str::trim_start));
    cut(&mut lines, 0, header);
    lines.push('\n');
    let mut blank = 0;
    for line in rest {
        if line.is_empty() {
            // Written only if a line with text follows, so that trailing blank lines are dropped.
            blank += 1;
            continue;
        }
        for _ in 0..std::mem::take(&mut blank) {
            lines.push_str(INDENTATION);
            lines.push('\n');
        }
        let start = lines.len();
        lines.push_str(INDENTATION);
        lines.push_str(line);
        cut(&mut lines, start, start);
        lines.push('\n');
    }
    Ok(lines)
}

/// Cuts the last line of `lines`, which starts at `start`, to the maximum length. The bytes before `keep`
/// stay, because a line without its complete header is no message.
fn cut(lines: &mut String, start: usize, keep: usize) {
    if lines.len() - start > MAX_RENDERED_LINE_BYTES {
        let end = keep.max(start + MAX_RENDERED_LINE_BYTES - CUT.len());
        lines.truncate(lines.floor_char_boundary(end));
        lines.push_str(CUT);
    }
}

/// Returns the text with `\n` as its only line break and with visible escapes for other control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                out.push('\n');
            }
            '\n' | '\t' => out.push(character),
            '\u{2028}' | '\u{2029}' => out.extend(character.escape_unicode()),
            _ if character.is_control() => out.extend(character.escape_unicode()),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests;
