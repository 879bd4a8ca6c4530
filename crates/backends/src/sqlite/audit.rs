//! The audit log: reads, changes, and conversion between rows and model types.

use super::rows::{all, number, one, run};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::AuditChange;
use parlor_engine::ports::ReadAudit;
use parlor_model::audit::{Action, Actor, AuditFilter, AuditRecord, NewAuditEntry, Subject, SubjectKind};
use parlor_model::{KeyId, Time, UserId};
use rusqlite::{Connection, Row, ToSql};
use std::net::IpAddr;

impl<C: Sql> ReadAudit for SqlTables<C> {
    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault> {
        let query = format!(
            "SELECT {COLUMNS} FROM audit WHERE action = 'sign_in_failed' AND subject IS ?1 ORDER BY id DESC LIMIT 1"
        );
        one(self.sql()?, &query, &[&user.map(UserId::as_str)], record)
    }

    fn audit(&mut self, page: &AuditFilter) -> Result<Vec<AuditRecord>, Fault> {
        let query = format!(
            "SELECT {COLUMNS} FROM audit WHERE id < ?1 AND (?2 IS NULL OR action = ?2) \
             AND (?3 IS NULL OR actor = ?3 OR actor_name = ?3) \
             AND (?4 IS NULL OR subject = ?4 OR subject_name = ?4) \
             AND last_at >= ?5 AND at <= ?6 ORDER BY id DESC LIMIT ?7"
        );
        let before = page.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let values: [&dyn ToSql; 7] = [
            &before,
            &page.action.map(Action::as_str),
            &page.actor.as_deref(),
            &page.subject.as_deref(),
            &page.from.map_or(i64::MIN, |time| time.0),
            &page.to.map_or(i64::MAX, |time| time.0),
            &number(page.limit),
        ];
        all(self.sql()?, &query, &values, record)
    }
}

pub fn apply(sql: &Connection, change: &AuditChange) -> Result<(), Fault> {
    match change {
        AuditChange::AppendAudit(note) => put(sql, note)?,
        AuditChange::RepeatAudit { id, at, address } => repeat(sql, *id, *at, *address)?,
    }
    Ok(())
}

const COLUMNS: &str = "id, at, last_at, count, actor_kind, actor, actor_name, actor_key, action, subject_kind, \
                       subject, subject_name, detail, address";

pub fn put(sql: &Connection, note: &NewAuditEntry) -> Result<(), Fault> {
    let (kind, id, name, key) = match &note.actor {
        Actor::Nobody => ("nobody", None, None, None),
        Actor::Operator => ("operator", None, None, None),
        Actor::Person { id, name } => ("user", Some(id.as_str()), Some(&**name), None),
        Actor::Program { id, name, key } => ("key", Some(id.as_str()), Some(&**name), Some(key.as_str())),
    };
    let subject = note.subject.as_ref();
    let values: [&dyn ToSql; 11] = [
        &note.at.0,
        &kind,
        &id,
        &name,
        &key,
        &note.action.as_str(),
        &subject.map(|subject| subject.kind.as_str()),
        &subject.map(|subject| &*subject.id),
        &subject.and_then(|subject| subject.name.as_deref()),
        &note.detail.as_deref(),
        &note.address.map(|address| address.to_string()),
    ];
    let query = "INSERT INTO audit VALUES (NULL, ?1, ?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    run(sql, query, &values).map(drop)
}

/// Counts a repetition of an audit record instead of adding another row.
pub fn repeat(sql: &Connection, id: u64, at: Time, address: Option<IpAddr>) -> Result<(), Fault> {
    let query = "UPDATE audit SET count = count + 1, last_at = ?2, address = ?3 WHERE id = ?1";
    run(sql, query, &[&(id as i64), &at.0, &address.map(|address| address.to_string())]).map(drop)
}

/// Deletes records older than `oldest`, looking at the first 10,000 rows only to keep the transaction short.
pub fn trim(sql: &Connection, oldest: Time) -> Result<(), Fault> {
    let query =
        "DELETE FROM audit WHERE last_at < ?1 AND id IN (SELECT id FROM audit ORDER BY id LIMIT 10000)";
    run(sql, query, &[&oldest.0]).map(drop)
}

fn record(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    let text = |index| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(index)?.map(Box::<str>::from));
    let (id, name) = (text(5)?.map(UserId::stored), text(6)?.unwrap_or_default());
    let actor = match (row.get_ref(4)?.as_str()?, id, text(7)?) {
        ("user", Some(id), _) => Actor::Person { id, name },
        ("key", Some(id), Some(key)) => Actor::Program { id, name, key: KeyId::stored(key) },
        ("operator", ..) => Actor::Operator,
        _ => Actor::Nobody,
    };
    let unknown =
        |index| rusqlite::Error::InvalidColumnType(index, "audit".into(), rusqlite::types::Type::Text);
    let kind = text(9)?.map(|kind| SubjectKind::parse(&kind).ok_or(unknown(9))).transpose()?;
    let subject = match (kind, text(10)?) {
        (Some(kind), Some(id)) => Some(Subject { kind, id, name: text(11)? }),
        _ => None,
    };
    Ok(AuditRecord {
        id: row.get::<_, i64>(0)? as u64,
        note: NewAuditEntry {
            at: Time(row.get(1)?),
            actor,
            action: Action::parse(row.get_ref(8)?.as_str()?).ok_or(unknown(8))?,
            subject,
            detail: text(12)?,
            address: text(13)?.and_then(|address| address.parse().ok()),
        },
        count: row.get(3)?,
        last_at: Time(row.get(2)?),
    })
}
