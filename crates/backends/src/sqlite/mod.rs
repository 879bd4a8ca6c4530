//! Embedded store: one SQLite file in WAL mode with one writer and a pool of readers.
//!
//! Owns: tables and log change in one transaction; after a failed fsync nothing is written until the file is
//! reopened. The writer runs checkpoints explicitly instead of letting SQLite run them inside a commit: a
//! checkpoint whose fsync failed must not be retried as if the data were safe.

mod accounts;
mod agents;
mod annotations;
mod approvals;
mod audit;
pub mod backup;
mod connection;
mod conversations;
mod credentials;
mod insert;
mod log;
mod mail;
mod messages;
mod migrations;
mod missions;
mod models;
mod origins;
mod rooms;
mod rows;
mod runs;
mod search;
mod settings;
mod tasks;
mod trim;
mod uploads;

use insert::{Inserts, PendingRows};
use parking_lot::{Condvar, Mutex};
use parlor_engine::Fault;
use parlor_engine::changes::Change;
use parlor_engine::effects::Effects;
use parlor_engine::metrics::StoreSize;
use parlor_engine::ports::{Head, Lookup, Reader, Snapshot, Store, Transaction};
use parlor_model::{Agent, Seq, Subscription, Time};
use rows::{SqlFaultExt, one};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, ToSql, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Every commit is synced to disk before it is acknowledged.
    Full,
    /// A power cut may lose the newest commits; a crash of the process does not.
    Normal,
    /// A power cut may lose many commits or corrupt the file.
    Off,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub synchronous: Synchronous,
    pub log_window: Duration,
    pub idempotency_window: Duration,
    pub audit_window: Duration,
    /// Retention of uploads that are not attached to a message.
    pub upload_window: Duration,
    /// `None`: messages are never deleted by age.
    pub message_retention: Option<Duration>,
    /// Size of the reader pool: the maximum of concurrent reads for callers (`Limits::reads`) plus three, for
    /// joins, the fan-out and the removal of files.
    pub readers: usize,
}

impl Default for Options {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 60 * 60);
        Self {
            synchronous: Synchronous::Full,
            log_window: 7 * day,
            idempotency_window: 2 * day,
            audit_window: 365 * day,
            upload_window: day / 24,
            message_retention: None,
            readers: 7,
        }
    }
}

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "this data was written by a newer Parlor (schema {found}, this version supports up to {known}); start that version, or restore a backup made by this one"
    )]
    Newer { found: i64, known: i64 },
    #[error("the database could not be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the database could not be opened: {0}")]
    Fault(#[from] Fault),
    #[error("the database could not be opened: {0}")]
    Io(#[from] std::io::Error),
    #[error("the database is damaged: {0}")]
    Damaged(String),
    #[error("the database is empty")]
    Empty,
    #[error("no random number available for the epoch: {0}")]
    Random(#[from] getrandom::Error),
}

pub struct SqliteStore {
    connection: Connection,
    options: Options,
    /// Estimated bytes written to the write-ahead log since the last checkpoint.
    bytes_since_checkpoint: usize,
    /// Number of reads in the writer's transactions.
    reads: u64,
}

const PAGE_BYTES: usize = 4096;
/// Estimated size of the write-ahead log that triggers a checkpoint.
const CHECKPOINT_BYTES: usize = 4000 * PAGE_BYTES;
/// Estimated minimum that a commit writes: one or two pages of each table it touches.
const MIN_COMMIT_BYTES: usize = 8 * PAGE_BYTES;
/// Estimated bytes of a message besides its text: other columns, index entries and log row.
const MESSAGE_OVERHEAD_BYTES: usize = 400;

/// The single writer of a store, and its pool of readers.
pub type StoreHandles = (Box<dyn Store>, Arc<dyn Reader>);

/// Opens or creates the database in `directory` and migrates it to the current schema.
pub fn open(directory: &Path, options: Options) -> Result<StoreHandles, OpenError> {
    let file = directory.join("parlor.db");
    // Created before SQLite opens it, so that only the owner can read it; SQLite gives the WAL files the same
    // mode.
    OpenOptions::new().append(true).create(true).mode(0o600).open(&file)?;
    let connection = connection::open(&file, OpenFlags::default())?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
        Synchronous::Off => "OFF",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Overwrite deleted content on disk with zeros.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    search::prepare(&connection)?;
    let mut connection = connection;
    migrations::migrate(&mut connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    search::rebuild_if_stale(&transaction)?;
    transaction.commit()?;
    let reader = ReaderPool::open(&file, options.readers)?;
    let store = SqliteStore { connection, options, bytes_since_checkpoint: 0, reads: 0 };
    Ok((Box::new(store), Arc::new(reader)))
}

/// The connection behind the tables.
trait Sql {
    /// The connection, which can read everything that the transaction has changed so far.
    fn sql(&mut self) -> Result<&Connection, Fault>;

    /// The connection, from which buffered rows may be missing.
    fn sql_without_buffered_rows(&mut self) -> &Connection;
}

/// The tables. Readers access them through a plain connection, the writer through its transaction.
struct SqlTables<C>(C);

impl<C: Sql> SqlTables<C> {
    fn sql(&mut self) -> Result<&Connection, Fault> {
        self.0.sql()
    }

    fn count(&mut self, query: &str, values: &[&dyn ToSql]) -> Result<usize, Fault> {
        Ok(one(self.sql()?, query, values, |row| row.get::<_, i64>(0))?.unwrap_or_default() as usize)
    }
}

impl Sql for &Connection {
    fn sql(&mut self) -> Result<&Connection, Fault> {
        Ok(self)
    }

    fn sql_without_buffered_rows(&mut self) -> &Connection {
        self
    }
}

/// The writer's transaction. Rolled back on drop unless it was committed.
struct WriteTransaction<'a> {
    connection: &'a Connection,
    inserts: Inserts<'a>,
    pending: PendingRows,
    /// Inserts idempotency keys; prepared once per batch.
    insert_key: CachedStatement<'a>,
    bytes_since_checkpoint: &'a mut usize,
    reads: &'a mut u64,
    /// Sequence numbers of the first and the last event of the batch.
    event_range: Option<(Seq, Seq)>,
    /// Whether the batch contains a message in a room, which the search index must take in.
    has_room_messages: bool,
    committed: bool,
}

impl Sql for WriteTransaction<'_> {
    fn sql(&mut self) -> Result<&Connection, Fault> {
        *self.reads += 1;
        self.write()?;
        Ok(self.connection)
    }

    fn sql_without_buffered_rows(&mut self) -> &Connection {
        *self.reads += 1;
        self.connection
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        if !self.committed && !self.connection.is_autocommit() {
            // If the rollback fails, the next `BEGIN` reports the error.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Store for SqliteStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault> {
        if self.bytes_since_checkpoint > CHECKPOINT_BYTES {
            self.checkpoint()?;
        }
        let connection = &self.connection;
        let inserts = Inserts::prepare(connection)?;
        let insert_key = connection.prepare_cached(messages::INSERT_KEY).stored("preparing a statement")?;
        connection.execute_batch("BEGIN IMMEDIATE").stored("beginning a transaction")?;
        self.bytes_since_checkpoint += MIN_COMMIT_BYTES;
        Ok(Box::new(SqlTables(WriteTransaction {
            connection,
            inserts,
            pending: PendingRows::default(),
            insert_key,
            bytes_since_checkpoint: &mut self.bytes_since_checkpoint,
            reads: &mut self.reads,
            event_range: None,
            has_room_messages: false,
            committed: false,
        })))
    }

    fn head(&mut self) -> Result<Head, Fault> {
        SqlTables(&self.connection).head()
    }

    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        SqlTables(&self.connection).subscriptions()
    }

    fn reads(&self) -> u64 {
        self.reads
    }

    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .stored("running maintenance")?;
        let more = trim::trim(&transaction, now, &self.options)?;
        transaction.commit().stored("running maintenance")?;
        self.checkpoint()?;
        Ok(more)
    }

    fn index(&mut self, limit: usize) -> Result<Seq, Fault> {
        if let Some(reached) = search::is_complete(&self.connection)? {
            return Ok(reached);
        }
        if self.bytes_since_checkpoint > CHECKPOINT_BYTES {
            self.checkpoint()?;
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).stored("indexing")?;
        let reached = search::index(&transaction, limit)?;
        transaction.commit().stored("indexing")?;
        // Measured for batches of typical messages, including merges of the index.
        self.bytes_since_checkpoint += limit * PAGE_BYTES / 4;
        Ok(reached)
    }

    /// Truncates the write-ahead log, which may still contain the text of deleted messages.
    fn close(&mut self) -> Result<(), Fault> {
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied.stored("closing the database")
    }
}

impl SqliteStore {
    fn checkpoint(&mut self) -> Result<(), Fault> {
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .stored("checkpointing")?;
        self.bytes_since_checkpoint = 0;
        Ok(())
    }
}

impl Transaction for SqlTables<WriteTransaction<'_>> {
    fn lookup(&mut self) -> &mut dyn Lookup {
        self
    }

    fn apply(&mut self, effects: &Effects) -> Result<(), Fault> {
        effects.changes.iter().try_for_each(|change| self.0.apply(change))?;
        for event in &effects.events {
            let (first, _) = self.0.event_range.unwrap_or((event.seq, event.seq));
            self.0.event_range = Some((first, event.seq));
            self.0.pending.log.push(event.clone());
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), Fault> {
        self.0.write()?;
        if let (false, Some((first, last))) = (self.0.has_room_messages, self.0.event_range) {
            search::advance_watermark(self.0.connection, first, last)?;
        }
        self.0.connection.execute_batch("COMMIT").stored("committing")?;
        self.0.committed = true;
        Ok(())
    }
}

impl<'a> WriteTransaction<'a> {
    fn apply(&mut self, change: &Change) -> Result<(), Fault> {
        match change {
            Change::Message(change) => messages::apply(self, change),
            Change::Mail(change) => mail::apply(self, change),
            Change::Account(change) => accounts::apply(self.changed_tables()?, change),
            Change::Credential(change) => credentials::apply(self.changed_tables()?, change),
            Change::Settings(change) => settings::apply(self.changed_tables()?, change),
            Change::Audit(change) => audit::apply(self.changed_tables()?, change),
            Change::Model(change) => models::apply(self.changed_tables()?, change),
            Change::Room(change) => rooms::apply(self.changed_tables()?, change),
            Change::Annotation(change) => annotations::apply(self.changed_tables()?, change),
            Change::Upload(change) => uploads::apply(self.changed_tables()?, change),
            Change::Agent(change) => agents::apply(self.changed_tables()?, change),
            Change::Run(change) => runs::apply(self.changed_tables()?, change),
            Change::Conversation(change) => conversations::apply(self.changed_tables()?, change),
            Change::Approval(change) => approvals::apply(self.changed_tables()?, change),
            Change::Mission(change) => missions::apply(self.changed_tables()?, change),
            Change::Task(change) => tasks::apply(self.changed_tables()?, change),
        }
    }

    /// The connection for a change that is written at once, after the rows that were buffered before it.
    fn changed_tables(&mut self) -> Result<&'a Connection, Fault> {
        self.write()?;
        *self.bytes_since_checkpoint += PAGE_BYTES;
        Ok(self.connection)
    }

    fn write(&mut self) -> Result<(), Fault> {
        self.inserts.write(&mut self.pending)
    }
}

/// Pool of read-only connections. A read blocks until a connection is idle.
struct ReaderPool {
    file: PathBuf,
    idle: Mutex<Vec<Connection>>,
    freed: Condvar,
}

impl ReaderPool {
    fn open(file: &Path, readers: usize) -> Result<Self, rusqlite::Error> {
        let open = |_| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = connection::open(file, flags)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.pragma_update(None, "cache_size", -4_000)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            Ok(connection)
        };
        let idle = (0..readers.max(1)).map(open).collect::<Result<_, rusqlite::Error>>()?;
        Ok(Self { file: file.to_owned(), idle: Mutex::new(idle), freed: Condvar::new() })
    }
}

/// Returns the connection to the pool on drop, also when the read fails or panics.
struct Borrowed<'a> {
    pool: &'a ReaderPool,
    connection: Option<Connection>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().extend(self.connection.take());
        self.pool.freed.notify_one();
    }
}

impl Reader for ReaderPool {
    fn with(&self, read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut idle = self.idle.lock();
        let connection = loop {
            match idle.pop() {
                Some(connection) => break connection,
                None => self.freed.wait(&mut idle),
            }
        };
        drop(idle);
        let borrowed = Borrowed { pool: self, connection: Some(connection) };
        let connection = borrowed.connection.as_ref().expect("only `drop` takes the connection");
        // A read transaction gives all look-ups of this read the same snapshot.
        let transaction = connection.unchecked_transaction().stored("reading")?;
        let result = read(&mut SqlTables(&*transaction));
        drop(transaction);
        result
    }

    fn size(&self) -> StoreSize {
        let bytes = |file: &Path| file.metadata().map_or(0, |metadata| metadata.len());
        StoreSize { database: bytes(&self.file), journal: bytes(&self.file.with_extension("db-wal")) }
    }
}

/// Classifies a database error. I/O and corruption errors are permanent, because the state on disk is then
/// unknown; others, such as a full disk or a lock held by another process, are transient.
fn severity(error: &rusqlite::Error) -> parlor_engine::Severity {
    use parlor_engine::Severity;
    match error.sqlite_error_code() {
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::CannotOpen
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::ReadOnly,
        ) => Severity::Permanent,
        _ => Severity::Transient,
    }
}
