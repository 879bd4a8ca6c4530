//! Query helpers, and conversion between rows and model types.
//!
//! Owns the numbers that stand for roles, kinds and states on disk.

use parlor_engine::Fault;
use parlor_model::{
    AddressedBy, AgentId, AnswerPolicy, ApiKey, Attachment, BlobDigest, Bookmark, Chunk, ChunkKind,
    ConversationId, Delivery, DeliveryState, Destination, File, Forwarded, Frozen, Invitation, InvitationId,
    KeyId, Lineage, Mailbox, MediaType, Member, MemberId, Mention, Message, MessageId, MessageKind,
    Notifications, Path, Pattern, Payload, Pin, Reaction, Reactor, Relayed, Room, RoomId, RoomKind,
    RoomPreferences, RoomRole, RouterId, Run, RunId, RunOutcome, RunOutput, RunState, Scope, Sender, Seq,
    Session, SessionId, SessionRef, SignIn, SignInId, SiteRole, Subscription, TaskId, Time, Upload, UploadId,
    UploadPurpose, Usage, User, UserId,
};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;

/// Converts a database error into a `Fault`; `context` names the failed operation.
pub trait SqlFaultExt<T> {
    fn stored(self, context: &'static str) -> Result<T, Fault>;
}

impl<T> SqlFaultExt<T> for Result<T, rusqlite::Error> {
    fn stored(self, context: &'static str) -> Result<T, Fault> {
        self.map_err(|error| Fault::new(context, super::severity(&error), error))
    }
}

type Read<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

pub fn one<T>(
    sql: &Connection,
    query: &str,
    values: &[&dyn ToSql],
    read: Read<T>,
) -> Result<Option<T>, Fault> {
    let query_row = || {
        let mut statement = sql.prepare_cached(query)?;
        let mut rows = statement.query(values)?;
        rows.next()?.map(read).transpose()
    };
    query_row().stored("reading")
}

pub fn all<T>(sql: &Connection, query: &str, values: &[&dyn ToSql], read: Read<T>) -> Result<Vec<T>, Fault> {
    let found = || sql.prepare_cached(query)?.query_map(values, read)?.collect();
    let found: rusqlite::Result<Vec<T>> = found();
    found.stored("reading")
}

pub fn run(sql: &Connection, query: &str, values: &[&dyn ToSql]) -> Result<usize, Fault> {
    let execute = || sql.prepare_cached(query)?.execute(values);
    execute().stored("writing")
}

/// Converts a limit or an offset to an SQLite integer, saturating.
pub fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a `Seq` to an SQLite integer. Saturates: no log reaches `i64::MAX`.
pub fn seq_value(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Box<str>> {
    Ok(row.get_ref(index)?.as_str()?.into())
}

pub fn maybe_text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Box<str>>> {
    Ok(row.get_ref(index)?.as_str_or_null()?.map(Into::into))
}

/// Encodes a value of the model for a column.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("types of the model always serialise to JSON")
}

pub fn from_json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let decoded = serde_json::from_str(row.get_ref(index)?.as_str()?);
    decoded.map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error)))
}

pub fn shared(row: &Row<'_>, index: usize) -> rusqlite::Result<Arc<str>> {
    Ok(row.get_ref(index)?.as_str()?.into())
}

pub fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Time> {
    row.get(index).map(Time)
}

pub fn maybe_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Time))
}

pub fn seq(row: &Row<'_>, index: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(index)? as u64))
}

pub const USER: &str = "id, username, display_name, role, password_hash, failed_sign_ins, locked_until, max_connections, created_at, updated_at, hears, avatar_url, second_factor";

pub fn user(row: &Row<'_>) -> rusqlite::Result<User> {
    Ok(User {
        id: UserId::stored(shared(row, 0)?),
        username: text(row, 1)?,
        display_name: text(row, 2)?,
        role: site_role_of(row.get(3)?),
        password_hash: text(row, 4)?,
        failed_sign_ins: row.get(5)?,
        locked_until: maybe_time(row, 6)?,
        max_connections: row.get(7)?,
        created_at: time(row, 8)?,
        updated_at: time(row, 9)?,
        source_patterns: row.get_ref(10)?.as_str()?.lines().map(Pattern::stored).collect(),
        avatar_url: maybe_text(row, 11)?,
        second_factor: row.get(12)?,
    })
}

pub fn patterns(patterns: &[Pattern]) -> String {
    patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join("\n")
}

fn site_role_of(number: i64) -> SiteRole {
    if number == 1 { SiteRole::Admin } else { SiteRole::User }
}

pub fn site_role(role: SiteRole) -> i64 {
    match role {
        SiteRole::User => 0,
        SiteRole::Admin => 1,
    }
}

pub const SIGN_IN: &str = "id, user, device, address, created_at, used_at, expires_at, generation";

pub fn sign_in(row: &Row<'_>) -> rusqlite::Result<SignIn> {
    Ok(SignIn {
        id: SignInId::stored(shared(row, 0)?),
        user: UserId::stored(shared(row, 1)?),
        device: text(row, 2)?,
        address: text(row, 3)?,
        created_at: time(row, 4)?,
        used_at: time(row, 5)?,
        expires_at: time(row, 6)?,
        generation: row.get(7)?,
    })
}

pub const KEY: &str = "id, owner, name, scopes, created_at";

pub fn key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId::stored(shared(row, 0)?),
        owner: UserId::stored(shared(row, 1)?),
        name: text(row, 2)?,
        scopes: row.get_ref(3)?.as_str()?.split(' ').filter_map(Scope::parse).collect(),
        created_at: time(row, 4)?,
    })
}

/// Keys of the `HubSettings` fields on disk, in the order of the fields.
pub const SETTINGS: [&str; 4] = ["name", "invitations", "lockout_failures", "lockout_seconds"];

pub const INVITATION: &str = "id, role, note, uses, uses_left, created_by, created_at, expires_at";

pub fn invitation(row: &Row<'_>) -> rusqlite::Result<Invitation> {
    Ok(Invitation {
        id: InvitationId::stored(shared(row, 0)?),
        role: site_role_of(row.get(1)?),
        note: maybe_text(row, 2)?,
        uses: row.get(3)?,
        uses_left: row.get(4)?,
        created_by: maybe_text(row, 5)?.map(UserId::stored),
        created_at: time(row, 6)?,
        expires_at: time(row, 7)?,
    })
}

pub fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}

pub const ROOM: &str = "id, name, kind, policy, system_prompt, agent_command_role, created_by, created_at, updated_at, approve_role, \
     frozen_at, frozen_by, router, project_root";

pub fn room(row: &Row<'_>) -> rusqlite::Result<Room> {
    Ok(Room {
        id: RoomId::stored(shared(row, 0)?),
        name: text(row, 1)?,
        kind: if row.get::<_, i64>(2)? == 1 { RoomKind::Private } else { RoomKind::Group },
        policy: match row.get::<_, i64>(3)? {
            2 => AnswerPolicy::All,
            1 => AnswerPolicy::Triage,
            _ => AnswerPolicy::Mention,
        },
        system_prompt: maybe_text(row, 4)?,
        agent_command_role: read_role(row.get(5)?),
        created_by: UserId::stored(shared(row, 6)?),
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        approve_role: read_role(row.get(9)?),
        frozen: match maybe_time(row, 10)? {
            Some(at) => Some(Frozen { by: maybe_text(row, 11)?.map(UserId::stored), at }),
            None => None,
        },
        router: maybe_text(row, 12)?.map(RouterId::stored),
        project_root: maybe_text(row, 13)?,
    })
}

pub fn policy(policy: AnswerPolicy) -> i64 {
    match policy {
        AnswerPolicy::Mention => 0,
        AnswerPolicy::Triage => 1,
        AnswerPolicy::All => 2,
    }
}

pub fn room_kind(kind: RoomKind) -> i64 {
    match kind {
        RoomKind::Group => 0,
        RoomKind::Private => 1,
    }
}

pub fn room_role(role: RoomRole) -> i64 {
    match role {
        RoomRole::Member => 0,
        RoomRole::Admin => 1,
        RoomRole::Owner => 2,
    }
}

fn read_role(role: i64) -> RoomRole {
    match role {
        2 => RoomRole::Owner,
        1 => RoomRole::Admin,
        _ => RoomRole::Member,
    }
}

/// Selects members with the current name of the user or agent. Queries append their `WHERE` clause.
pub const MEMBERS: &str = "SELECT m.room, m.kind, m.member, m.role, \
     CASE m.kind WHEN 0 THEN (SELECT display_name FROM users WHERE id = m.member) \
     ELSE (SELECT name FROM agents WHERE id = m.member) END, \
     CASE m.kind WHEN 0 THEN (SELECT username FROM users WHERE id = m.member) \
     ELSE (SELECT id FROM agents WHERE id = m.member) END, \
     m.joined_at, m.read_through, m.read_at, m.role_description, m.pinned_at, m.archived_at, m.cleared_at, \
     m.cleared_through, m.notifications FROM members m ";

pub fn member(row: &Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member {
        room: RoomId::stored(shared(row, 0)?),
        member: member_id(row.get(1)?, shared(row, 2)?),
        role: read_role(row.get(3)?),
        role_description: maybe_text(row, 9)?,
        name: maybe_text(row, 4)?.unwrap_or_default(),
        handle: maybe_text(row, 5)?.unwrap_or_default(),
        joined_at: time(row, 6)?,
        read_through: seq(row, 7)?,
        read_at: maybe_time(row, 8)?,
        room_preferences: RoomPreferences {
            pinned_at: maybe_time(row, 10)?,
            archived_at: maybe_time(row, 11)?,
            cleared_at: maybe_time(row, 12)?,
            cleared_through: seq(row, 13)?,
            notifications: match row.get::<_, i64>(14)? {
                2 => Notifications::None,
                1 => Notifications::Mentions,
                _ => Notifications::All,
            },
        },
    })
}

pub fn notifications(notifications: Notifications) -> i64 {
    match notifications {
        Notifications::All => 0,
        Notifications::Mentions => 1,
        Notifications::None => 2,
    }
}

pub fn member_kind(member: &MemberId) -> i64 {
    match member {
        MemberId::User(_) => 0,
        MemberId::Agent(_) => 1,
    }
}

pub fn member_id(kind: i64, id: Arc<str>) -> MemberId {
    if kind == 0 { MemberId::User(UserId::stored(id)) } else { MemberId::Agent(AgentId::stored(id)) }
}

pub const MESSAGE: &str = "seq, id, at, room, path, sender_kind, sender, sender_name, kind, text, mentions, reply_to, \
     client_message_id, command, payload, source, external_id, edited_at, thread, forwarded, \
     (SELECT list FROM reactions WHERE message = messages.id), attachments, \
     CASE kind WHEN 1 THEN (SELECT json_array(run, outcome, chunks) FROM turns WHERE message = messages.id) END, relayed";

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
    let RunState::Ended(outcome) = read_state(outcome, None) else { return None };
    let chunks = list.into_iter().filter_map(read).collect();
    Some(Arc::new(RunOutput { run: RunId::stored(run), outcome, chunks }))
}

pub const RUN: &str = "id, agent, room, message, task, asked_by, addressed, conversation, depth, chain, parent, state, \
     reason, reply, input_tokens, output_tokens, cost, queued_at, started_at, ended_at, arrival";

pub fn run_row(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: RunId::stored(shared(row, 0)?),
        agent: AgentId::stored(shared(row, 1)?),
        room: RoomId::stored(shared(row, 2)?),
        trigger: row.get_ref(3)?.as_str_or_null()?.map(MessageId::stored),
        task: row.get_ref(4)?.as_str_or_null()?.map(TaskId::stored),
        asked_by: row.get_ref(5)?.as_str_or_null()?.map(AgentId::stored),
        addressed: match row.get::<_, i64>(6)? {
            0 => AddressedBy::Directly,
            1 => AddressedBy::ByPolicy,
            _ => AddressedBy::Unasked,
        },
        lineage: Lineage {
            conversation: ConversationId::stored(shared(row, 7)?),
            depth: row.get(8)?,
            // Agent ids never contain a space.
            chain: row.get_ref(9)?.as_str()?.split(' ').map(AgentId::stored).collect(),
        },
        parent: row.get_ref(10)?.as_str_or_null()?.map(RunId::stored),
        state: read_state(row.get(11)?, maybe_text(row, 12)?),
        reply: row.get_ref(13)?.as_str_or_null()?.map(MessageId::stored),
        usage: Usage {
            input_tokens: row.get::<_, i64>(14)? as u64,
            output_tokens: row.get::<_, i64>(15)? as u64,
            cost: row.get::<_, Option<i64>>(16)?.map(|cost| cost as u64),
        },
        queued_at: time(row, 17)?,
        started_at: maybe_time(row, 18)?,
        ended_at: maybe_time(row, 19)?,
        arrival: row.get_ref(20)?.as_str_or_null()?.map(UserId::stored),
    })
}

pub fn addressed(addressed: AddressedBy) -> i64 {
    match addressed {
        AddressedBy::Directly => 0,
        AddressedBy::ByPolicy => 1,
        AddressedBy::Unasked => 2,
    }
}

pub fn run_state(state: &RunState) -> (i64, Option<&str>) {
    match state {
        RunState::Queued => (0, None),
        RunState::Running => (1, None),
        RunState::Ended(outcome) => (run_outcome(outcome), outcome.reason()),
    }
}

pub fn run_outcome(outcome: &RunOutcome) -> i64 {
    match outcome {
        RunOutcome::Complete => 2,
        RunOutcome::Failed(_) => 3,
        RunOutcome::Cancelled => 4,
        RunOutcome::Interrupted => 5,
        RunOutcome::Refused(_) => 6,
    }
}

fn read_state(number: i64, reason: Option<Box<str>>) -> RunState {
    match number {
        0 => RunState::Queued,
        1 => RunState::Running,
        2 => RunState::Ended(RunOutcome::Complete),
        3 => RunState::Ended(RunOutcome::Failed(reason.unwrap_or_default())),
        4 => RunState::Ended(RunOutcome::Cancelled),
        5 => RunState::Ended(RunOutcome::Interrupted),
        _ => RunState::Ended(RunOutcome::Refused(reason.unwrap_or_default())),
    }
}

pub fn reactions(reactions: &[Reaction]) -> String {
    let people = |reaction: &'_ Reaction| -> Vec<(String, Box<str>)> {
        reaction.people.iter().map(|person| (person.user.to_string(), person.username.clone())).collect()
    };
    let list: Vec<(&str, _)> =
        reactions.iter().map(|reaction| (&*reaction.emoji, people(reaction))).collect();
    serde_json::to_string(&list).expect("strings always serialise to JSON")
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

pub const PIN: &str = "room, seq, message, user, at";

pub fn pin(row: &Row<'_>) -> rusqlite::Result<Pin> {
    Ok(Pin {
        room: RoomId::stored(shared(row, 0)?),
        seq: seq(row, 1)?,
        message: MessageId::stored(shared(row, 2)?),
        by: UserId::stored(shared(row, 3)?),
        at: time(row, 4)?,
    })
}

pub fn bookmark(row: &Row<'_>) -> rusqlite::Result<Bookmark> {
    Ok(Bookmark {
        user: UserId::stored(shared(row, 0)?),
        seq: seq(row, 1)?,
        message: MessageId::stored(shared(row, 2)?),
        at: time(row, 3)?,
    })
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
        mentions.iter().map(|m| (member_kind(&m.member), m.member.as_str(), &*m.name)).collect();
    Some(serde_json::to_string(&list).expect("strings and numbers always serialise to JSON"))
}

fn read_mentions(json: &str) -> Vec<Mention> {
    let list: Vec<(i64, String, String)> = serde_json::from_str(json).unwrap_or_default();
    list.into_iter()
        .map(|(kind, id, name)| Mention { member: member_id(kind, id.into()), name: name.into() })
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

pub const UPLOAD: &str = "id, owner, name, media, size, digest, created_at, avatar, message";

pub fn upload(row: &Row<'_>) -> rusqlite::Result<Upload> {
    let media = MediaType::parse(row.get_ref(3)?.as_str()?).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(Upload {
        id: UploadId::stored(shared(row, 0)?),
        owner: UserId::stored(shared(row, 1)?),
        file: File { name: text(row, 2)?, media, size: row.get::<_, i64>(4)? as u64 },
        digest: digest(row, 5)?,
        created_at: time(row, 6)?,
        purpose: match row.get_ref(8)?.as_str_or_null()? {
            Some(message) => UploadPurpose::Message(MessageId::stored(message)),
            None if row.get(7)? => UploadPurpose::Avatar,
            None => UploadPurpose::Unattached,
        },
    })
}

pub fn digest(row: &Row<'_>, index: usize) -> rusqlite::Result<BlobDigest> {
    row.get(index).map(BlobDigest)
}

pub fn session_of(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        agent: AgentId::stored(shared(row, 0)?),
        id: SessionId::stored(shared(row, 1)?),
        title: text(row, 2)?,
        created_at: time(row, 3)?,
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
