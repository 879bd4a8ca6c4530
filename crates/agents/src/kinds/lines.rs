//! Reads a program's output line by line, with a maximum line length.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A complete line; invalid UTF-8 is replaced.
    Text(String),
    /// A line over the maximum length, which was skipped.
    TooLong,
}

#[derive(Debug)]
pub(super) struct Lines<R> {
    source: BufReader<R>,
    max_line_bytes: usize,
    incomplete: Vec<u8>,
    /// Whether the current line is over the maximum length, so its rest is skipped.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(source: R, max_line_bytes: usize) -> Self {
        Self { source: BufReader::new(source), max_line_bytes, incomplete: Vec::new(), skipping: false }
    }

    /// Returns the next line, or `None` at end of file. Cancel-safe: a dropped future loses no data.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.source.fill_buf().await?;
            if chunk.is_empty() {
                return Ok((self.skipping || !self.incomplete.is_empty()).then(|| self.finish()));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let text = &chunk[..end.unwrap_or(chunk.len())];
            if self.incomplete.len() + text.len() > self.max_line_bytes {
                self.skipping = true;
                self.incomplete = Vec::new();
            } else if !self.skipping {
                self.incomplete.extend_from_slice(text);
            }
            let read = text.len() + usize::from(end.is_some());
            self.source.consume(read);
            if end.is_some() {
                return Ok(Some(self.finish()));
            }
        }
    }

    fn finish(&mut self) -> Line {
        let line = std::mem::take(&mut self.incomplete);
        if std::mem::take(&mut self.skipping) {
            return Line::TooLong;
        }
        Line::Text(
            String::from_utf8(line)
                .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn complete_lines_are_returned_and_long_lines_are_skipped() {
        check(b"", &[]).await;
        check(b"one\ntwo", &["one", "two"]).await;
        check(b"\nshort\n", &["", "short"]).await;
        check(b"12345678\n123456789\nnext\n", &["12345678", "(too long)", "next"]).await;
        check(b"123456789", &["(too long)"]).await;
        check(b"\xff!\n", &["\u{fffd}!"]).await;
        let long = [b"x".repeat(100_000).as_slice(), b"\nnext"].concat();
        check(&long, &["(too long)", "next"]).await;
    }

    async fn check(printed: &[u8], expected: &[&str]) {
        let mut lines = Lines::new(printed, 8);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(match line {
                Line::Text(text) => text,
                Line::TooLong => "(too long)".into(),
            });
        }
        assert_eq!(seen, expected);
    }
}
