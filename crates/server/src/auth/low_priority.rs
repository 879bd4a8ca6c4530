//! Runs CPU-bound work at low priority, so that it does not delay the rest of the hub.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// Runs work on the current thread after lowering its priority. The thread must not be reused for other work:
/// without privileges, its priority cannot be raised again. If the system refuses, the work runs at normal
/// priority.
#[derive(Clone, Default)]
pub struct LowPriority {
    /// Alive while any idle-priority work runs.
    running: Arc<Mutex<Weak<WakeUpThreads>>>,
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
                let running = Arc::new(WakeUpThreads::start());
                *current = Arc::downgrade(&running);
                running
            })
        };
        #[cfg(target_os = "linux")]
        linux::be_idle();
        work()
    }
}

/// Threads that only wake up periodically, one per core. With lazy preemption, the kernel preempts idle-policy
/// work only at an interrupt, and the next timer tick may be milliseconds away. Dropping it ends the threads.
#[derive(Default)]
struct WakeUpThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl WakeUpThreads {
    fn start() -> Self {
        #[cfg(target_os = "linux")]
        {
            let stop = Arc::<AtomicBool>::default();
            Self { threads: linux::start_wake_up_threads(&stop), stop }
        }
        #[cfg(not(target_os = "linux"))]
        Self::default()
    }
}

impl Drop for WakeUpThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;
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

    /// Starts the wake-up thread of each core. A thread ends when `stop` is set.
    pub fn start_wake_up_threads(stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
        let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
        let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).take(MAX_CORES);
        let start = |core| {
            let stop = stop.clone();
            let wake = move || {
                let mut own_core = CpuSet::new();
                own_core.set(core);
                let _ = sched_setaffinity(None, &own_core);
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(WAKE_UP_INTERVAL);
                }
            };
            std::thread::Builder::new().name("parlor-beat".into()).spawn(wake).ok()
        };
        cores.filter_map(start).collect()
    }
}
