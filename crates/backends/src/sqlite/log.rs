//! Event log of the SQLite store: rows hold references, and events are rebuilt from the tables when read.

use super::SqlTables;
use super::insert::RowBinder;
use super::rows::{self, all, number, one, seq_value};
use parlor_engine::Fault;
use parlor_engine::MAX_MEMBERS_IN_EVENT;
use parlor_engine::ports::{Head, Lookup};
use parlor_model::{
    AgentId, ApprovalId, Epoch, Event, EventAudience, KeyId, LoggedEvent, Member, MemberChange, MemberId,
    MessageId, Pin, RoomId, RunId, Seq, SignInId, TaskId, Time, UserId,
};
use rusqlite::{Connection, ToSql};
use std::ops::Deref;
use std::sync::Arc;

/// Values of the column `kind`. They are stored on disk: never reuse one.
mod kind {
    pub const POSTED: i64 = 0;
    pub const EDITED: i64 = 1;
    pub const DELETED: i64 = 2;
    pub const ROOM_CHANGED: i64 = 3;
    pub const ROOM_REMOVED: i64 = 4;
    pub const MEMBER_ADDED: i64 = 5;
    pub const MEMBER_CHANGED: i64 = 6;
    pub const MEMBER_REMOVED: i64 = 7;
    pub const ROOM_READ: i64 = 8;
    pub const USER_CHANGED: i64 = 9;
    pub const USER_REMOVED: i64 = 10;
    pub const SIGN_INS_ENDED: i64 = 11;
    pub const SIGN_IN_ENDED: i64 = 12;
    pub const KEY_REVOKED: i64 = 13;
    pub const AGENT_CHANGED: i64 = 14;
    pub const TOMBSTONE: i64 = 15;
    pub const AGENT_REMOVED: i64 = 16;
    pub const ROOM_PREFERENCES_CHANGED: i64 = 20;
    pub const ROOM_CLEARED: i64 = 21;
    pub const REACTED: i64 = 22;
    pub const PINNED: i64 = 23;
    pub const UNPINNED: i64 = 24;
    pub const BOOKMARKED: i64 = 25;
    pub const BOOKMARK_REMOVED: i64 = 26;
    pub const TASK_CHANGED: i64 = 27;
    pub const TASK_REMOVED: i64 = 28;
    pub const RUN_CHANGED: i64 = 30;
    pub const APPROVAL_ASKED: i64 = 40;
    pub const APPROVAL_DECIDED: i64 = 41;
    pub const PLAN_CHANGED: i64 = 42;
    pub const SETTINGS_CHANGED: i64 = 43;
}

/// Row of the log: the kind of an event and the ids of the entities it refers to.
struct LogRow {
    seq: Seq,
    at: Time,
    kind: i64,
    room: Option<Arc<str>>,
    subject: Option<Arc<str>>,
    detail: Option<Arc<str>>,
}

pub const ENTRY: (&str, &str) = ("INSERT INTO log", "(?, ?, ?, ?, ?, ?)");

pub fn entry(logged_event: &LoggedEvent, row: &mut RowBinder) -> rusqlite::Result<()> {
    let (kind, subject, detail): (i64, Option<&str>, Option<&str>) = match &logged_event.event {
        Event::MessagePosted { message, .. } => (kind::POSTED, Some(message.id.as_str()), None),
        Event::MessageEdited(message) => (kind::EDITED, Some(message.id.as_str()), None),
        Event::MessageDeleted { message, .. } => (kind::DELETED, Some(message.as_str()), None),
        Event::ReactionsChanged { message, .. } => (kind::REACTED, Some(message.as_str()), None),
        Event::MessagePinned(pin) => (kind::PINNED, Some(pin.message.as_str()), Some(pin.by.as_str())),
        Event::MessageUnpinned { message, .. } => (kind::UNPINNED, Some(message.as_str()), None),
        Event::BookmarkChanged { user, message, kept, .. } => {
            let kind = if *kept { kind::BOOKMARKED } else { kind::BOOKMARK_REMOVED };
            (kind, Some(message.as_str()), Some(user.as_str()))
        }
        Event::RoomChanged(_) => (kind::ROOM_CHANGED, None, None),
        Event::RoomRemoved { .. } => (kind::ROOM_REMOVED, None, None),
        Event::MembersChanged { change, .. } => {
            let (kind, member) = match change {
                MemberChange::Added(member) => (kind::MEMBER_ADDED, member),
                MemberChange::Changed(member) => (kind::MEMBER_CHANGED, member),
                MemberChange::Removed(member) => (kind::MEMBER_REMOVED, member),
            };
            let detail = if member.user().is_some() { "user" } else { "agent" };
            (kind, Some(member.as_str()), Some(detail))
        }
        Event::RoomRead { user, .. } => (kind::ROOM_READ, Some(user.as_str()), None),
        Event::RoomPreferencesChanged(member) => {
            (kind::ROOM_PREFERENCES_CHANGED, Some(member.member.as_str()), None)
        }
        Event::RoomCleared { user, .. } => (kind::ROOM_CLEARED, Some(user.as_str()), None),
        Event::TaskChanged(task) => (kind::TASK_CHANGED, Some(task.id.as_str()), None),
        Event::TaskRemoved { task, .. } => (kind::TASK_REMOVED, Some(task.as_str()), None),
        Event::UserChanged { user, .. } => (kind::USER_CHANGED, Some(user.id.as_str()), None),
        Event::UserRemoved(user) => (kind::USER_REMOVED, Some(user.as_str()), None),
        Event::SignInsEnded(user) => (kind::SIGN_INS_ENDED, Some(user.as_str()), None),
        Event::SignInEnded { user, sign_in } => {
            (kind::SIGN_IN_ENDED, Some(user.as_str()), Some(sign_in.as_str()))
        }
        Event::KeyRevoked { user, key } => (kind::KEY_REVOKED, Some(user.as_str()), Some(key.as_str())),
        Event::AgentChanged { agent, .. } => (kind::AGENT_CHANGED, Some(agent.id.as_str()), None),
        Event::AgentRemoved { agent, .. } => (kind::AGENT_REMOVED, Some(agent.as_str()), None),
        Event::SettingsChanged => (kind::SETTINGS_CHANGED, None, None),
        Event::RunChanged(run) => (kind::RUN_CHANGED, Some(run.id.as_str()), None),
        Event::ApprovalAsked(approval) => (kind::APPROVAL_ASKED, Some(approval.id.as_str()), None),
        Event::ApprovalDecided(approval) => (kind::APPROVAL_DECIDED, Some(approval.id.as_str()), None),
        Event::PlanChanged(plan) => (kind::PLAN_CHANGED, Some(plan.agent.as_str()), None),
        Event::Tombstone => (kind::TOMBSTONE, None, None),
    };
    row.value(logged_event.seq.0 as i64)?;
    row.value(logged_event.at.0)?;
    row.value(kind)?;
    row.value(logged_event.event.room().map(RoomId::as_str))?;
    row.value(subject)?;
    row.value(detail)
}

fn reference(row: &rusqlite::Row<'_>) -> rusqlite::Result<LogRow> {
    Ok(LogRow {
        seq: rows::seq(row, 0)?,
        at: Time(row.get(1)?),
        kind: row.get(2)?,
        room: row.get::<_, Option<String>>(3)?.map(Into::into),
        subject: row.get::<_, Option<String>>(4)?.map(Into::into),
        detail: row.get::<_, Option<String>>(5)?.map(Into::into),
    })
}

impl<C: Deref<Target = Connection>> SqlTables<C> {
    pub fn head(&self) -> Result<Head, Fault> {
        let meta = |key: &str| {
            one(self.sql(), "SELECT value FROM meta WHERE key = ?1", &[&key], |row| row.get::<_, i64>(0))
        };
        let epoch = Epoch(meta("epoch")?.unwrap_or_default() as u32);
        let trimmed_through = Seq(meta("trimmed")?.unwrap_or_default() as u64);
        let last = one(self.sql(), "SELECT seq, at FROM log ORDER BY seq DESC LIMIT 1", &[], |row| {
            Ok((rows::seq(row, 0)?, Time(row.get(1)?)))
        })?;
        let (seq, at) = last.unwrap_or((trimmed_through, Time(0)));
        Ok(Head { epoch, seq, at, trimmed_through })
    }

    pub fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let query =
            "SELECT seq, at, kind, room, subject, detail FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let found = all(self.sql(), query, &[&seq_value(after), &number(limit)], reference)?;
        found.into_iter().map(|reference| self.rebuild(reference)).collect()
    }

    /// Events of one room. Posted messages are read through the index of the messages table, because they are
    /// far more frequent than the other events of a room.
    pub fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault> {
        let query = "SELECT seq, at, 0, room, id, NULL FROM messages WHERE room = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        let values: [&dyn ToSql; 3] = [&room.as_str(), &seq_value(after), &number(limit)];
        let mut found = all(self.sql(), query, &values, reference)?;
        let query = "SELECT seq, at, kind, room, subject, detail FROM log \
                     WHERE room = ?1 AND seq > ?2 AND kind <> 0 ORDER BY seq LIMIT ?3";
        found.extend(all(self.sql(), query, &values, reference)?);
        found.sort_by_key(|reference| reference.seq);
        found.truncate(limit);
        found.into_iter().map(|reference| self.rebuild(reference)).collect()
    }

    fn rebuild(&mut self, reference: LogRow) -> Result<LoggedEvent, Fault> {
        let (seq, at) = (reference.seq, reference.at);
        let event = self.event_of(reference)?.unwrap_or(Event::Tombstone);
        Ok(LoggedEvent { seq, at, event })
    }

    fn rooms_of(&mut self, member: MemberId) -> Result<Vec<RoomId>, Fault> {
        Ok(self.memberships(&member)?.into_iter().map(|member| member.room).collect())
    }

    /// Rebuilds the event of a row. `None` if the entity it refers to was deleted.
    fn event_of(&mut self, reference: LogRow) -> Result<Option<Event>, Fault> {
        let room = reference.room.map(RoomId::stored);
        let (Some(subject), detail) = (reference.subject, reference.detail) else {
            let settings = reference.kind == kind::SETTINGS_CHANGED;
            let Some(room) = room else { return Ok(settings.then_some(Event::SettingsChanged)) };
            return Ok(match reference.kind {
                kind::ROOM_CHANGED => self.room(&room)?.map(|room| Event::RoomChanged(Arc::new(room))),
                kind::ROOM_REMOVED => Some(Event::RoomRemoved { room, people: Arc::new([]) }),
                _ => None,
            });
        };
        Ok(match (reference.kind, room) {
            (kind::POSTED, _) => {
                let id = MessageId::stored(subject);
                match self.message(&id)? {
                    Some(message) => {
                        Some(Event::MessagePosted { message, deliveries: self.deliveries(&id)?.into() })
                    }
                    None => None,
                }
            }
            (kind::EDITED, _) => self.message(&MessageId::stored(subject))?.map(Event::MessageEdited),
            (kind::DELETED, Some(room)) => {
                Some(Event::MessageDeleted { room, message: MessageId::stored(subject) })
            }
            (kind::REACTED, Some(room)) => {
                let message = self.message(&MessageId::stored(subject))?;
                message.map(|message| Event::ReactionsChanged {
                    room,
                    message: message.id.clone(),
                    reactions: message.reactions.clone().into(),
                })
            }
            (kind::PINNED, Some(room)) => detail.map(|by| {
                let (message, by) = (MessageId::stored(subject), UserId::stored(by));
                Event::MessagePinned(Pin { room, message, by, seq: reference.seq, at: reference.at })
            }),
            (kind::UNPINNED, Some(room)) => {
                Some(Event::MessageUnpinned { room, message: MessageId::stored(subject) })
            }
            (kind::BOOKMARKED | kind::BOOKMARK_REMOVED, Some(room)) => detail.map(|user| {
                let (user, message) = (UserId::stored(user), MessageId::stored(subject));
                let kept = reference.kind == kind::BOOKMARKED;
                Event::BookmarkChanged { room, user, message, kept }
            }),
            (kind::MEMBER_ADDED..=kind::MEMBER_REMOVED, Some(room)) => {
                let Some(found) = self.room(&room)? else { return Ok(None) };
                let kind = if detail.as_deref() == Some("user") { 0 } else { 1 };
                let member: MemberId = rows::member_id(kind, subject);
                let change = match reference.kind {
                    kind::MEMBER_ADDED => MemberChange::Added(member),
                    kind::MEMBER_CHANGED => MemberChange::Changed(member),
                    _ => MemberChange::Removed(member),
                };
                let mut members = self.members(&room, MAX_MEMBERS_IN_EVENT + 1, 0)?;
                if members.len() > MAX_MEMBERS_IN_EVENT {
                    members.clear();
                }
                let members = members.iter().map(Member::seen_by_others).collect();
                Some(Event::MembersChanged { room: Arc::new(found), change, members })
            }
            (kind::ROOM_READ, Some(room)) => {
                let user = UserId::stored(subject);
                let username = self.user(&user)?.map(|user| user.username);
                username.map(|username| Event::RoomRead { room, user, username, at: reference.at })
            }
            (kind::ROOM_PREFERENCES_CHANGED, Some(room)) => {
                let member = self.member(&room, &MemberId::User(UserId::stored(subject)))?;
                member.map(|member| Event::RoomPreferencesChanged(Arc::new(member)))
            }
            (kind::ROOM_CLEARED, Some(room)) => {
                Some(Event::RoomCleared { room, user: UserId::stored(subject), at: reference.at })
            }
            (kind::TASK_CHANGED, _) => {
                self.task(&TaskId::stored(subject))?.map(|task| Event::TaskChanged(Arc::new(task)))
            }
            (kind::TASK_REMOVED, Some(room)) => {
                Some(Event::TaskRemoved { room, task: TaskId::stored(subject) })
            }
            (kind::USER_CHANGED, _) => match self.user(&UserId::stored(subject))? {
                Some(user) => {
                    let audience = EventAudience::user_and_rooms(
                        &user.id,
                        self.rooms_of(MemberId::User(user.id.clone()))?,
                    );
                    Some(Event::UserChanged { user: user.into(), audience: audience.into() })
                }
                None => None,
            },
            (kind::USER_REMOVED, _) => Some(Event::UserRemoved(UserId::stored(subject))),
            (kind::SIGN_INS_ENDED, _) => Some(Event::SignInsEnded(UserId::stored(subject))),
            (kind::SIGN_IN_ENDED, _) => detail.map(|detail| Event::SignInEnded {
                user: UserId::stored(subject),
                sign_in: SignInId::stored(detail),
            }),
            (kind::KEY_REVOKED, _) => detail.map(|detail| Event::KeyRevoked {
                user: UserId::stored(subject),
                key: KeyId::stored(detail),
            }),
            (kind::RUN_CHANGED, _) => {
                self.run(&RunId::stored(subject))?.map(|run| Event::RunChanged(Arc::new(run)))
            }
            (kind::APPROVAL_ASKED, _) => {
                let found = self.find_approval(&ApprovalId::stored(subject))?;
                found.map(|approval| Event::ApprovalAsked(Arc::new(approval)))
            }
            (kind::APPROVAL_DECIDED, _) => {
                let found = self.find_approval(&ApprovalId::stored(subject))?;
                found.map(|approval| Event::ApprovalDecided(Arc::new(approval)))
            }
            (kind::PLAN_CHANGED, Some(room)) => {
                let found = self.find_plan(&room, &AgentId::stored(subject))?;
                found.map(|plan| Event::PlanChanged(Arc::new(plan)))
            }
            (kind::AGENT_REMOVED, _) => {
                let audience = Arc::new(EventAudience::everyone());
                Some(Event::AgentRemoved { agent: AgentId::stored(subject), audience })
            }
            (kind::AGENT_CHANGED, _) => match self.agent(&AgentId::stored(subject))? {
                Some(agent) => {
                    let audience =
                        EventAudience::of(&agent, self.rooms_of(MemberId::Agent(agent.id.clone()))?);
                    Some(Event::AgentChanged { agent: agent.into(), audience: audience.into() })
                }
                None => None,
            },
            _ => None,
        })
    }
}
