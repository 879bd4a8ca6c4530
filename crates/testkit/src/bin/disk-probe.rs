//! A helper process for the tests of `faultfs`, which kill it: it uses or mounts a faulty disk.
//!
//! `disk-probe write FILE SYNCHRONOUS` opens a SQLite database in WAL mode, commits a row for each line of
//! standard input, and prints the number of the row after the commit, or the error. `disk-probe read FILE`
//! prints row count, last row and the integrity check in one line. `disk-probe mount DIRECTORY` mounts a
//! disk, prints `mounted`, and waits.

use std::io::Write;
use std::path::Path;

use parlor_testkit::faultfs::FaultFs;
use rusqlite::Connection;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", file, synchronous] => write(file, synchronous),
        ["read", file] => read(file),
        ["mount", directory] => mount(directory),
        _ => anyhow::bail!("usage: disk-probe write FILE SYNCHRONOUS | read FILE | mount DIRECTORY"),
    }
}

fn write(file: &str, synchronous: &str) -> anyhow::Result<()> {
    let connection = Connection::open(file)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    anyhow::ensure!(mode == "wal", "journal mode is {mode}");
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, filler BLOB)", [])?;
    let mut out = std::io::stdout();
    for line in std::io::stdin().lines() {
        line?;
        match connection.execute("INSERT INTO t (filler) VALUES (randomblob(600))", []) {
            Ok(_) => writeln!(out, "{}", connection.last_insert_rowid())?,
            Err(error) => writeln!(out, "error: {error}")?,
        }
        out.flush()?;
    }
    Ok(())
}

fn read(file: &str) -> anyhow::Result<()> {
    let connection = Connection::open(file)?;
    let (count, last): (i64, i64) =
        connection.query_row("SELECT count(*), coalesce(max(n), 0) FROM t", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    println!("{count} {last} {integrity}");
    Ok(())
}

fn mount(directory: &str) -> anyhow::Result<()> {
    let _disk = FaultFs::mount(Path::new(directory))?;
    println!("mounted");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
