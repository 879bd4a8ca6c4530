//! Who may know of something that happens in no room.

use crate::{Agent, RoomId, UserId, Visibility};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventAudience {
    pub everyone: bool,
    pub people: Vec<UserId>,
    /// Whoever is in one of these.
    pub rooms: Vec<RoomId>,
}

impl EventAudience {
    pub const fn everyone() -> Self {
        Self { everyone: true, people: Vec::new(), rooms: Vec::new() }
    }

    /// Whoever can see an agent that is in these rooms.
    pub fn of(agent: &Agent, rooms: impl IntoIterator<Item = RoomId>) -> Self {
        let mut people = vec![agent.owner.clone()];
        if let Visibility::List(others) = &agent.visibility {
            people.extend(others.iter().filter(|user| **user != agent.owner).cloned());
        }
        let everyone = agent.visibility == Visibility::All;
        Self { everyone, people, rooms: rooms.into_iter().collect() }
    }

    /// A person, and whoever is in these rooms with them.
    pub fn user_and_rooms(user: &UserId, rooms: impl IntoIterator<Item = RoomId>) -> Self {
        Self { everyone: false, people: vec![user.clone()], rooms: rooms.into_iter().collect() }
    }

    /// About as many bytes as it takes in memory.
    pub fn length(&self) -> usize {
        let people = self.people.iter().map(|user| user.as_str().len());
        let rooms = self.rooms.iter().map(|room| room.as_str().len());
        people.chain(rooms).map(|id| id + size_of::<UserId>()).sum()
    }

    /// With those of another.
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

    fn circle(everyone: bool, people: &[&str], rooms: &[&str]) -> EventAudience {
        let people = people.iter().map(|user| UserId::stored(*user)).collect();
        EventAudience { everyone, people, rooms: rooms.iter().map(|room| RoomId::stored(*room)).collect() }
    }

    #[test]
    fn who_knew_before_is_told_too_and_everyone_once() {
        let (before, after) =
            (circle(false, &["ann", "bob"], &["lobby"]), circle(true, &["ann"], &["lobby"]));
        assert_eq!(before.and(after), circle(true, &["ann", "bob"], &["lobby"]));
    }
}
