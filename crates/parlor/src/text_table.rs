//! Renders tables for a terminal: aligned columns under a dimmed heading, without borders.

use crate::style::{TerminalStyle, escape_control};
use unicode_width::UnicodeWidthStr;

const GAP: &str = "  ";

/// Renders rows under their headings. Control characters in cells are escaped, because cells are untrusted
/// text.
pub fn listing<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    terminal_style: TerminalStyle,
) -> String {
    let rows: Vec<[String; COLUMNS]> =
        rows.iter().map(|row| row.each_ref().map(|cell| escape_control(cell))).collect();
    let mut widths = headings.map(UnicodeWidthStr::width);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut text = terminal_style.dim(line(&headings, &widths)) + "\n";
    for row in &rows {
        text += &line(&row.each_ref().map(String::as_str), &widths);
        text.push('\n');
    }
    text
}

fn line(cells: &[&str], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| {
        // `{:width$}` counts characters, but a character can be zero or two terminal columns wide.
        format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
    });
    padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["ada".into(), "Ada L".into(), "x".into()], ["grace_h".into(), "周".into(), "".into()]];
        let text = listing(["NAME", "SHOWN", "Z"], &rows, TerminalStyle::PLAIN);
        assert_eq!(text, "NAME     SHOWN  Z\nada      Ada L  x\ngrace_h  周\n");
    }

    #[test]
    fn control_characters_in_a_cell_are_escaped() {
        let text = listing(["NAME"], &[["a\nb\x1b[2J".into()]], TerminalStyle::COLOURED);
        assert_eq!(text, "\x1b[2mNAME\x1b[0m\na\\u{a}b\\u{1b}[2J\n");
    }
}
