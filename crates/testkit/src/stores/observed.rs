//! A store that can make the writer wait and can make a commit fail.

use parking_lot::{Condvar, Mutex};
use parlor_engine::changes::{Change, RoomChange};
use parlor_engine::effects::Effects;
use parlor_engine::ports::{Head, Lookup, Store, Transaction};
use parlor_engine::{Fault, Severity};
use parlor_model::{Agent, Seq, Subscription, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Counters and switches of an [`Observed`] store, shared with the test.
#[derive(Default)]
pub struct StoreWatch {
    fail_next_member: AtomicBool,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Default)]
struct Gate {
    closed: bool,
    writer_waits: bool,
}

impl StoreWatch {
    /// Makes the next commit that stores a membership roll back with a transient fault.
    pub fn fail_next_commit_of_a_member(&self) {
        self.fail_next_member.store(true, Ordering::SeqCst);
    }

    /// Makes the writer wait before its next transaction, so that further commands gather in its queue.
    pub fn close_gate(&self) {
        self.gate.lock().closed = true;
    }

    /// Waits until the writer has taken a batch and waits at the closed gate.
    pub fn wait_for_writer(&self) {
        let mut gate = self.gate.lock();
        while !gate.writer_waits {
            self.moved.wait(&mut gate);
        }
    }

    pub fn open_gate(&self) {
        self.gate.lock().closed = false;
        self.moved.notify_all();
    }

    fn pass_gate(&self) {
        let mut gate = self.gate.lock();
        while gate.closed {
            gate.writer_waits = true;
            self.moved.notify_all();
            self.moved.wait(&mut gate);
        }
        gate.writer_waits = false;
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
        self.watch.pass_gate();
        let (transaction, watch) = (self.store.begin()?, self.watch.clone());
        Ok(Box::new(ObservedTransaction { transaction, watch, has_member: false }))
    }

    fn head(&mut self) -> Result<Head, Fault> {
        self.store.head()
    }

    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        self.store.subscriptions()
    }

    fn reads(&self) -> u64 {
        self.store.reads()
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
    /// Whether the transaction stores a membership.
    has_member: bool,
}

impl Transaction for ObservedTransaction<'_> {
    fn lookup(&mut self) -> &mut dyn Lookup {
        self.transaction.lookup()
    }

    fn apply(&mut self, effects: &Effects) -> Result<(), Fault> {
        self.has_member |=
            effects.changes.iter().any(|change| matches!(change, Change::Room(RoomChange::PutMember(_))));
        self.transaction.apply(effects)
    }

    fn commit(self: Box<Self>) -> Result<(), Fault> {
        if self.has_member && self.watch.fail_next_member.swap(false, Ordering::SeqCst) {
            return Err(Fault::new("committing", Severity::Transient, "the test made this commit fail"));
        }
        self.transaction.commit()
    }
}
