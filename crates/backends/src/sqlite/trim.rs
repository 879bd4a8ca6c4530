//! Forgets what is old.

use super::Options;
use super::apply::DEPENDENT_TABLES;
use super::rows::{one, run};
use super::{approvals, audit};
use parlor_engine::Fault;
use parlor_model::Time;
use rusqlite::Connection;
use std::time::Duration;

/// Messages removed at once, so that nobody waits long for the writer: taking their words out of the index is slow.
const SLICE: i64 = 200;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Forgets what is older than the windows: log rows, keys of retries, uploads that came on no message, sign-ins and
/// invitations that ran out, what agents asked, what was noted, and messages. Says whether more messages are to go.
pub fn trim(sql: &Connection, now: Time, options: &Options) -> Result<bool, Fault> {
    let old = now.minus(options.log_window).0;
    // Never the newest row: it is where the next event goes on from.
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
    run(sql, "DELETE FROM pairings WHERE expires_at <= ?1", &[&now.0])?;
    approvals::trim(sql, now.minus(options.log_window))?;
    let believed = clock_is_believed(sql, now)?;
    if believed {
        audit::trim(sql, now.minus(options.audit_window))?;
    }
    match options.message_retention {
        Some(retention) if believed => forget_messages(sql, now.minus(retention)),
        _ => Ok(false),
    }
}

/// Not on the day after it leapt, ahead or back, or after the hub stood still: a clock that is set wrong must not take everything.
fn clock_is_believed(sql: &Connection, now: Time) -> Result<bool, Fault> {
    let meta = |key: &str| {
        let found = one(sql, "SELECT value FROM meta WHERE key = ?1", &[&key], |row| row.get::<_, i64>(0));
        found.map(|found| found.map(Time))
    };
    let put = |key: &str| run(sql, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)", &[&key, &now.0]).map(drop);
    if meta("tended")?.is_none_or(|tended| tended.plus(DAY) < now || now < tended) {
        put("leapt")?;
    }
    put("tended")?;
    Ok(meta("leapt")?.is_some_and(|leapt| leapt.plus(DAY) <= now))
}

/// Removes messages from the beginning, up to the first that is not old. One that bears a wrong time keeps what follows
/// it, but takes nothing along.
fn forget_messages(sql: &Connection, oldest: Time) -> Result<bool, Fault> {
    let query = "SELECT max(seq), min(seq) FILTER (WHERE at >= ?1 AND erased = 0), count(*) \
                 FROM (SELECT seq, at, erased FROM messages ORDER BY seq LIMIT ?2)";
    let look = one(sql, query, &[&oldest.0, &SLICE], |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, i64>(2)?))
    })?;
    let Some((Some(last), kept, count)) = look else { return Ok(false) };
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
    Ok(kept.is_none() && count == SLICE)
}
