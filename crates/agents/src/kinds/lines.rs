//! Lines that a program prints, none of them longer than one cares to hold.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// What is no UTF-8 in it is replaced.
    Text(String),
    /// It was passed over.
    TooLong,
}

#[derive(Debug)]
pub(super) struct Lines<R> {
    source: BufReader<R>,
    longest: usize,
    begun: Vec<u8>,
    /// The line that is being read is longer already.
    passing_over: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(source: R, longest: usize) -> Self {
        Self { source: BufReader::new(source), longest, begun: Vec::new(), passing_over: false }
    }

    /// `None` at the end. What was read is kept when the future is dropped.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.source.fill_buf().await?;
            if piece.is_empty() {
                return Ok((self.passing_over || !self.begun.is_empty()).then(|| self.finish()));
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..end.unwrap_or(piece.len())];
            if self.begun.len() + text.len() > self.longest {
                self.passing_over = true;
                self.begun = Vec::new();
            } else if !self.passing_over {
                self.begun.extend_from_slice(text);
            }
            let read = text.len() + usize::from(end.is_some());
            self.source.consume(read);
            if end.is_some() {
                return Ok(Some(self.finish()));
            }
        }
    }

    fn finish(&mut self) -> Line {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.passing_over) {
            return Line::TooLong;
        }
        Line::Text(
            String::from_utf8(line)
                .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_long_ones_not_at_all() {
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
