//! A FUSE file system with fault injection: it can lose unsynced data, fail requests and run out of space.
//!
//! It is mounted on a test's data directory, so that a real process runs on a disk with a volatile cache.
//! The process under test must not be the test process: if one process serves the file system and also maps a
//! file of it, the kernel cannot reap it after a kill.

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
use crate::skip::report_skipped;
use disk::Disk;
pub use faults::Counters;
use faults::Fault;
pub use mount::Unavailable;

/// A mounted disk; dropping it unmounts it.
pub struct FaultFs {
    shared: Arc<Shared>,
    mounted: mount::Mounted,
}

/// Written by the FUSE thread and by the test. One lock for all, because a power loss affects the whole disk
/// at once.
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

    /// Simulates a power loss: all data reverts to its durable state. Files opened before return EIO.
    pub fn drop_unsynced(&self) {
        self.shared.disk.lock().lose_power();
    }

    /// Simulates a power loss during writes: for each unsynced page, the seed selects the old or the new
    /// version.
    pub fn tear_unsynced(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.shared.disk.lock().lose_power_at_work(|| rng.below(2) == 0);
    }

    /// Makes all fsyncs fail after `after` more of them. The data of a failed fsync never becomes durable.
    pub fn fail_fsyncs(&self, errno: Errno, after: u64) {
        self.shared.disk.lock().faults.fsync = Some(Fault { errno, after });
    }

    /// Makes all writes fail after `after` more of them.
    pub fn fail_writes(&self, errno: Errno, after: u64) {
        self.shared.disk.lock().faults.write = Some(Fault { errno, after });
    }

    /// Sets the size of the disk. Writes that exceed it fail with ENOSPC.
    pub fn capacity(&self, bytes: u64) {
        self.shared.disk.lock().faults.capacity = Some(bytes);
    }

    /// Returns the bytes in files that have a name or are open.
    pub fn used(&self) -> u64 {
        self.shared.disk.lock().used()
    }

    /// Removes all faults. Data lost by a failed fsync stays lost.
    pub fn heal(&self) {
        self.shared.disk.lock().faults.heal();
    }

    pub fn counters(&self) -> Counters {
        self.shared.disk.lock().faults.counters
    }

    /// Waits until the counters match. Returns false if they do not within `timeout`.
    pub fn wait_for(&self, timeout: Duration, matches: impl Fn(Counters) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut disk = self.shared.disk.lock();
        while !matches(disk.faults.counters) {
            if self.shared.changed.wait_until(&mut disk, deadline).timed_out() {
                return matches(disk.faults.counters);
            }
        }
        true
    }
}

/// A temporary directory with a `FaultFs` mounted on it.
pub struct FaultyDirectory {
    // Dropped in this order: first unmounted, then removed.
    pub disk: FaultFs,
    _directory: tempfile::TempDir,
}

impl FaultyDirectory {
    /// Mounts a disk on a new temporary directory. If that is not possible, reports the calling test as
    /// skipped and returns `None`.
    pub fn new_or_skip() -> Option<Self> {
        let mounted = tempfile::tempdir().map_err(Unavailable::because).and_then(|directory| {
            Ok(Self { disk: FaultFs::mount(directory.path())?, _directory: directory })
        });
        mounted.inspect_err(|reason| report_skipped(reason)).ok()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.disk.path().join(name)
    }
}
