//! Every store there is. A new one is held to the whole suite by its line in `kinds`.

use parlor_backends::memory::{MemoryStore, Retention};
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::ports::{Reader, Store};
use parlor_model::Epoch;
use std::sync::Arc;
use std::time::Duration;

pub type Handles = (Box<dyn Store>, Arc<dyn Reader>);

/// Where one store's data lives: opened again after the last handles are gone, it is a restart.
pub trait StoreFixture {
    fn open(&self) -> Handles;
}

pub struct Kind {
    pub name: &'static str,
    /// A new, empty home. Stores that choose their own epoch disregard the one given.
    pub make: fn(Epoch) -> Box<dyn StoreFixture>,
}

/// The oracle first.
pub fn kinds() -> [Kind; 2] {
    [
        Kind { name: "memory", make: |epoch| Box::new(MemoryStore::new(epoch, WINDOWS)) },
        Kind { name: "sqlite", make: |_| Box::new(Directory(tempfile::tempdir().unwrap())) },
    ]
}

pub const DAY: Duration = days(1);
pub const WINDOWS: Retention = Retention {
    log: days(7),
    once: days(2),
    uploads: Duration::from_secs(3600),
    messages: Some(days(9)),
    audit: days(30),
};

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

impl StoreFixture for MemoryStore {
    fn open(&self) -> Handles {
        self.handles()
    }
}

struct Directory(tempfile::TempDir);

impl StoreFixture for Directory {
    fn open(&self) -> Handles {
        // What is on disk after a power cut is tested elsewhere; here many small stores must be quick.
        let synchronous = Synchronous::Off;
        let options = Options {
            synchronous,
            log_window: WINDOWS.log,
            idempotency_window: WINDOWS.once,
            audit_window: WINDOWS.audit,
            upload_window: WINDOWS.uploads,
            message_retention: WINDOWS.messages,
            readers: 2,
        };
        sqlite::open(self.0.path(), options).unwrap()
    }
}
