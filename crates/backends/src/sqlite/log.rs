//! Event log of the SQLite store.

use super::insert::RowBinder;
use super::rows::{self, all, number, one, seq_value};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::log_row::LogRow;
use parlor_engine::ports::{Head, Snapshot};
use parlor_model::{Epoch, LoggedEvent, Path, RoomId, Seq, Time};
use rusqlite::{Row, ToSql};
use std::sync::Arc;

pub const INSERT: (&str, &str) = ("INSERT INTO log", "(?, ?, ?, ?, ?, ?)");

pub fn bind(logged: &LoggedEvent, row: &mut RowBinder) -> rusqlite::Result<()> {
    let LogRow { seq, at, kind, room, subject, detail } = LogRow::of(logged);
    row.value(seq.0 as i64)?;
    row.value(at.0)?;
    row.value(kind)?;
    row.value(room)?;
    row.value(subject)?;
    row.value(detail)
}

fn log_row(row: &Row<'_>) -> rusqlite::Result<LogRow<Arc<str>>> {
    let text = |index| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(index)?.map(Into::into));
    Ok(LogRow {
        seq: rows::seq(row, 0)?,
        at: Time(row.get(1)?),
        kind: row.get(2)?,
        room: text(3)?,
        subject: text(4)?,
        detail: text(5)?,
    })
}

impl<C: Sql> Snapshot for SqlTables<C> {
    fn head(&mut self) -> Result<Head, Fault> {
        // One statement, because every connection reads the head when it opens a feed.
        let query = "SELECT (SELECT value FROM meta WHERE key = 'epoch'), (SELECT value FROM meta WHERE key = 'trimmed'), \
                     (SELECT seq FROM log ORDER BY seq DESC LIMIT 1), (SELECT at FROM log ORDER BY seq DESC LIMIT 1)";
        let head = one(self.sql()?, query, &[], |row| {
            let number = |column| row.get::<_, Option<i64>>(column);
            let trimmed_through = Seq(number(1)?.unwrap_or_default() as u64);
            Ok(Head {
                epoch: Epoch(number(0)?.unwrap_or_default() as u32),
                seq: number(2)?.map_or(trimmed_through, |seq| Seq(seq as u64)),
                at: Time(number(3)?.unwrap_or_default()),
                trimmed_through,
            })
        })?;
        Ok(head.expect("a query without a table returns one row"))
    }

    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let query =
            "SELECT seq, at, kind, room, subject, detail FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let found = all(self.sql()?, query, &[&seq_value(after), &number(limit)], log_row)?;
        found.into_iter().map(|row| row.read(self)).collect()
    }

    /// Posted messages are read through the index of the messages table, because they are far more frequent
    /// than the other events of a room.
    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let query = "SELECT seq, at, 0, room, id, NULL FROM messages WHERE room = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        let values: [&dyn ToSql; 3] = [&room.as_str(), &seq_value(after), &number(limit)];
        let mut found = all(self.sql()?, query, &values, log_row)?;
        let query = "SELECT seq, at, kind, room, subject, detail FROM log \
                     WHERE room = ?1 AND seq > ?2 AND kind <> 0 ORDER BY seq LIMIT ?3";
        found.extend(all(self.sql()?, query, &values, log_row)?);
        found.sort_by_key(|row| row.seq);
        found.truncate(limit);
        found.into_iter().map(|row| row.read(self)).collect()
    }

    fn path_tail(&mut self, path: &Path, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let query = "SELECT seq, at, 0, NULL, id, NULL FROM messages WHERE path = ?1 AND seq > ?2 AND erased = 0 \
                     ORDER BY seq LIMIT ?3";
        let found = all(self.sql()?, query, &[&path.as_str(), &seq_value(after), &number(limit)], log_row)?;
        found.into_iter().map(|row| row.read(self)).collect()
    }
}
