//! Keeps the last lines of a program's stderr, to explain in error messages why the program ended.

use super::lines::{Line, Lines};
use crate::sanitize::EscapeStripper;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum number of lines kept.
const MAX_LINES: usize = 5;
/// Maximum characters of a kept line; the rest is cut off.
const MAX_LINE_CHARS: usize = 300;
/// Timeout for reading the rest of stderr after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The last lines of one program's stderr. A task reads continuously, so that the program never blocks on a
/// full pipe; dropping this value ends the task.
#[derive(Debug)]
pub(super) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl StderrTail {
    pub(super) fn of(stderr: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let lines = Arc::<Mutex<VecDeque<String>>>::default();
        let kept = lines.clone();
        let reader = tokio::spawn(async move {
            let mut written = Lines::new(stderr, 64 * 1024);
            while let Ok(Some(line)) = written.next().await {
                let Line::Text(line) = line else { continue };
                let line: String =
                    EscapeStripper::default().pass(&line).chars().take(MAX_LINE_CHARS).collect();
                if line.trim().is_empty() {
                    continue;
                }
                let mut kept = kept.lock();
                if kept.len() == MAX_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        Self { lines, reader }
    }

    /// Returns the last lines of a program that has ended; empty if it wrote none.
    pub(super) async fn finish(mut self) -> String {
        let _ = timeout(DRAIN_TIMEOUT, &mut self.reader).await;
        let lines = self.lines.lock();
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
