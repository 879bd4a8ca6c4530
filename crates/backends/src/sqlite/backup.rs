//! Copies of the database: taken beside the writer, checked, and made fit to start from.

use super::migrations::MIGRATIONS;
use super::rows::SqlFaultExt;
use super::{OpenError, SqlTables, audit};
use parlor_engine::ports::Head;
use parlor_model::audit::NewAuditEntry;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// A few pages at a time with a breath between them, so that the writer's fsync never waits long for the disk.
const PAGES_AT_ONCE: i32 = 512;
const STEP_PAUSE: Duration = Duration::from_millis(1);

/// What works without it must not be copied: a sign-in that was ended since, or an invitation that was taken, would
/// be good again. Each with its table, which a file of an earlier schema need not have.
const TABLES_LEFT_OUT: [(&str, &str); 5] = [
    ("refresh_tokens", "DELETE FROM refresh_tokens"),
    ("sign_ins", "DELETE FROM sign_ins"),
    ("invitations", "DELETE FROM invitations"),
    ("pairings", "DELETE FROM pairings"),
    ("meta", "DELETE FROM meta WHERE key IN ('setup', 'setup_expires')"),
];

/// What a file holds.
pub struct CopySummary {
    pub schema: i64,
    pub head: Head,
}

/// Copies the database in `directory`, as it is at one moment, into the new file `to`; whether a hub runs there or
/// not. Takes no lock that a writer needs: it reads a snapshot, as every reader does.
pub fn copy(directory: &Path, to: &Path) -> Result<CopySummary, OpenError> {
    let source = open_to_read(&directory.join("parlor.db"))?;
    // Held to the end: were it taken anew for each step, a busy writer would have us begin anew each time.
    let snapshot = source.unchecked_transaction()?;
    let about = about(&snapshot)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut target = Connection::open(to)?;
    target.pragma_update(None, "synchronous", "OFF")?;
    Backup::new(&source, &mut target)?.run_to_completion(PAGES_AT_ONCE, STEP_PAUSE, None)?;
    drop(snapshot);
    // One file, with nothing beside it.
    target.pragma_update(None, "journal_mode", "DELETE")?;
    leave_out(&target)?;
    check(&target)?;
    drop(target);
    File::open(to)?.sync_all()?;
    Ok(about)
}

/// Makes a copied database one to start from: checked, and with an epoch of its own, because what the clients of the
/// old one remember of its order is no longer true.
pub fn assign_new_epoch(file: &Path) -> Result<CopySummary, OpenError> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let about = about(&database)?;
    check(&database)?;
    database.pragma_update(None, "journal_mode", "DELETE")?;
    leave_out(&database)?;
    let mut epoch = about.head.epoch.0;
    while epoch == about.head.epoch.0 {
        epoch = getrandom::u32()?;
    }
    database.execute("UPDATE meta SET value = ?1 WHERE key = 'epoch'", [i64::from(epoch)])?;
    drop(database);
    File::open(file)?.sync_all()?;
    Ok(about)
}

/// Moves everything into the one file, so that nothing beside it is needed. Nobody else may have it open.
pub fn checkpoint_into_file(file: &Path) -> Result<(), OpenError> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    Ok(database.pragma_update(None, "journal_mode", "DELETE")?)
}

/// Notes what was done with this file, which nobody else has open. One of an early schema has no place for it.
pub fn note(file: &Path, note: &NewAuditEntry) -> Result<(), OpenError> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if database.table_exists(None, "audit")? {
        audit::put(&database, note)?;
    }
    Ok(())
}

/// Looks at the database in `directory`, quickly, and whether a hub runs there or not.
pub fn inspect(directory: &Path) -> Result<CopySummary, OpenError> {
    let database = open_to_read(&directory.join("parlor.db"))?;
    sound(&database, "PRAGMA quick_check(1)")?;
    about(&database)
}

fn open_to_read(file: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

fn about(database: &Connection) -> Result<CopySummary, OpenError> {
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

fn leave_out(database: &Connection) -> Result<(), OpenError> {
    // What is left out is overwritten, not only forgotten.
    database.pragma_update(None, "secure_delete", true)?;
    for (table, step) in TABLES_LEFT_OUT {
        if database.table_exists(None, table)? {
            database.execute(step, []).stored("leaving out")?;
        }
    }
    Ok(())
}

fn check(database: &Connection) -> Result<(), OpenError> {
    sound(database, "PRAGMA integrity_check(1)")
}

fn sound(database: &Connection, question: &str) -> Result<(), OpenError> {
    let found: String = database.query_row(question, [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(OpenError::Damaged(found)) }
}
