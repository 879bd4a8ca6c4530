//! Mail: agent sessions, subscriptions, deliveries and dead letters: reads, changes, and conversion between rows and model types.

use super::insert::RowBinder;
use super::rows::{all, maybe_time, number, one, run, seq_value, shared, text, time};
use super::{Sql, SqlTables, WriteTransaction, agents};
use parlor_engine::Fault;
use parlor_engine::changes::{MailChange, Settlement};
use parlor_engine::ports::{ReadMail, ReadMessages};
use parlor_model::query::{MailCounts, MailPage};
use parlor_model::{
    Agent, AgentId, AutoRun, DeadLetter, Delivery, DeliveryState, Mailbox, Message, MessageId, Pattern,
    RoomId, Seq, Session, SessionId, SessionRef, Subscription, Time,
};
use rusqlite::{Connection, Row, ToSql};
use std::sync::Arc;

impl<C: Sql> ReadMail for SqlTables<C> {
    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault> {
        let query = format!("SELECT {SESSION} FROM sessions WHERE agent = ?1 ORDER BY place");
        all(self.sql()?, &query, &[&agent.as_str()], session_of)
    }

    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault> {
        let query = "SELECT agent, session, pattern, added_at FROM subscriptions \
                     WHERE agent = ?1 AND session = ?2 ORDER BY added_at, pattern";
        let session = session_text(mailbox.session.as_ref());
        all(self.sql()?, query, &[&mailbox.agent.as_str(), &session], subscription)
    }

    fn deliveries(&mut self, message: &MessageId) -> Result<Vec<Delivery>, Fault> {
        // Session copies precede the agent's copy, as they were created.
        let query = format!(
            "SELECT {} FROM deliveries WHERE seq = {} ORDER BY session = '', agent, session",
            DELIVERY, SEQ_OF
        );
        all(self.sql()?, &query, &[&message.as_str()], delivery)
    }

    fn pending(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let query = pending_query();
        let session = session_text(mailbox.session.as_ref());
        let values: [&dyn rusqlite::ToSql; 4] = [&mailbox.agent.as_str(), &session, &now.0, &number(limit)];
        let deliveries = all(self.sql()?, &query, &values, delivery)?;
        self.with_messages(deliveries)
    }

    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault> {
        let query = format!(
            "SELECT {} FROM deliveries WHERE seq = {} AND agent = ?2 AND session = ?3 AND settled IN (0, 1)",
            DELIVERY, SEQ_OF
        );
        let session = session_text(mailbox.session.as_ref());
        one(self.sql()?, &query, &[&message.as_str(), &mailbox.agent.as_str(), &session], delivery)
    }

    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let query = mail_query();
        let session = session_text(mailbox.session.as_ref());
        let (from, to) = times(page);
        let (agent, limit, offset) = (mailbox.agent.as_str(), number(page.limit), number(page.offset));
        let values: [&dyn ToSql; 6] = [&agent, &session, &from, &to, &limit, &offset];
        let found = all(self.sql()?, &query, &values, delivery)?;
        self.with_messages(found)
    }

    fn unhandled(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        // Rows from before the ninth migration have an empty list.
        let query = format!(
            "SELECT {DELIVERY} FROM deliveries WHERE agent = ?1 AND session = ?2 AND settled = 0 \
             AND (handled_by IS NULL OR handled_by = '[]') AND (state = 0 OR leased_until <= ?3) ORDER BY seq LIMIT ?4"
        );
        let session = session_text(mailbox.session.as_ref());
        let values: [&dyn ToSql; 4] = [&mailbox.agent.as_str(), &session, &now.0, &number(limit)];
        let deliveries = all(self.sql()?, &query, &values, delivery)?;
        self.with_messages(deliveries)
    }

    fn held(&mut self, mailbox: &Mailbox) -> Result<Vec<Delivery>, Fault> {
        let query = format!(
            "SELECT {DELIVERY} FROM deliveries WHERE agent = ?1 AND session = ?2 AND settled = 0 \
             AND state = 2 AND leased_until = {} ORDER BY seq",
            i64::MAX
        );
        let session = session_text(mailbox.session.as_ref());
        all(self.sql()?, &query, &[&mailbox.agent.as_str(), &session], delivery)
    }

    fn next_lease_end(&mut self, mailbox: &Mailbox, now: Time) -> Result<Option<Time>, Fault> {
        let query = format!(
            "SELECT min(leased_until) FROM deliveries WHERE agent = ?1 AND session = ?2 AND settled = 0 \
             AND state = 2 AND leased_until > ?3 AND leased_until < {}",
            i64::MAX
        );
        let session = session_text(mailbox.session.as_ref());
        let values: [&dyn ToSql; 3] = [&mailbox.agent.as_str(), &session, &now.0];
        Ok(one(self.sql()?, &query, &values, |row| maybe_time(row, 0))?.flatten())
    }

    fn mail_counts(&mut self, mailbox: &Mailbox, now: Time) -> Result<MailCounts, Fault> {
        // `state` is part of the row and `settled` of the key, so settled deliveries are not read.
        let query = "SELECT count(*), coalesce(sum(state = 2 AND leased_until > ?3), 0) FROM deliveries \
                     WHERE agent = ?1 AND session = ?2 AND settled = 0";
        let session = session_text(mailbox.session.as_ref());
        let counts = one(self.sql()?, query, &[&mailbox.agent.as_str(), &session, &now.0], |row| {
            let (open, leased): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok(MailCounts { pending: (open - leased) as usize, leased: leased as usize })
        })?;
        Ok(counts.unwrap_or_default())
    }

    fn mail_after(
        &mut self,
        mailbox: &Mailbox,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let part = |settled: u8| {
            format!(
                "SELECT {DELIVERY}, seq AS place FROM deliveries \
                 WHERE agent = ?1 AND session = ?2 AND settled = {settled} AND seq > ?3"
            )
        };
        let query = format!("{} UNION ALL {} ORDER BY place LIMIT ?4", part(0), part(1));
        let session = session_text(mailbox.session.as_ref());
        let values: [&dyn ToSql; 4] = [&mailbox.agent.as_str(), &session, &seq_value(after), &number(limit)];
        let found = all(self.sql()?, &query, &values, delivery)?;
        self.with_messages(found)
    }

    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault> {
        let query = "SELECT m.id, d.agent, d.session, d.reason FROM dead_letters d JOIN messages m ON m.seq = d.seq \
                     WHERE m.erased = 0 AND m.at >= ?1 AND m.at <= ?2 \
                     ORDER BY d.seq DESC, d.agent, d.session LIMIT ?3 OFFSET ?4";
        let (from, to) = times(page);
        let values: [&dyn ToSql; 4] = [&from, &to, &number(page.limit), &number(page.offset)];
        let found = all(self.sql()?, query, &values, |row| {
            let text = |index| row.get::<_, String>(index);
            Ok((MessageId::stored(text(0)?), text(1)?, text(2)?, text(3)?))
        })?;
        let mut letters = Vec::with_capacity(found.len());
        for (id, agent, session, reason) in found {
            let Some(message) = self.message(&id)? else { continue };
            let session = (!session.is_empty()).then(|| SessionId::stored(session));
            let mailbox = (!agent.is_empty()).then(|| Mailbox { agent: AgentId::stored(agent), session });
            letters.push(DeadLetter { message, reason: reason.into(), mailbox });
        }
        Ok(letters)
    }

    fn dead_letter(
        &mut self,
        message: &MessageId,
        mailbox: Option<&Mailbox>,
    ) -> Result<Option<DeadLetter>, Fault> {
        let query =
            format!("SELECT reason FROM dead_letters WHERE seq = {SEQ_OF} AND agent = ?2 AND session = ?3");
        let (agent, session) = letter_key(mailbox);
        let reason = one(self.sql()?, &query, &[&message.as_str(), &agent, &session], |row| text(row, 0))?;
        let Some(reason) = reason else { return Ok(None) };
        let message = self.message(message)?;
        Ok(message.map(|message| DeadLetter { message, reason, mailbox: mailbox.cloned() }))
    }
}

pub fn apply(transaction: &mut WriteTransaction<'_>, change: &MailChange) -> Result<(), Fault> {
    if let MailChange::PutDelivery { delivery, seq } = change {
        transaction.pending.deliveries.push((delivery.clone(), *seq));
        return Ok(());
    }
    let sql = transaction.changed_tables()?;
    match change {
        // Buffered above.
        MailChange::PutDelivery { .. } => {}
        MailChange::PutSession(session) => {
            run(
                sql,
                "INSERT INTO sessions (agent, id, title, created_at, last_used_at, is_default, auto_run, room, settings, place) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
                 (SELECT coalesce(max(place), 0) + 1 FROM sessions WHERE agent = ?1)) \
                 ON CONFLICT DO UPDATE SET title = ?3, created_at = ?4, last_used_at = ?5, is_default = ?6, auto_run = ?7, \
                 room = ?8, settings = ?9",
                &[
                    &session.agent.as_str(),
                    &session.id.as_str(),
                    &&*session.title,
                    &session.created_at.0,
                    &session.last_used_at.map(|time| time.0),
                    &session.is_default,
                    &session.auto_run.as_ref().map(|auto_run| auto_run.to_json().0.to_string()),
                    &session.room.as_ref().map(RoomId::as_str),
                    &agents::settings(&session.settings),
                ],
            )?;
        }
        MailChange::PutSubscription(subscription) => {
            run(
                sql,
                "INSERT OR IGNORE INTO subscriptions VALUES (?1, ?2, ?3, ?4)",
                &[
                    &subscription.agent.as_str(),
                    &session_text(subscription.session.as_ref()),
                    &subscription.pattern.as_str(),
                    &subscription.added_at.0,
                ],
            )?;
        }
        MailChange::RemoveSubscription(mailbox, pattern) => {
            let session = session_text(mailbox.session.as_ref());
            let query = "DELETE FROM subscriptions WHERE agent = ?1 AND session = ?2 AND pattern = ?3";
            run(sql, query, &[&mailbox.agent.as_str(), &session, &pattern.as_str()])?;
        }
        MailChange::MarkDelivered { mailbox, messages } => {
            let session = session_text(mailbox.session.as_ref());
            for message in messages {
                run(sql, SETTLE, &[&message.as_str(), &mailbox.agent.as_str(), &session, &1])?;
            }
        }
        MailChange::Lease { mailbox, messages, until } => {
            let session = session_text(mailbox.session.as_ref());
            for message in messages {
                run(
                    sql,
                    "UPDATE deliveries SET state = 2, leased_until = ?4, attempts = attempts + 1 \
                     WHERE seq = (SELECT seq FROM messages WHERE id = ?1) AND agent = ?2 AND session = ?3 AND settled = 0",
                    &[&message.as_str(), &mailbox.agent.as_str(), &session, &until.0],
                )?;
            }
        }
        MailChange::SettleHeld { session, messages, settlement } => {
            for mailbox in session.mailboxes() {
                for message in messages {
                    settle_held(sql, &mailbox, message, settlement)?;
                }
            }
        }
        MailChange::DeadLetterDelivery { mailbox, message, reason } => {
            let session = session_text(mailbox.session.as_ref());
            let agent = mailbox.agent.as_str();
            run(sql, SETTLE, &[&message.id.as_str(), &agent, &session, &3])?;
            let query = "INSERT OR REPLACE INTO dead_letters VALUES (?1, ?2, ?3, ?4)";
            run(sql, query, &[&(message.seq.0 as i64), &agent, &session, &&**reason])?;
        }
        MailChange::DeadLetter { message, reason } => {
            let query = "INSERT OR REPLACE INTO dead_letters VALUES (?1, '', '', ?2)";
            run(sql, query, &[&(message.seq.0 as i64), reason])?;
        }
        MailChange::ReviveDelivery { mailbox, message } => {
            let session = session_text(mailbox.session.as_ref());
            let query = format!(
                "UPDATE deliveries SET state = 0, settled = 0, leased_until = NULL, attempts = 0 \
                 WHERE seq = {SEQ_OF} AND agent = ?2 AND session = ?3 AND settled = 1 AND state = 3"
            );
            run(sql, &query, &[&message.as_str(), &mailbox.agent.as_str(), &session])?;
        }
        MailChange::RemoveDeadLetter { message, mailbox } => {
            let (agent, session) = letter_key(mailbox.as_ref());
            let query = "DELETE FROM dead_letters WHERE seq = ?1 AND agent = ?2 AND session = ?3";
            run(sql, query, &[&(message.seq.0 as i64), &agent, &session])?;
        }
        MailChange::MoveMail { from, to } => {
            let values: [&dyn ToSql; 4] = [
                &from.agent.as_str(),
                &session_text(from.session.as_ref()),
                &to.agent.as_str(),
                &session_text(to.session.as_ref()),
            ];
            for table in ["deliveries", "dead_letters"] {
                let duplicates = format!(
                    "DELETE FROM {table} WHERE agent = ?1 AND session = ?2 AND seq IN \
                     (SELECT seq FROM {table} WHERE agent = ?3 AND session = ?4)"
                );
                run(sql, &duplicates, &values)?;
                let rest =
                    format!("UPDATE {table} SET agent = ?3, session = ?4 WHERE agent = ?1 AND session = ?2");
                run(sql, &rest, &values)?;
            }
            if from.session.is_none() {
                // Ids contain no characters that JSON escapes.
                let named = |agent: &AgentId| format!("[\"{agent}\",");
                let query = "UPDATE deliveries SET handled_by = replace(handled_by, ?2, ?3) \
                             WHERE agent = ?1 AND session = '' AND handled_by IS NOT NULL";
                run(sql, query, &[&to.agent.as_str(), &named(&from.agent), &named(&to.agent)])?;
            }
        }
        MailChange::ClearDeadLetters => {
            run(sql, "DELETE FROM dead_letters", &[])?;
        }
    }
    Ok(())
}

impl<C: Sql> SqlTables<C> {
    /// Adds the message to each delivery. Deliveries of deleted messages are left out.
    pub fn with_messages(
        &mut self,
        deliveries: Vec<Delivery>,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mut mail = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            if let Some(message) = self.message(&delivery.message)? {
                mail.push((message, delivery));
            }
        }
        Ok(mail)
    }

    pub fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault> {
        let found = all(self.sql()?, &format!("SELECT {} FROM agents", agents::AGENT), &[], agents::agent)?;
        let query = "SELECT agent, session, pattern, added_at FROM subscriptions";
        Ok((found, all(self.sql()?, query, &[], subscription)?))
    }
}

/// Settles mail if a run holds it.
fn settle_held(
    sql: &Connection,
    mailbox: &Mailbox,
    message: &MessageId,
    settlement: &Settlement,
) -> Result<(), Fault> {
    let (state, settled, until) = match settlement {
        Settlement::Delivered => (1, 1, None),
        Settlement::PendingFrom(time) => (2, 0, Some(time.0)),
        Settlement::Dead(_) => (3, 1, None),
    };
    let (agent, session) = (mailbox.agent.as_str(), session_text(mailbox.session.as_ref()));
    let query = format!(
        "UPDATE deliveries SET state = ?4, settled = ?5, leased_until = ?6 \
         WHERE seq = {SEQ_OF} AND agent = ?2 AND session = ?3 AND settled = 0 AND state = 2 AND leased_until = {}",
        i64::MAX
    );
    let values: [&dyn ToSql; 6] = [&message.as_str(), &agent, &session, &state, &settled, &until];
    let changed = run(sql, &query, &values)?;
    if let (Settlement::Dead(reason), 1) = (settlement, changed) {
        let query = format!("INSERT OR REPLACE INTO dead_letters VALUES ({SEQ_OF}, ?2, ?3, ?4)");
        run(sql, &query, &[&message.as_str(), &agent, &session, &&**reason])?;
    }
    Ok(())
}

/// Selects deliverable mail. `settled` is part of the primary key, so settled deliveries are not read.
fn pending_query() -> String {
    format!(
        "SELECT {} FROM deliveries WHERE agent = ?1 AND session = ?2 AND settled = 0 \
         AND (state = 0 OR leased_until <= ?3) ORDER BY seq LIMIT ?4",
        DELIVERY
    )
}

/// Selects a page of mail. Pending and settled deliveries are each read in key order, so SQLite merges them
/// without a sort.
fn mail_query() -> String {
    let part = |settled: u8| {
        format!(
            "SELECT d.agent, d.session, m.id, d.state, d.leased_until, d.attempts, d.handled_by, d.seq AS place \
             FROM deliveries d CROSS JOIN messages m ON m.seq = d.seq \
             WHERE d.agent = ?1 AND d.session = ?2 AND d.settled = {settled} \
             AND m.erased = 0 AND m.at >= ?3 AND m.at <= ?4"
        )
    };
    format!("{} UNION ALL {} ORDER BY place DESC LIMIT ?5 OFFSET ?6", part(0), part(1))
}

fn times(page: MailPage) -> (i64, i64) {
    (page.from.map_or(i64::MIN, |time| time.0), page.to.map_or(i64::MAX, |time| time.0))
}

/// Key columns of a dead letter: agent and session, empty without a mailbox.
fn letter_key(mailbox: Option<&Mailbox>) -> (&str, &str) {
    mailbox.map_or(("", ""), |mailbox| (mailbox.agent.as_str(), session_text(mailbox.session.as_ref())))
}

/// Settles a delivery (`?4`: delivered or dead), so that it is not leased again.
const SETTLE: &str = "UPDATE deliveries SET state = ?4, settled = 1 \
     WHERE seq = (SELECT seq FROM messages WHERE id = ?1) AND agent = ?2 AND session = ?3 AND settled = 0";

pub const INSERT_DELIVERY: (&str, &str) = ("INSERT INTO deliveries", "(?, ?, 0, ?, 0, NULL, 0, ?)");

pub fn bind_delivery(delivery: &Delivery, seq: Seq, row: &mut RowBinder) -> rusqlite::Result<()> {
    row.value(delivery.mailbox.agent.as_str())?;
    row.value(session_text(delivery.mailbox.session.as_ref()))?;
    row.value(seq.0 as i64)?;
    row.value(sessions(&delivery.handled_by))
}

pub const SESSION: &str = "agent, id, title, created_at, last_used_at, is_default, auto_run, room, settings";

pub fn session_of(row: &Row<'_>) -> rusqlite::Result<Session> {
    let auto_run = row.get_ref(6)?.as_str_or_null()?;
    Ok(Session {
        agent: AgentId::stored(shared(row, 0)?),
        id: SessionId::stored(shared(row, 1)?),
        title: text(row, 2)?,
        created_at: time(row, 3)?,
        last_used_at: maybe_time(row, 4)?,
        is_default: row.get(5)?,
        auto_run: auto_run.and_then(|json| AutoRun::parse(json).ok().flatten()),
        room: row.get_ref(7)?.as_str_or_null()?.map(RoomId::stored),
        settings: agents::read_settings(row.get_ref(8)?.as_str()?),
    })
}

pub fn subscription(row: &Row<'_>) -> rusqlite::Result<Subscription> {
    Ok(Subscription {
        agent: AgentId::stored(shared(row, 0)?),
        session: session(row, 1)?,
        pattern: Pattern::stored(shared(row, 2)?),
        added_at: time(row, 3)?,
    })
}

/// Reads an optional session id. An empty string means the agent's own mailbox, as a key column cannot be
/// null.
fn session(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<SessionId>> {
    let session = row.get_ref(index)?.as_str()?;
    Ok((!session.is_empty()).then(|| SessionId::stored(session)))
}

pub fn session_text(session: Option<&SessionId>) -> &str {
    session.map_or("", SessionId::as_str)
}

/// Subquery for the `Seq` of the message whose id is `?1`.
pub const SEQ_OF: &str = "(SELECT seq FROM messages WHERE id = ?1)";

pub const DELIVERY: &str = "agent, session, (SELECT id FROM messages WHERE messages.seq = deliveries.seq), state, \
     leased_until, attempts, handled_by";

pub fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        mailbox: Mailbox { agent: AgentId::stored(shared(row, 0)?), session: session(row, 1)? },
        message: MessageId::stored(shared(row, 2)?),
        state: match row.get::<_, i64>(3)? {
            0 => DeliveryState::Pending,
            2 => DeliveryState::Leased { until: maybe_time(row, 4)?.unwrap_or_default() },
            3 => DeliveryState::Dead,
            _ => DeliveryState::Delivered,
        },
        attempts: row.get(5)?,
        handled_by: row.get_ref(6)?.as_str_or_null()?.map(read_sessions).unwrap_or_default(),
    })
}

pub fn sessions(sessions: &[SessionRef]) -> Option<String> {
    if sessions.is_empty() {
        return None;
    }
    let list: Vec<(&str, &str)> = sessions.iter().map(|s| (s.agent.as_str(), s.session.as_str())).collect();
    Some(serde_json::to_string(&list).expect("strings always serialise to JSON"))
}

fn read_sessions(json: &str) -> Vec<SessionRef> {
    let list: Vec<(String, String)> = serde_json::from_str(json).unwrap_or_default();
    list.into_iter()
        .map(|(agent, session)| SessionRef {
            agent: AgentId::stored(agent),
            session: SessionId::stored(session),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::rows::all;
    use rusqlite::ToSql;

    #[test]
    fn pending_mail_is_found_without_reading_settled_deliveries() {
        let sql = crate::sqlite::connection::open_in_memory();
        sql.execute_batch(&crate::sqlite::migrations::MIGRATIONS.concat()).unwrap();
        let query = format!("EXPLAIN QUERY PLAN {}", pending_query());
        let values: [&dyn rusqlite::ToSql; 4] = [&"coder", &"", &0, &1];
        let steps = all(&sql, &query, &values, |row| row.get::<_, String>("detail")).unwrap();
        let expected = "SEARCH deliveries USING PRIMARY KEY (agent=? AND session=? AND settled=?)";
        assert_eq!(steps[0], expected, "read in key order, without a sort");
        assert_eq!(
            steps[1..],
            ["CORRELATED SCALAR SUBQUERY 1", "SEARCH messages USING INTEGER PRIMARY KEY (rowid=?)"]
        );
    }

    #[test]
    fn a_page_of_mail_is_merged_without_a_sort() {
        let sql = crate::sqlite::connection::open_in_memory();
        sql.execute_batch(&crate::sqlite::migrations::MIGRATIONS.concat()).unwrap();
        let values: [&dyn ToSql; 6] = [&"coder", &"", &0, &1, &1, &0];
        let query = format!("EXPLAIN QUERY PLAN {}", mail_query());
        let steps = all(&sql, &query, &values, |row| row.get::<_, String>("detail")).unwrap();
        assert_eq!(steps[0], "MERGE (UNION ALL)");
        let in_order = "SEARCH d USING PRIMARY KEY (agent=? AND session=? AND settled=?)";
        assert_eq!(steps.iter().filter(|step| *step == in_order).count(), 2, "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
    }
}
