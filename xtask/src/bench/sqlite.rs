//! Bare SQLite as the reference for acknowledged publishes: one thread writes the same rows per message as
//! the hub, in batches as large as the number of messages in flight at the hub, and commits each batch before
//! the next.

use super::Sample;
use super::server::{TEXT_BYTES, TEXTS};
use super::timed::own_cpu;
use super::words;
use anyhow::{Context, Result, bail};
use rusqlite::{Connection, params};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tables and indexes of the hub, so that the same rows have the same cost.
const SCHEMA: &str = include_str!("../../../crates/backends/src/sqlite/migrations/0001_first.sql");

/// The SQLite settings of the hub.
const SETTINGS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA cache_size = -16000;
";

/// Runs the writer in a separate process, like the hub, on the same disk as the hub's data. The database is
/// kept for the next round, like the hub's.
pub fn measure(folder: &Path, group: usize, length: Duration) -> Result<Sample> {
    let output = Command::new(std::env::current_exe()?)
        .arg("bench-sqlite")
        .arg(folder)
        .args([group.to_string(), length.as_secs_f64().to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [rate, cpu_us] = numbers[..] else { bail!("the SQLite writer failed ({}): {text}", output.status) };
    Ok(Sample { value: rate, extra: Vec::new(), server_cpu_us: Some(cpu_us), cores_of_others: None })
}

/// Main function of the writer process: writes for the given time, then prints messages per second and the
/// CPU time per message in microseconds.
pub fn serve(arguments: &[String]) -> Result<()> {
    let [folder, group, seconds] = arguments else { bail!("expected a folder, a batch size and seconds") };
    fs::create_dir_all(folder)?;
    let mut writer = Writer::open(&Path::new(folder).join("reference.db"))?;
    let (group, seconds): (usize, f64) = (group.parse()?, seconds.parse()?);
    // Warm-up, which is not counted, like at the hub.
    writer.write_for(Duration::from_secs_f64(seconds / 5.0), group)?;
    let (started, cpu_before) = (Instant::now(), own_cpu()?);
    let count = writer.write_for(Duration::from_secs_f64(seconds), group)?;
    let (took, cpu) = (started.elapsed(), own_cpu()? - cpu_before);
    println!("{} {}", count as f64 / took.as_secs_f64(), cpu.as_secs_f64() * 1e6 / count as f64);
    Ok(())
}

struct Writer {
    database: Connection,
    texts: Vec<String>,
    seq: i64,
}

impl Writer {
    fn open(file: &Path) -> Result<Self> {
        let database = Connection::open(file)?;
        database.execute_batch(SETTINGS)?;
        if !database.table_exists(None, "log")? {
            database.execute_batch(SCHEMA)?;
        }
        let seq = database.query_row("SELECT coalesce(max(seq), 0) FROM log", [], |row| row.get(0))?;
        Ok(Self { database, texts: words::texts(TEXTS, TEXT_BYTES), seq })
    }

    fn write_for(&mut self, length: Duration, group: usize) -> Result<u64> {
        let started = Instant::now();
        let mut count = 0;
        while started.elapsed() < length {
            self.write_group(group)?;
            count += group as u64;
        }
        Ok(count)
    }

    fn write_group(&mut self, group: usize) -> Result<()> {
        let transaction = self.database.transaction()?;
        {
            let mut message = transaction.prepare_cached(
                "INSERT INTO messages (seq, id, at, room, sender_kind, sender, sender_name, kind, text, \
                 client_message_id, source) VALUES (?1, ?2, ?3, ?4, 0, ?5, 'Somebody', 0, ?6, ?7, 'agentim')",
            )?;
            let mut log = transaction.prepare_cached(
                "INSERT INTO log (seq, at, kind, room, subject) VALUES (?1, ?2, 0, ?3, ?4)",
            )?;
            let mut once = transaction.prepare_cached(
                "INSERT INTO once (kind, owner, key, digest, message, seq, at) VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for _ in 0..group {
                self.seq += 1;
                let seq = self.seq;
                // 64 messages per millisecond, and IDs that increase with time, like real ones.
                let at = 1_790_000_000_000 + seq / 64;
                let id = uuid(at, seq);
                // Eight rooms and their eight owners, like at the hub.
                let (room, sender) = (uuid(1_780_000_000_000, seq % 8), uuid(1_780_000_000_001, seq % 8));
                let key = format!("bench-{seq}");
                let text = &self.texts[seq as usize % self.texts.len()];
                message.execute(params![seq, id, at, room, sender, text, key])?;
                log.execute(params![seq, at, room, id])?;
                once.execute(params![sender, key, [seq as u8; 32], id, seq, at])?;
            }
        }
        transaction.commit().context("committing a group")
    }
}

/// Returns a text in the format of a UUID of version 7.
fn uuid(milliseconds: i64, number: i64) -> String {
    let (high, low) = (milliseconds >> 16, milliseconds & 0xffff);
    format!("{high:08x}-{low:04x}-7000-8000-{:012x}", number & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_writes_all_rows_of_its_messages_and_the_next_run_continues() {
        let folder = std::env::temp_dir().join(format!("parlor-bench-sqlite-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("reference.db");
        let mut writer = Writer::open(&file).unwrap();
        writer.write_group(10).unwrap();
        let synchronous: u32 =
            writer.database.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        let journal: String =
            writer.database.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((synchronous, journal.as_str()), (2, "wal"));
        drop(writer);
        let mut writer = Writer::open(&file).unwrap();
        writer.write_group(5).unwrap();
        for table in ["messages", "log", "once"] {
            let count: u32 = writer
                .database
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
                .unwrap();
            assert_eq!(count, 15, "rows in {table}");
        }
        drop(writer);
        fs::remove_dir_all(&folder).unwrap();
    }
}
