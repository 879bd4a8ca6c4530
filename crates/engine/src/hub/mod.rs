//! `Hub`: the engine's API for protocol adapters. `submit` and `execute` run commands, `read` answers queries,
//! `session` begins the session of a connection, `feed` opens a feed inside the process, and `hosting` serves
//! gateways.
//!
//! Owns: the state that all parts of a hub share, and the way of a command into the writer's queue. Rules and
//! permissions of commands are in `commands/`, live delivery is in `feed/`.

mod reads;
mod start;

use crate::Limits;
use crate::agent_changes::AgentChangeLog;
use crate::commands::{self, Job, PendingReceipt, QueuedJob};
use crate::feed::{Fanout, Names, RoomRoots};
use crate::health::{Health, HealthCell};
use crate::metrics::{HubMetrics, WriterMetrics};
use crate::ports::{Bus, Clock, IdGenerator, Reader, Store, Triage};
use crate::runs::SchedulerHandle;
use crate::tasks::Tasks;
use crate::turns::{TurnChanges, TurnsHandle};
use parlor_model::{Caller, Epoch, Position, Refusal, Seq, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{Notify, Semaphore, mpsc};
use tracing::Instrument;

#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    bus: Arc<dyn Bus>,
    queue: parking_lot::Mutex<Option<mpsc::Sender<Box<dyn QueuedJob>>>>,
    reader: Arc<dyn Reader>,
    fanout: Arc<Fanout>,
    names: Arc<Names>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    epoch: Epoch,
    health: Arc<HealthCell>,
    tally: Arc<WriterMetrics>,
    released: Arc<Notify>,
    services: Arc<Notify>,
    agent_changes: Arc<AgentChangeLog>,
    /// Limits concurrent reads, which run on blocking threads; further reads wait for a permit.
    reads: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    threads: parking_lot::Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// The loops of the scheduler and the actions that they have started.
    tasks: Tasks,
    stop: Arc<AtomicBool>,
    scheduler: Arc<SchedulerHandle>,
    triage: Arc<dyn Triage>,
    /// Limits concurrent triage requests for batches of mail; further checks wait for a permit.
    triage_permits: Arc<Semaphore>,
    turns: Arc<TurnsHandle>,
    turn_changes: Arc<TurnChanges>,
    ids: Arc<dyn IdGenerator>,
}

/// A reference to the hub that does not keep it alive.
pub struct WeakHub(Weak<Inner>);

impl WeakHub {
    pub fn upgrade(&self) -> Option<Hub> {
        self.0.upgrade().map(|inner| Hub { inner })
    }
}

/// Ports and limits that a hub is built from.
pub struct HubDependencies {
    pub store: Box<dyn Store>,
    pub reader: Arc<dyn Reader>,
    pub bus: Arc<dyn Bus>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGenerator>,
    pub triage: Arc<dyn Triage>,
    pub limits: Limits,
}

impl Hub {
    pub(crate) fn scheduler(&self) -> &SchedulerHandle {
        &self.inner.scheduler
    }

    pub(crate) fn shared_scheduler(&self) -> Arc<SchedulerHandle> {
        self.inner.scheduler.clone()
    }

    pub(crate) fn triage_port(&self) -> &dyn Triage {
        &*self.inner.triage
    }

    pub(crate) fn triage_permits(&self) -> Arc<Semaphore> {
        self.inner.triage_permits.clone()
    }

    pub(crate) fn shared_turns(&self) -> Arc<TurnsHandle> {
        self.inner.turns.clone()
    }

    pub(crate) fn turn_changes(&self) -> Arc<TurnChanges> {
        self.inner.turn_changes.clone()
    }

    pub(crate) fn new_id(&self) -> Box<str> {
        self.inner.ids.next().into()
    }

    pub(crate) fn fanout(&self) -> &Fanout {
        &self.inner.fanout
    }

    pub(crate) fn shared_fanout(&self) -> Arc<Fanout> {
        self.inner.fanout.clone()
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.inner.tasks
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// `Seq` of the newest committed event.
    pub(crate) fn committed(&self) -> Seq {
        Seq(self.inner.tally.head.load(Ordering::Relaxed))
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.inner.stop.load(Ordering::Acquire)
    }

    /// Validates a command and queues it for the writer. Commands that one caller submits one after the other
    /// are decided in that order. Waits only for space in the queue; the result is the value of the returned
    /// future.
    pub async fn submit<C: commands::Command>(
        &self,
        caller: &Caller,
        command: C,
    ) -> PendingReceipt<C::Receipt> {
        if let Err(refusal) = command.validate(&self.inner.limits) {
            return PendingReceipt::refused(refusal);
        }
        let (job, receipt) = Job::new(caller.clone(), command);
        if self.enqueue(Box::new(job)).await {
            receipt
        } else {
            PendingReceipt::refused(Refusal::Unavailable)
        }
    }

    /// Waits for space in the queue. Returns whether the job was queued.
    async fn enqueue(&self, job: Box<dyn QueuedJob>) -> bool {
        let queue = self.inner.queue.lock().clone();
        match queue {
            Some(queue) => queue.send(job).await.is_ok(),
            None => false,
        }
    }

    pub async fn execute<C: commands::Command>(
        &self,
        caller: &Caller,
        command: C,
    ) -> Result<C::Receipt, Refusal> {
        async { self.submit(caller, command).await.await }.instrument(tracing::debug_span!("command")).await
    }

    /// Waits until a built-in agent service is created or changed. Supports a single waiter.
    pub async fn services_changed(&self) {
        self.inner.services.notified().await;
    }

    /// Changes of agents and their mail, for the reader that mirrors them.
    pub fn agent_changes(&self) -> Arc<AgentChangeLog> {
        self.inner.agent_changes.clone()
    }

    /// Waits until blobs may have become unreferenced.
    pub(crate) async fn files_released(&self) {
        self.inner.released.notified().await;
    }

    pub fn health(&self) -> Health {
        let dead = self.inner.threads.lock().iter().any(std::thread::JoinHandle::is_finished);
        if dead { Health::Broken } else { self.inner.health.get() }
    }

    /// Snapshot of the hub's metrics.
    pub fn metrics(&self) -> HubMetrics {
        let Inner { tally: writer_metrics, limits, reads, reader, fanout, queue, .. } = &*self.inner;
        let free = queue.lock().as_ref().map_or(0, mpsc::Sender::capacity);
        HubMetrics {
            tally: writer_metrics.clone(),
            health: self.health(),
            waiting_commands: limits.max_queued_commands - free,
            most_waiting_commands: limits.max_queued_commands,
            reads: limits.reads - reads.available_permits(),
            most_reads: limits.reads,
            told: fanout.seen(),
            size: reader.size(),
        }
    }

    /// Project roots of rooms, up to date with the published events.
    pub fn roots(&self) -> Arc<RoomRoots> {
        self.inner.fanout.roots().clone()
    }

    /// Names of users and agents, up to date with the published events.
    pub fn names(&self) -> Arc<Names> {
        self.inner.names.clone()
    }

    pub fn epoch(&self) -> Epoch {
        self.inner.epoch
    }

    /// Position of the newest published event.
    pub fn position(&self) -> Position {
        Position { epoch: self.inner.epoch, seq: self.inner.fanout.seen() }
    }

    pub fn now(&self) -> Time {
        self.inner.clock.now()
    }

    /// Stops accepting commands, answers those already queued, then ends the writer and log-tailer threads and
    /// all tasks of the hub.
    pub async fn close(&self) {
        let hub = self.clone();
        let _ = tokio::task::spawn_blocking(move || hub.close_blocking()).await;
        self.inner.tasks.ended().await;
    }

    /// Blocking form of [`Self::close`], for callers outside of a runtime. Does not wait for the tasks, because
    /// their runtime may have ended.
    pub fn close_blocking(&self) {
        drop(self.inner.queue.lock().take());
        self.inner.stop.store(true, Ordering::Release);
        self.inner.scheduler.wake();
        self.inner.scheduler.idle.notify_one();
        self.inner.turns.wake();
        self.inner.fanout.wake_presence();
        self.inner.fanout.wake_merges();
        // Wakes the log tailer, which checks `stop` after each batch.
        self.inner.bus.publish(Arc::new([]));
        let threads = std::mem::take(&mut *self.inner.threads.lock());
        threads.into_iter().for_each(|thread| drop(thread.join()));
        // After the last commit, nothing that a task waits for can happen.
        self.inner.tasks.begin_abort();
    }
}
