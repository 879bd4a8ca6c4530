//! A template database with every migration applied, which each hub in a test process starts from.
//!
//! Applying the migrations takes a third of the time of a short test. The first test after a build applies
//! them to a file next to the test executable; all other tests copy that file.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::{Context, Result};
use parlor_backends::sqlite;

const DATABASE: &str = "parlor.db";

/// Copies the empty, migrated database to `data`, unless a database exists there.
pub fn place_in(data: &Path) -> Result<()> {
    let database = data.join(DATABASE);
    if database.exists() {
        return Ok(());
    }
    let template = up_to_date().context("the template database")?;
    fs::copy(template, &database)?;
    // Every hub needs its own epoch, by which clients distinguish histories.
    let database = rusqlite::Connection::open(database)?;
    database.pragma_update(None, "synchronous", "OFF")?;
    database.execute("UPDATE meta SET value = abs(random() % 4294967296) WHERE key = 'epoch'", [])?;
    Ok(())
}

/// Returns the path of the template, which is created if it is older than this executable with its
/// migrations.
fn up_to_date() -> Result<PathBuf> {
    let executable = env::current_exe()?;
    let template = executable.with_extension("template.db");
    let modified = |path: &Path| -> io::Result<_> { fs::metadata(path)?.modified() };
    if modified(&template).is_ok_and(|at| modified(&executable).is_ok_and(|built| at > built)) {
        return Ok(template);
    }
    let folder = executable.parent().context("an executable is in a folder")?;
    let new = tempfile::tempdir_in(folder)?;
    let (store, readers) = sqlite::open(new.path(), sqlite::Options::default())?;
    // Closing the last connection, which must not be a reader, moves the write-ahead log into the database
    // file.
    drop(readers);
    drop(store);
    // Several tests may create the template at the same time; the rename is atomic, so each moves a complete
    // file.
    fs::rename(new.path().join(DATABASE), &template)?;
    Ok(template)
}
