//! Occupants: presence sets of places. A place is a room (`room/{id}`) or a path outside rooms.
//!
//! A member is one client id of one connection. Clients enter with a [`PresenceGuard`], which outlives their socket by
//! a grace period. The hub adds derived members: users who are online through protocols without presence sets, and
//! agents that are online. The sets are kept in memory: after a restart they are empty, and clients enter again.
//!
//! Owns: which members a place has, and the order of their changes. Subscribers with [`super::Kinds::PRESENCE`]
//! receive the complete set when they open a place, and each later change once and in order: both happen under the
//! fan-out's lock, so the set and the changes have no gap and no overlap. Facts about users are read before that lock
//! is taken.

mod derive;
mod directory;
mod guard;
mod history;
mod list;
mod load;
mod occupancy;
mod sets;
#[cfg(test)]
mod tests;

pub(crate) use load::run_loop;

pub use guard::PresenceGuard;
pub use history::{OccupantHistory, OccupantRecord};
pub use occupancy::Occupancy;
pub use sets::Access;

use super::fanout::{Fanout, FanoutState};
use super::item::Shared;
use super::presence::Departures;
use crate::Limits;
use crate::ports::Clock;
use directory::Directory;
use history::History;
use parlor_model::{AgentId, Occupant, Path, Payload, Principal, SignalStamp, UserId};
use sets::{Changed, PresenceSets};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// State that a client reports for a member of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupantUpdate {
    pub client: Box<str>,
    /// Id of the state. If it begins with the name of the connection, `order` is its number.
    pub id: Box<str>,
    pub order: Option<(u64, u64)>,
    /// JSON that only the client's protocol reads. If a departure has no data, subscribers receive the last data.
    pub data: Option<Payload>,
    /// Agents of the user that the member itself announces: the hub derives no member from them in this place.
    pub agents: Vec<AgentId>,
}

/// The complete presence set of a place.
pub struct OccupantList {
    pub place: Path,
    pub occupants: Vec<Arc<Occupant>>,
    /// Two lists of one subscriber with the same stamp contain the same set.
    pub stamp: SignalStamp,
}

/// A presence set as an item.
pub type SharedOccupants = Shared<OccupantList>;

/// State of all presence sets. Part of the fan-out's state, under its lock.
pub struct Occupants {
    sets: PresenceSets,
    history: History,
    directory: Directory,
    /// Derived members of each place with subscribers, by user, as published last.
    derived: HashMap<Path, BTreeMap<UserId, Arc<Occupant>>>,
    /// Place in which every user who is online is a derived member.
    pub(super) users_place: Option<Path>,
    /// Users whose last connection with derived members ended less than a grace period ago.
    departures: Departures,
    /// Departures of ended credentials that are not published yet.
    ended: Vec<Changed>,
    /// Whether the loop must wake up because a grace period has begun or facts are needed.
    wakes: bool,
    clock: Arc<dyn Clock>,
    /// Items of sets that have not changed since they were sent, by place; subscribers share them.
    lists: HashMap<Path, Arc<SharedOccupants>>,
}

impl Occupants {
    pub fn new(limits: &Limits, clock: Arc<dyn Clock>) -> Self {
        Self {
            sets: PresenceSets::new(limits),
            history: History::new(limits),
            directory: Directory::default(),
            derived: HashMap::new(),
            users_place: None,
            departures: Departures::default(),
            ended: Vec::new(),
            wakes: false,
            clock,
            lists: HashMap::new(),
        }
    }

    /// Whether a user is a member of any place through a client.
    pub fn has_user(&self, user: &UserId) -> bool {
        self.sets.has_user(user)
    }

    /// Principals of the connections with members.
    pub fn principals(&self) -> impl Iterator<Item = &Principal> {
        self.sets.principals()
    }

    /// Begins the grace period of a user whose last connection with derived members has ended.
    pub fn departed(&mut self, user: &UserId) {
        if self.directory.is_used() {
            self.departures.add(user.clone());
            self.wakes = true;
        }
    }

    /// Removes the members of a user's connections whose principal `matches`. The fan-out publishes it later.
    pub fn end(&mut self, user: &UserId, matches: impl Fn(&Principal) -> bool) {
        let ended = self.sets.end(user, matches, self.clock.now());
        self.ended.extend(ended);
    }
}

impl Fanout {
    /// Wakes the loop of presence sets if a grace period has begun.
    pub(super) fn wake_occupants(&self, state: &mut FanoutState) {
        if std::mem::take(&mut state.occupants.wakes) {
            self.occupants_changed.notify_one();
        }
    }
}
