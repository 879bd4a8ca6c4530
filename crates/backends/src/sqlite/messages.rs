//! Messages, their revisions and idempotency keys: reads, changes, and conversion between rows and model types.

use super::insert::RowBinder;
use super::rows::{
    self, SqlFaultExt, all, maybe_text, maybe_time, number, one, run, seq, seq_value, shared, text, time,
};
use super::{MESSAGE_OVERHEAD_BYTES, Sql, SqlTables, WriteTransaction, mail, origins, rooms, runs, search};
use parlor_engine::Fault;
use parlor_engine::changes::MessageChange;
use parlor_engine::ports::{CandidateVisitor, FirstRequest, IdempotencyKey, MessageRange, ReadMessages};
use parlor_engine::search::SearchScope;
use parlor_model::query::{Page, Recent};
use parlor_model::{
    AgentId, Attachment, Chunk, ChunkKind, ConversationId, Destination, File, Forwarded, Lineage, MediaType,
    Member, Mention, Message, MessageId, MessageKind, Path, Payload, Reaction, Reactor, Relayed, Revision,
    RoomId, RunId, RunOutput, RunState, Sender, Seq, Time, UploadId, UserId,
};
use rusqlite::{Connection, Row, Statement, ToSql};
use std::borrow::Cow;
use std::sync::Arc;

impl<C: Sql> ReadMessages for SqlTables<C> {
    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault> {
        let query = format!("SELECT {} FROM messages WHERE id = ?1 AND erased = 0", MESSAGE);
        one(self.sql()?, &query, &[&id.as_str()], message)
    }

    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault> {
        let found = one(self.sql()?, "SELECT 1 FROM messages WHERE id = ?1", &[&id.as_str()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let query = format!(
            "SELECT {} FROM messages WHERE room = ?1 AND seq >= ?2 AND erased = 0 ORDER BY seq LIMIT ?3",
            MESSAGE
        );
        all(self.sql()?, &query, &[&room.as_str(), &seq_value(from), &number(limit)], message)
    }

    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault> {
        let query = "SELECT seq FROM messages WHERE room = ?1 AND erased = 0 ORDER BY seq DESC LIMIT 1";
        one(self.sql()?, query, &[&room.as_str()], |row| rows::seq(row, 0))
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
            Page::AfterTime(time) => (self.last_until("room", room.as_str(), time)?, i64::MAX, "ASC"),
        };
        let after: i64 = seq_value(beyond).max(after);
        let query = format!(
            "SELECT {} FROM messages WHERE room = ?1 AND seq > ?2 AND seq < ?3 AND erased = 0 ORDER BY seq {order} LIMIT ?4",
            MESSAGE
        );
        all(self.sql()?, &query, &[&room.as_str(), &after, &before, &number(limit)], message)
    }

    fn messages_in_range(
        &mut self,
        range: &MessageRange<'_>,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let MessageRange { destination, after, before, start, end, forwards } = *range;
        let (column, value) = match destination {
            Destination::Room(room) => ("room", room.as_str()),
            Destination::Path(path) => ("path", path.as_str()),
        };
        let mut after = seq_value(after);
        if let Some(start) = start {
            after = after.max(self.last_until(column, value, Time(start.0.saturating_sub(1)))?);
        }
        let (before, end) = (before.map_or(i64::MAX, seq_value), end.map_or(i64::MAX, |end| end.0));
        let query = range_query(column, forwards);
        all(self.sql()?, &query, &[&value, &after, &before, &end, &number(limit)], message)
    }

    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault> {
        let query = format!(
            "SELECT {} FROM messages WHERE room = ?1 AND seq > ?2 AND erased = 0 ORDER BY seq DESC LIMIT 1",
            MESSAGE
        );
        let cleared = member.room_preferences.cleared_through;
        let Some(message) = one(self.sql()?, &query, &[&room.as_str(), &seq_value(cleared)], message)? else {
            return Ok(None);
        };
        let query = "SELECT count(*), coalesce(sum(mentions IS NOT NULL AND EXISTS \
                     (SELECT 1 FROM json_each(mentions) WHERE value ->> 0 = ?3 AND value ->> 1 = ?4)), 0) \
                     FROM messages WHERE room = ?1 AND seq > ?2 AND erased = 0 \
                     AND NOT (sender_kind = ?3 AND sender = ?4)";
        let values: [&dyn ToSql; 4] = [
            &room.as_str(),
            &seq_value(member.read_through.max(cleared)),
            &rooms::member_kind(&member.member),
            &member.member.as_str(),
        ];
        let counts = one(self.sql()?, query, &values, |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
        })?;
        let (unread, mentions) = counts.unwrap_or_default();
        Ok(Some(Recent { message, unread, mentions }))
    }

    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let query = answers_query(to);
        all(self.sql()?, &query, &[&to.id.as_str(), &seq_value(after), &number(limit)], message)
    }

    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault> {
        let query = format!("SELECT count(*) FROM messages WHERE {} = ?1 AND seq > ?2", answering(to));
        Ok(self.count(&query, &[&to.id.as_str(), &seq_value(after)])? as u64)
    }

    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault> {
        let query =
            "SELECT message, text, edited_at FROM revisions WHERE message = ?1 ORDER BY place DESC LIMIT ?2";
        all(self.sql()?, query, &[&message.as_str(), &number(limit)], |row| {
            Ok(Revision {
                message: MessageId::stored(row.get::<_, String>(0)?),
                text: row.get::<_, String>(1)?.into(),
                edited_at: Time(row.get(2)?),
            })
        })
    }

    fn candidates(
        &mut self,
        search_scope: &SearchScope<'_>,
        look: CandidateVisitor<'_>,
    ) -> Result<(), Fault> {
        search::visit_candidates(self.sql()?, search_scope, look)
    }

    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault> {
        let query = "SELECT digest, message, seq FROM once WHERE kind = ?1 AND owner = ?2 AND key = ?3";
        one(
            self.0.sql_without_buffered_rows(),
            query,
            &[&(key.kind as i64), &&*key.owner, &&*key.key],
            |row| {
                Ok(FirstRequest {
                    digest: row.get(0)?,
                    message: MessageId::stored(row.get::<_, String>(1)?),
                    seq: rows::seq(row, 2)?,
                })
            },
        )
    }
}

pub fn apply(transaction: &mut WriteTransaction<'_>, change: &MessageChange) -> Result<(), Fault> {
    match change {
        MessageChange::PutMessage(message) => {
            transaction.has_room_messages |= message.destination.room().is_some();
            *transaction.bytes_since_checkpoint += MESSAGE_OVERHEAD_BYTES + message.length();
            put_run_output(transaction.connection, message)?;
            transaction.pending.messages.push(message.clone());
        }
        MessageChange::RememberIdempotencyKey { key, first, at } => {
            insert_key(&mut transaction.insert_key, key, first, *at)?;
        }
        MessageChange::Revise { message, previous } => {
            let sql = transaction.changed_tables()?;
            run(
                sql,
                "UPDATE messages SET text = ?2, mentions = ?3, edited_at = ?4 WHERE id = ?1",
                &[
                    &message.id.as_str(),
                    &&*message.text,
                    &mentions(&message.mentions),
                    &message.edited_at.map(|time| time.0),
                ],
            )?;
            run(
                sql,
                "INSERT INTO revisions VALUES \
                 (?1, (SELECT coalesce(max(place), 0) + 1 FROM revisions WHERE message = ?1), ?2, ?3)",
                &[&previous.message.as_str(), &previous.edited_at.0, &&*previous.text],
            )?;
        }
        MessageChange::DeleteMessage(message) => {
            let sql = transaction.changed_tables()?;
            let id = message.as_str();
            // The emptied row stays, so that the message's `Seq` and id are not reused.
            run(
                sql,
                "UPDATE messages SET erased = 1, text = '', mentions = NULL, payload = NULL, command = NULL, \
                 external_id = NULL, reply_to = NULL, thread = NULL, forwarded = NULL, edited_at = NULL, \
                 attachments = NULL, relayed = NULL, origin = NULL, answer = NULL WHERE id = ?1",
                &[&id],
            )?;
            for table in DEPENDENT_TABLES {
                run(sql, &format!("DELETE FROM {table} WHERE message = ?1"), &[&id])?;
            }
            run(sql, &format!("DELETE FROM deliveries WHERE seq = {}", mail::SEQ_OF), &[&id])?;
        }
    }
    Ok(())
}

impl<C: Sql> SqlTables<C> {
    /// Returns the `Seq` of the newest message of a room or path (`column`) not after `time`. Scans backwards from the newest message, so
    /// the cost is proportional to the number of newer messages.
    fn last_until(&mut self, column: &str, destination: &str, time: Time) -> Result<i64, Fault> {
        let query = format!(
            "SELECT seq FROM messages WHERE {column} = ?1 AND at <= ?2 AND erased = 0 ORDER BY seq DESC LIMIT 1"
        );
        Ok(one(self.sql()?, &query, &[&destination, &time.0], |row| row.get(0))?.unwrap_or_default())
    }
}

/// The messages of a room or path (`column`) between two positions and until a time.
fn range_query(column: &str, forwards: bool) -> String {
    let order = if forwards { "ASC" } else { "DESC" };
    format!(
        "SELECT {MESSAGE} FROM messages WHERE {column} = ?1 AND seq > ?2 AND seq < ?3 AND at <= ?4 \
         AND erased = 0 ORDER BY seq {order} LIMIT ?5"
    )
}

fn answers_query(to: &Message) -> String {
    let (columns, answering) = (MESSAGE, answering(to));
    format!("SELECT {columns} FROM messages WHERE {answering} = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3")
}

/// Column that refers to `to`: `thread` for the start of a thread, otherwise `reply_to`. Both are null in
/// deleted messages, which are therefore not found.
fn answering(to: &Message) -> &'static str {
    if to.thread.is_none() { "thread" } else { "reply_to" }
}

/// Tables whose rows refer to a message by the column `message` and are deleted with it. Deliveries are
/// deleted too, but refer to the message by `seq`.
pub const DEPENDENT_TABLES: [&str; 6] = ["revisions", "reactions", "pins", "bookmarks", "uploads", "turns"];

pub const INSERT: (&str, &str) = (
    "INSERT INTO messages (seq, id, at, room, path, sender_kind, sender, sender_name, kind, text, mentions, reply_to, \
     client_message_id, command, payload, source, external_id, edited_at, thread, forwarded, attachments, \
     relayed, origin, answer)",
    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
);

pub fn bind(message: &Message, row: &mut RowBinder) -> rusqlite::Result<()> {
    let path = match &message.destination {
        parlor_model::Destination::Room(_) => None,
        parlor_model::Destination::Path(path) => Some(path.as_str()),
    };
    row.value(message.seq.0 as i64)?;
    row.value(message.id.as_str())?;
    row.value(message.at.0)?;
    row.value(message.destination.room().map(RoomId::as_str))?;
    row.value(path)?;
    row.value(sender_kind(&message.sender))?;
    row.value(message.sender.id())?;
    row.value(&*message.sender_name)?;
    row.value(message_kind(message.kind))?;
    row.value(&*message.text)?;
    row.value(mentions(&message.mentions))?;
    row.value(message.reply_to.as_ref().map(|id| id.as_str()))?;
    row.value(message.client_message_id.as_deref())?;
    row.value(message.command.as_deref())?;
    row.value(message.payload.as_ref().map(|payload| &*payload.0))?;
    row.value(&*message.source)?;
    row.value(message.external_id.as_deref())?;
    row.value(message.edited_at.map(|time| time.0))?;
    row.value(message.thread.as_ref().map(|id| id.as_str()))?;
    row.value(message.forwarded.as_deref().map(forwarded))?;
    row.value(attachments(&message.attachments))?;
    row.value(message.relayed.as_deref().map(relayed))?;
    row.value(message.origin.as_deref().map(origins::origin))?;
    row.value(message.answer.as_deref().map(origins::answer))
}

pub fn put_run_output(sql: &Connection, message: &Message) -> Result<(), Fault> {
    let Some(output) = &message.run_output else { return Ok(()) };
    let query = "INSERT INTO turns VALUES (?1, ?2, ?3, ?4)";
    let outcome = runs::run_outcome(&output.outcome);
    let chunks = chunks(&output.chunks);
    run(sql, query, &[&message.id.as_str(), &output.run.as_str(), &outcome, &chunks]).map(drop)
}

pub const INSERT_KEY: &str = "INSERT INTO once VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub fn insert_key(
    statement: &mut Statement<'_>,
    key: &IdempotencyKey,
    first: &FirstRequest,
    at: Time,
) -> Result<(), Fault> {
    let values: [&dyn ToSql; 7] = [
        &(key.kind as i64),
        &&*key.owner,
        &&*key.key,
        &first.digest,
        &first.message.as_str(),
        &(first.seq.0 as i64),
        &at.0,
    ];
    statement.execute(&values[..]).stored("writing an idempotency key").map(drop)
}

pub const MESSAGE: &str = "seq, id, at, room, path, sender_kind, sender, sender_name, kind, text, mentions, reply_to, \
     client_message_id, command, payload, source, external_id, edited_at, thread, forwarded, \
     (SELECT list FROM reactions WHERE message = messages.id), attachments, \
     CASE kind WHEN 1 THEN (SELECT json_array(run, outcome, chunks) FROM turns WHERE message = messages.id) END, relayed, \
     origin, answer";

pub fn message(row: &Row<'_>) -> rusqlite::Result<Arc<Message>> {
    let destination = match row.get_ref(3)?.as_str_or_null()? {
        Some(room) => Destination::Room(RoomId::stored(room)),
        None => Destination::Path(Path::stored(shared(row, 4)?)),
    };
    Ok(Arc::new(Message {
        seq: seq(row, 0)?,
        id: MessageId::stored(shared(row, 1)?),
        at: time(row, 2)?,
        destination,
        sender: read_sender(row.get(5)?, shared(row, 6)?),
        sender_name: text(row, 7)?,
        kind: if row.get::<_, i64>(8)? == 1 { MessageKind::AgentResponse } else { MessageKind::Text },
        text: shared(row, 9)?,
        mentions: row.get_ref(10)?.as_str_or_null()?.map(read_mentions).unwrap_or_default(),
        reply_to: row.get_ref(11)?.as_str_or_null()?.map(MessageId::stored),
        client_message_id: maybe_text(row, 12)?,
        command: maybe_text(row, 13)?,
        payload: row.get_ref(14)?.as_str_or_null()?.map(|json| Payload(json.into())),
        source: text(row, 15)?,
        external_id: maybe_text(row, 16)?,
        edited_at: maybe_time(row, 17)?,
        thread: row.get_ref(18)?.as_str_or_null()?.map(MessageId::stored),
        forwarded: row.get_ref(19)?.as_str_or_null()?.and_then(read_forwarded),
        reactions: row.get_ref(20)?.as_str_or_null()?.map(read_reactions).unwrap_or_default(),
        attachments: row.get_ref(21)?.as_str_or_null()?.map(read_attachments).unwrap_or_default(),
        run_output: row.get_ref(22)?.as_str_or_null()?.and_then(read_run_output),
        relayed: row.get_ref(23)?.as_str_or_null()?.and_then(read_relayed),
        origin: row.get_ref(24)?.as_str_or_null()?.and_then(origins::read_origin),
        answer: row.get_ref(25)?.as_str_or_null()?.and_then(origins::read_answer),
    }))
}

pub fn chunks(chunks: &[Chunk]) -> String {
    let list: Vec<(&str, &str, Option<&str>)> = chunks
        .iter()
        .map(|chunk| (chunk.kind.as_str(), &*chunk.content, chunk.metadata.as_ref().map(|json| &*json.0)))
        .collect();
    serde_json::to_string(&list).expect("strings always serialise to JSON")
}

fn read_run_output(json: &str) -> Option<Arc<RunOutput>> {
    let (run, outcome, chunks): (String, i64, String) = serde_json::from_str(json).ok()?;
    let list: Vec<(String, String, Option<String>)> = serde_json::from_str(&chunks).ok()?;
    let read = |(kind, content, metadata): (String, String, Option<String>)| {
        let metadata = metadata.map(|json| Payload(json.into()));
        Some(Chunk { kind: ChunkKind::parse(&kind)?, content: content.into(), metadata })
    };
    let RunState::Ended(outcome) = runs::read_state(outcome, None) else { return None };
    let chunks = list.into_iter().filter_map(read).collect();
    Some(Arc::new(RunOutput { run: RunId::stored(run), outcome, chunks }))
}

fn read_reactions(json: &str) -> Vec<Reaction> {
    type Person = (String, Box<str>);
    let list: Vec<(Box<str>, Vec<Person>)> = serde_json::from_str(json).unwrap_or_default();
    let person = |(user, username): Person| Reactor { user: UserId::stored(user), username };
    list.into_iter()
        .map(|(emoji, people)| Reaction { emoji, people: people.into_iter().map(person).collect() })
        .collect()
}

pub fn forwarded(from: &Forwarded) -> String {
    let Forwarded { message, sender, sender_name, at } = from;
    let parts = (message.as_str(), sender_kind(sender), sender.id(), &**sender_name, at.0);
    serde_json::to_string(&parts).expect("strings and numbers always serialise to JSON")
}

fn read_forwarded(json: &str) -> Option<Box<Forwarded>> {
    let (message, kind, sender, sender_name, at): (String, i64, String, Box<str>, i64) =
        serde_json::from_str(json).ok()?;
    let sender = read_sender(kind, sender.into());
    Some(Box::new(Forwarded { message: MessageId::stored(message), sender, sender_name, at: Time(at) }))
}

/// Conversation, depth and chain of a lineage.
type LineageParts<'a> = (Cow<'a, str>, u32, Vec<Cow<'a, str>>);

pub fn relayed(relayed: &Relayed) -> String {
    let Relayed { author, verified, recipient, observers, lineage } = relayed;
    let lineage: Option<LineageParts<'_>> = lineage.as_ref().map(|lineage| {
        let chain = lineage.chain.iter().map(|agent| agent.as_str().into()).collect();
        (lineage.conversation.as_str().into(), lineage.depth, chain)
    });
    let parts = (author, verified, recipient, observers, lineage);
    serde_json::to_string(&parts).expect("strings and numbers always serialise to JSON")
}

fn read_relayed(json: &str) -> Option<Box<Relayed>> {
    type Parts<'a> = (Box<str>, bool, Option<Box<str>>, Vec<Box<str>>, Option<LineageParts<'a>>);
    let (author, verified, recipient, observers, lineage): Parts<'_> = serde_json::from_str(json).ok()?;
    let lineage = lineage.map(|(conversation, depth, chain)| Lineage {
        conversation: ConversationId::stored(&*conversation),
        depth,
        chain: chain.into_iter().map(|agent| AgentId::stored(&*agent)).collect(),
    });
    Some(Box::new(Relayed { author, verified, recipient, observers, lineage }))
}

fn read_sender(kind: i64, id: Arc<str>) -> Sender {
    match kind {
        0 => Sender::User(UserId::stored(id)),
        1 => Sender::Agent(AgentId::stored(id)),
        _ => Sender::Source((&*id).into()),
    }
}

pub fn sender_kind(sender: &Sender) -> i64 {
    match sender {
        Sender::User(_) => 0,
        Sender::Agent(_) => 1,
        Sender::Source(_) => 2,
    }
}

pub fn message_kind(kind: MessageKind) -> i64 {
    match kind {
        MessageKind::Text => 0,
        MessageKind::AgentResponse => 1,
    }
}

pub fn mentions(mentions: &[Mention]) -> Option<String> {
    if mentions.is_empty() {
        return None;
    }
    let list: Vec<(i64, &str, &str)> =
        mentions.iter().map(|m| (rooms::member_kind(&m.member), m.member.as_str(), &*m.name)).collect();
    Some(serde_json::to_string(&list).expect("strings and numbers always serialise to JSON"))
}

fn read_mentions(json: &str) -> Vec<Mention> {
    let list: Vec<(i64, String, String)> = serde_json::from_str(json).unwrap_or_default();
    list.into_iter()
        .map(|(kind, id, name)| Mention { member: rooms::member_id(kind, id.into()), name: name.into() })
        .collect()
}

pub fn attachments(attachments: &[Attachment]) -> Option<String> {
    if attachments.is_empty() {
        return None;
    }
    let encode = |Attachment { id, file }: &'_ Attachment| {
        (id.as_str().to_owned(), file.name.clone(), file.media.as_str(), file.size)
    };
    let list: Vec<_> = attachments.iter().map(encode).collect();
    Some(serde_json::to_string(&list).expect("strings and numbers always serialise to JSON"))
}

fn read_attachments(json: &str) -> Vec<Attachment> {
    let list: Vec<(String, Box<str>, String, u64)> = serde_json::from_str(json).unwrap_or_default();
    let read = |(id, name, media, size): (String, _, String, _)| {
        Some(Attachment {
            id: UploadId::stored(id),
            file: File { name, media: MediaType::parse(&media)?, size },
        })
    };
    list.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::rows::all;
    use parlor_model::{Destination, MessageKind, Sender};
    use rusqlite::ToSql;

    #[test]
    fn a_page_of_a_thread_reads_only_its_messages() {
        let sql = crate::sqlite::connection::open_in_memory();
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
            origin: None,
            answer: None,
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

    #[test]
    fn ranges_are_read_through_the_index_of_their_room_or_path() {
        let mut sql = crate::sqlite::connection::open_in_memory();
        crate::sqlite::migrations::migrate(&mut sql).unwrap();
        for (column, index) in [("room", "messages_in_room (room=?"), ("path", "messages_on_path (path=?")] {
            for forwards in [true, false] {
                let query = format!("EXPLAIN QUERY PLAN {}", range_query(column, forwards));
                let values: [&dyn ToSql; 5] = [&"x", &0, &9, &9, &1];
                let steps = all(&sql, &query, &values, |row| row.get::<_, String>("detail")).unwrap();
                assert!(steps[0].starts_with(&format!("SEARCH messages USING INDEX {index}")), "{steps:?}");
                assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
            }
        }
    }
}
