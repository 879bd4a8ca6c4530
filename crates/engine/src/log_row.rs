//! Rows of the event log: the kind of an event and the ids of the entities that it refers to.
//!
//! A row contains no content. The content is read from the tables when the row is read, so that deleted content
//! does not survive in the log. All backends store these rows, and this file alone converts them.

use crate::Fault;
use crate::MAX_MEMBERS_IN_EVENT;
use crate::ports::Lookup;
use parlor_model::{
    AgentId, ApprovalId, DeliveryState, Event, EventAudience, KeyId, LoggedEvent, Mailbox, Member,
    MemberChange, MemberId, MessageId, Pin, RoomId, RunId, Seq, SessionId, SignInId, TaskId, Time, UserId,
};
use std::borrow::Cow;
use std::sync::Arc;

/// A row of the log. `T` is the type of its texts: borrowed when it is written, shared when it is read.
#[derive(Debug, Clone)]
pub struct LogRow<T> {
    pub seq: Seq,
    pub at: Time,
    /// One of the numbers in `kind`.
    pub kind: i64,
    /// The room whose members may see the event, known even after the content was deleted.
    pub room: Option<T>,
    pub subject: Option<T>,
    pub detail: Option<T>,
}

/// Kinds of rows. They are stored on disk: never reuse one.
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
    pub const TOKENS_REVOKED: i64 = 44;
    pub const MAIL_RESENT: i64 = 50;
}

impl<'a> LogRow<Cow<'a, str>> {
    pub fn of(logged: &'a LoggedEvent) -> Self {
        let (kind, subject, detail): (i64, Option<&str>, Option<&str>) = match &logged.event {
            Event::MessagePosted { message, .. } => (kind::POSTED, Some(message.id.as_str()), None),
            Event::MailResent { message, .. } => (kind::MAIL_RESENT, Some(message.id.as_str()), None),
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
            Event::TokensRevoked { user, key } => {
                (kind::TOKENS_REVOKED, Some(user.as_str()), Some(key.as_str()))
            }
            Event::AgentChanged { agent, .. } => (kind::AGENT_CHANGED, Some(agent.id.as_str()), None),
            Event::AgentRemoved { agent, .. } => (kind::AGENT_REMOVED, Some(agent.as_str()), None),
            Event::SettingsChanged => (kind::SETTINGS_CHANGED, None, None),
            Event::RunChanged(run) => (kind::RUN_CHANGED, Some(run.id.as_str()), None),
            Event::ApprovalAsked(approval) => (kind::APPROVAL_ASKED, Some(approval.id.as_str()), None),
            Event::ApprovalDecided(approval) => (kind::APPROVAL_DECIDED, Some(approval.id.as_str()), None),
            Event::PlanChanged(plan) => (kind::PLAN_CHANGED, Some(plan.agent.as_str()), None),
            Event::Tombstone => (kind::TOMBSTONE, None, None),
        };
        let (subject, detail) = (subject.map(Cow::Borrowed), detail.map(Cow::Borrowed));
        let detail = match &logged.event {
            Event::MailResent { mailbox: Some(mailbox), .. } => Some(Cow::Owned(mailbox_text(mailbox))),
            _ => detail,
        };
        let room = logged.event.room().map(|room| Cow::Borrowed(room.as_str()));
        Self { seq: logged.seq, at: logged.at, kind, room, subject, detail }
    }
}

impl LogRow<Arc<str>> {
    /// The event with the current content of the entities that it refers to, or a tombstone if that content was
    /// deleted.
    pub fn read(self, store: &mut dyn Lookup) -> Result<LoggedEvent, Fault> {
        let (seq, at) = (self.seq, self.at);
        let event = self.event(store)?.unwrap_or(Event::Tombstone);
        Ok(LoggedEvent { seq, at, event })
    }

    /// Rebuilds the event. `None` if the entity that it refers to was deleted.
    fn event(self, store: &mut dyn Lookup) -> Result<Option<Event>, Fault> {
        let room = self.room.map(RoomId::stored);
        let (Some(subject), detail) = (self.subject, self.detail) else {
            let settings = self.kind == kind::SETTINGS_CHANGED;
            let Some(room) = room else { return Ok(settings.then_some(Event::SettingsChanged)) };
            return Ok(match self.kind {
                kind::ROOM_CHANGED => store.room(&room)?.map(|room| Event::RoomChanged(Arc::new(room))),
                kind::ROOM_REMOVED => Some(Event::RoomRemoved { room, people: Arc::new([]) }),
                _ => None,
            });
        };
        Ok(match (self.kind, room) {
            (kind::POSTED, _) => {
                let id = MessageId::stored(subject);
                match store.message(&id)? {
                    Some(message) => {
                        Some(Event::MessagePosted { message, deliveries: store.deliveries(&id)?.into() })
                    }
                    None => None,
                }
            }
            (kind::MAIL_RESENT, _) => {
                let id = MessageId::stored(subject);
                let mailbox = detail.as_deref().map(read_mailbox);
                let mut deliveries = store.deliveries(&id)?;
                deliveries.retain(|delivery| {
                    let is_resent = mailbox.as_ref().is_none_or(|mailbox| delivery.mailbox == *mailbox);
                    is_resent && delivery.state == DeliveryState::Pending
                });
                let message = store.message(&id)?;
                message.map(|message| Event::MailResent { message, mailbox, deliveries: deliveries.into() })
            }
            (kind::EDITED, _) => store.message(&MessageId::stored(subject))?.map(Event::MessageEdited),
            (kind::DELETED, Some(room)) => {
                Some(Event::MessageDeleted { room, message: MessageId::stored(subject) })
            }
            (kind::REACTED, Some(room)) => {
                let message = store.message(&MessageId::stored(subject))?;
                message.map(|message| Event::ReactionsChanged {
                    room,
                    message: message.id.clone(),
                    reactions: message.reactions.clone().into(),
                })
            }
            (kind::PINNED, Some(room)) => detail.map(|by| {
                let (message, by) = (MessageId::stored(subject), UserId::stored(by));
                Event::MessagePinned(Pin { room, message, by, seq: self.seq, at: self.at })
            }),
            (kind::UNPINNED, Some(room)) => {
                Some(Event::MessageUnpinned { room, message: MessageId::stored(subject) })
            }
            (kind::BOOKMARKED | kind::BOOKMARK_REMOVED, Some(room)) => detail.map(|user| {
                let (user, message) = (UserId::stored(user), MessageId::stored(subject));
                let kept = self.kind == kind::BOOKMARKED;
                Event::BookmarkChanged { room, user, message, kept }
            }),
            (kind::MEMBER_ADDED..=kind::MEMBER_REMOVED, Some(room)) => {
                let Some(found) = store.room(&room)? else { return Ok(None) };
                let member = match detail.as_deref() {
                    Some("user") => MemberId::User(UserId::stored(subject)),
                    _ => MemberId::Agent(AgentId::stored(subject)),
                };
                let change = match self.kind {
                    kind::MEMBER_ADDED => MemberChange::Added(member),
                    kind::MEMBER_CHANGED => MemberChange::Changed(member),
                    _ => MemberChange::Removed(member),
                };
                let mut members = store.members(&room, MAX_MEMBERS_IN_EVENT + 1, 0)?;
                if members.len() > MAX_MEMBERS_IN_EVENT {
                    members.clear();
                }
                let members = members.iter().map(Member::seen_by_others).collect();
                Some(Event::MembersChanged { room: Arc::new(found), change, members })
            }
            (kind::ROOM_READ, Some(room)) => {
                let user = UserId::stored(subject);
                let username = store.user(&user)?.map(|user| user.username);
                username.map(|username| Event::RoomRead { room, user, username, at: self.at })
            }
            (kind::ROOM_PREFERENCES_CHANGED, Some(room)) => {
                let member = store.member(&room, &MemberId::User(UserId::stored(subject)))?;
                member.map(|member| Event::RoomPreferencesChanged(Arc::new(member)))
            }
            (kind::ROOM_CLEARED, Some(room)) => {
                Some(Event::RoomCleared { room, user: UserId::stored(subject), at: self.at })
            }
            (kind::TASK_CHANGED, _) => {
                store.task(&TaskId::stored(subject))?.map(|task| Event::TaskChanged(Arc::new(task)))
            }
            (kind::TASK_REMOVED, Some(room)) => {
                Some(Event::TaskRemoved { room, task: TaskId::stored(subject) })
            }
            (kind::USER_CHANGED, _) => match store.user(&UserId::stored(subject))? {
                Some(user) => {
                    let audience = EventAudience::user_and_rooms(
                        &user.id,
                        rooms_of(MemberId::User(user.id.clone()), store)?,
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
            (kind::TOKENS_REVOKED, _) => detail.map(|detail| Event::TokensRevoked {
                user: UserId::stored(subject),
                key: KeyId::stored(detail),
            }),
            (kind::RUN_CHANGED, _) => {
                store.run(&RunId::stored(subject))?.map(|run| Event::RunChanged(Arc::new(run)))
            }
            (kind::APPROVAL_ASKED, _) => {
                let found = store.approval(&ApprovalId::stored(subject))?;
                found.map(|approval| Event::ApprovalAsked(Arc::new(approval)))
            }
            (kind::APPROVAL_DECIDED, _) => {
                let found = store.approval(&ApprovalId::stored(subject))?;
                found.map(|approval| Event::ApprovalDecided(Arc::new(approval)))
            }
            (kind::PLAN_CHANGED, Some(room)) => {
                let found = store.plan(&room, &AgentId::stored(subject))?;
                found.map(|plan| Event::PlanChanged(Arc::new(plan)))
            }
            (kind::AGENT_REMOVED, _) => {
                let audience = Arc::new(EventAudience::everyone());
                Some(Event::AgentRemoved { agent: AgentId::stored(subject), audience })
            }
            (kind::AGENT_CHANGED, _) => match store.agent(&AgentId::stored(subject))? {
                Some(agent) => {
                    let audience =
                        EventAudience::of(&agent, rooms_of(MemberId::Agent(agent.id.clone()), store)?);
                    Some(Event::AgentChanged { agent: agent.into(), audience: audience.into() })
                }
                None => None,
            },
            _ => None,
        })
    }
}

/// `agent` or `agent:session`. An id contains no colon.
fn mailbox_text(mailbox: &Mailbox) -> String {
    match &mailbox.session {
        Some(session) => format!("{}:{session}", mailbox.agent),
        None => mailbox.agent.to_string(),
    }
}

fn read_mailbox(text: &str) -> Mailbox {
    match text.split_once(':') {
        Some((agent, session)) => {
            Mailbox { agent: AgentId::stored(agent), session: Some(SessionId::stored(session)) }
        }
        None => Mailbox::of(AgentId::stored(text)),
    }
}

fn rooms_of(member: MemberId, store: &mut dyn Lookup) -> Result<Vec<RoomId>, Fault> {
    Ok(store.memberships(&member)?.into_iter().map(|member| member.room).collect())
}
