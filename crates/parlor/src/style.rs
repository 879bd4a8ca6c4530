//! Terminal styling: bold and colour on a terminal, plain text everywhere else.

use parlor_model::characters::is_deceptive;
use std::{fmt::Display, io::IsTerminal};

/// Applies ANSI styles if enabled.
#[derive(Clone, Copy, Debug)]
pub struct TerminalStyle {
    enabled: bool,
}

impl TerminalStyle {
    pub const PLAIN: Self = Self { enabled: false };
    pub const COLOURED: Self = Self { enabled: true };

    /// Enables styles if standard output is a terminal, unless `NO_COLOR` or `TERM=dumb` disables them.
    pub fn for_stdout() -> Self {
        let disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { enabled: std::io::stdout().is_terminal() && !disabled }
    }

    pub fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.with("2", text)
    }

    pub fn link(self, text: impl Display) -> String {
        self.with("36", text)
    }

    pub fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }

    pub fn bad(self, text: impl Display) -> String {
        self.with("1;31", text)
    }

    pub fn warning(self, text: impl Display) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: impl Display) -> String {
        match self.enabled {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
}

/// Escapes control characters and bidirectional marks, so that untrusted text cannot control the terminal or
/// reverse a line.
pub fn escape_control(text: &str) -> String {
    text.chars()
        .map(|c| if is_deceptive(c) { c.escape_unicode().to_string() } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_style_emits_no_escape_codes() {
        assert_eq!(TerminalStyle::PLAIN.bold("x") + &TerminalStyle::PLAIN.warning("y"), "xy");
        assert_eq!(TerminalStyle::COLOURED.bold("x"), "\x1b[1mx\x1b[0m");
    }

    #[test]
    fn control_characters_and_bidirectional_marks_are_escaped() {
        assert_eq!(escape_control("Ada \x1b]52;c;x\x07"), "Ada \\u{1b}]52;c;x\\u{7}");
        assert_eq!(escape_control("a\u{202e}b\nc"), "a\\u{202e}b\\u{a}c");
        assert_eq!(escape_control("Zoë 周"), "Zoë 周");
    }
}
