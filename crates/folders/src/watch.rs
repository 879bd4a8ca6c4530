//! Notifications about changes below the root, from the operating system.
//!
//! Each directory that a scan reads is watched by itself: a recursive watch would also cover the workspaces of agents.

use crate::messages::MESSAGES;
use notify::event::{CreateKind, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The tree is also scanned at this interval, because some file systems send no notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The interval if the system has no notifications at all.
const POLL_INTERVAL_ALONE: Duration = Duration::from_secs(1);

/// The watched directories. Blocks briefly.
pub struct Watch {
    /// Owns the thread that receives the notifications; `None` if the system has none.
    watcher: Option<RecommendedWatcher>,
    /// Watched directories with device and inode, because another directory may take the place of one.
    watched: BTreeMap<PathBuf, (u64, u64)>,
}

impl Watch {
    pub fn new(changed: Arc<Notify>) -> Self {
        let on_event = move |event: notify::Result<Event>| {
            if event.as_ref().map_or(true, |event| event.need_rescan() || may_matter(event)) {
                changed.notify_one();
            }
        };
        let watcher = notify::recommended_watcher(on_event);
        if let Err(error) = &watcher {
            tracing::warn!(%error, "the agents root cannot be watched; it is read once per second");
        }
        Self { watcher: watcher.ok(), watched: BTreeMap::new() }
    }

    pub fn poll_interval(&self) -> Duration {
        if self.watcher.is_some() { POLL_INTERVAL } else { POLL_INTERVAL_ALONE }
    }

    /// Watches exactly these directories. Returns whether a directory was added: it may have changed before.
    pub fn set(&mut self, directories: &[PathBuf]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let wanted: BTreeMap<PathBuf, (u64, u64)> = directories
            .iter()
            .filter_map(|path| {
                let metadata = std::fs::symlink_metadata(path).ok()?;
                metadata.is_dir().then(|| (path.clone(), (metadata.dev(), metadata.ino())))
            })
            .collect();
        for path in self.watched.keys().filter(|path| !wanted.contains_key(*path)) {
            // The watch of a removed directory has ended by itself.
            let _ = watcher.unwatch(path);
        }
        self.watched.retain(|path, _| wanted.contains_key(path));
        let mut added = false;
        for (path, id) in wanted {
            if self.watched.get(&path) == Some(&id) {
                continue;
            }
            let _ = watcher.unwatch(&path);
            match watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path, id);
                    added = true;
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a directory of the agents root cannot be watched");
                }
            }
        }
        added
    }
}

/// Whether an event can change the configuration of an agent. The hub's own appends to files of messages and logs cannot.
fn may_matter(event: &Event) -> bool {
    let is_new = matches!(
        event.kind,
        EventKind::Create(CreateKind::File | CreateKind::Any) | EventKind::Modify(ModifyKind::Name(_))
    );
    let matters = |path: &PathBuf| match path.extension().is_some_and(|extension| extension == "jsonl") {
        true => is_new && path.parent().and_then(Path::file_name).is_some_and(|parent| parent == MESSAGES),
        false => path.extension().is_none_or(|extension| extension != "tmp"),
    };
    !event.kind.is_access() && (event.paths.is_empty() || event.paths.iter().any(matters))
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{AccessKind, DataChange, RenameMode};

    fn event(kind: EventKind, path: &str) -> Event {
        Event::new(kind).add_path(path.into())
    }

    #[test]
    fn the_hubs_own_appends_cause_no_scan() {
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        for (kind, path, matters) in [
            (written, "/r/a/jvAgent.json", true),
            (renamed, "/r/a/jvAgent.json", true),
            (renamed, "/r/a/.jvAgent.json.tmp", false),
            (written, "/r/.messages/agent--a.jsonl", false),
            (EventKind::Create(CreateKind::File), "/r/.messages/agent--a.jsonl", true),
            (EventKind::Create(CreateKind::File), "/r/a/sessions/main.jsonl", false),
            (EventKind::Access(AccessKind::Any), "/r/a/jvAgent.json", false),
        ] {
            assert_eq!(may_matter(&event(kind, path)), matters, "{kind:?} {path}");
        }
    }

    #[tokio::test]
    async fn a_change_in_a_watched_directory_wakes_the_reader() {
        let root = tempfile::tempdir().unwrap();
        let changed = Arc::new(Notify::new());
        let mut watch = Watch::new(changed.clone());
        assert!(watch.set(&[root.path().to_owned()]));
        assert!(!watch.set(&[root.path().to_owned()]), "watched already");
        std::fs::write(root.path().join("jvAgent.json"), "{}").unwrap();
        changed.notified().await;
        assert!(!watch.set(&[]));
        assert!(watch.set(&[root.path().to_owned()]));
    }
}
