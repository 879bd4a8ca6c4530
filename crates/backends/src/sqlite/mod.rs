//! The embedded store: one SQLite file in WAL mode, one writer, several readers beside it.
//!
//! Owns: decision, log and tables in one transaction; after a failed fsync nothing is written until the
//! file is opened anew. Checkpoints are made here, by the writer, and not behind a commit's back: one
//! whose fsync failed must not be tried again and believed.

mod agents;
mod apply;
mod approvals;
mod audit;
pub mod backup;
mod insert;
mod log;
mod lookup;
mod migrations;
mod missions;
mod models;
mod plans;
mod rows;
mod search;
mod snapshot;
mod tasks;
mod trim;

use insert::{Inserts, PendingRows};
use parking_lot::{Condvar, Mutex};
use parlor_engine::Fault;
use parlor_engine::decide::{Change, Effects};
use parlor_engine::metrics::StoreSize;
use parlor_engine::ports::{Head, Reader, Snapshot, Store, Transaction};
use parlor_model::{Agent, Seq, Subscription, Time};
use rows::SqlFaultExt;
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Acknowledged means on disk.
    Full,
    /// A power cut may take back the last moments; a crash of the process does not.
    Normal,
    /// A power cut may take back much, or damage the file.
    Off,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub synchronous: Synchronous,
    pub log_window: Duration,
    pub idempotency_window: Duration,
    pub audit_window: Duration,
    /// How long an upload waits for its message.
    pub upload_window: Duration,
    /// `None`: messages are kept for ever.
    pub message_retention: Option<Duration>,
    /// Three more than reads for callers are made at once.
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
        "this data was written by a newer Parlor (schema {found}, this one knows {known}); start that version, or restore a backup made by this one"
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
    #[error("there is nothing in the database yet")]
    Empty,
    #[error("no random number for the epoch: {0}")]
    Random(#[from] getrandom::Error),
}

pub struct SqliteStore {
    connection: Connection,
    options: Options,
    /// Roughly how many bytes were written since the last checkpoint.
    bytes_since_checkpoint: usize,
}

const PAGE: usize = 4096;
/// How much may wait in the write-ahead log before it is moved to the database.
const CHECKPOINT: usize = 4000 * PAGE;
/// The least a commit writes: a page or two of each of the tables it touches.
const COMMIT: usize = 8 * PAGE;
/// What a message takes up besides what it says: its other columns, its places in the indexes and in the log.
const MESSAGE: usize = 400;

/// The two sides of a store: the one writer, and the readers beside it.
pub type StoreHandles = (Box<dyn Store>, Arc<dyn Reader>);

/// Opens, or creates, the database in `directory`.
pub fn open(directory: &Path, options: Options) -> Result<StoreHandles, OpenError> {
    let file = directory.join("parlor.db");
    // Made by us before SQLite does, so that nobody else can read it; its companions take the same mode.
    OpenOptions::new().append(true).create(true).mode(0o600).open(&file)?;
    let connection = Connection::open(&file)?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
        Synchronous::Off => "OFF",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // What was deleted is overwritten, not only forgotten.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    search::prepare(&connection)?;
    let mut connection = connection;
    migrations::migrate(&mut connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    search::rebuild_if_stale(&transaction)?;
    transaction.commit()?;
    let reader = ReaderPool::open(&file, options.readers)?;
    Ok((Box::new(SqliteStore { connection, options, bytes_since_checkpoint: 0 }), Arc::new(reader)))
}

/// The tables, seen through a plain connection or an open transaction.
struct SqlTables<C>(C);

impl<C: Deref<Target = Connection>> SqlTables<C> {
    fn sql(&self) -> &Connection {
        &self.0
    }
}

/// The writer's transaction: undone when dropped, unless it was committed.
struct WriteTransaction<'a> {
    tables: SqlTables<&'a Connection>,
    inserts: Inserts<'a>,
    waiting: PendingRows,
    /// Remembers keys; prepared once for the whole group.
    once: CachedStatement<'a>,
    debt: &'a mut usize,
    /// The first and the last event of the group.
    told: Option<(Seq, Seq)>,
    /// Whether something was said in a room.
    in_rooms: bool,
    committed: bool,
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        if !self.committed && !self.tables.0.is_autocommit() {
            // A transaction that cannot even be undone is reported by the next one that begins.
            let _ = self.tables.0.execute_batch("ROLLBACK");
        }
    }
}

impl Store for SqliteStore {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault> {
        if self.bytes_since_checkpoint > CHECKPOINT {
            self.checkpoint()?;
        }
        let connection = &self.connection;
        let inserts = Inserts::prepare(connection)?;
        let once = connection.prepare_cached(apply::REMEMBER).stored("preparing")?;
        connection.execute_batch("BEGIN IMMEDIATE").stored("beginning")?;
        self.bytes_since_checkpoint += COMMIT;
        let tables = SqlTables(connection);
        Ok(Box::new(WriteTransaction {
            tables,
            inserts,
            waiting: PendingRows::default(),
            once,
            debt: &mut self.bytes_since_checkpoint,
            told: None,
            in_rooms: false,
            committed: false,
        }))
    }

    fn head(&mut self) -> Result<Head, Fault> {
        SqlTables(&self.connection).head()
    }

    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        SqlTables(&self.connection).subscriptions()
    }

    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).stored("tending")?;
        let more = trim::trim(&transaction, now, &self.options)?;
        transaction.commit().stored("tending")?;
        self.checkpoint()?;
        Ok(more)
    }

    fn index(&mut self, most: usize) -> Result<Seq, Fault> {
        if let Some(reached) = search::is_complete(&self.connection)? {
            return Ok(reached);
        }
        if self.bytes_since_checkpoint > CHECKPOINT {
            self.checkpoint()?;
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).stored("indexing")?;
        let reached = search::index(&transaction, most)?;
        transaction.commit().stored("indexing")?;
        // What a slice of usual messages was seen to write, merges of the index included.
        self.bytes_since_checkpoint += most * PAGE / 4;
        Ok(reached)
    }

    /// Empties the write-ahead log, where texts deleted since lie until it is written over.
    fn close(&mut self) -> Result<(), Fault> {
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied.stored("closing")
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

impl Transaction for WriteTransaction<'_> {
    fn apply(&mut self, plan: &Effects) -> Result<(), Fault> {
        for change in &plan.changes {
            match change {
                Change::PutMessage(message) => {
                    self.in_rooms |= message.destination.room().is_some();
                    *self.debt += MESSAGE + message.length();
                    apply::put_turn(self.tables.sql(), message)?;
                    self.waiting.messages.push(message.clone());
                }
                Change::PutDelivery { delivery, seq } => {
                    self.waiting.deliveries.push((delivery.clone(), *seq));
                }
                Change::RememberIdempotencyKey { key, first, at } => {
                    apply::remember(&mut self.once, key, first, *at)?
                }
                change => {
                    self.write()?;
                    *self.debt += PAGE;
                    apply::change(self.tables.sql(), change)?;
                }
            }
        }
        for event in &plan.events {
            let (first, _) = self.told.unwrap_or((event.seq, event.seq));
            self.told = Some((first, event.seq));
            self.waiting.log.push(event.clone());
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), Fault> {
        self.write()?;
        if let (false, Some((first, last))) = (self.in_rooms, self.told) {
            search::advance_watermark(self.tables.sql(), first, last)?;
        }
        self.tables.0.execute_batch("COMMIT").stored("committing")?;
        self.committed = true;
        Ok(())
    }
}

impl<'a> WriteTransaction<'a> {
    fn write(&mut self) -> Result<(), Fault> {
        self.inserts.write(&mut self.waiting)
    }

    /// The tables with everything in them.
    fn whole(&mut self) -> Result<&mut SqlTables<&'a Connection>, Fault> {
        self.write()?;
        Ok(&mut self.tables)
    }
}

lookup::through!(WriteTransaction<'_>, tables, whole);

/// Connections for readers; each is used by one at a time, and whoever finds none free waits.
struct ReaderPool {
    file: PathBuf,
    idle: Mutex<Vec<Connection>>,
    freed: Condvar,
}

impl ReaderPool {
    fn open(file: &Path, readers: usize) -> Result<Self, rusqlite::Error> {
        let open = |_| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(file, flags)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.pragma_update(None, "cache_size", -4_000)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            Ok(connection)
        };
        let idle = (0..readers.max(1)).map(open).collect::<Result<_, rusqlite::Error>>()?;
        Ok(Self { file: file.to_owned(), idle: Mutex::new(idle), freed: Condvar::new() })
    }
}

/// Puts the connection back however the read ends.
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
        let connection = borrowed.connection.as_ref().expect("borrowed until dropped");
        // A read transaction makes every look-up of this read see the same moment.
        let transaction = connection.unchecked_transaction().stored("reading")?;
        let result = read(&mut SqlTables(&*transaction));
        drop(transaction);
        result
    }

    fn size(&self) -> StoreSize {
        let bytes = |file: &Path| file.metadata().map_or(0, |about| about.len());
        StoreSize { database: bytes(&self.file), journal: bytes(&self.file.with_extension("db-wal")) }
    }
}

/// Which faults may pass: no room left, or another process in the way. Everything else that the disk
/// says is taken for good, because what it holds is then unknown.
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
