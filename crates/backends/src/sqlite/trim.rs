//! Retention: deletes rows that are older than their window, in bounded slices.

use super::messages::DEPENDENT_TABLES;
use super::rows::{one, run};
use super::{Options, approvals, audit, conversations, turns};
use parlor_engine::Fault;
use parlor_model::Time;
use rusqlite::Connection;
use std::time::Duration;

/// Maximum messages deleted per call, so that maintenance does not block the writer for long: removing
/// messages from the search index is slow.
const MAX_MESSAGES_PER_SLICE: i64 = 200;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Deletes log rows, idempotency keys, unattached uploads, decided approvals, audit records, conversation logs with the
/// ended runs of sessions, and messages older than their windows, and expired sign-ins, invitations and pairings. Returns whether more messages
/// are due.
pub fn trim(sql: &Connection, now: Time, options: &Options) -> Result<bool, Fault> {
    let old = now.minus(options.log_window).0;
    // The newest row stays: the next sequence number continues from it.
    let query = "SELECT coalesce(max(seq), 0) FROM (SELECT seq, at FROM log ORDER BY seq LIMIT 50000) \
                 WHERE at < ?1 AND seq < (SELECT max(seq) FROM log)";
    let through = one(sql, query, &[&old], |row| row.get::<_, i64>(0))?.unwrap_or_default();
    if through > 0 {
        run(sql, "DELETE FROM log WHERE seq <= ?1", &[&through])?;
        run(sql, "UPDATE meta SET value = max(value, ?1) WHERE key = 'trimmed'", &[&through])?;
    }
    run(
        sql,
        "DELETE FROM once WHERE seq <= (SELECT coalesce(max(seq), 0) FROM \
         (SELECT seq, at FROM once ORDER BY seq LIMIT 50000) WHERE at < ?1)",
        &[&now.minus(options.idempotency_window).0],
    )?;
    run(
        sql,
        "DELETE FROM uploads WHERE message IS NULL AND avatar = 0 AND created_at < ?1",
        &[&now.minus(options.upload_window).0],
    )?;
    run(
        sql,
        "DELETE FROM refresh_tokens WHERE sign_in IN (SELECT id FROM sign_ins WHERE expires_at <= ?1)",
        &[&now.0],
    )?;
    run(sql, "DELETE FROM sign_ins WHERE expires_at <= ?1", &[&now.0])?;
    run(sql, "DELETE FROM invitations WHERE expires_at <= ?1", &[&now.0])?;
    run(sql, "DELETE FROM room_invitations WHERE expires_at <= ?1", &[&now.0])?;
    run(sql, "DELETE FROM pairings WHERE expires_at <= ?1", &[&now.0])?;
    approvals::trim(sql, now.minus(options.log_window))?;
    turns::trim(sql, now.minus(options.log_window))?;
    let clock_trusted = clock_is_trusted(sql, now)?;
    if clock_trusted {
        audit::trim(sql, now.minus(options.audit_window))?;
    }
    match options.message_retention {
        Some(retention) if clock_trusted => {
            let oldest = now.minus(retention);
            let query = "DELETE FROM runs WHERE session IS NOT NULL AND ended_at < ?1";
            run(sql, query, &[&oldest.0])?;
            conversations::trim(sql, oldest)?;
            delete_old_messages(sql, oldest)
        }
        _ => Ok(false),
    }
}

/// False for 24 hours after a clock jump in either direction or an outage of more than a day, so that a wrong
/// clock does not delete everything.
fn clock_is_trusted(sql: &Connection, now: Time) -> Result<bool, Fault> {
    let meta = |key: &str| {
        let found = one(sql, "SELECT value FROM meta WHERE key = ?1", &[&key], |row| row.get::<_, i64>(0));
        found.map(|found| found.map(Time))
    };
    let put = |key: &str| run(sql, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)", &[&key, &now.0]).map(drop);
    if meta("tended")?.is_none_or(|last| last.plus(DAY) < now || now < last) {
        put("leapt")?;
    }
    put("tended")?;
    Ok(meta("leapt")?.is_some_and(|jumped| jumped.plus(DAY) <= now))
}

/// Deletes messages in order of `Seq`, up to the first that is not older than `oldest`. A message with a
/// wrong time can therefore delay the deletion of later messages, but never cause one.
fn delete_old_messages(sql: &Connection, oldest: Time) -> Result<bool, Fault> {
    let query = "SELECT max(seq), min(seq) FILTER (WHERE at >= ?1 AND erased = 0), count(*) \
                 FROM (SELECT seq, at, erased FROM messages ORDER BY seq LIMIT ?2)";
    let slice = one(sql, query, &[&oldest.0, &MAX_MESSAGES_PER_SLICE], |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, i64>(2)?))
    })?;
    let Some((Some(last), kept, count)) = slice else { return Ok(false) };
    let through = kept.map_or(last, |kept| kept - 1);
    for table in DEPENDENT_TABLES {
        let query = format!("DELETE FROM {table} WHERE message IN (SELECT id FROM messages WHERE seq <= ?1)");
        run(sql, &query, &[&through])?;
    }
    let query = "DELETE FROM runs WHERE state >= 2 AND message IN (SELECT id FROM messages WHERE seq <= ?1)";
    run(sql, query, &[&through])?;
    run(sql, "DELETE FROM deliveries WHERE seq <= ?1", &[&through])?;
    run(sql, "DELETE FROM dead_letters WHERE seq <= ?1", &[&through])?;
    run(sql, "DELETE FROM messages WHERE seq <= ?1", &[&through])?;
    Ok(kept.is_none() && count == MAX_MESSAGES_PER_SLICE)
}
