//! Occupants: presence sets of places. A place is a room (`room/{id}`) or a path outside rooms.
//!
//! A member is one client id of one connection. The sets are kept in memory: after a restart they are empty, and
//! clients enter again.

mod guard;
mod history;

pub use guard::PresenceGuard;
pub use history::{OccupantHistory, OccupantRecord};

use super::item::Shared;
use parlor_model::{AgentId, Occupant, Path, Payload, SignalStamp};
use std::sync::Arc;

/// State that a client reports for a member of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupantUpdate {
    pub client: Box<str>,
    /// Id of the state, and its number if the id begins with the name of the connection.
    pub id: Box<str>,
    pub order: Option<(u64, u64)>,
    /// JSON that only the client's protocol reads. A departure without data carries the last data.
    pub data: Option<Payload>,
    /// Agents of the user that the member itself announces: the hub derives no member from them in this place.
    pub agents: Vec<AgentId>,
}

/// A part of a presence set. A set is sent as one or more parts, in order and without other items of the place
/// between them.
pub struct OccupantList {
    pub place: Path,
    /// In the order of their connections and client ids.
    pub occupants: Vec<Arc<Occupant>>,
    /// Number of the part, from 0.
    pub part: usize,
    /// Whether this is the last part.
    pub last: bool,
    /// Equal for all parts of a set.
    pub stamp: SignalStamp,
}

/// A part of a presence set as an item.
pub type SharedOccupants = Shared<OccupantList>;
