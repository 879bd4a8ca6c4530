//! In-memory store with the same contract as the SQLite store, kept simple because it is the reference model.
//!
//! Differential tests compare the SQLite store with it. A transaction works on its own copy of the tables and
//! swaps it in on commit; a reader keeps the tables it started with. Nothing is written to disk.

mod accounts;
mod agents;
mod annotations;
mod approvals;
mod audit;
mod blobs;
mod conversations;
mod credentials;
mod log;
mod mail;
mod messages;
mod missions;
mod models;
mod retention;
mod rooms;
mod runs;
mod settings;
mod table;
mod tables;
mod tasks;
mod uploads;

pub use blobs::MemoryBlobs;

use parking_lot::Mutex;
use parlor_engine::Fault;
use parlor_engine::changes::Change;
use parlor_engine::effects::Effects;
use parlor_engine::ports::{Head, Lookup, Reader, Snapshot, Store, Transaction};
use parlor_model::{Agent, Epoch, Subscription, Time};
use std::sync::Arc;
use std::time::Duration;
use tables::Tables;

/// The committed tables. Each commit replaces the inner `Arc`, so that open readers keep their snapshot.
type Committed = Arc<Mutex<Arc<Tables>>>;

/// Retention windows: rows older than their window are deleted by maintenance.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    pub log: Duration,
    /// Window of idempotency keys.
    pub once: Duration,
    /// Window of uploads that are not attached to a message.
    pub uploads: Duration,
    /// `None`: messages are never deleted by age.
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
    /// Creates an empty store with the default retention and returns its writer and its reader.
    pub fn open(epoch: Epoch) -> (Box<dyn Store>, Arc<dyn Reader>) {
        Self::new(epoch, Retention::default()).handles()
    }

    pub fn new(epoch: Epoch, windows: Retention) -> Self {
        Self { committed: Arc::new(Mutex::new(Arc::new(Tables::empty(epoch)))), windows }
    }

    /// Returns the writer and the reader of this store. Calling it again after the earlier handles were
    /// dropped simulates a restart on the same data.
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

/// Snapshot of the tables at its creation. As a `Transaction`, it is a private copy that `commit` swaps in.
struct TablesView {
    tables: Arc<Tables>,
    committed: Committed,
}

impl Transaction for TablesView {
    fn lookup(&mut self) -> &mut dyn Lookup {
        self
    }

    fn apply(&mut self, effects: &Effects) -> Result<(), Fault> {
        // The committed tables hold another reference, so the first `make_mut` clones them.
        let tables = Arc::make_mut(&mut self.tables);
        for change in &effects.changes {
            tables.apply(change);
        }
        for logged_event in &effects.events {
            tables.append(logged_event);
        }
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), Fault> {
        *self.committed.lock() = self.tables;
        Ok(())
    }
}

impl Tables {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Account(change) => self.apply_accounts(change),
            Change::Credential(change) => self.apply_credentials(change),
            Change::Settings(change) => self.apply_settings(change),
            Change::Audit(change) => self.apply_audit(change),
            Change::Model(change) => self.apply_models(change),
            Change::Room(change) => self.apply_rooms(change),
            Change::Message(change) => self.apply_messages(change),
            Change::Annotation(change) => self.apply_annotations(change),
            Change::Upload(change) => self.apply_uploads(change),
            Change::Agent(change) => self.apply_agents(change),
            Change::Mail(change) => self.apply_mail(change),
            Change::Run(change) => self.apply_runs(change),
            Change::Conversation(change) => self.apply_conversations(change),
            Change::Approval(change) => self.apply_approvals(change),
            Change::Mission(change) => self.apply_missions(change),
            Change::Task(change) => self.apply_tasks(change),
        }
    }
}
