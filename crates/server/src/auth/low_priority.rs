//! Work that takes a core for a while and lets everybody else go first.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Runs work on the thread of the caller, which is not used for anything else afterwards: without privileges, who
/// stands back cannot come forward again. Where the system does not let us, the work is done all the same.
#[derive(Clone, Default)]
pub struct LowPriority {
    beat: Arc<Mutex<Weak<()>>>,
}

impl LowPriority {
    /// Behind whoever talks, but with a share: a machine that is busy with other things must not keep people out.
    pub fn run_niced<T>(work: impl FnOnce() -> T) -> T {
        #[cfg(target_os = "linux")]
        linux::be_nice();
        work()
    }

    /// With what nobody else wants of the machine.
    pub fn run_idle<T>(&self, work: impl FnOnce() -> T) -> T {
        let _beat = {
            let mut held = self.beat.lock();
            held.upgrade().unwrap_or_else(|| {
                let beat = Arc::new(());
                *held = Arc::downgrade(&beat);
                #[cfg(target_os = "linux")]
                linux::beat(&beat);
                beat
            })
        };
        #[cfg(target_os = "linux")]
        linux::be_idle();
        work()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::Arc;
    use std::time::Duration;
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };

    const NICENESS: i32 = 10;
    /// How long whoever is woken waits at most for a core that works behind everybody else.
    const EVERY: Duration = Duration::from_micros(250);
    /// With more cores than this there is a free one to wake on.
    const MOST_CORES: usize = 16;

    pub fn be_nice() {
        let _ = rustix::process::nice(NICENESS);
    }

    /// Being nice is not enough here: who is woken waits until the thread on its core has had its slice, which is
    /// milliseconds. An idle one it passes by at once.
    pub fn be_idle() {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    }

    /// At once, that is, when the core looks; and where preemption is lazy, it looks when something interrupts it,
    /// for which the next tick may be milliseconds away. So as long as there is such work, each core has a thread
    /// that does nothing but wake.
    pub fn beat(while_held: &Arc<()>) {
        let Ok(ours) = sched_getaffinity(None) else { return };
        for core in (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core)).take(MOST_CORES) {
            let held = Arc::downgrade(while_held);
            let wake = move || {
                let mut here = CpuSet::new();
                here.set(core);
                let _ = sched_setaffinity(None, &here);
                while held.strong_count() > 0 {
                    std::thread::sleep(EVERY);
                }
            };
            let _ = std::thread::Builder::new().name("parlor-beat".into()).spawn(wake);
        }
    }
}
