//! Full-text search index: contains messages up to a watermark; a search also scans the few newer messages.
//!
//! Owns: the contents of the index, maintained by triggers and the watermark. The index only yields
//! candidates; the engine decides on the message itself whether it matches.

use super::rows::{self, SqlFaultExt, number, one, run, seq_value};
use super::{SqlTables, messages};
use parlor_engine::Fault;
use parlor_engine::ports::{CandidateVisitor, Snapshot};
use parlor_engine::search::{Phrase, SearchScope, SearchTerms, TokenizedText};
use parlor_model::{RoomId, SenderKind, Seq};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Row, ToSql};
use std::ops::ControlFlow;

/// Maximum bytes of text indexed per slice (a single longer message is still indexed), so that indexing does
/// not block the writer.
const SLICE_BYTES: i64 = 1024 * 1024;
/// Maximum messages removed from the index one by one. Beyond it, the index is rebuilt: removing a message
/// costs thirty times as much as adding one.
const MAX_INDEX_DELETIONS: usize = 1000;
/// Maximum rooms listed in an index query. Beyond it, rooms are filtered by reading the messages.
const MAX_ROOMS_IN_QUERY: usize = 100;
/// Maximum candidates from other rooms before the index query filters by room as well.
const MAX_FOREIGN_CANDIDATES: usize = 100;
/// Width of the first search window, in sequence numbers; each following window is twice as wide.
const FIRST_WINDOW_SEQS: i64 = 8192;

/// Registers the SQL function `words`, which the index triggers call, on a writing connection.
pub fn prepare(sql: &Connection) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    sql.create_scalar_function("words", 1, flags, |context| {
        Ok(TokenizedText::of(context.get_raw(0).as_str()?).joined().to_owned())
    })
}

/// Empties an index that was built with other tokenizer rules; it is rebuilt while the hub runs.
pub fn rebuild_if_stale(sql: &Connection) -> Result<(), Fault> {
    let query = "SELECT 1 FROM meta WHERE key = 'words' AND value = ?1";
    if one(sql, query, &[&TokenizedText::rules()], |_| Ok(()))?.is_none() {
        empty(sql)?;
        run(sql, "INSERT OR REPLACE INTO meta VALUES ('words', ?1)", &[&TokenizedText::rules()])?;
    }
    Ok(())
}

fn empty(sql: &Connection) -> Result<(), Fault> {
    run(sql, "INSERT INTO message_words (message_words) VALUES ('delete-all')", &[])?;
    run(sql, "UPDATE meta SET value = 0 WHERE key = 'indexed'", &[]).map(drop)
}

/// Indexes at most `limit` messages within the open transaction and returns the new watermark.
pub fn index(sql: &Connection, limit: usize) -> Result<Seq, Fault> {
    let indexed = watermark(sql)?;
    let query = "SELECT seq, octet_length(text) FROM messages WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let unindexed = rows::all(sql, query, &[&indexed, &number(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut bytes = 0;
    let fitting = unindexed.iter().take_while(|(_, length): &&(i64, i64)| {
        let first = bytes == 0;
        bytes += length;
        first || bytes <= SLICE_BYTES
    });
    let fitting = fitting.count();
    let through = if fitting == limit || fitting < unindexed.len() {
        unindexed.get(fitting.wrapping_sub(1)).map_or(indexed, |(seq, _)| *seq)
    } else {
        // No message is left to index before the end of the log.
        let head = one(sql, "SELECT coalesce(max(seq), 0) FROM log", &[], |row| row.get::<_, i64>(0))?;
        head.unwrap_or_default().max(indexed)
    };
    if through == indexed {
        return Ok(Seq(indexed as u64));
    }
    run(
        sql,
        "INSERT INTO message_words (rowid, about, words) \
         SELECT seq, 'r' || hex(room) || ' s' || hex(sender) || ' k' || sender_kind, words(text) FROM messages \
         WHERE seq > ?1 AND seq <= ?2 AND room IS NOT NULL AND erased = 0 ORDER BY seq",
        &[&indexed, &through],
    )?;
    run(sql, "UPDATE meta SET value = ?1 WHERE key = 'indexed'", &[&through])?;
    Ok(Seq(through as u64))
}

/// Moves the watermark of a complete index past a batch of events that contains no message in a room.
pub fn advance_watermark(sql: &Connection, first: Seq, last: Seq) -> Result<(), Fault> {
    let query = "UPDATE meta SET value = ?2 WHERE key = 'indexed' AND value = ?1 - 1";
    run(sql, query, &[&seq_value(first), &seq_value(last)]).map(drop)
}

/// Returns the watermark if the index reaches the end of the log.
pub fn is_complete(sql: &Connection) -> Result<Option<Seq>, Fault> {
    let (indexed, head) = (Seq(watermark(sql)? as u64), SqlTables(sql).head()?.seq);
    Ok((indexed >= head).then_some(indexed))
}

/// Called before a room and its messages are deleted: empties the index if that is faster than removing each
/// message.
pub fn before_removal(sql: &Connection, room: &RoomId) -> Result<(), Fault> {
    let query = "SELECT count(*) FROM (SELECT 1 FROM messages WHERE room = ?1 AND seq <= ?2 LIMIT ?3)";
    let values: [&dyn ToSql; 3] = [&room.as_str(), &watermark(sql)?, &number(MAX_INDEX_DELETIONS + 1)];
    let count = one(sql, query, &values, |row| row.get::<_, i64>(0))?.unwrap_or_default();
    if count > number(MAX_INDEX_DELETIONS) {
        empty(sql)?;
    }
    Ok(())
}

fn watermark(sql: &Connection) -> Result<i64, Fault> {
    let found = one(sql, "SELECT value FROM meta WHERE key = 'indexed'", &[], |row| row.get(0))?;
    Ok(found.unwrap_or_default())
}

/// Implements `ReadMessages::candidates`.
pub fn visit_candidates(
    sql: &Connection,
    search_scope: &SearchScope<'_>,
    visit: CandidateVisitor<'_>,
) -> Result<(), Fault> {
    let (indexed, before) =
        (watermark(sql)?, search_scope.asked.from_place.before.map_or(i64::MAX, seq_value));
    let room = search_scope.asked.room.as_ref().map(RoomId::as_str);
    let values: [&dyn ToSql; 3] = [&indexed, &before, &room];
    let message = format!("SELECT {} FROM messages WHERE seq = ?1 AND erased = 0", messages::MESSAGE);
    let mut message = sql.prepare_cached(&message).stored("reading")?;
    let visited = each(sql, after_watermark_query(room.is_some()), &values, |row| {
        // Reject most rows by room and raw text, before the whole message is read.
        let may_match = row.get_ref(1)?.as_str_or_null()?.is_some_and(|room| search_scope.is_in(room))
            && search_scope.wanted.may_be_in(row.get_ref(2)?.as_str()?);
        if !may_match {
            return Ok(visit(rows::seq(row, 0)?, None));
        }
        let mut found = message.query([row.get::<_, i64>(0)?])?;
        let found = found.next()?.map(messages::message).transpose()?;
        Ok(visit(rows::seq(row, 0)?, found.as_deref()))
    })?;
    if visited.is_break() {
        return Ok(());
    }
    // Search in windows that grow into the past: the visitor can stop the search only between the rows
    // that the index yields, so one query over everything could exceed the search timeout.
    let (mut until, mut window) = (before.min(indexed.saturating_add(1)), FIRST_WINDOW_SEQS);
    let mut foreign = 0;
    while until > 0 {
        let from = (until - window).max(0);
        // Filtering by room in the index costs more than it saves, unless most hits are in other rooms.
        let values: [&dyn ToSql; 3] =
            [&expression(search_scope, foreign > MAX_FOREIGN_CANDIDATES), &until, &from];
        let visited = each(sql, INDEXED, &values, |row| {
            let mut found = message.query([row.get::<_, i64>(0)?])?;
            let found = found.next()?.map(|row| visit_indexed(row, search_scope, visit, &mut foreign));
            found.unwrap_or(Ok(ControlFlow::Continue(())))
        })?;
        if visited.is_break() || from > 0 && visit(Seq(from as u64), None).is_break() {
            return Ok(());
        }
        (until, window) = (from, window * 2);
    }
    Ok(())
}

/// Selects the candidates that the index yields, newest first.
const INDEXED: &str = "SELECT rowid FROM message_words \
     WHERE message_words MATCH ?1 AND rowid < ?2 AND rowid >= ?3 ORDER BY rowid DESC";

/// Selects the messages after the watermark. A search in one room uses the index on rooms; otherwise each row
/// is filtered by room.
fn after_watermark_query(in_one_room: bool) -> &'static str {
    match in_one_room {
        true => {
            "SELECT seq, room, text FROM messages \
             WHERE seq > ?1 AND seq < ?2 AND room = ?3 AND erased = 0 ORDER BY seq DESC"
        }
        false => {
            "SELECT seq, room, text FROM messages \
             WHERE seq > ?1 AND seq < ?2 AND ?3 IS NULL AND room IS NOT NULL AND erased = 0 ORDER BY seq DESC"
        }
    }
}

fn visit_indexed(
    row: &Row<'_>,
    search_scope: &SearchScope<'_>,
    visit: CandidateVisitor<'_>,
    foreign: &mut usize,
) -> rusqlite::Result<ControlFlow<()>> {
    let seq = rows::seq(row, 0)?;
    // Reject messages of other rooms before the whole message is decoded.
    if !row.get_ref(3)?.as_str_or_null()?.is_some_and(|room| search_scope.is_in(room)) {
        *foreign += 1;
        return Ok(visit(seq, None));
    }
    Ok(visit(seq, Some(&*messages::message(row)?)))
}

fn each(
    sql: &Connection,
    query: &str,
    values: &[&dyn ToSql],
    mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>, Fault> {
    let mut visit_rows = || {
        let mut statement = sql.prepare_cached(query)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            if visit(row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    visit_rows().stored("searching")
}

/// Translates the search into an FTS5 expression. Words are letters and digits only and need no escaping.
fn expression(search_scope: &SearchScope<'_>, with_rooms: bool) -> String {
    let mut about = Vec::new();
    if with_rooms && search_scope.rooms().len() <= MAX_ROOMS_IN_QUERY {
        let rooms: Vec<String> = search_scope.rooms().map(|room| format!("r{}", hex(room))).collect();
        about.push(format!("({})", rooms.join(" OR ")));
    }
    about.extend(search_scope.asked.sender.as_ref().map(|sender| format!("s{}", hex(sender))));
    about.extend(search_scope.asked.sender_kind.map(|kind| format!("k{}", sender_kind(kind))));
    let SearchTerms { all, none } = search_scope.wanted;
    let words = format!("words : ({})", all.iter().map(phrase).collect::<Vec<_>>().join(" AND "));
    let without = format!("words : ({})", none.iter().map(phrase).collect::<Vec<_>>().join(" OR "));
    let mut expression =
        if about.is_empty() { words } else { format!("about : ({}) AND {words}", about.join(" AND ")) };
    if !none.is_empty() {
        expression = format!("({expression}) NOT {without}");
    }
    expression
}

fn phrase(phrase: &Phrase) -> String {
    format!("\"{}\"{}", phrase.words.join(" "), if phrase.begins { " *" } else { "" })
}

fn sender_kind(kind: SenderKind) -> i64 {
    match kind {
        SenderKind::User => 0,
        SenderKind::Agent => 1,
        SenderKind::Source => 2,
    }
}

/// Uppercase hexadecimal, like the SQL function `hex`.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations::MIGRATIONS;

    fn database() -> Connection {
        let sql = super::super::connection::open_in_memory();
        prepare(&sql).unwrap();
        sql.execute_batch(&MIGRATIONS.concat()).unwrap();
        rebuild_if_stale(&sql).unwrap();
        sql
    }

    fn insert_message(sql: &Connection, seq: i64, room: Option<&str>, text: &str) {
        let query = "INSERT INTO messages (seq, id, at, room, sender_kind, sender, sender_name, kind, text, source) \
                     VALUES (?1, ?1, 0, ?2, 0, 'ann', 'Ann', 0, ?3, '')";
        run(sql, query, &[&seq, &room, &text]).unwrap();
        run(sql, "INSERT INTO log (seq, at, kind) VALUES (?1, 0, 0)", &[&seq]).unwrap();
    }

    #[track_caller]
    fn check_index(sql: &Connection, expression: &str, expected: &[i64]) {
        let query = "SELECT rowid FROM message_words WHERE message_words MATCH ?1 ORDER BY rowid";
        let found = rows::all(sql, query, &[&expression], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn the_index_follows_every_change_of_indexed_messages() {
        let sql = database();
        for (seq, room) in [(1, Some("a")), (2, Some("b")), (3, None), (4, Some("a"))] {
            insert_message(&sql, seq, room, "Canary");
        }
        assert_eq!(index(&sql, 3).unwrap(), Seq(3));
        check_index(&sql, "canary", &[1, 2]);
        check_index(&sql, "about : r61", &[1]);
        for change in [
            "UPDATE messages SET text = 'Finch' WHERE seq = 1",
            "UPDATE messages SET text = '', erased = 1 WHERE seq = 2",
            "UPDATE messages SET text = 'Finch' WHERE seq = 3",
            "UPDATE messages SET text = 'Finch' WHERE seq = 4",
        ] {
            run(&sql, change, &[]).unwrap();
        }
        check_index(&sql, "canary", &[]);
        check_index(&sql, "finch", &[1]);
        assert_eq!(index(&sql, 3).unwrap(), Seq(4));
        check_index(&sql, "finch", &[1, 4]);
        run(&sql, "DELETE FROM messages WHERE seq <> 4", &[]).unwrap();
        check_index(&sql, "finch OR r61 OR s616E6E OR k0", &[4]);
    }

    #[test]
    fn a_complete_index_skips_messages_outside_rooms() {
        let sql = database();
        let reached = || (watermark(&sql).unwrap(), is_complete(&sql).unwrap());
        insert_message(&sql, 1, Some("a"), "canary");
        assert_eq!(reached(), (0, None));
        assert_eq!(index(&sql, 9).unwrap(), Seq(1));
        for seq in 2..=5 {
            insert_message(&sql, seq, None, "canary");
        }
        advance_watermark(&sql, Seq(2), Seq(4)).unwrap();
        assert_eq!(reached(), (4, None));
        advance_watermark(&sql, Seq(5), Seq(5)).unwrap();
        assert_eq!(reached(), (5, Some(Seq(5))));
        insert_message(&sql, 6, Some("a"), "canary");
        insert_message(&sql, 7, None, "canary");
        advance_watermark(&sql, Seq(7), Seq(7)).unwrap();
        assert_eq!(reached(), (5, None), "a message in a room is not indexed yet");
        assert_eq!(index(&sql, 9).unwrap(), Seq(7));
        check_index(&sql, "canary", &[1, 6]);
    }

    #[test]
    fn messages_from_before_the_prefix_index_are_indexed_again() {
        let sql = super::super::connection::open_in_memory();
        prepare(&sql).unwrap();
        let prefix_index_migration = 9;
        sql.execute_batch(&MIGRATIONS[..prefix_index_migration].concat()).unwrap();
        insert_message(&sql, 1, Some("a"), "Canary");
        insert_message(&sql, 2, Some("a"), "Canary");
        index(&sql, 9).unwrap();
        sql.execute_batch(&MIGRATIONS[prefix_index_migration..].concat()).unwrap();
        check_index(&sql, "canary", &[]);
        run(&sql, "UPDATE messages SET text = 'Finch' WHERE seq = 1", &[]).unwrap();
        assert_eq!(index(&sql, 9).unwrap(), Seq(2));
        run(&sql, "DELETE FROM messages WHERE seq = 2", &[]).unwrap();
        check_index(&sql, "can*", &[]);
        check_index(&sql, "fin*", &[1]);
    }

    #[test]
    fn an_index_built_with_other_tokenizer_rules_is_rebuilt() {
        let sql = database();
        insert_message(&sql, 1, Some("a"), "canary");
        index(&sql, 9).unwrap();
        rebuild_if_stale(&sql).unwrap();
        check_index(&sql, "canary", &[1]);
        run(&sql, "UPDATE meta SET value = 'others' WHERE key = 'words'", &[]).unwrap();
        rebuild_if_stale(&sql).unwrap();
        check_index(&sql, "canary", &[]);
        assert_eq!(index(&sql, 9).unwrap(), Seq(1));
        check_index(&sql, "canary", &[1]);
    }

    #[test]
    fn search_queries_use_their_indexes_and_do_not_sort() {
        let sql = database();
        let check = |query: &str, values: &[&dyn ToSql], first: &str| {
            let explain = format!("EXPLAIN QUERY PLAN {query}");
            let steps = rows::all(&sql, &explain, values, |row| row.get::<_, String>("detail")).unwrap();
            assert!(steps[0].starts_with(first), "{steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
        };
        check(INDEXED, &[&"x", &9, &1], "SCAN message_words VIRTUAL TABLE");
        let in_room = "SEARCH messages USING INDEX messages_in_room (room=? AND seq>? AND seq<?)";
        check(after_watermark_query(true), &[&1, &9, &"a"], in_room);
        let by_seq = "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
        check(after_watermark_query(false), &[&1, &9, &""], by_seq);
    }
}
