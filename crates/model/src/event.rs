//! What happened, once it is committed. Every event has a `Seq` and survives a crash.

use crate::{
    Agent, AgentId, Approval, CurrentPlan, Delivery, EventAudience, KeyId, Member, MemberId, Message,
    MessageId, Pin, Reaction, Room, RoomId, Run, Seq, SignInId, Task, TaskId, Time, User, UserId,
};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    pub seq: Seq,
    pub at: Time,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Said in a room or on a path, with the mailboxes it was put in.
    MessagePosted {
        message: Arc<Message>,
        deliveries: Arc<[Delivery]>,
    },
    MessageEdited(Arc<Message>),
    MessageDeleted {
        room: RoomId,
        message: MessageId,
    },
    /// With all of them, as they are now.
    ReactionsChanged {
        room: RoomId,
        message: MessageId,
        reactions: Arc<[Reaction]>,
    },
    MessagePinned(Pin),
    MessageUnpinned {
        room: RoomId,
        message: MessageId,
    },
    /// Somebody keeps a message in mind, or no longer, and is told alone.
    BookmarkChanged {
        room: RoomId,
        user: UserId,
        message: MessageId,
        kept: bool,
    },
    RoomChanged(Arc<Room>),
    /// With the people who were in it; read from the log later, they are no longer known.
    RoomRemoved {
        room: RoomId,
        people: Arc<[UserId]>,
    },
    /// Somebody came, left or changed role; with the members as they are now, unless they are many.
    MembersChanged {
        room: Arc<Room>,
        change: MemberChange,
        members: Arc<[Member]>,
    },
    RoomRead {
        room: RoomId,
        user: UserId,
        username: Box<str>,
        at: Time,
    },
    /// Somebody keeps a room in another way, and is told alone.
    RoomPreferencesChanged(Arc<Member>),
    RoomCleared {
        room: RoomId,
        user: UserId,
        at: Time,
    },
    TaskChanged(Arc<Task>),
    TaskRemoved {
        room: RoomId,
        task: TaskId,
    },
    /// With who sees them, where it is something that others see.
    UserChanged {
        user: Arc<User>,
        circle: Arc<EventAudience>,
    },
    /// The account is gone, and everything that acted for it.
    UserRemoved(UserId),
    /// Every device of this person is signed out.
    SignInsEnded(UserId),
    SignInEnded {
        user: UserId,
        sign_in: SignInId,
    },
    KeyRevoked {
        user: UserId,
        key: KeyId,
    },
    /// With who may know of it, or could before.
    AgentChanged {
        agent: Arc<Agent>,
        circle: Arc<EventAudience>,
    },
    /// With who knew of it without sharing a room with it; read from the log later, that is not known any more.
    AgentRemoved {
        agent: AgentId,
        circle: Arc<EventAudience>,
    },
    /// What can be changed while the hub runs.
    SettingsChanged,
    /// A turn was asked for, began or ended.
    RunChanged(Arc<Run>),
    /// An agent waits for an answer.
    ApprovalAsked(Arc<Approval>),
    /// It has one, or none will come.
    ApprovalDecided(Arc<Approval>),
    /// What an agent is going to do, or what somebody decided about it.
    PlanChanged(Arc<CurrentPlan>),
    /// Something older than its own deletion, read from the log: its content is gone. Also what only takes a place
    /// in the log.
    Tombstone,
}

static EVERYONE: EventAudience = EventAudience::everyone();

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberChange {
    Added(MemberId),
    Changed(MemberId),
    Removed(MemberId),
}

impl Event {
    /// The room it happened in; its members may see it, unless it is for one `only_user` alone.
    pub fn room(&self) -> Option<&RoomId> {
        match self {
            Self::MessagePosted { message, .. } | Self::MessageEdited(message) => message.destination.room(),
            Self::MessagePinned(pin) => Some(&pin.room),
            Self::MessageDeleted { room, .. }
            | Self::ReactionsChanged { room, .. }
            | Self::MessageUnpinned { room, .. }
            | Self::BookmarkChanged { room, .. }
            | Self::RoomRemoved { room, .. }
            | Self::TaskRemoved { room, .. }
            | Self::RoomRead { room, .. }
            | Self::RoomCleared { room, .. } => Some(room),
            Self::RoomChanged(room) | Self::MembersChanged { room, .. } => Some(&room.id),
            Self::RunChanged(run) => Some(&run.room),
            Self::ApprovalAsked(approval) | Self::ApprovalDecided(approval) => Some(&approval.room),
            Self::PlanChanged(plan) => Some(&plan.room),
            Self::RoomPreferencesChanged(member) => Some(&member.room),
            Self::TaskChanged(task) => Some(&task.room),
            Self::UserChanged { .. }
            | Self::UserRemoved(_)
            | Self::SignInsEnded(_)
            | Self::SignInEnded { .. }
            | Self::KeyRevoked { .. }
            | Self::AgentChanged { .. }
            | Self::AgentRemoved { .. }
            | Self::SettingsChanged
            | Self::Tombstone => None,
        }
    }

    /// Who may know of what happened in no room.
    pub fn audience(&self) -> Option<&EventAudience> {
        match self {
            Self::UserChanged { circle: event_audience, .. }
            | Self::AgentChanged { circle: event_audience, .. }
            | Self::AgentRemoved { circle: event_audience, .. } => Some(event_audience),
            Self::SettingsChanged => Some(&EVERYONE),
            _ => None,
        }
    }

    /// The one person who is told, where it is nobody else's business.
    pub fn only_user(&self) -> Option<&UserId> {
        match self {
            Self::RoomPreferencesChanged(member) => member.member.user(),
            Self::RoomCleared { user, .. } | Self::BookmarkChanged { user, .. } => Some(user),
            _ => None,
        }
    }
}
