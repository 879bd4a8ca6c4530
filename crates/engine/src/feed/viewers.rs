//! The connections that receive the events, signals and state of runs.

use super::fanout::FanoutState;
use super::topic_subscribers::TopicSubscriber;
use parlor_model::{EventScope, RoomId, UserId};

/// Key of the state of runs that a late joiner receives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Viewers {
    /// Connections that follow the room.
    Room(RoomId),
    /// Connections of the owner of an agent that follow all their rooms: viewers of its runs without a room.
    Owner(UserId),
}

impl Viewers {
    /// `None` for a scope that no run has.
    pub fn of(scope: EventScope<'_>) -> Option<Self> {
        match scope {
            EventScope::Room(room) => Some(Self::Room(room.clone())),
            EventScope::Owner(owner) => Some(Self::Owner(owner.clone())),
            EventScope::User(_) | EventScope::Audience(_) | EventScope::None => None,
        }
    }

    /// Returns whether they follow this room.
    pub fn are_in(&self, room: &RoomId) -> bool {
        matches!(self, Self::Room(own) if own == room)
    }
}

impl FanoutState {
    /// Passes every connection that receives the events and signals of a run.
    pub(super) fn each_viewer(&self, scope: EventScope<'_>, publish: impl FnMut(&TopicSubscriber)) {
        match scope {
            EventScope::Room(room) => self.rooms.each(room, publish),
            EventScope::Owner(owner) => self.owners.each(owner, publish),
            EventScope::User(_) | EventScope::Audience(_) | EventScope::None => {}
        }
    }
}
