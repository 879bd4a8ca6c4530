//! Renders the events of a bridge for the terminal and the log.

use crate::style::{TerminalStyle, escape_control};
use parlor_chatmd::Notice;
use parlor_chatmd::bridge::BridgeNotice;
use std::fmt::Write;
use std::path::Path;
use url::Url;

pub fn startup(server: &Url, chat: &Path, room: &str, terminal_style: TerminalStyle) -> String {
    let mut text = format!(
        "\n  {} {}\n\n",
        terminal_style.bold("Parlor bridge"),
        terminal_style.dim(env!("CARGO_PKG_VERSION"))
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {}  {value}", terminal_style.dim(format!("{name:4}")));
    };
    line("Hub", terminal_style.link(server.as_str().trim_end_matches('/')));
    line("Room", escape_control(room));
    line("File", escape_control(&chat.display().to_string()));
    text + "\n"
}

/// Renders an event as a line of the terminal.
pub fn notice(notice: &BridgeNotice, terminal_style: TerminalStyle) -> String {
    let mark = match notice {
        BridgeNotice::Connected => terminal_style.good("●"),
        BridgeNotice::Lost { .. } => terminal_style.warning("○"),
        _ => terminal_style.warning("!"),
    };
    format!("  {mark} {}\n", text(notice))
}

/// Describes an event in one line, without control characters.
pub fn text(notice: &BridgeNotice) -> String {
    let text = match notice {
        BridgeNotice::Connected => "connected".into(),
        BridgeNotice::Lost { why, again } => {
            format!("lost: {why}, retrying in {:.1} s", again.as_secs_f32())
        }
        BridgeNotice::LineRefused { line_number, why } => {
            format!("line {line_number} was refused by the hub and is skipped: {why}")
        }
        BridgeNotice::ContinuesOwnLine { line_number } => {
            format!("a continuation of line {line_number}, which is a message of the room, is ignored")
        }
        BridgeNotice::HistoryReplaced => {
            "the hub has another history than before: messages may be missing in the file".into()
        }
        BridgeNotice::NotWritten { why } => format!("cannot write: {why}; retrying"),
        BridgeNotice::File(Notice::LateContinuation { line_number }) => {
            format!("line {line_number} continues a message that was already sent, and is ignored")
        }
        BridgeNotice::File(notice) => notice.to_string(),
    };
    escape_control(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_hub_cannot_control_the_terminal() {
        let refused = BridgeNotice::LineRefused { line_number: 7, why: "no\x1b[2J".into() };
        assert_eq!(
            notice(&refused, TerminalStyle::PLAIN),
            "  ! line 7 was refused by the hub and is skipped: no\\u{1b}[2J\n"
        );
    }
}
