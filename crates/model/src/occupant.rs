//! Occupants: the members of a place's presence set. A place is a room or a path outside rooms.

use crate::{AgentId, Payload, RoomId, Time, UserId};
use serde::{Deserialize, Serialize};

/// A member of a place's presence set: one client id of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// Name of the connection; [`Occupant::HUB`] for a derived member.
    pub connection: Box<str>,
    /// Client id of the member, unique within its connection; the user id of a derived member.
    pub client: Box<str>,
    /// Id of this state of the member.
    pub id: Box<str>,
    /// Number of this state in the order of the states that the connection reported; `None` for a state that the hub
    /// made, such as the departure of a lost connection.
    pub order: Option<(u64, u64)>,
    /// Time at which the hub received or made this state.
    pub at: Time,
    pub source: OccupantSource,
}

/// Origin of a member of a presence set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OccupantSource {
    /// A client entered the place. The data is JSON that only the client's protocol reads.
    Client { data: Option<Payload> },
    /// The hub derived the member from connections of other protocols.
    Derived(PresentUser),
}

/// Derived member of a place: a user who is online or has agents that are online.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentUser {
    pub user: UserId,
    pub username: Box<str>,
    /// Whether the user is online; otherwise only the user's agents are online.
    pub online: bool,
    /// Rooms that the user shares with the receiver, by id. In the presence set of a room, only that room.
    pub rooms: Vec<RoomId>,
    /// Agents of the user that are online in these rooms, by id.
    pub agents: Vec<PresentAgent>,
}

/// An agent that is online.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentAgent {
    pub id: AgentId,
    pub name: Box<str>,
    pub description: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OccupantChange {
    Entered,
    Updated,
    Left,
}

impl Occupant {
    /// Connection name of derived members. No connection of a client has this name.
    pub const HUB: &str = "hub";

    /// Whether this state replaces `current`, an earlier received state of the same member.
    ///
    /// States that the connection itself reported are ordered by their numbers. If the hub made one of the two states,
    /// they are ordered by time, and `self` is newer if the times are equal.
    pub fn is_newer_than(&self, current: &Self) -> bool {
        match (self.order, current.order) {
            (Some(order), Some(than)) => order > than,
            _ => self.at >= current.at,
        }
    }

    pub fn data(&self) -> Option<&Payload> {
        match &self.source {
            OccupantSource::Client { data } => data.as_ref(),
            OccupantSource::Derived(_) => None,
        }
    }

    /// Returns the bytes of all texts.
    pub fn length(&self) -> usize {
        let source = match &self.source {
            OccupantSource::Client { data } => data.as_ref().map_or(0, |data| data.0.len()),
            OccupantSource::Derived(user) => user.length(),
        };
        self.connection.len() + self.client.len() + self.id.len() + source
    }
}

impl PresentUser {
    fn length(&self) -> usize {
        let rooms: usize = self.rooms.iter().map(|room| room.as_str().len()).sum();
        let agents = self.agents.iter().map(|agent| agent.name.len() + agent.description.len());
        self.username.len() + rooms + agents.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(order: Option<(u64, u64)>, at: i64) -> Occupant {
        let source = OccupantSource::Client { data: None };
        Occupant {
            connection: "c1".into(),
            client: "ann".into(),
            id: "x".into(),
            order,
            at: Time(at),
            source,
        }
    }

    #[track_caller]
    fn check(incoming: (Option<(u64, u64)>, i64), current: (Option<(u64, u64)>, i64), newer: bool) {
        let (incoming, current) = (state(incoming.0, incoming.1), state(current.0, current.1));
        assert_eq!(incoming.is_newer_than(&current), newer, "{incoming:?} after {current:?}");
    }

    #[test]
    fn states_of_the_own_connection_are_ordered_by_number() {
        check((Some((10, 0)), 1), (Some((9, 5)), 2), true);
        check((Some((9, 1)), 1), (Some((9, 0)), 2), true);
        check((Some((9, 0)), 3), (Some((9, 0)), 2), false);
        check((Some((8, 9)), 3), (Some((9, 0)), 2), false);
    }

    #[test]
    fn states_that_the_hub_made_are_ordered_by_time() {
        check((None, 5), (Some((9, 0)), 5), true);
        check((None, 4), (Some((9, 0)), 5), false);
        check((Some((1, 0)), 6), (None, 5), true);
    }
}
