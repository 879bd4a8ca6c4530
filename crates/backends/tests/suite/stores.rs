//! The stores under test. Adding a store to `kinds` runs the whole suite on it.

use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::ports::{Reader, Store};
use parlor_model::Epoch;
use parlor_testkit::stores::{MemoryStore, Retention};
use std::sync::Arc;
use std::time::Duration;

pub type Handles = (Box<dyn Store>, Arc<dyn Reader>);

/// Data of one store. Opening it again after the last handles were dropped simulates a restart.
pub trait StoreFixture {
    fn open(&self) -> Handles;
}

pub struct StoreKind {
    pub name: &'static str,
    /// Creates an empty store. Stores that choose their own epoch ignore the argument.
    pub make: fn(Epoch) -> Box<dyn StoreFixture>,
}

/// All stores. The first is the reference that differential tests compare with.
pub fn kinds() -> [StoreKind; 2] {
    [
        StoreKind { name: "memory", make: |epoch| Box::new(MemoryStore::new(epoch, WINDOWS)) },
        StoreKind { name: "sqlite", make: |_| Box::new(Directory(tempfile::tempdir().unwrap())) },
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
        // Power cuts are tested elsewhere; this suite creates many small stores and must be fast.
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
