//! Conversation logs of sessions: reads, changes, and conversion between rows and model types.

use super::rows::{all, maybe_text, number, run, shared, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::ConversationChange;
use parlor_engine::ports::ReadConversations;
use parlor_model::query::EntryPage;
use parlor_model::{AgentId, ConversationEntry, EntryKind, Payload, RunId, SessionId, Time};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql};

impl<C: Sql> ReadConversations for SqlTables<C> {
    fn conversation(
        &mut self,
        agent: &AgentId,
        session: &SessionId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<ConversationEntry>, Fault> {
        let (condition, order, bound) = match page {
            EntryPage::After(after) => ("number > ?3", "ASC", stored(after)),
            EntryPage::Before(Some(before)) => ("number < ?3", "DESC", stored(before)),
            EntryPage::Before(None) => ("number <= ?3", "DESC", i64::MAX),
        };
        let query = format!(
            "SELECT {ENTRY} FROM conversation_entries WHERE agent = ?1 AND session = ?2 AND {condition} \
             ORDER BY number {order} LIMIT ?4"
        );
        let values: [&dyn ToSql; 4] = [&agent.as_str(), &session.as_str(), &bound, &number(limit)];
        let mut entries = all(self.sql()?, &query, &values, entry)?;
        if matches!(page, EntryPage::Before(_)) {
            entries.reverse();
        }
        Ok(entries)
    }
}

/// Converts the number of an entry to an SQLite integer. Saturates: no log has that many entries.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub fn apply(sql: &Connection, change: &ConversationChange) -> Result<(), Fault> {
    let ConversationChange::AppendEntry(entry) = change;
    let query = format!(
        "INSERT INTO conversation_entries ({ENTRY}) SELECT ?1, ?2, \
         1 + coalesce((SELECT max(number) FROM conversation_entries WHERE agent = ?1 AND session = ?2), 0), \
         ?3, ?4, ?5, ?6, ?7"
    );
    let values: [&dyn ToSql; 7] = [
        &entry.agent.as_str(),
        &entry.session.as_str(),
        &entry.at.0,
        &entry.kind.as_str(),
        &&*entry.text,
        &entry.run.as_ref().map(|run| run.as_str()),
        &entry.details.as_ref().map(|details| &*details.0),
    ];
    run(sql, &query, &values).map(drop)
}

const ENTRY: &str = "agent, session, number, at, kind, text, run, details";

fn entry(row: &Row<'_>) -> rusqlite::Result<ConversationEntry> {
    let kind = EntryKind::parse(row.get_ref(4)?.as_str()?);
    let unknown = || rusqlite::Error::InvalidColumnType(4, "kind".into(), Type::Text);
    Ok(ConversationEntry {
        agent: AgentId::stored(shared(row, 0)?),
        session: SessionId::stored(shared(row, 1)?),
        number: row.get::<_, i64>(2)? as u64,
        at: time(row, 3)?,
        kind: kind.ok_or_else(unknown)?,
        text: shared(row, 5)?,
        run: row.get_ref(6)?.as_str_or_null()?.map(RunId::stored),
        details: maybe_text(row, 7)?.map(|details| Payload(details.into())),
    })
}

/// Deletes entries before `oldest`, except the last one of each session, so that no number is used twice.
pub fn trim(sql: &Connection, oldest: Time) -> Result<(), Fault> {
    let query = "DELETE FROM conversation_entries WHERE at < ?1 AND number < \
                 (SELECT max(number) FROM conversation_entries other \
                 WHERE other.agent = conversation_entries.agent AND other.session = conversation_entries.session)";
    run(sql, query, &[&oldest.0]).map(drop)
}
