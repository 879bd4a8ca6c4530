//! Notifications about changes of `chat.md`, from the operating system.

use crate::Workplace;
use crate::workplace::CHAT;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout_at};

/// The file is also examined at this interval, because some file systems send no notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two notifications. A writer of many lines per second causes a notification for each;
/// reading several lines at once costs much less.
const MIN_INTERVAL: Duration = Duration::from_millis(2);

pub struct Changes {
    changed: Arc<Notify>,
    last: Instant,
    /// Owns the thread that receives the notifications. `None` if the system has none: then the file is
    /// examined at intervals only.
    _watcher: Option<RecommendedWatcher>,
}

impl Changes {
    pub fn watch(workplace: &Workplace) -> Self {
        let changed = Arc::new(Notify::new());
        // The first wait ends at once, because the file may have changed before the watch began.
        changed.notify_one();
        Self { _watcher: watcher(workplace, changed.clone()), changed, last: Instant::now() }
    }

    /// Waits for a change, until `wake_at`, or for the polling interval. Cancel-safe: the notification is the
    /// last thing that is awaited.
    pub async fn wait(&mut self, wake_at: Option<Instant>) {
        let fallback = Instant::now() + POLL_INTERVAL;
        let deadline = wake_at.map_or(fallback, |at| at.min(fallback));
        sleep_until((self.last + MIN_INTERVAL).into()).await;
        let _ = timeout_at(deadline.into(), self.changed.notified()).await;
        self.last = Instant::now();
    }
}

fn watcher(workplace: &Workplace, changed: Arc<Notify>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<Event>| {
        let concerns_the_file = event.as_ref().map_or(true, |event| {
            let names_it =
                || event.paths.iter().any(|path| path.file_name().is_some_and(|name| name == CHAT));
            event.need_rescan() || !event.kind.is_access() && names_it()
        });
        if concerns_the_file {
            changed.notify_one();
        }
    };
    let mut watcher = notify::recommended_watcher(on_event).ok()?;
    // The path of the descriptor is the directory that was opened, whatever its name leads to now.
    let descriptor = PathBuf::from(format!("/proc/self/fd/{}", workplace.descriptor().as_raw_fd()));
    let watched = watcher
        .watch(&descriptor, RecursiveMode::NonRecursive)
        .or_else(|_| watcher.watch(workplace.path(), RecursiveMode::NonRecursive));
    watched.ok().map(|()| watcher)
}
