//! Bare SQLite as the reference for acknowledged publishes: one thread writes the rows a message costs the hub,
//! in groups as large as what waits at the hub, each group durable before the next begins.

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

/// The tables and indexes that the hub writes for a message, with the same durability.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS messages (
        id TEXT PRIMARY KEY, room_id TEXT NOT NULL, seq INTEGER NOT NULL, sender_id TEXT NOT NULL,
        sender_name TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL, client_message_id TEXT,
        created_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS messages_by_room ON messages (room_id, seq);
    CREATE TABLE IF NOT EXISTS log (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, room_id TEXT NOT NULL, kind TEXT NOT NULL, reference TEXT
    );
    CREATE INDEX IF NOT EXISTS log_by_room ON log (room_id, seq);
    CREATE TABLE IF NOT EXISTS dedupe (
        sender_id TEXT NOT NULL, key TEXT NOT NULL, message_id TEXT NOT NULL, digest BLOB NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (sender_id, key)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS dedupe_by_age ON dedupe (at);
";

/// Runs the writer in its own process, as the hub is, on the disk that has the hub's data. The file stays for the
/// next round, as the hub's does.
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
    Ok(Sample { value: rate, server_cpu_us: Some(cpu_us), cores_of_others: None })
}

/// The process itself: writes for the time given, prints messages a second and its CPU time for each of them.
pub fn serve(arguments: &[String]) -> Result<()> {
    let [folder, group, seconds] = arguments else { bail!("takes a folder, a group size, seconds") };
    fs::create_dir_all(folder)?;
    let mut writer = Writer::open(&Path::new(folder).join("reference.db"))?;
    let (group, seconds): (usize, f64) = (group.parse()?, seconds.parse()?);
    // The first part is not counted, as at the hub.
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
        database.execute_batch(SCHEMA)?;
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
                "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, 'Somebody', 'text', ?5, ?6, ?7)",
            )?;
            let mut log = transaction.prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3, 'posted', ?4)")?;
            let mut dedupe = transaction.prepare_cached("INSERT INTO dedupe VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for _ in 0..group {
                self.seq += 1;
                let seq = self.seq;
                let at = 1_790_000_000_000 + seq;
                // As long as real ids are, and rising in time as theirs do.
                let id =
                    format!("{at:012x}-7000-8000-{:012x}", seq.wrapping_mul(0x9e37_79b9) & 0xffff_ffff_ffff);
                let room = format!("0196f0a0-0000-7000-8000-{:012x}", seq % 8);
                let sender = format!("0196f0a1-0000-7000-8000-{:012x}", seq % 8);
                let key = format!("bench-{seq}");
                let text = &self.texts[seq as usize % self.texts.len()];
                message.execute(params![id, room, seq, sender, text, key, at])?;
                log.execute(params![seq, at, room, id])?;
                dedupe.execute(params![sender, key, id, [seq as u8; 32], at])?;
            }
        }
        transaction.commit().context("committing a group")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_writes_every_row_of_every_message_durably_and_the_next_run_goes_on() {
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
        for table in ["messages", "log", "dedupe"] {
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
