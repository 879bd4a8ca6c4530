//! Injected faults of the disk, and counters of its requests.

use fuser::Errno;

/// Number of requests since the mount, including failed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub writes: u64,
    pub failed_writes: u64,
    pub fsyncs: u64,
    pub failed_fsyncs: u64,
}

#[derive(Default)]
pub(super) struct Faults {
    pub(super) fsync: Option<Fault>,
    pub(super) write: Option<Fault>,
    pub(super) capacity: Option<u64>,
    pub(super) counters: Counters,
}

/// Lets `after` more requests succeed; then every request fails until the disk is healed.
pub(super) struct Fault {
    pub(super) errno: Errno,
    pub(super) after: u64,
}

impl Faults {
    pub(super) fn heal(&mut self) {
        (self.fsync, self.write, self.capacity) = (None, None, None);
    }

    pub(super) fn admit_fsync(&mut self) -> Result<(), Errno> {
        self.counters.fsyncs += 1;
        apply_fault(&mut self.fsync).inspect_err(|_| self.counters.failed_fsyncs += 1)
    }

    /// `used` is the total space after the write, `grown` its increase.
    pub(super) fn admit_write(&mut self, used: u64, grown: u64) -> Result<(), Errno> {
        self.counters.writes += 1;
        apply_fault(&mut self.write)
            .and_then(|()| self.admit_growth(used, grown))
            .inspect_err(|_| self.counters.failed_writes += 1)
    }

    pub(super) fn admit_growth(&self, used: u64, grown: u64) -> Result<(), Errno> {
        match self.capacity {
            Some(capacity) if grown > 0 && used > capacity => Err(Errno::ENOSPC),
            _ => Ok(()),
        }
    }
}

fn apply_fault(fault: &mut Option<Fault>) -> Result<(), Errno> {
    match fault {
        Some(Fault { errno, after: 0 }) => Err(*errno),
        Some(Fault { after, .. }) => {
            *after -= 1;
            Ok(())
        }
        None => Ok(()),
    }
}
