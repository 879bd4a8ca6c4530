//! Writes of the bridge to the disk: its state, and appends to the file. They run on a blocking thread, one at
//! a time.
//!
//! Owns: the order of the steps. A pending append is saved before the file changes, and the file changes
//! before a later state is saved.

use super::BridgeNotice;
use super::append_once::{AppendedOnce, append_once, length};
use super::state::{BridgeState, OwnLine, PendingAppend, StateFile, encode, line_digest};
use crate::Workplace;
use parlor_wire::chatmd::grammar;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// Time after a change at which the state is saved. Lines are relayed again after a crash, which the hub
/// recognises, so not every change needs to be saved at once.
const SAVE_DELAY: Duration = Duration::from_millis(200);
/// Pause before a write that failed is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Time for which the end of the bridge waits for a write. Another process may hold the lock of the file.
const FINISH_TIMEOUT: Duration = Duration::from_secs(12);

pub struct Disk {
    workplace: Workplace,
    state_file: Arc<StateFile>,
    job: Option<Job>,
    /// Time at which the state should be saved.
    save_at: Option<Instant>,
    /// Reason of the last failure, which is not reported again while it lasts.
    failure: Option<String>,
    /// No write is started before this time.
    not_before: Option<Instant>,
}

struct Job {
    task: JoinHandle<io::Result<Option<AppendedOnce>>>,
    /// Generation of the position in the saved state.
    generation: String,
    appends: bool,
}

/// Result of [`Disk::next`].
pub enum DiskEvent {
    /// A write should be started.
    Due,
    /// A write is complete. A position in this generation was saved.
    Saved {
        generation: String,
    },
    Failed {
        why: String,
    },
    /// A write failed for the same reason as the last one.
    FailedAgain,
}

impl Disk {
    pub fn new(workplace: Workplace, state_file: StateFile) -> Self {
        let state_file = Arc::new(state_file);
        Self { workplace, state_file, job: None, save_at: None, failure: None, not_before: None }
    }

    /// Records that the state changed and must be saved soon.
    pub fn changed(&mut self) {
        self.save_at.get_or_insert_with(|| Instant::now() + SAVE_DELAY);
    }

    /// Records that the state must be saved now.
    pub fn save_now(&mut self) {
        self.save_at = Some(Instant::now());
    }

    /// Returns whether a write can be started.
    pub fn is_free(&self) -> bool {
        self.job.is_none() && self.not_before.is_none_or(|time| time <= Instant::now())
    }

    /// Returns whether an append is running: the file must not be read, because the location of the text is
    /// not known yet.
    pub fn is_appending(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.appends)
    }

    /// Starts the write that is due, if none is running.
    pub fn start(&mut self, state: &mut BridgeState) {
        let now = Instant::now();
        let save_is_due = self.save_at.is_some_and(|time| time <= now);
        if !self.is_free() || !(save_is_due || state.pending.is_some()) {
            return;
        }
        if let Some(pending) = &mut state.pending
            && pending.before.is_none()
        {
            // An error means that the file cannot be used now, which the append reports.
            pending.before = Some(length(&self.workplace).ok().flatten().unwrap_or_default());
        }
        (self.save_at, self.not_before) = (None, None);
        let encoded = encode(state);
        let pending = state.pending.clone();
        let generation = state.cursor.as_ref().map(|cursor| cursor.generation.clone()).unwrap_or_default();
        let appends = pending.is_some();
        let (workplace, state_file) = (self.workplace.clone(), self.state_file.clone());
        let write = move || {
            state_file.save(&encoded)?;
            pending.map(|pending: PendingAppend| append_once(&workplace, &pending)).transpose()
        };
        self.job = Some(Job { task: tokio::task::spawn_blocking(write), generation, appends });
    }

    /// Waits until a write is complete and applies its result, or until one should be started. Cancel-safe.
    pub async fn next(&mut self, state: &mut BridgeState) -> DiskEvent {
        let Some(job) = &mut self.job else {
            match self.not_before.or(self.save_at) {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
            return DiskEvent::Due;
        };
        let result = (&mut job.task).await;
        let generation = std::mem::take(&mut job.generation);
        self.job = None;
        // A task on a blocking thread cannot be cancelled, so an error is a panic, which is passed on.
        let result = result.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(io::Error::other(error)),
        });
        match result {
            Ok(appended) => {
                self.failure = None;
                if let Some(appended) = appended {
                    apply(state, &appended);
                    self.changed();
                }
                DiskEvent::Saved { generation }
            }
            Err(error) => {
                self.not_before = Some(Instant::now() + RETRY_DELAY);
                self.save_now();
                let why = error.to_string();
                match self.failure.replace(why.clone()) {
                    Some(last) if last == why => DiskEvent::FailedAgain,
                    _ => DiskEvent::Failed { why },
                }
            }
        }
    }

    /// Completes the running write and saves the state. Called once, at the end.
    pub async fn finish(&mut self, state: &mut BridgeState, report: &mut (dyn FnMut(BridgeNotice) + Send)) {
        if self.job.is_some() {
            match timeout(FINISH_TIMEOUT, self.next(state)).await {
                Ok(DiskEvent::Failed { why }) => report(BridgeNotice::NotWritten { why }),
                Ok(_) => {}
                Err(_) => return,
            }
        }
        let (state_file, encoded) = (self.state_file.clone(), encode(state));
        let saved = tokio::task::spawn_blocking(move || state_file.save(&encoded)).await;
        if let Ok(Err(error)) = saved {
            report(BridgeNotice::NotWritten { why: error.to_string() });
        }
    }
}

/// Completes an append that an earlier process may have been killed in.
pub fn recover(workplace: &Workplace, state: &mut BridgeState) -> io::Result<()> {
    if let Some(pending) = &state.pending {
        let appended = append_once(workplace, pending)?;
        apply(state, &appended);
    }
    Ok(())
}

fn apply(state: &mut BridgeState, appended: &AppendedOnce) {
    let &AppendedOnce { device, inode, .. } = appended;
    // An incomplete message of a killed process is no line of another program.
    if let Some((offset, text)) = &appended.fragment {
        let header = text.lines().next().unwrap_or_default();
        if let Some(line) = grammar::parse(header, &HashSet::<String>::new()) {
            let end = offset + text.len() as u64;
            let digest = line_digest(&line);
            state.own_lines.push(OwnLine { device, inode, offset: *offset, end, digest });
        }
    }
    state.appended(device, inode, &appended.offsets);
}

#[cfg(test)]
mod tests;
