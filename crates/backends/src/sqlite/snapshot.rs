//! Lists, pages and counts of the SQLite store: the `Snapshot` port.

use super::SqlTables;
use super::agents;
use super::models;
use super::rows::{self, all, number, one, seq_value};
use super::tasks;
use parlor_engine::Fault;
use parlor_engine::ports::{CandidateVisitor, Head, Lookup, Snapshot};
use parlor_engine::search::SearchScope;
use parlor_model::audit::{AuditFilter, AuditRecord};
use parlor_model::query::{MailPage, Page, Recent};
use parlor_model::{
    Agent, AgentId, ApiKey, ApprovalRule, BlobDigest, Bookmark, CurrentPlan, DeadLetter, Delivery,
    Invitation, LoggedEvent, Mailbox, Member, Message, MessageId, Mission, Pin, Revision, Room, RoomId, Run,
    RunId, Seq, Service, SessionId, SignIn, Task, Time, User, UserId,
};
use rusqlite::{Connection, ToSql};
use std::ops::Deref;
use std::sync::Arc;

impl<C: Deref<Target = Connection>> Snapshot for SqlTables<C> {
    fn head(&mut self) -> Result<Head, Fault> {
        SqlTables::head(self)
    }

    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        SqlTables::tail(self, after, limit)
    }

    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        SqlTables::room_tail(self, room, after, limit)
    }

    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault> {
        let query = format!("SELECT {} FROM users ORDER BY created_at, id LIMIT ?1 OFFSET ?2", rows::USER);
        let users = all(self.sql(), &query, &[&number(limit), &number(offset)], rows::user)?;
        Ok((users, self.count("SELECT count(*) FROM users", &[])?))
    }

    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault> {
        let escaped: String = text
            .chars()
            .flat_map(|c| matches!(c, '%' | '_' | '\\').then_some('\\').into_iter().chain([c]))
            .collect();
        let query = format!(
            "SELECT {} FROM users WHERE id <> ?2 AND (username LIKE ?1 ESCAPE '\\' OR display_name LIKE ?1 ESCAPE '\\') \
             ORDER BY username LIMIT ?3",
            rows::USER
        );
        all(self.sql(), &query, &[&format!("%{escaped}%"), &except.as_str(), &number(limit)], rows::user)
    }

    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault> {
        let query = format!(
            "SELECT {} FROM sign_ins WHERE user = ?1 AND expires_at > ?2 ORDER BY created_at, id",
            rows::SIGN_IN
        );
        all(self.sql(), &query, &[&user.as_str(), &now.0], rows::sign_in)
    }

    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault> {
        let query = format!(
            "SELECT {} FROM api_keys WHERE ?1 IS NULL OR owner = ?1 ORDER BY created_at, id",
            rows::KEY
        );
        all(self.sql(), &query, &[&owner.map(UserId::as_str)], rows::key)
    }

    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault> {
        let query = format!(
            "SELECT {} FROM invitations WHERE expires_at > ?1 ORDER BY created_at, id",
            rows::INVITATION
        );
        all(self.sql(), &query, &[&now.0], rows::invitation)
    }

    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault> {
        let query = format!(
            "SELECT {} FROM services s JOIN agents a ON a.id = s.agent ORDER BY a.created_at, a.id",
            models::SERVICE
        );
        let mut found = Vec::new();
        for service in all(self.sql(), &query, &[], models::service)? {
            found.extend(self.agent(&service.agent)?.map(|agent| (agent, service)));
        }
        Ok(found)
    }

    fn audit(&mut self, page: &AuditFilter) -> Result<Vec<AuditRecord>, Fault> {
        self.audit_records(page)
    }

    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault> {
        let query = format!("SELECT {} FROM rooms WHERE project_root IS NOT NULL ORDER BY id", rows::ROOM);
        all(self.sql(), &query, &[], rows::room)
    }

    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM members WHERE room = ?1", &[&room.as_str()])
    }

    fn history(
        &mut self,
        room: &RoomId,
        beyond: Seq,
        page: Page,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let (after, before, order) = match page {
            Page::Before(before) => (0, before.map_or(i64::MAX, seq_value), "DESC"),
            Page::After(seq) => (seq_value(seq), i64::MAX, "ASC"),
            Page::AfterTime(time) => (self.last_until(room, time)?, i64::MAX, "ASC"),
        };
        let after: i64 = seq_value(beyond).max(after);
        let query = format!(
            "SELECT {} FROM messages WHERE room = ?1 AND seq > ?2 AND seq < ?3 AND erased = 0 ORDER BY seq {order} LIMIT ?4",
            rows::MESSAGE
        );
        all(self.sql(), &query, &[&room.as_str(), &after, &before, &number(limit)], rows::message)
    }

    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault> {
        let query = format!(
            "SELECT {} FROM messages WHERE room = ?1 AND seq > ?2 AND erased = 0 ORDER BY seq DESC LIMIT 1",
            rows::MESSAGE
        );
        let cleared = member.room_preferences.cleared_through;
        let Some(message) = one(self.sql(), &query, &[&room.as_str(), &seq_value(cleared)], rows::message)?
        else {
            return Ok(None);
        };
        let query = "SELECT count(*), coalesce(sum(mentions IS NOT NULL AND EXISTS \
                     (SELECT 1 FROM json_each(mentions) WHERE value ->> 0 = ?3 AND value ->> 1 = ?4)), 0) \
                     FROM messages WHERE room = ?1 AND seq > ?2 AND erased = 0 \
                     AND NOT (sender_kind = ?3 AND sender = ?4)";
        let values: [&dyn ToSql; 4] = [
            &room.as_str(),
            &seq_value(member.read_through.max(cleared)),
            &rows::member_kind(&member.member),
            &member.member.as_str(),
        ];
        let counts = one(self.sql(), query, &values, |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
        })?;
        let (unread, mentions) = counts.unwrap_or_default();
        Ok(Some(Recent { message, unread, mentions }))
    }

    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let query = answers_query(to);
        all(self.sql(), &query, &[&to.id.as_str(), &seq_value(after), &number(limit)], rows::message)
    }

    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault> {
        let query = format!("SELECT count(*) FROM messages WHERE {} = ?1 AND seq > ?2", answering(to));
        Ok(self.count(&query, &[&to.id.as_str(), &seq_value(after)])? as u64)
    }

    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault> {
        let query = format!("SELECT {} FROM pins WHERE room = ?1 ORDER BY seq DESC", rows::PIN);
        let mut pins = Vec::new();
        for pin in all(self.sql(), &query, &[&room.as_str()], rows::pin)? {
            if let Some(message) = self.message(&pin.message)?.filter(|message| message.seq > beyond) {
                pins.push((pin, message));
            }
        }
        Ok(pins)
    }

    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault> {
        let query = "SELECT b.user, b.seq, b.message, b.at FROM bookmarks b \
                     CROSS JOIN messages m ON m.id = b.message \
                     CROSS JOIN members o ON o.room = m.room AND o.kind = 0 AND o.member = b.user \
                     WHERE b.user = ?1 AND b.seq < ?2 AND m.seq > o.cleared_through \
                     ORDER BY b.seq DESC LIMIT ?3";
        let before = before.map_or(i64::MAX, seq_value);
        let found = all(self.sql(), query, &[&user.as_str(), &before, &number(limit)], rows::bookmark)?;
        let mut bookmarks = Vec::with_capacity(found.len());
        for bookmark in found {
            if let Some(message) = self.message(&bookmark.message)? {
                bookmarks.push((bookmark, message));
            }
        }
        Ok(bookmarks)
    }

    fn candidates(
        &mut self,
        search_scope: &SearchScope<'_>,
        look: CandidateVisitor<'_>,
    ) -> Result<(), Fault> {
        self.visit_candidates(search_scope, look)
    }

    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault> {
        let query = format!("SELECT {} FROM tasks WHERE room = ?1 ORDER BY created_at, id", tasks::TASK);
        all(self.sql(), &query, &[&room.as_str()], tasks::task)
    }

    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault> {
        let query = format!(
            "SELECT {} FROM tasks WHERE ((assignee_kind = 0 AND assignee = ?1) OR (creator_kind = 0 AND creator = ?1)) \
             AND EXISTS (SELECT 1 FROM members m WHERE m.room = tasks.room AND m.kind = 0 AND m.member = ?1) \
             ORDER BY created_at DESC, id LIMIT ?2 OFFSET ?3",
            tasks::TASK
        );
        all(self.sql(), &query, &[&user.as_str(), &number(limit), &number(offset)], tasks::task)
    }

    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault> {
        let query =
            "SELECT message, text, edited_at FROM revisions WHERE message = ?1 ORDER BY place DESC LIMIT ?2";
        all(self.sql(), query, &[&message.as_str(), &number(limit)], |row| {
            Ok(Revision {
                message: MessageId::stored(row.get::<_, String>(0)?),
                text: row.get::<_, String>(1)?.into(),
                edited_at: Time(row.get(2)?),
            })
        })
    }

    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault> {
        // CROSS JOIN fixes the join order: from the user's rooms to their agents, not from all agents in
        // rooms.
        let query = format!(
            "SELECT {} FROM agents WHERE owner <> ?1 AND id IN (SELECT b.member FROM members a \
             CROSS JOIN members b ON b.room = a.room AND b.kind = 1 WHERE a.kind = 0 AND a.member = ?1 \
             UNION SELECT id FROM agents WHERE {SHARED}) ORDER BY id",
            agents::AGENT
        );
        all(self.sql(), &query, &[&user.as_str()], agents::agent)
    }

    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault> {
        let query = format!(
            "SELECT {} FROM agents WHERE {SHARED} AND owner <> ?1 ORDER BY id LIMIT ?2 OFFSET ?3",
            agents::AGENT
        );
        all(self.sql(), &query, &[&user.as_str(), &number(limit), &number(offset)], agents::agent)
    }

    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let query = mail_query();
        let session = rows::session_text(mailbox.session.as_ref());
        let (from, to) = times(page);
        let values: [&dyn ToSql; 5] = [&mailbox.agent.as_str(), &session, &from, &to, &number(page.limit)];
        let found = all(self.sql(), &query, &values, rows::delivery)?;
        self.with_messages(found)
    }

    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault> {
        let query = "SELECT m.id, d.agent, d.session, d.reason FROM dead_letters d JOIN messages m ON m.seq = d.seq \
                     WHERE m.erased = 0 AND m.at >= ?1 AND m.at <= ?2 \
                     ORDER BY d.seq DESC, d.agent, d.session LIMIT ?3";
        let (from, to) = times(page);
        let found = all(self.sql(), query, &[&from, &to, &number(page.limit)], |row| {
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

    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault> {
        self.find_missions_on()
    }

    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault> {
        self.find_plans(room)
    }

    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault> {
        self.find_rules(room)
    }

    fn open_runs(&mut self) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE state < 2 ORDER BY place", rows::RUN);
        all(self.sql(), &query, &[], rows::run_row)
    }

    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE room = ?1 ORDER BY place DESC LIMIT ?2", rows::RUN);
        all(self.sql(), &query, &[&room.as_str(), &number(limit)], rows::run_row)
    }

    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE parent = ?1 ORDER BY place", rows::RUN);
        all(self.sql(), &query, &[&run.as_str()], rows::run_row)
    }

    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault> {
        let of = |rest| format!("SELECT {} FROM runs WHERE agent = ?1 AND {rest} LIMIT ?2", rows::RUN);
        let open = of("ended_at IS NULL ORDER BY place DESC");
        let mut runs = all(self.sql(), &open, &[&agent.as_str(), &(limit as i64)], rows::run_row)?;
        let left = (limit - runs.len()) as i64;
        let ended = of("ended_at IS NOT NULL ORDER BY ended_at DESC, place DESC");
        runs.extend(all(self.sql(), &ended, &[&agent.as_str(), &left], rows::run_row)?);
        Ok(runs)
    }

    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM uploads WHERE digest = ?1 LIMIT 1";
        Ok(one(self.sql(), query, &[&digest.0], |_| Ok(()))?.is_some())
    }

    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault> {
        let query = "SELECT DISTINCT b.member FROM members a JOIN members b ON b.room = a.room AND b.kind = 0 \
                     WHERE a.kind = 0 AND a.member = ?1 AND b.member <> ?1 ORDER BY b.member";
        all(self.sql(), query, &[&user.as_str()], |row| Ok(UserId::stored(row.get::<_, String>(0)?)))
    }
}

/// Condition: the agent is shared with the user `?1`.
const SHARED: &str =
    "visibility <> 0 AND (visibility = 1 OR ?1 IN (SELECT value FROM json_each(shared_with)))";

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
    format!("{} UNION ALL {} ORDER BY place DESC LIMIT ?5", part(0), part(1))
}

fn answers_query(to: &Message) -> String {
    let (columns, answering) = (rows::MESSAGE, answering(to));
    format!("SELECT {columns} FROM messages WHERE {answering} = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3")
}

/// Column that refers to `to`: `thread` for the start of a thread, otherwise `reply_to`. Both are null in
/// deleted messages, which are therefore not found.
fn answering(to: &Message) -> &'static str {
    if to.thread.is_none() { "thread" } else { "reply_to" }
}

fn times(page: MailPage) -> (i64, i64) {
    (page.from.map_or(i64::MIN, |time| time.0), page.to.map_or(i64::MAX, |time| time.0))
}

impl<C: Deref<Target = Connection>> SqlTables<C> {
    pub fn count(&self, query: &str, values: &[&dyn ToSql]) -> Result<usize, Fault> {
        Ok(one(self.sql(), query, values, |row| row.get::<_, i64>(0))?.unwrap_or_default() as usize)
    }

    /// Returns the `Seq` of the newest message not after `time`. Scans backwards from the newest message, so
    /// the cost is proportional to the number of newer messages.
    fn last_until(&self, room: &RoomId, time: Time) -> Result<i64, Fault> {
        let query =
            "SELECT seq FROM messages WHERE room = ?1 AND at <= ?2 AND erased = 0 ORDER BY seq DESC LIMIT 1";
        Ok(one(self.sql(), query, &[&room.as_str(), &time.0], |row| row.get(0))?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{Destination, MessageKind, Sender};

    #[test]
    fn a_page_of_mail_is_merged_without_a_sort() {
        let sql = super::super::connection::open_in_memory();
        sql.execute_batch(&crate::sqlite::migrations::MIGRATIONS.concat()).unwrap();
        let values: [&dyn ToSql; 5] = [&"coder", &"", &0, &1, &1];
        let query = format!("EXPLAIN QUERY PLAN {}", mail_query());
        let steps = all(&sql, &query, &values, |row| row.get::<_, String>("detail")).unwrap();
        assert_eq!(steps[0], "MERGE (UNION ALL)");
        let in_order = "SEARCH d USING PRIMARY KEY (agent=? AND session=? AND settled=?)";
        assert_eq!(steps.iter().filter(|step| *step == in_order).count(), 2, "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
    }

    #[test]
    fn a_page_of_a_thread_reads_only_its_messages() {
        let sql = super::super::connection::open_in_memory();
        sql.execute_batch(&crate::sqlite::migrations::MIGRATIONS.concat()).unwrap();
        let first = Message {
            id: MessageId::stored("first"),
            seq: Seq(1),
            at: Time(1),
            destination: Destination::Room(RoomId::stored("lobby")),
            sender: Sender::Source("test".into()),
            sender_name: "test".into(),
            kind: MessageKind::Text,
            text: "hello".into(),
            mentions: Vec::new(),
            reply_to: None,
            thread: None,
            reactions: Vec::new(),
            forwarded: None,
            attachments: Vec::new(),
            client_message_id: None,
            command: None,
            payload: None,
            source: "test".into(),
            external_id: None,
            edited_at: None,
            run_output: None,
            relayed: None,
        };
        let reply = Message { thread: Some(first.id.clone()), ..first.clone() };
        for (to, index) in
            [(first, "messages_in_thread (thread=?"), (reply, "messages_answering (reply_to=?")]
        {
            let query = format!("EXPLAIN QUERY PLAN {}", answers_query(&to));
            let values: [&dyn ToSql; 3] = [&"first", &0, &1];
            let steps = all(&sql, &query, &values, |row| row.get::<_, String>("detail")).unwrap();
            assert!(steps[0].starts_with(&format!("SEARCH messages USING INDEX {index}")), "{steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
        }
    }
}
