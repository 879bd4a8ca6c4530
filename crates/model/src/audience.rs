//! Audience of an event that belongs to no room, such as a change of an account or an agent.

use crate::{Agent, RoomId, UserId, Visibility};
use serde::{Deserialize, Serialize};

/// Users that may receive an event without a room: all users, listed users, and members of listed rooms.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventAudience {
    pub everyone: bool,
    pub people: Vec<UserId>,
    /// Rooms whose members are part of the audience.
    pub rooms: Vec<RoomId>,
}

impl EventAudience {
    pub const fn everyone() -> Self {
        Self { everyone: true, people: Vec::new(), rooms: Vec::new() }
    }

    /// Returns the users that can see `agent`: its owner, the users it is shared with, and members of
    /// `rooms`.
    pub fn of(agent: &Agent, rooms: impl IntoIterator<Item = RoomId>) -> Self {
        let mut people = vec![agent.owner.clone()];
        if let Visibility::List(others) = &agent.visibility {
            people.extend(others.iter().filter(|user| **user != agent.owner).cloned());
        }
        let everyone = agent.visibility == Visibility::All;
        Self { everyone, people, rooms: rooms.into_iter().collect() }
    }

    /// Returns `user` and the members of `rooms`.
    pub fn user_and_rooms(user: &UserId, rooms: impl IntoIterator<Item = RoomId>) -> Self {
        Self { everyone: false, people: vec![user.clone()], rooms: rooms.into_iter().collect() }
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn length(&self) -> usize {
        let people = self.people.iter().map(|user| user.as_str().len());
        let rooms = self.rooms.iter().map(|room| room.as_str().len());
        people.chain(rooms).map(|id| id + size_of::<UserId>()).sum()
    }

    /// Returns the union of both audiences, without duplicates.
    pub fn and(mut self, other: Self) -> Self {
        self.everyone |= other.everyone;
        self.people.extend(other.people);
        self.rooms.extend(other.rooms);
        self.people.sort();
        self.people.dedup();
        self.rooms.sort();
        self.rooms.dedup();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audience(everyone: bool, people: &[&str], rooms: &[&str]) -> EventAudience {
        let people = people.iter().map(|user| UserId::stored(*user)).collect();
        EventAudience { everyone, people, rooms: rooms.iter().map(|room| RoomId::stored(*room)).collect() }
    }

    #[test]
    fn the_union_of_two_audiences_has_each_user_and_room_once() {
        let (before, after) =
            (audience(false, &["ann", "bob"], &["lobby"]), audience(true, &["ann"], &["lobby"]));
        assert_eq!(before.and(after), audience(true, &["ann", "bob"], &["lobby"]));
    }
}
