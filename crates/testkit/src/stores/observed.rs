//! A store that counts the writer's reads and can make a commit fail.

use parlor_engine::effects::Effects;
use parlor_engine::ports::{Head, Store, Transaction};
use parlor_engine::{Fault, Severity, delegate_lookups};
use parlor_model::{Agent, Seq, Subscription, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters and switches of an [`Observed`] store, shared with the test.
#[derive(Default)]
pub struct StoreWatch {
    reads: AtomicU64,
    fail_next_commit: AtomicBool,
}

impl StoreWatch {
    /// Number of look-ups in the writer's transactions since the last call.
    pub fn take_reads(&self) -> u64 {
        self.reads.swap(0, Ordering::SeqCst)
    }

    /// Makes the next commit roll back with a transient fault.
    pub fn fail_next_commit(&self) {
        self.fail_next_commit.store(true, Ordering::SeqCst);
    }
}

pub struct Observed {
    store: Box<dyn Store>,
    watch: Arc<StoreWatch>,
}

impl Observed {
    pub fn new(store: Box<dyn Store>) -> (Self, Arc<StoreWatch>) {
        let watch = Arc::new(StoreWatch::default());
        (Self { store, watch: watch.clone() }, watch)
    }
}

impl Store for Observed {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault> {
        Ok(Box::new(ObservedTransaction { transaction: self.store.begin()?, watch: self.watch.clone() }))
    }

    fn head(&mut self) -> Result<Head, Fault> {
        self.store.head()
    }

    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        self.store.subscriptions()
    }

    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault> {
        self.store.run_maintenance(now)
    }

    fn index(&mut self, limit: usize) -> Result<Seq, Fault> {
        self.store.index(limit)
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.store.close()
    }
}

struct ObservedTransaction<'a> {
    transaction: Box<dyn Transaction + 'a>,
    watch: Arc<StoreWatch>,
}

impl<'a> ObservedTransaction<'a> {
    fn counted(&mut self) -> Result<&mut (dyn Transaction + 'a), Fault> {
        self.watch.reads.fetch_add(1, Ordering::SeqCst);
        Ok(&mut *self.transaction)
    }
}

delegate_lookups!(ObservedTransaction<'_>, counted, counted);

impl Transaction for ObservedTransaction<'_> {
    fn apply(&mut self, effects: &Effects) -> Result<(), Fault> {
        self.transaction.apply(effects)
    }

    fn commit(self: Box<Self>) -> Result<(), Fault> {
        if self.watch.fail_next_commit.swap(false, Ordering::SeqCst) {
            return Err(Fault::new("committing", Severity::Transient, "the test made this commit fail"));
        }
        self.transaction.commit()
    }
}
