//! Implements `parlor watch`: standard output, notices on standard error, and signals.

use crate::style::escape_control;
use anyhow::Context;
use clap::Args;
use parlor_chatmd::Workplace;
use parlor_chatmd::watch::{WatchStart, watch};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, Write};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

#[derive(Debug, Args)]
pub struct WatchArguments {
    /// Project directory that contains .workplace
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Start at the beginning of the file, not at the saved position
    #[arg(long)]
    from_start: bool,
    /// Start at the end of the file, not at the saved position
    #[arg(long, conflicts_with = "from_start")]
    from_end: bool,
}

pub fn run(arguments: &WatchArguments) -> anyhow::Result<()> {
    let workplace = Workplace::open(&arguments.directory)?;
    let start = match arguments {
        WatchArguments { from_start: true, .. } => WatchStart::Beginning,
        WatchArguments { from_end: true, .. } => WatchStart::End,
        _ => WatchStart::Saved,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the asynchronous runtime")?;
    runtime.block_on(async {
        let stop = stop()?;
        watch(workplace, start, io::stdout(), report, stop).await.map_err(|error| {
            let is_cursor = error.kind() == io::ErrorKind::InvalidData;
            let hint = if is_cursor { "; start with --from-start or --from-end to replace it" } else { "" };
            anyhow::anyhow!("{error}{hint}")
        })
    })
}

/// Prints a notice for people. A failed write is ignored: no other output is left to report it on.
fn report(notice: &str) {
    let _ = writeln!(io::stderr(), "parlor watch: {}", escape_control(notice));
}

/// Completes when the process should stop: on SIGINT, SIGTERM or SIGHUP, or when standard output is closed.
fn stop() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
            () = output_closed() => {}
        }
    })
}

/// Completes when the reader of standard output has closed it. Standard output that is a file is never closed.
async fn output_closed() {
    let (closed, wait) = oneshot::channel();
    // The thread ends with the process: its system call returns only for a closed output.
    std::thread::spawn(move || {
        let output = io::stdout();
        let mut errors = [PollFd::new(&output, PollFlags::empty())];
        while let Err(Errno::INTR) = poll(&mut errors, None) {}
        let _ = closed.send(());
    });
    let _ = wait.await;
}
