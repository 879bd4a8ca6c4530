//! The loop of `parlor watch`: prints each message as a JSON line and saves the cursor.
//!
//! Owns: the order of output and cursor. The cursor is saved only after the output that it covers was written
//! and flushed: a killed process prints some lines again after its restart, and never loses one.

mod printer;
mod saved;

use crate::cursor::{CURSOR, CursorFile};
use crate::status::StatusFile;
use crate::workplace::CHAT;
use crate::{Batch, Follower, Start, Workplace};
use parlor_model::Time;
use parlor_wire::chatmd::json::{iso_millis, write_line};
use printer::Printer;
use saved::SavedCursor;
use std::io::{self, Write};
use std::pin::pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// Time for which a stop waits for a reader of the output that does not read.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Place from which a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// The saved cursor; without one, the end of the file.
    Saved,
    Beginning,
    End,
}

/// Prints the messages of `chat.md` to `output` until `stop` completes or the output is closed. `report`
/// receives sentences for people.
pub async fn watch(
    workplace: Workplace,
    start: WatchStart,
    output: impl Write + Send + 'static,
    mut report: impl FnMut(&str),
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let cursor_file = CursorFile::lock(&workplace, CURSOR)?;
    let start = match start {
        WatchStart::Saved => Start::Cursor(cursor_file.read()?),
        WatchStart::Beginning => Start::Beginning,
        WatchStart::End => Start::End,
    };
    let follower = Follower::open(workplace.clone(), start)?;
    // Lines that are appended from now on are printed even if this process is killed before the first one.
    let saved = SavedCursor::new(cursor_file, follower.cursor())?;
    let (mut status, problem) = StatusFile::start(workplace.clone(), now());
    problem.iter().for_each(|problem| report(problem));
    let path = workplace.path().join(CHAT);
    report(&format!("watching {} from line {}", path.display(), follower.cursor().lines + 1));

    let mut printer = Printer::new(output);
    let done = run(follower, saved, &mut status, &mut printer, &mut report, &workplace, stop).await;
    let error = done.as_ref().err().map(io::Error::to_string);
    status.stop(error.as_deref()).iter().for_each(|problem| report(problem));
    done
}

async fn run(
    mut follower: Follower,
    mut saved: SavedCursor,
    status: &mut StatusFile,
    printer: &mut Printer,
    report: &mut impl FnMut(&str),
    workplace: &Workplace,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut stop = pin!(stop);
    loop {
        let batch = follower.poll(Instant::now());
        batch.notices.iter().for_each(|notice| report(&notice.to_string()));
        let mut stopped = false;
        if !batch.messages.is_empty() {
            let mut printing = pin!(printer.print(rendered(&batch)));
            let printed = tokio::select! {
                printed = &mut printing => Some(printed),
                () = &mut stop => {
                    stopped = true;
                    timeout(STOP_TIMEOUT, printing).await.ok()
                }
            };
            match printed {
                Some(Ok(())) => status.event(now()).iter().for_each(|problem| report(problem)),
                // Lines of this batch may or may not have arrived: the next start prints them again.
                None => return saved.finish(),
                Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => return saved.finish(),
                Some(Err(error)) => {
                    let message = format!("cannot write to standard output: {error}");
                    return saved.finish().and(Err(io::Error::new(error.kind(), message)));
                }
            }
        }
        saved.advance(follower.cursor());
        if stopped {
            return saved.finish();
        }
        saved.save_when_due().iter().for_each(|problem| report(problem));
        status.write_when_due().iter().for_each(|problem| report(problem));
        let wake_at = [batch.wake_at, saved.wake_at(), status.wake_at()].into_iter().flatten().min();
        let waiting = async {
            match batch.more {
                true => tokio::task::yield_now().await,
                false => follower.changed(wake_at).await,
            }
        };
        tokio::select! {
            () = waiting => {}
            () = &mut stop => return saved.finish(),
        }
        if workplace.is_removed() {
            let path = workplace.path();
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{} was removed", path.display())));
        }
    }
}

fn rendered(batch: &Batch) -> Vec<u8> {
    let timestamp = iso_millis(now());
    let mut lines = Vec::with_capacity(batch.messages.len() * 160);
    for message in &batch.messages {
        write_line(&mut lines, &timestamp, &message.line, message.line_number);
    }
    lines
}

fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(since_epoch.as_micros() as i64)
}
