//! The write pipeline: drains the command queue, decides each command inside the open transaction, commits
//! the batch with one fsync, then publishes its events.
//!
//! Owns: the order of these steps, store maintenance and search indexing between batches, and the hub's
//! health after a store fault. All writes go through this one thread.

use crate::agent_changes::{AgentChangeLog, AgentChanges};
use crate::cache::Cache;
use crate::commands::{Batch, Committed, QueuedJob};
use crate::fault::Severity;
use crate::health::{Health, HealthCell};
use crate::metrics::WriterMetrics;
use crate::ports::{Bus, Clock, Head, IdGenerator, Store};
use crate::routing_index::RoutingIndex;
use crate::turns::TurnChanges;
use crate::{Fault, Limits};
use parlor_model::{LoggedEvent, Seq};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// The single writer: owns the write side of the store, the cache and the routing index.
pub struct Writer {
    store: Box<dyn Store>,
    bus: Arc<dyn Bus>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
    health: Arc<HealthCell>,
    /// Notified when blobs may have become unreferenced.
    released: Arc<Notify>,
    services: Arc<Notify>,
    /// Notified when automatic turns or heartbeats may have been added, changed or removed.
    turn_changes: Arc<TurnChanges>,
    agent_changes: Arc<AgentChangeLog>,
    limits: Limits,
    tally: Arc<WriterMetrics>,
    routing_index: RoutingIndex,
    cache: Cache,
    head: Head,
    /// `Seq` up to which the search index is complete.
    indexed: Seq,
}

const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A batch of at least this many commands is a burst: more will follow soon, so indexing waits.
const BURST_COMMANDS: usize = 32;
/// Time without commands after which a burst counts as over.
const BURST_QUIET_PERIOD: Duration = Duration::from_millis(50);

impl Writer {
    pub fn new(
        mut store: Box<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGenerator>,
        health: Arc<HealthCell>,
        limits: Limits,
    ) -> Result<Self, Fault> {
        let head = store.head()?;
        let indexed = store.index(0)?;
        let (agents, subscriptions) = store.subscriptions()?;
        let routing_index = RoutingIndex::build(agents, subscriptions);
        let writer_metrics = Arc::new(WriterMetrics::default());
        writer_metrics.head.store(head.seq.0, Ordering::Relaxed);
        let (released, services) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        Ok(Self {
            store,
            bus,
            clock,
            ids,
            health,
            released,
            services,
            turn_changes: Arc::default(),
            agent_changes: Arc::default(),
            cache: Cache::new(limits.cache_entries),
            limits,
            tally: writer_metrics,
            routing_index,
            head,
            indexed,
        })
    }

    pub fn released(&self) -> Arc<Notify> {
        self.released.clone()
    }

    pub fn services(&self) -> Arc<Notify> {
        self.services.clone()
    }

    pub fn turn_changes(&self) -> Arc<TurnChanges> {
        self.turn_changes.clone()
    }

    pub fn agent_changes(&self) -> Arc<AgentChangeLog> {
        self.agent_changes.clone()
    }

    pub fn head(&self) -> Head {
        self.head
    }

    pub fn tally(&self) -> Arc<WriterMetrics> {
        self.tally.clone()
    }

    /// Runs until every sender has been dropped and the remaining commands are answered.
    ///
    /// `timer_runtime` is separate from the hub's runtime, which may be shut down before the writer has
    /// finished.
    pub fn run(
        mut self,
        mut queue: mpsc::Receiver<Box<dyn QueuedJob>>,
        timer_runtime: &tokio::runtime::Runtime,
    ) {
        let mut batch = Vec::with_capacity(self.limits.max_commit_batch);
        let (mut last_maintenance, mut more, mut quiet_from) = (Instant::now(), false, Instant::now());
        loop {
            let retry_soon = more || self.health.get() == Health::Full;
            let maintenance_interval = if retry_soon { STORE_RETRY_INTERVAL } else { MAINTENANCE_INTERVAL };
            // Indexing has the lowest priority: it runs only while the queue is empty. After a burst it waits
            // for a quiet period, because clients that were just answered are about to send their next
            // commands.
            let idle_work = self.behind_by(self.limits.unindexed);
            let wait = match idle_work {
                true => quiet_from.saturating_duration_since(Instant::now()),
                false => maintenance_interval.saturating_sub(last_maintenance.elapsed()),
            };
            let received = timer_runtime.block_on(async {
                tokio::time::timeout(wait, queue.recv_many(&mut batch, self.limits.max_commit_batch)).await
            });
            match received {
                Ok(0) => break,
                Ok(count) => {
                    self.process_batch(std::mem::take(&mut batch));
                    if count >= BURST_COMMANDS {
                        quiet_from = Instant::now() + BURST_QUIET_PERIOD;
                    }
                }
                Err(_) if idle_work => self.index(),
                Err(_) => {}
            }
            if self.behind_by(self.limits.most_unindexed) {
                self.index();
            }
            if last_maintenance.elapsed() >= maintenance_interval {
                more = self.run_maintenance();
                last_maintenance = Instant::now();
            }
        }
        self.run_maintenance();
        if self.health.get() != Health::Broken
            && let Err(fault) = self.store.close()
        {
            tracing::warn!(%fault, "the store could not be closed cleanly; the next start will recover it");
        }
    }

    /// Runs one batch of commands through the pipeline and answers each of them.
    pub fn process_batch(&mut self, mut jobs: Vec<Box<dyn QueuedJob>>) {
        if self.health.get() == Health::Broken {
            return self.answer(jobs, false);
        }
        let _traced = tracing::debug_span!("commit", commands = jobs.len()).entered();
        let began = Instant::now();
        let committed = self.decide_and_commit(&mut jobs);
        self.tally.store_reads.store(self.store.reads(), Ordering::Relaxed);
        match committed {
            Ok(events) => {
                self.tally.commits.observe(began.elapsed());
                self.tally.head.store(self.head.seq.0, Ordering::Relaxed);
                self.health.recovered();
                if !events.is_empty() {
                    self.bus.publish(events.into());
                }
                self.answer(jobs, true);
            }
            Err(fault) => {
                self.after(fault);
                self.answer(jobs, false);
            }
        }
    }

    fn decide_and_commit(&mut self, jobs: &mut [Box<dyn QueuedJob>]) -> Result<Vec<LoggedEvent>, Fault> {
        let mut batch = Batch {
            transaction: self.store.begin()?,
            cache: &mut self.cache,
            routes: &mut self.routing_index,
            clock: &*self.clock,
            ids: &*self.ids,
            limits: &self.limits,
            head: self.head,
            route_lookups: Default::default(),
            committed: Committed {
                agents: self.agent_changes.is_followed().then(AgentChanges::default),
                ..Committed::default()
            },
        };
        for job in jobs {
            job.decide(&mut batch)?;
        }
        let (head, committed) = batch.commit()?;
        if let Some(changes) = committed.agents {
            self.agent_changes.add(changes);
        }
        if committed.released {
            self.released.notify_one();
        }
        if committed.services {
            self.services.notify_one();
        }
        self.turn_changes.add(committed.turn_settings, committed.mail_of);
        if committed.room_removed {
            self.indexed = Seq(0);
        }
        self.head = head;
        Ok(committed.events)
    }

    /// Handles a fault of the store: the whole batch was rolled back. Sets the health, clears the cache, and
    /// rebuilds the routing index from the store, if that can still be read.
    fn after(&mut self, fault: Fault) {
        tracing::error!(%fault, severity = ?fault.severity, "the store could not commit; nothing was acknowledged");
        self.health.set(match fault.severity {
            Severity::Transient => Health::Full,
            Severity::Permanent => Health::Broken,
        });
        self.cache.clear();
        if let Ok((agents, subscriptions)) = self.store.subscriptions() {
            self.routing_index = RoutingIndex::build(agents, subscriptions);
        }
    }

    fn behind_by(&self, events: usize) -> bool {
        let behind = self.head.seq.0.saturating_sub(self.indexed.0);
        behind >= events.max(1) as u64 && self.health.get() == Health::Good
    }

    fn index(&mut self) {
        match self.store.index(self.limits.unindexed) {
            Ok(reached) => self.indexed = reached,
            Err(fault) => self.after(fault),
        }
    }

    /// Returns whether there is more maintenance to do.
    fn run_maintenance(&mut self) -> bool {
        if self.health.get() == Health::Broken {
            return false;
        }
        // Maintenance deletes old rows without changes that the cache would see.
        self.cache.clear();
        match self.store.run_maintenance(self.clock.now()) {
            Ok(more) => {
                self.health.recovered();
                self.released.notify_one();
                more
            }
            Err(fault) => {
                self.after(fault);
                false
            }
        }
    }

    fn answer(&self, jobs: Vec<Box<dyn QueuedJob>>, committed: bool) {
        let now = Instant::now();
        jobs.into_iter().for_each(|job| job.answer(committed, now, &self.tally));
    }
}
