//! What a program wrote to its standard error last, for whoever wonders why it ended.

use super::lines::{Line, Lines};
use crate::sanitize::EscapeStripper;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const KEPT: usize = 5;
/// In characters.
const LONGEST: usize = 300;
/// Between the end of a program and the end of what it wrote.
const LAG: Duration = Duration::from_millis(200);

/// Reads on as long as it lives, so that the program never waits for us.
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
                let line: String = EscapeStripper::default().pass(&line).chars().take(LONGEST).collect();
                if line.trim().is_empty() {
                    continue;
                }
                let mut kept = kept.lock();
                if kept.len() == KEPT {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        Self { lines, reader }
    }

    /// Of a program that has ended: its last lines, or nothing.
    pub(super) async fn finish(mut self) -> String {
        let _ = timeout(LAG, &mut self.reader).await;
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
        let words = StderrTail::of(&written[..]);
        assert_eq!(words.finish().await, "2\n3\n4\n5\nred bell");
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_who_wrote_nothing_has_no_last_words() {
        let written: &'static [u8] = Box::leak(vec![b'x'; 1000].into_boxed_slice());
        assert_eq!(StderrTail::of(written).finish().await.len(), LONGEST);
        assert_eq!(StderrTail::of(&b""[..]).finish().await, "");
    }
}
