//! Renders the effective settings for `parlor config show`.

use super::{Effective, GROUPS};
use std::fmt::Write;

const MASK: &str = "\"********\"";

/// Renders the effective settings as TOML lines with their source as a comment. Secrets are masked.
pub fn show(effective: &Effective) -> String {
    let lines: Vec<(String, String)> = GROUPS
        .iter()
        .flat_map(|group| group.entries)
        .map(|entry| match effective.get(entry.key) {
            None => (format!("# {} is not set", entry.key), String::new()),
            Some(given) => {
                let value = if entry.is_secret() { MASK.to_owned() } else { given.value.to_string() };
                (format!("{} = {value}", entry.key), given.origin.to_string())
            }
        })
        .collect();
    // Comments are aligned, but lines over 60 characters are ignored: one long list must not move every
    // comment off the screen.
    let width =
        lines.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    let mut text = String::new();
    for (line, origin) in lines {
        let _ = match origin.as_str() {
            "" => writeln!(text, "{line}"),
            origin => writeln!(text, "{line:width$}  # {origin}"),
        };
    }
    text
}
