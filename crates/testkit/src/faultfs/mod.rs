//! A file system that loses what was not synced, fails when told to, and fills up.
//!
//! Mounted by FUSE under a test's data directory, so that a real process meets a disk with a volatile cache.
//! The process under test must be another one than the test's own: a process that dies while it both serves
//! and maps a file of this file system cannot be reaped by the kernel.

mod content;
mod disk;
mod faults;
mod kernel;
mod mount;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use fuser::Errno;
use parking_lot::{Condvar, Mutex};

use crate::rng::Rng;
use crate::skip::say_skipped;
use disk::Disk;
pub use faults::Counters;
use faults::Fault;
pub use mount::Unavailable;

/// A mounted disk; dropping it unmounts it.
pub struct FaultFs {
    shared: Arc<Shared>,
    mounted: mount::Mounted,
}

/// Written by the FUSE thread and by the test; one lock, since a power loss concerns everything at once.
struct Shared {
    disk: Mutex<Disk>,
    /// Notified after each request that changes a counter.
    changed: Condvar,
}

impl FaultFs {
    /// Mounts an empty disk on an existing directory.
    pub fn mount(directory: &Path) -> Result<Self, Unavailable> {
        let shared = Arc::new(Shared { disk: Mutex::new(Disk::new()), changed: Condvar::new() });
        Ok(Self { mounted: mount::mount(shared.clone(), directory)?, shared })
    }

    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// Power loss: everything reverts to what was durable. Files opened before are dead (EIO).
    pub fn drop_unsynced(&self) {
        self.shared.disk.lock().lose_power();
    }

    /// Power loss while the disk was writing: each unsynced page is either old or new, by the seed.
    pub fn tear_unsynced(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.shared.disk.lock().lose_power_at_work(|| rng.below(2) == 0);
    }

    /// After `after` more fsyncs each one fails, and what it should have made durable never will be.
    pub fn fail_fsyncs(&self, errno: Errno, after: u64) {
        self.shared.disk.lock().faults.fsync = Some(Fault { errno, after });
    }

    /// After `after` more writes each one fails.
    pub fn fail_writes(&self, errno: Errno, after: u64) {
        self.shared.disk.lock().faults.write = Some(Fault { errno, after });
    }

    /// Whatever would make the files larger than this together fails with ENOSPC.
    pub fn capacity(&self, bytes: u64) {
        self.shared.disk.lock().faults.capacity = Some(bytes);
    }

    /// Bytes in files that have a name or are open.
    pub fn used(&self) -> u64 {
        self.shared.disk.lock().used()
    }

    /// Ends every fault. What a failed fsync lost stays lost.
    pub fn heal(&self) {
        self.shared.disk.lock().faults.heal();
    }

    pub fn counters(&self) -> Counters {
        self.shared.disk.lock().faults.counters
    }

    /// Waits until the counters are as wanted; false when that did not happen in time.
    pub fn wait_for(&self, within: Duration, wanted: impl Fn(Counters) -> bool) -> bool {
        let deadline = Instant::now() + within;
        let mut disk = self.shared.disk.lock();
        while !wanted(disk.faults.counters) {
            if self.shared.changed.wait_until(&mut disk, deadline).timed_out() {
                return wanted(disk.faults.counters);
            }
        }
        true
    }
}

/// Where the disk for a test lies: a fresh directory, with a `FaultFs` on it.
pub struct FaultyDirectory {
    // Dropped in this order: first unmounted, then removed.
    pub disk: FaultFs,
    _directory: tempfile::TempDir,
}

impl FaultyDirectory {
    /// Mounts a disk on a new temporary directory, or says why the calling test is skipped.
    pub fn new_or_skip() -> Option<Self> {
        let mounted = tempfile::tempdir().map_err(Unavailable::because).and_then(|directory| {
            Ok(Self { disk: FaultFs::mount(directory.path())?, _directory: directory })
        });
        mounted.inspect_err(|reason| say_skipped(reason)).ok()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.disk.path().join(name)
    }
}
