//! Event log of the in-memory store. A row holds references only; the content is read from the tables when
//! the row is read, so that deleted content does not survive in the log.

use super::tables::Tables;
use parlor_engine::MAX_MEMBERS_IN_EVENT;
use parlor_model::{
    AgentId, ApprovalId, Event, EventAudience, KeyId, LoggedEvent, Member, MemberChange, MemberId, MessageId,
    Pin, RoomId, RunId, Seq, SignInId, TaskId, Time, UserId,
};
use std::sync::Arc;

#[derive(Clone)]
pub struct Row {
    pub seq: Seq,
    pub at: Time,
    /// Room whose members may see the event, known even after the referenced content was deleted.
    pub room: Option<RoomId>,
    reference: EventReference,
}

#[derive(Clone)]
enum EventReference {
    MessagePosted(MessageId),
    MessageEdited(MessageId),
    MessageDeleted(RoomId, MessageId),
    ReactionsChanged(RoomId, MessageId),
    MessagePinned(RoomId, MessageId, UserId),
    MessageUnpinned(RoomId, MessageId),
    BookmarkChanged(RoomId, UserId, MessageId, bool),
    RoomChanged(RoomId),
    RoomRemoved(RoomId),
    MembersChanged(RoomId, MemberChange),
    RoomRead(RoomId, UserId),
    RoomPreferencesChanged(RoomId, MemberId),
    RoomCleared(RoomId, UserId),
    TaskChanged(TaskId),
    TaskRemoved(RoomId, TaskId),
    UserChanged(UserId),
    UserRemoved(UserId),
    SignInsEnded(UserId),
    SignInEnded(UserId, SignInId),
    KeyRevoked(UserId, KeyId),
    AgentChanged(AgentId),
    AgentRemoved(AgentId),
    SettingsChanged,
    RunChanged(RunId),
    ApprovalAsked(ApprovalId),
    ApprovalDecided(ApprovalId),
    PlanChanged(RoomId, AgentId),
    Tombstone,
}

impl EventReference {
    fn to(event: &Event) -> Self {
        match event {
            Event::MessagePosted { message, .. } => Self::MessagePosted(message.id.clone()),
            Event::MessageEdited(message) => Self::MessageEdited(message.id.clone()),
            Event::MessageDeleted { room, message } => Self::MessageDeleted(room.clone(), message.clone()),
            Event::ReactionsChanged { room, message, .. } => {
                Self::ReactionsChanged(room.clone(), message.clone())
            }
            Event::MessagePinned(pin) => {
                Self::MessagePinned(pin.room.clone(), pin.message.clone(), pin.by.clone())
            }
            Event::MessageUnpinned { room, message } => Self::MessageUnpinned(room.clone(), message.clone()),
            Event::BookmarkChanged { room, user, message, kept } => {
                Self::BookmarkChanged(room.clone(), user.clone(), message.clone(), *kept)
            }
            Event::RoomChanged(room) => Self::RoomChanged(room.id.clone()),
            Event::RoomRemoved { room, .. } => Self::RoomRemoved(room.clone()),
            Event::MembersChanged { room, change, .. } => {
                Self::MembersChanged(room.id.clone(), change.clone())
            }
            Event::RoomRead { room, user, .. } => Self::RoomRead(room.clone(), user.clone()),
            Event::RoomPreferencesChanged(member) => {
                Self::RoomPreferencesChanged(member.room.clone(), member.member.clone())
            }
            Event::RoomCleared { room, user, .. } => Self::RoomCleared(room.clone(), user.clone()),
            Event::TaskChanged(task) => Self::TaskChanged(task.id.clone()),
            Event::TaskRemoved { room, task } => Self::TaskRemoved(room.clone(), task.clone()),
            Event::UserChanged { user, .. } => Self::UserChanged(user.id.clone()),
            Event::UserRemoved(user) => Self::UserRemoved(user.clone()),
            Event::SignInsEnded(user) => Self::SignInsEnded(user.clone()),
            Event::SignInEnded { user, sign_in } => Self::SignInEnded(user.clone(), sign_in.clone()),
            Event::KeyRevoked { user, key } => Self::KeyRevoked(user.clone(), key.clone()),
            Event::AgentChanged { agent, .. } => Self::AgentChanged(agent.id.clone()),
            Event::AgentRemoved { agent, .. } => Self::AgentRemoved(agent.clone()),
            Event::SettingsChanged => Self::SettingsChanged,
            Event::RunChanged(run) => Self::RunChanged(run.id.clone()),
            Event::ApprovalAsked(approval) => Self::ApprovalAsked(approval.id.clone()),
            Event::ApprovalDecided(approval) => Self::ApprovalDecided(approval.id.clone()),
            Event::PlanChanged(plan) => Self::PlanChanged(plan.room.clone(), plan.agent.clone()),
            Event::Tombstone => Self::Tombstone,
        }
    }
}

impl Tables {
    pub fn append(&mut self, logged_event: &LoggedEvent) {
        assert_eq!(logged_event.seq, self.head.seq.next(), "sequence numbers of the log are gap-free");
        let reference = EventReference::to(&logged_event.event);
        let row = Row {
            seq: logged_event.seq,
            at: logged_event.at,
            room: logged_event.event.room().cloned(),
            reference,
        };
        self.log.insert(logged_event.seq, row);
        self.head.seq = logged_event.seq;
        self.head.at = logged_event.at;
    }

    /// Returns the row's event with the current content, or a tombstone if that content was deleted.
    pub fn read(&self, row: &Row) -> LoggedEvent {
        LoggedEvent { seq: row.seq, at: row.at, event: self.event(row).unwrap_or(Event::Tombstone) }
    }

    /// Rooms of a member, in the order in which it joined them.
    fn rooms_of(&self, member: &MemberId) -> Vec<RoomId> {
        let mut rows: Vec<_> = self.members.rows().filter(|row| row.member == *member).collect();
        rows.sort_by_key(|row| (row.joined_at, row.room.clone()));
        rows.into_iter().map(|row| row.room.clone()).collect()
    }

    fn event(&self, row: &Row) -> Option<Event> {
        Some(match row.reference.clone() {
            EventReference::MessagePosted(message) => Event::MessagePosted {
                message: self.messages.get(&message)?.clone(),
                deliveries: self.deliveries_of(&message).cloned().collect(),
            },
            EventReference::MessageEdited(message) => {
                Event::MessageEdited(self.messages.get(&message)?.clone())
            }
            EventReference::MessageDeleted(room, message) => Event::MessageDeleted { room, message },
            EventReference::ReactionsChanged(room, message) => {
                let reactions = self.messages.get(&message)?.reactions.clone().into();
                Event::ReactionsChanged { room, message, reactions }
            }
            EventReference::MessagePinned(room, message, by) => {
                Event::MessagePinned(Pin { room, message, by, seq: row.seq, at: row.at })
            }
            EventReference::MessageUnpinned(room, message) => Event::MessageUnpinned { room, message },
            EventReference::BookmarkChanged(room, user, message, kept) => {
                Event::BookmarkChanged { room, user, message, kept }
            }
            EventReference::RoomChanged(room) => Event::RoomChanged(Arc::new(self.rooms.get(&room)?.clone())),
            EventReference::RoomRemoved(room) => Event::RoomRemoved { room, people: Arc::new([]) },
            EventReference::MembersChanged(room, change) => {
                let members: Vec<Member> = self.members_of(&room).map(|m| m.seen_by_others()).collect();
                let listed = if members.len() <= MAX_MEMBERS_IN_EVENT { members } else { Vec::new() };
                let room = Arc::new(self.rooms.get(&room)?.clone());
                Event::MembersChanged { room, change, members: listed.into() }
            }
            EventReference::RoomRead(room, user) => {
                let username = self.users.get(&user)?.username.clone();
                Event::RoomRead { room, user, username, at: row.at }
            }
            EventReference::RoomPreferencesChanged(room, member) => {
                Event::RoomPreferencesChanged(Arc::new(self.named(self.members.get(&(room, member))?)))
            }
            EventReference::RoomCleared(room, user) => Event::RoomCleared { room, user, at: row.at },
            EventReference::TaskChanged(task) => Event::TaskChanged(Arc::new(self.tasks.get(&task)?.clone())),
            EventReference::TaskRemoved(room, task) => Event::TaskRemoved { room, task },
            EventReference::UserChanged(user) => {
                let user = Arc::new(self.users.get(&user)?.clone());
                let audience =
                    EventAudience::user_and_rooms(&user.id, self.rooms_of(&MemberId::User(user.id.clone())));
                Event::UserChanged { user, audience: audience.into() }
            }
            EventReference::UserRemoved(user) => Event::UserRemoved(user),
            EventReference::SignInsEnded(user) => Event::SignInsEnded(user),
            EventReference::SignInEnded(user, sign_in) => Event::SignInEnded { user, sign_in },
            EventReference::KeyRevoked(user, key) => Event::KeyRevoked { user, key },
            EventReference::AgentChanged(agent) => {
                let agent = Arc::new(self.agents.get(&agent)?.clone());
                let audience = EventAudience::of(&agent, self.rooms_of(&MemberId::Agent(agent.id.clone())));
                Event::AgentChanged { agent, audience: audience.into() }
            }
            EventReference::AgentRemoved(agent) => {
                Event::AgentRemoved { agent, audience: Arc::new(EventAudience::everyone()) }
            }
            EventReference::SettingsChanged => Event::SettingsChanged,
            EventReference::RunChanged(run) => Event::RunChanged(Arc::new(self.runs.get(&run)?.clone())),
            EventReference::ApprovalAsked(id) => {
                Event::ApprovalAsked(Arc::new(self.approvals.get(&id)?.clone()))
            }
            EventReference::ApprovalDecided(id) => {
                Event::ApprovalDecided(Arc::new(self.approvals.get(&id)?.clone()))
            }
            EventReference::PlanChanged(room, agent) => {
                Event::PlanChanged(Arc::new(self.plans.get(&(room, agent))?.clone()))
            }
            EventReference::Tombstone => return None,
        })
    }
}
