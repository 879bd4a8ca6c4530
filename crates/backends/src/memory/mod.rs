//! The store in memory: the same contract as the real ones, simple enough to be believed.
//!
//! It is the oracle that property tests compare with. A transaction works on its own copy of the
//! tables and puts it in place when it commits; a reader keeps the tables it began with.

mod apply;
mod blobs;
mod log;
mod lookup;
mod retention;
mod snapshot;
mod table;
mod tables;

pub use blobs::MemoryBlobs;

use parking_lot::Mutex;
use parlor_engine::Fault;
use parlor_engine::decide::Effects;
use parlor_engine::ports::{Head, Reader, Snapshot, Store, Transaction};
use parlor_model::{Agent, Epoch, Subscription, Time};
use std::sync::Arc;
use std::time::Duration;
use tables::Tables;

/// What is committed, replaced as a whole by each commit and never changed in place.
type Committed = Arc<Mutex<Arc<Tables>>>;

/// How long things are kept that are not kept for good.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    pub log: Duration,
    pub once: Duration,
    pub uploads: Duration,
    /// `None`: messages are kept for ever.
    pub messages: Option<Duration>,
    pub audit: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 60 * 60);
        Self { log: 7 * day, once: 2 * day, uploads: day / 24, messages: None, audit: 365 * day }
    }
}

#[derive(Clone)]
pub struct MemoryStore {
    committed: Committed,
    windows: Retention,
}

impl MemoryStore {
    /// An empty store, as the engine wants it.
    pub fn open(epoch: Epoch) -> (Box<dyn Store>, Arc<dyn Reader>) {
        Self::new(epoch, Retention::default()).handles()
    }

    pub fn new(epoch: Epoch, windows: Retention) -> Self {
        Self { committed: Arc::new(Mutex::new(Arc::new(Tables::empty(epoch)))), windows }
    }

    /// Both sides of this store; taken again after the last ones are gone, it is a restart.
    pub fn handles(&self) -> (Box<dyn Store>, Arc<dyn Reader>) {
        (Box::new(self.clone()), Arc::new(self.clone()))
    }

    fn view(&self) -> TablesView {
        TablesView { tables: self.committed.lock().clone(), committed: self.committed.clone() }
    }
}

impl Store for MemoryStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault> {
        Ok(Box::new(self.view()))
    }

    fn head(&mut self) -> Result<Head, Fault> {
        Ok(self.view().tables.head)
    }

    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        let tables = self.view().tables;
        Ok((tables.agents.rows().cloned().collect(), tables.subscriptions.rows().cloned().collect()))
    }

    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault> {
        let mut committed = self.committed.lock();
        Arc::make_mut(&mut committed).apply_retention(now, &self.windows);
        Ok(false)
    }
}

impl Reader for MemoryStore {
    fn with(&self, read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>) -> Result<(), Fault> {
        read(&mut self.view())
    }
}

/// The tables as they were when it was made; as a transaction, a copy that takes changes.
struct TablesView {
    tables: Arc<Tables>,
    committed: Committed,
}

impl Transaction for TablesView {
    fn apply(&mut self, plan: &Effects) -> Result<(), Fault> {
        // The committed tables hold the other reference, so the first change makes the copy.
        let tables = Arc::make_mut(&mut self.tables);
        for change in &plan.changes {
            tables.change(change);
        }
        for logged_event in &plan.events {
            tables.append(logged_event);
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), Fault> {
        *self.committed.lock() = self.tables;
        Ok(())
    }
}
