//! Backup copies of the database: taken while a hub may be running, checked, and prepared for a restore.

use super::migrations::MIGRATIONS;
use super::rows::SqlFaultExt;
use super::{OpenError, SqlTables, audit, connection};
use parlor_engine::ports::{Head, Snapshot};
use parlor_model::audit::NewAuditEntry;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Pages copied per step. Steps are small and separated by `STEP_PAUSE`, so that the copy does not delay the
/// writer's fsync.
const PAGES_PER_STEP: i32 = 512;
/// Pause between two steps of a copy.
const STEP_PAUSE: Duration = Duration::from_millis(1);

/// Credentials that a copy must not contain: restoring it would revive sign-ins that were ended and
/// invitations that were used since. Each entry is (table, statement); a file of an earlier schema may lack
/// the table.
const CREDENTIAL_TABLES: [(&str, &str); 6] = [
    ("refresh_tokens", "DELETE FROM refresh_tokens"),
    ("sign_ins", "DELETE FROM sign_ins"),
    ("invitations", "DELETE FROM invitations"),
    ("room_invitations", "DELETE FROM room_invitations"),
    ("pairings", "DELETE FROM pairings"),
    ("meta", "DELETE FROM meta WHERE key IN ('setup', 'setup_expires')"),
];

/// Schema version and log head of a database file.
pub struct CopySummary {
    pub schema: i64,
    pub head: Head,
}

/// Copies a snapshot of the database in `directory` into the new file `to`. A hub may be running on the
/// directory: the copy is an ordinary read and takes no lock that the writer needs.
pub fn copy(directory: &Path, to: &Path) -> Result<CopySummary, OpenError> {
    let source = open_read_only(&directory.join("parlor.db"))?;
    // One snapshot for the whole copy: without it, every commit of the writer would restart the backup.
    let snapshot = source.unchecked_transaction()?;
    let summary = summarize(&snapshot)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut target = connection::open(to, OpenFlags::default())?;
    target.pragma_update(None, "synchronous", "OFF")?;
    Backup::new(&source, &mut target)?.run_to_completion(PAGES_PER_STEP, STEP_PAUSE, None)?;
    drop(snapshot);
    // The copy must be a single file, without a write-ahead log.
    target.pragma_update(None, "journal_mode", "DELETE")?;
    delete_credentials(&target)?;
    check(&target)?;
    drop(target);
    File::open(to)?.sync_all()?;
    Ok(summary)
}

/// Prepares a copied database for a restore: checks it and gives it a new epoch, because the positions that
/// clients of the old database remember are no longer valid.
pub fn assign_new_epoch(file: &Path) -> Result<CopySummary, OpenError> {
    let database = connection::open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let summary = summarize(&database)?;
    check(&database)?;
    database.pragma_update(None, "journal_mode", "DELETE")?;
    delete_credentials(&database)?;
    let mut epoch = summary.head.epoch.0;
    while epoch == summary.head.epoch.0 {
        epoch = getrandom::u32()?;
    }
    database.execute("UPDATE meta SET value = ?1 WHERE key = 'epoch'", [i64::from(epoch)])?;
    drop(database);
    File::open(file)?.sync_all()?;
    Ok(summary)
}

/// Moves the write-ahead log into the database file, so that the file is complete on its own. No other
/// process may have it open.
pub fn checkpoint_into_file(file: &Path) -> Result<(), OpenError> {
    let database = connection::open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    Ok(database.pragma_update(None, "journal_mode", "DELETE")?)
}

/// Appends an audit record to a database file that no other process has open. Does nothing if the file's
/// schema has no audit log yet.
pub fn note(file: &Path, note: &NewAuditEntry) -> Result<(), OpenError> {
    let database = connection::open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if database.table_exists(None, "audit")? {
        audit::put(&database, note)?;
    }
    Ok(())
}

/// Runs a quick integrity check on the database in `directory` and summarises it. A hub may be running there.
pub fn inspect(directory: &Path) -> Result<CopySummary, OpenError> {
    let database = open_read_only(&directory.join("parlor.db"))?;
    require_ok(&database, "PRAGMA quick_check(1)")?;
    summarize(&database)
}

fn open_read_only(file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connection::open(file, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

fn summarize(database: &Connection) -> Result<CopySummary, OpenError> {
    let schema: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = MIGRATIONS.len() as i64;
    if schema > known {
        return Err(OpenError::Newer { found: schema, known });
    }
    if schema == 0 {
        return Err(OpenError::Empty);
    }
    Ok(CopySummary { schema, head: SqlTables(database).head()? })
}

fn delete_credentials(database: &Connection) -> Result<(), OpenError> {
    // Overwrite the deleted rows in the file with zeros.
    database.pragma_update(None, "secure_delete", true)?;
    for (table, step) in CREDENTIAL_TABLES {
        if database.table_exists(None, table)? {
            database.execute(step, []).stored("deleting credentials from a copy")?;
        }
    }
    Ok(())
}

fn check(database: &Connection) -> Result<(), OpenError> {
    require_ok(database, "PRAGMA integrity_check(1)")
}

fn require_ok(database: &Connection, pragma: &str) -> Result<(), OpenError> {
    let found: String = database.query_row(pragma, [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(OpenError::Damaged(found)) }
}
