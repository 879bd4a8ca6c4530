//! Keeps the last lines of a program's stderr, to explain in error messages why the program ended.

use super::lines::{Line, Lines};
use crate::sanitize::EscapeStripper;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::time::timeout;

/// Maximum number of lines kept.
const MAX_LINES: usize = 5;
/// Maximum characters of a kept line; the rest is cut off.
const MAX_LINE_CHARS: usize = 300;
/// Maximum bytes of a line; a longer line is skipped.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Timeout for reading the rest of stderr after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The last lines of one program's stderr. They are read by the task that runs the program, so no task of
/// their own can outlive it.
#[derive(Debug)]
pub(crate) struct StderrTail<R> {
    source: Lines<R>,
    kept: VecDeque<String>,
}

impl<R: AsyncRead + Unpin> StderrTail<R> {
    pub(crate) fn of(stderr: R) -> Self {
        Self { source: Lines::new(stderr, MAX_LINE_BYTES), kept: VecDeque::new() }
    }

    /// Awaits `work` and reads stderr meanwhile, so that the program never blocks on a full pipe.
    pub(crate) async fn read_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let reading = async {
            self.read_to_end().await;
            std::future::pending().await
        };
        tokio::select! {
            biased;
            output = work => output,
            output = reading => output,
        }
    }

    /// Returns the last lines of a program that has ended; empty if it wrote none.
    pub(crate) async fn finish(mut self) -> String {
        let _ = timeout(DRAIN_TIMEOUT, self.read_to_end()).await;
        Vec::from(self.kept).join("\n")
    }

    async fn read_to_end(&mut self) {
        while let Ok(Some(line)) = self.source.next().await {
            let Line::Text(line) = line else { continue };
            let line: String = EscapeStripper::default().pass(&line).chars().take(MAX_LINE_CHARS).collect();
            if line.trim().is_empty() {
                continue;
            }
            if self.kept.len() == MAX_LINES {
                self.kept.pop_front();
            }
            self.kept.push_back(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn the_last_lines_are_kept_without_colours() {
        let written = b"1\n2\n\n3\n4\n5\n\x1b[1;31mred\x1b[0m \x07bell\x1b";
        let tail = StderrTail::of(&written[..]);
        assert_eq!(tail.finish().await, "2\n3\n4\n5\nred bell");
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_empty_stderr_gives_an_empty_tail() {
        let written: &'static [u8] = Box::leak(vec![b'x'; 1000].into_boxed_slice());
        assert_eq!(StderrTail::of(written).finish().await.len(), MAX_LINE_CHARS);
        assert_eq!(StderrTail::of(&b""[..]).finish().await, "");
    }

    #[tokio::test]
    async fn stderr_is_read_while_the_program_runs() {
        let (mut program, stderr) = tokio::io::duplex(8);
        let mut tail = StderrTail::of(stderr);
        let written = tail.read_during(async move {
            // More than the pipe holds, so this returns only if the other end is read.
            program.write_all(b"the first line\nthe last line").await
        });
        written.await.unwrap();
        assert_eq!(tail.finish().await, "the first line\nthe last line");
    }
}
