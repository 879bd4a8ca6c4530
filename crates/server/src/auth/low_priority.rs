//! Runs CPU-bound work at low priority, so that it does not delay the rest of the hub.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Runs work on the current thread after lowering its priority. The thread must not be reused for other work:
/// without privileges, its priority cannot be raised again. If the system refuses, the work runs at normal
/// priority.
#[derive(Clone, Default)]
pub struct LowPriority {
    /// Alive while any idle-priority work runs; the wake-up threads stop when it is dropped.
    running: Arc<Mutex<Weak<()>>>,
}

impl LowPriority {
    /// Runs work with a higher nice value. It still gets a share of a busy machine, so that sign-ins keep
    /// working.
    pub fn run_niced<T>(work: impl FnOnce() -> T) -> T {
        #[cfg(target_os = "linux")]
        linux::be_nice();
        work()
    }

    /// Runs work with the idle scheduling policy: it gets only CPU time that no other thread needs.
    pub fn run_idle<T>(&self, work: impl FnOnce() -> T) -> T {
        let _running = {
            let mut current = self.running.lock();
            current.upgrade().unwrap_or_else(|| {
                let running = Arc::new(());
                *current = Arc::downgrade(&running);
                #[cfg(target_os = "linux")]
                linux::start_wake_up_threads(&running);
                running
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
    /// Interval between wake-ups of a core: the maximum delay before a woken thread preempts idle-priority
    /// work.
    const WAKE_UP_INTERVAL: Duration = Duration::from_micros(250);
    /// Maximum cores with a wake-up thread. A machine with more cores has a free one for a woken thread.
    const MAX_CORES: usize = 16;

    pub fn be_nice() {
        let _ = rustix::process::nice(NICENESS);
    }

    /// Sets the idle scheduling policy. A nice value is not enough: a woken thread would wait for the running
    /// thread's time slice, which takes milliseconds, but it preempts an idle-policy thread at once.
    pub fn be_idle() {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    }

    /// Starts one thread per core that only wakes up periodically, until `running` is dropped. With lazy
    /// preemption, the kernel preempts idle-policy work only at an interrupt, and the next timer tick may be
    /// milliseconds away.
    pub fn start_wake_up_threads(running: &Arc<()>) {
        let Ok(allowed) = sched_getaffinity(None) else { return };
        for core in (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).take(MAX_CORES) {
            let running = Arc::downgrade(running);
            let wake = move || {
                let mut own_core = CpuSet::new();
                own_core.set(core);
                let _ = sched_setaffinity(None, &own_core);
                while running.strong_count() > 0 {
                    std::thread::sleep(WAKE_UP_INTERVAL);
                }
            };
            let _ = std::thread::Builder::new().name("parlor-beat".into()).spawn(wake);
        }
    }
}
