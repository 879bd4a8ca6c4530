//! Events: committed changes. Every event has a `Seq` in the log and survives a crash.

use crate::{
    Agent, AgentId, Approval, CurrentPlan, Delivery, Destination, EventAudience, KeyId, Mailbox, Member,
    MemberId, Message, MessageId, Path, Pin, Reaction, Room, RoomId, Run, Seq, SignInId, Task, TaskId, Time,
    User, UserId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedEvent {
    pub seq: Seq,
    pub at: Time,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A message was posted to a room or a path and delivered to these mailboxes.
    MessagePosted {
        message: Arc<Message>,
        deliveries: Arc<[Delivery]>,
    },
    /// A dead letter was delivered again. Carries the copies that are pending now.
    MailResent {
        message: Arc<Message>,
        /// Mailbox of the dead letter; `None` if the message had reached no mailbox.
        mailbox: Option<Mailbox>,
        deliveries: Arc<[Delivery]>,
    },
    MessageEdited(Arc<Message>),
    MessageDeleted {
        room: RoomId,
        message: MessageId,
    },
    /// Carries all current reactions of the message.
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
    /// A user added or removed a bookmark. Published to that user only.
    BookmarkChanged {
        room: RoomId,
        user: UserId,
        message: MessageId,
        /// Whether the bookmark was added.
        kept: bool,
    },
    RoomChanged(Arc<Room>),
    /// Carries the users that were members. The list is empty when the event is read from the log.
    RoomRemoved {
        room: RoomId,
        people: Arc<[UserId]>,
    },
    /// A member was added, changed or removed. Carries all current members, or none if the room has too many.
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
    /// A user changed their preferences for a room. Published to that user only.
    RoomPreferencesChanged(Arc<Member>),
    /// A user cleared a room's history for themselves. Published to that user only.
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
    /// An account changed. The audience includes other users only if a visible property changed.
    UserChanged {
        user: Arc<User>,
        audience: Arc<EventAudience>,
    },
    /// The account was deleted, together with its sign-ins, keys and agents.
    UserRemoved(UserId),
    /// All sign-ins of this user were revoked.
    SignInsEnded(UserId),
    SignInEnded {
        user: UserId,
        sign_in: SignInId,
    },
    KeyRevoked {
        user: UserId,
        key: KeyId,
    },
    /// Tokens of a key were revoked. Its connections are closed; those with another token authenticate again.
    TokensRevoked {
        user: UserId,
        key: KeyId,
    },
    /// An agent changed. The audience includes users that could see it before the change.
    AgentChanged {
        agent: Arc<Agent>,
        audience: Arc<EventAudience>,
    },
    /// An agent was removed. The audience holds the users that could see it without sharing a room with it.
    /// It is not stored: an event read from the log has all users as its audience.
    AgentRemoved {
        agent: AgentId,
        audience: Arc<EventAudience>,
    },
    /// An admin changed the runtime settings of the hub.
    SettingsChanged,
    /// A run was queued, started or ended.
    RunChanged(Arc<Run>),
    /// An agent requested an approval.
    ApprovalAsked(Arc<Approval>),
    /// An approval was decided, expired or withdrawn.
    ApprovalDecided(Arc<Approval>),
    /// An agent updated its plan, or a user decided or edited it.
    PlanChanged(Arc<CurrentPlan>),
    /// Log entry without content: its content was deleted later, or [`AppendNoop`] wrote it.
    ///
    /// [`AppendNoop`]: crate::command::AppendNoop
    Tombstone,
}

static EVERYONE: EventAudience = EventAudience::everyone();

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChange {
    Added(MemberId),
    Changed(MemberId),
    Removed(MemberId),
}

impl Event {
    /// Returns the path of a published message. Subscribers of the path receive the event.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::MessagePosted { message, .. } => match &message.destination {
                Destination::Path(path) if path.takes_publications() => Some(path),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the room of the event, if it has one. Its members may receive the event, unless `only_user` names one
    /// user.
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
            Self::RunChanged(run) => run.room(),
            Self::ApprovalAsked(approval) | Self::ApprovalDecided(approval) => approval.place.room(),
            Self::PlanChanged(plan) => Some(&plan.room),
            Self::RoomPreferencesChanged(member) => Some(&member.room),
            Self::TaskChanged(task) => Some(&task.room),
            Self::UserChanged { .. }
            | Self::UserRemoved(_)
            | Self::SignInsEnded(_)
            | Self::SignInEnded { .. }
            | Self::KeyRevoked { .. }
            | Self::TokensRevoked { .. }
            | Self::AgentChanged { .. }
            | Self::AgentRemoved { .. }
            | Self::SettingsChanged
            | Self::MailResent { .. }
            | Self::Tombstone => None,
        }
    }

    /// Returns the connections that receive the event. Events that begin or end access have further effects.
    pub fn scope(&self) -> EventScope<'_> {
        match self {
            Self::RoomPreferencesChanged(member) => {
                member.member.user().map_or(EventScope::None, EventScope::User)
            }
            Self::RoomCleared { user, .. } | Self::BookmarkChanged { user, .. } => EventScope::User(user),
            Self::UserChanged { audience, .. }
            | Self::AgentChanged { audience, .. }
            | Self::AgentRemoved { audience, .. } => EventScope::Audience(audience),
            Self::SettingsChanged => EventScope::Audience(&EVERYONE),
            Self::MessagePosted { .. }
            | Self::MessageEdited(_)
            | Self::MessageDeleted { .. }
            | Self::ReactionsChanged { .. }
            | Self::MessagePinned(_)
            | Self::MessageUnpinned { .. }
            | Self::RoomChanged(_)
            | Self::RoomRemoved { .. }
            | Self::MembersChanged { .. }
            | Self::RoomRead { .. }
            | Self::TaskChanged(_)
            | Self::TaskRemoved { .. }
            | Self::PlanChanged(_) => self.room().map_or(EventScope::None, EventScope::Room),
            Self::RunChanged(run) => run.place.scope(),
            Self::ApprovalAsked(approval) | Self::ApprovalDecided(approval) => approval.place.scope(),
            Self::UserRemoved(_)
            | Self::SignInsEnded(_)
            | Self::SignInEnded { .. }
            | Self::KeyRevoked { .. }
            | Self::TokensRevoked { .. }
            | Self::MailResent { .. }
            | Self::Tombstone => EventScope::None,
        }
    }

    /// Returns the audience of an event that belongs to no room.
    pub fn audience(&self) -> Option<&EventAudience> {
        match self.scope() {
            EventScope::Audience(audience) => Some(audience),
            EventScope::Room(_) | EventScope::User(_) | EventScope::Owner(_) | EventScope::None => None,
        }
    }

    /// Returns the only user that may receive the event, if it is private to one user.
    pub fn only_user(&self) -> Option<&UserId> {
        match self.scope() {
            EventScope::User(user) | EventScope::Owner(user) => Some(user),
            EventScope::Room(_) | EventScope::Audience(_) | EventScope::None => None,
        }
    }

    /// Returns the users whose rights the event may change. Too many cost another read; too few would leave a
    /// subscription without its right.
    pub fn changes_rights_of(&self) -> Option<RightsHolder<'_>> {
        match self {
            Self::MembersChanged { change, .. } => {
                let (MemberChange::Added(member)
                | MemberChange::Changed(member)
                | MemberChange::Removed(member)) = change;
                member.user().map(RightsHolder::User)
            }
            Self::RoomRemoved { people, .. } => Some(RightsHolder::People(people)),
            Self::UserChanged { user, .. } => Some(RightsHolder::User(&user.id)),
            Self::UserRemoved(user)
            | Self::SignInsEnded(user)
            | Self::SignInEnded { user, .. }
            | Self::KeyRevoked { user, .. }
            | Self::TokensRevoked { user, .. } => Some(RightsHolder::User(user)),
            Self::AgentChanged { agent, .. } => Some(RightsHolder::OwnerOf(&agent.id)),
            Self::AgentRemoved { agent, .. } => Some(RightsHolder::OwnerOf(agent)),
            Self::MessagePosted { .. }
            | Self::MailResent { .. }
            | Self::MessageEdited(_)
            | Self::MessageDeleted { .. }
            | Self::ReactionsChanged { .. }
            | Self::MessagePinned(_)
            | Self::MessageUnpinned { .. }
            | Self::BookmarkChanged { .. }
            | Self::RoomChanged(_)
            | Self::RoomRead { .. }
            | Self::RoomPreferencesChanged(_)
            | Self::RoomCleared { .. }
            | Self::TaskChanged(_)
            | Self::TaskRemoved { .. }
            | Self::SettingsChanged
            | Self::RunChanged(_)
            | Self::ApprovalAsked(_)
            | Self::ApprovalDecided(_)
            | Self::PlanChanged(_)
            | Self::Tombstone => None,
        }
    }

    /// Returns the number of bytes that the content occupies.
    pub fn length(&self) -> usize {
        match self {
            Self::MessagePosted { message, .. }
            | Self::MailResent { message, .. }
            | Self::MessageEdited(message) => message.length(),
            Self::ReactionsChanged { reactions, .. } => reactions.iter().map(Reaction::length).sum(),
            Self::ApprovalAsked(approval) | Self::ApprovalDecided(approval) => approval.length(),
            Self::PlanChanged(plan) => plan.length(),
            Self::RoomChanged(room) | Self::MembersChanged { room, .. } => room.length(),
            Self::TaskChanged(task) => task.length(),
            // The audience is counted twice: the changed agent contains its user ids again.
            Self::AgentChanged { agent, audience } => agent.length() + 2 * audience.length(),
            Self::UserChanged { audience, .. } | Self::AgentRemoved { audience, .. } => audience.length(),
            Self::RoomRemoved { people, .. } => people.iter().map(|user| user.as_str().len()).sum(),
            Self::MessageDeleted { .. }
            | Self::MessagePinned(_)
            | Self::MessageUnpinned { .. }
            | Self::BookmarkChanged { .. }
            | Self::RoomRead { .. }
            | Self::RoomPreferencesChanged(_)
            | Self::RoomCleared { .. }
            | Self::TaskRemoved { .. }
            | Self::UserRemoved(_)
            | Self::SignInsEnded(_)
            | Self::SignInEnded { .. }
            | Self::KeyRevoked { .. }
            | Self::TokensRevoked { .. }
            | Self::SettingsChanged
            | Self::RunChanged(_)
            | Self::Tombstone => 0,
        }
    }
}

/// Connections that receive an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventScope<'a> {
    /// Those that follow the room.
    Room(&'a RoomId),
    /// All of this user, whether they follow the room of the event or not.
    User(&'a UserId),
    /// Connections of an agent's owner that follow all rooms of the owner.
    Owner(&'a UserId),
    /// Those of the audience that follow all their rooms.
    Audience(&'a EventAudience),
    /// No connection.
    None,
}

/// Users whose rights an event may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RightsHolder<'a> {
    User(&'a UserId),
    /// These users; all users if the list is empty, because a removal that was read from the log names none.
    People(&'a [UserId]),
    /// The owner of the agent.
    OwnerOf(&'a AgentId),
}
