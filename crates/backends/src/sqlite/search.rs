//! The index for searches: filled behind a watermark, read together with the few messages beyond it.
//!
//! Owns: an index that holds exactly what its triggers and its watermark say. What it names is only looked at;
//! whether it is found is decided by the engine, on the message itself.

use super::SqlTables;
use super::rows::{self, SqlFaultExt, number, one, run, seq_value};
use parlor_engine::Fault;
use parlor_engine::ports::CandidateVisitor;
use parlor_engine::search::{Phrase, SearchScope, SearchTerms, TokenizedText};
use parlor_model::{RoomId, SenderKind, Seq};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Row, ToSql};
use std::ops::{ControlFlow, Deref};

/// Texts of this length together end a slice early: the writer is needed for other things.
const SLICE_BYTES: i64 = 1024 * 1024;
/// Beyond these it is quicker to begin anew: taking a message out costs thirty times what taking one in does.
const MAX_INDEX_DELETIONS: usize = 1000;
/// Beyond these, rooms are told apart by the messages, not by the index.
const MOST_ROOMS: usize = 100;
/// After these, the index is asked for the rooms as well.
const FEW_FOREIGN: usize = 100;
/// How many places in the log the index looks through at first.
const FIRST_WINDOW: i64 = 8192;

/// Teaches a connection that writes the function that the triggers call.
pub fn prepare(sql: &Connection) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    sql.create_scalar_function("words", 1, flags, |context| {
        Ok(TokenizedText::of(context.get_raw(0).as_str()?).joined().to_owned())
    })
}

/// Empties an index that was made by other rules than those of now; it is filled anew while the hub runs.
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

/// Takes the next messages in, within the open transaction; says up to where the index then reaches.
pub fn index(sql: &Connection, most: usize) -> Result<Seq, Fault> {
    let indexed = watermark(sql)?;
    let query = "SELECT seq, octet_length(text) FROM messages WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let waiting = rows::all(sql, query, &[&indexed, &number(most)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut bytes = 0;
    let fitting = waiting.iter().take_while(|(_, length): &&(i64, i64)| {
        let first = bytes == 0;
        bytes += length;
        first || bytes <= SLICE_BYTES
    });
    let fitting = fitting.count();
    let through = if fitting == most || fitting < waiting.len() {
        waiting.get(fitting.wrapping_sub(1)).map_or(indexed, |(seq, _)| *seq)
    } else {
        // Nothing to take in lies between here and the end of the log.
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

/// Moves a complete index past events among which nothing was said in a room: there is nothing in them to take in.
pub fn advance_watermark(sql: &Connection, first: Seq, last: Seq) -> Result<(), Fault> {
    let query = "UPDATE meta SET value = ?2 WHERE key = 'indexed' AND value = ?1 - 1";
    run(sql, query, &[&seq_value(first), &seq_value(last)]).map(drop)
}

/// Where the index reaches, if that is the end of the log.
pub fn is_complete(sql: &Connection) -> Result<Option<Seq>, Fault> {
    let (indexed, head) = (Seq(watermark(sql)? as u64), SqlTables(sql).head()?.seq);
    Ok((indexed >= head).then_some(indexed))
}

/// Before a room is removed with all that was said in it: empties the index where that is quicker.
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

impl<C: Deref<Target = Connection>> SqlTables<C> {
    pub fn visit_candidates(
        &self,
        search_scope: &SearchScope<'_>,
        look: CandidateVisitor<'_>,
    ) -> Result<(), Fault> {
        let sql = self.sql();
        let (indexed, before) =
            (watermark(sql)?, search_scope.asked.from_place.before.map_or(i64::MAX, seq_value));
        let room = search_scope.asked.room.as_ref().map(RoomId::as_str);
        let values: [&dyn ToSql; 3] = [&indexed, &before, &room];
        let message = format!("SELECT {} FROM messages WHERE seq = ?1 AND erased = 0", rows::MESSAGE);
        let mut message = sql.prepare_cached(&message).stored("reading")?;
        let visited = each(sql, beyond(room.is_some()), &values, |row| {
            // Most is told apart by its room or its letters, before anything is made of it.
            let wanted = row.get_ref(1)?.as_str_or_null()?.is_some_and(|room| search_scope.is_in(room))
                && search_scope.wanted.may_be_in(row.get_ref(2)?.as_str()?);
            if !wanted {
                return Ok(look(rows::seq(row, 0)?, None));
            }
            let mut found = message.query([row.get::<_, i64>(0)?])?;
            let found = found.next()?.map(rows::message).transpose()?;
            Ok(look(rows::seq(row, 0)?, found.as_deref()))
        })?;
        if visited.is_break() {
            return Ok(());
        }
        // In windows that grow into the past: within one the index looks on its own, whatever the time.
        let (mut until, mut window) = (before.min(indexed.saturating_add(1)), FIRST_WINDOW);
        let mut foreign = 0;
        while until > 0 {
            let from = (until - window).max(0);
            // Asking for the rooms too costs more than it saves, unless most is said in others.
            let values: [&dyn ToSql; 3] = [&expression(search_scope, foreign > FEW_FOREIGN), &until, &from];
            let visited = each(sql, INDEXED, &values, |row| {
                let mut found = message.query([row.get::<_, i64>(0)?])?;
                let found = found.next()?.map(|row| show(row, search_scope, look, &mut foreign));
                found.unwrap_or(Ok(ControlFlow::Continue(())))
            })?;
            if visited.is_break() || from > 0 && look(Seq(from as u64), None).is_break() {
                return Ok(());
            }
            (until, window) = (from, window * 2);
        }
        Ok(())
    }
}

/// What the index names, newest first.
const INDEXED: &str = "SELECT rowid FROM message_words \
     WHERE message_words MATCH ?1 AND rowid < ?2 AND rowid >= ?3 ORDER BY rowid DESC";

/// What lies beyond the index. One room has an index of its own; several are told apart row by row.
fn beyond(in_one_room: bool) -> &'static str {
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

fn show(
    row: &Row<'_>,
    search_scope: &SearchScope<'_>,
    look: CandidateVisitor<'_>,
    foreign: &mut usize,
) -> rusqlite::Result<ControlFlow<()>> {
    let seq = rows::seq(row, 0)?;
    // Most of what others say is told apart by its room, before anything is made of it.
    if !row.get_ref(3)?.as_str_or_null()?.is_some_and(|room| search_scope.is_in(room)) {
        *foreign += 1;
        return Ok(look(seq, None));
    }
    Ok(look(seq, Some(&*rows::message(row)?)))
}

fn each(
    sql: &Connection,
    query: &str,
    values: &[&dyn ToSql],
    mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>, Fault> {
    let mut walk = || {
        let mut statement = sql.prepare_cached(query)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            if visit(row)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    walk().stored("searching")
}

/// The hunt in the language of the index. Words are letters and digits only, so nothing needs escaping.
fn expression(search_scope: &SearchScope<'_>, with_rooms: bool) -> String {
    let mut about = Vec::new();
    if with_rooms && search_scope.rooms().len() <= MOST_ROOMS {
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

/// As SQLite writes it.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations::MIGRATIONS;

    fn database() -> Connection {
        let sql = Connection::open_in_memory().unwrap();
        prepare(&sql).unwrap();
        sql.execute_batch(&MIGRATIONS.concat()).unwrap();
        rebuild_if_stale(&sql).unwrap();
        sql
    }

    fn say(sql: &Connection, seq: i64, room: Option<&str>, text: &str) {
        let query = "INSERT INTO messages (seq, id, at, room, sender_kind, sender, sender_name, kind, text, source) \
                     VALUES (?1, ?1, 0, ?2, 0, 'ann', 'Ann', 0, ?3, '')";
        run(sql, query, &[&seq, &room, &text]).unwrap();
        run(sql, "INSERT INTO log (seq, at, kind) VALUES (?1, 0, 0)", &[&seq]).unwrap();
    }

    #[track_caller]
    fn holds(sql: &Connection, expression: &str, expected: &[i64]) {
        let query = "SELECT rowid FROM message_words WHERE message_words MATCH ?1 ORDER BY rowid";
        let found = rows::all(sql, query, &[&expression], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn the_index_follows_every_change_of_what_it_holds() {
        let sql = database();
        for (seq, room) in [(1, Some("a")), (2, Some("b")), (3, None), (4, Some("a"))] {
            say(&sql, seq, room, "Canary");
        }
        assert_eq!(index(&sql, 3).unwrap(), Seq(3));
        holds(&sql, "canary", &[1, 2]);
        holds(&sql, "about : r61", &[1]);
        for change in [
            "UPDATE messages SET text = 'Finch' WHERE seq = 1",
            "UPDATE messages SET text = '', erased = 1 WHERE seq = 2",
            "UPDATE messages SET text = 'Finch' WHERE seq = 3",
            "UPDATE messages SET text = 'Finch' WHERE seq = 4",
        ] {
            run(&sql, change, &[]).unwrap();
        }
        holds(&sql, "canary", &[]);
        holds(&sql, "finch", &[1]);
        assert_eq!(index(&sql, 3).unwrap(), Seq(4));
        holds(&sql, "finch", &[1, 4]);
        run(&sql, "DELETE FROM messages WHERE seq <> 4", &[]).unwrap();
        holds(&sql, "finch OR r61 OR s616E6E OR k0", &[4]);
    }

    #[test]
    fn a_complete_index_passes_by_what_is_said_outside_of_rooms() {
        let sql = database();
        let reached = || (watermark(&sql).unwrap(), is_complete(&sql).unwrap());
        say(&sql, 1, Some("a"), "canary");
        assert_eq!(reached(), (0, None));
        assert_eq!(index(&sql, 9).unwrap(), Seq(1));
        for seq in 2..=5 {
            say(&sql, seq, None, "canary");
        }
        advance_watermark(&sql, Seq(2), Seq(4)).unwrap();
        assert_eq!(reached(), (4, None));
        advance_watermark(&sql, Seq(5), Seq(5)).unwrap();
        assert_eq!(reached(), (5, Some(Seq(5))));
        say(&sql, 6, Some("a"), "canary");
        say(&sql, 7, None, "canary");
        advance_watermark(&sql, Seq(7), Seq(7)).unwrap();
        assert_eq!(reached(), (5, None), "what was said in a room waits to be taken in");
        assert_eq!(index(&sql, 9).unwrap(), Seq(7));
        holds(&sql, "canary", &[1, 6]);
    }

    #[test]
    fn what_was_said_before_beginnings_had_an_index_is_taken_in_anew() {
        let sql = Connection::open_in_memory().unwrap();
        prepare(&sql).unwrap();
        let beginnings = 9;
        sql.execute_batch(&MIGRATIONS[..beginnings].concat()).unwrap();
        say(&sql, 1, Some("a"), "Canary");
        say(&sql, 2, Some("a"), "Canary");
        index(&sql, 9).unwrap();
        sql.execute_batch(&MIGRATIONS[beginnings..].concat()).unwrap();
        holds(&sql, "canary", &[]);
        run(&sql, "UPDATE messages SET text = 'Finch' WHERE seq = 1", &[]).unwrap();
        assert_eq!(index(&sql, 9).unwrap(), Seq(2));
        run(&sql, "DELETE FROM messages WHERE seq = 2", &[]).unwrap();
        holds(&sql, "can*", &[]);
        holds(&sql, "fin*", &[1]);
    }

    #[test]
    fn an_index_made_by_other_rules_is_made_anew() {
        let sql = database();
        say(&sql, 1, Some("a"), "canary");
        index(&sql, 9).unwrap();
        rebuild_if_stale(&sql).unwrap();
        holds(&sql, "canary", &[1]);
        run(&sql, "UPDATE meta SET value = 'others' WHERE key = 'words'", &[]).unwrap();
        rebuild_if_stale(&sql).unwrap();
        holds(&sql, "canary", &[]);
        assert_eq!(index(&sql, 9).unwrap(), Seq(1));
        holds(&sql, "canary", &[1]);
    }

    #[test]
    fn nothing_is_sorted_and_nothing_read_that_is_not_asked_for() {
        let sql = database();
        let check = |query: &str, values: &[&dyn ToSql], first: &str| {
            let explain = format!("EXPLAIN QUERY PLAN {query}");
            let steps = rows::all(&sql, &explain, values, |row| row.get::<_, String>("detail")).unwrap();
            assert!(steps[0].starts_with(first), "{steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
        };
        check(INDEXED, &[&"x", &9, &1], "SCAN message_words VIRTUAL TABLE");
        let in_room = "SEARCH messages USING INDEX messages_in_room (room=? AND seq>? AND seq<?)";
        check(beyond(true), &[&1, &9, &"a"], in_room);
        let by_place = "SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
        check(beyond(false), &[&1, &9, &""], by_place);
    }
}
