//! Members that clients entered, by place, and by the connection that holds them.
//!
//! Owns: which of two states of a member counts, the limits, and the grace period of a lost connection.

use super::OccupantUpdate;
use crate::Limits;
use parlor_model::{
    AgentId, Occupant, OccupantChange, OccupantSource, Path, Principal, Refusal, Time, UserId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub struct PresenceSets {
    places: HashMap<Path, BTreeMap<MemberKey, Member>>,
    connections: HashMap<Box<str>, Holder>,
    of_user: HashMap<UserId, HashMap<Path, BTreeSet<MemberKey>>>,
    /// Lost connections in the order of their deadlines. Entries with an outdated [`Hold`] are ignored.
    lost: VecDeque<(Instant, Hold)>,
    members: usize,
    bytes: usize,
    last_hold: u64,
    /// Number of the newest state that the hub made. It follows the clock, so that it also increases over restarts.
    last_number: u64,
    limits: OccupantLimits,
}

/// Identifies a member of a place: one client id of one connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MemberKey {
    connection: Box<str>,
    client: Box<str>,
}

struct Member {
    occupant: Arc<Occupant>,
    /// Agents that the member announces itself.
    agents: Vec<AgentId>,
    access: Access,
}

/// Permission by which a member is in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Membership of the room.
    ByMembership,
    /// A grant of the credential, which ends with the credential.
    ByGrant,
    /// The role of the account, which may change.
    ByRole,
}

/// A guard's claim to the members of a connection. A newer claim replaces an older one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub connection: Box<str>,
    number: u64,
}

struct Holder {
    user: UserId,
    principal: Principal,
    /// Number of the current [`Hold`].
    hold: u64,
    members: BTreeSet<(Path, Box<str>)>,
}

struct OccupantLimits {
    per_place: usize,
    per_connection: usize,
    total: usize,
    member_bytes: usize,
    bytes: usize,
    grace: Duration,
}

/// A change of a set, to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub place: Path,
    pub user: UserId,
    pub change: OccupantChange,
    pub occupant: Arc<Occupant>,
}

impl PresenceSets {
    pub fn new(limits: &Limits) -> Self {
        Self {
            places: HashMap::new(),
            connections: HashMap::new(),
            of_user: HashMap::new(),
            lost: VecDeque::new(),
            members: 0,
            bytes: 0,
            last_hold: 0,
            last_number: 0,
            limits: OccupantLimits {
                per_place: limits.place_occupants,
                per_connection: limits.connection_occupants,
                total: limits.occupants,
                member_bytes: limits.occupant_bytes,
                bytes: limits.all_occupant_bytes,
                grace: limits.occupant_grace,
            },
        }
    }

    /// Claims the members of a connection for a new guard. Refuses members of another user.
    pub fn hold(&mut self, connection: &str, user: &UserId, principal: &Principal) -> Result<Hold, Refusal> {
        self.last_hold += 1;
        let hold = self.last_hold;
        match self.connections.get_mut(connection) {
            Some(holder) if holder.user != *user => return Err(Refusal::Forbidden),
            Some(holder) => (holder.hold, holder.principal) = (hold, principal.clone()),
            None => {
                let (user, principal) = (user.clone(), principal.clone());
                let holder = Holder { user, principal, hold, members: BTreeSet::new() };
                self.connections.insert(connection.into(), holder);
            }
        }
        Ok(Hold { connection: connection.into(), number: hold })
    }

    /// Enters a place or updates the member. Returns `None` if the state is older than the current one, or if another
    /// guard has claimed the connection.
    pub fn enter(
        &mut self,
        hold: &Hold,
        place: &Path,
        access: Access,
        update: OccupantUpdate,
        now: Time,
    ) -> Result<Option<Changed>, Refusal> {
        // The credential of the connection has ended.
        let Some(holder) = self.connections.get_mut(&hold.connection) else {
            return Err(Refusal::NotSignedIn);
        };
        if holder.hold != hold.number {
            return Ok(None);
        }
        let key = MemberKey { connection: hold.connection.clone(), client: update.client.clone() };
        let current = self.places.get(place).and_then(|members| members.get(&key));
        let occupant = Occupant {
            connection: hold.connection.clone(),
            client: update.client,
            id: update.id,
            order: update.order,
            at: now,
            source: OccupantSource::Client { data: update.data },
        };
        if current.is_some_and(|current| !occupant.is_newer_than(&current.occupant)) {
            return Ok(None);
        }
        let (length, limits) = (occupant.length(), &self.limits);
        if length > limits.member_bytes {
            return Err(Refusal::TooLarge { limit: limits.member_bytes, got: length });
        }
        let bytes = self.bytes + length - current.map_or(0, |current| current.occupant.length());
        let in_place = self.places.get(place).map_or(0, BTreeMap::len);
        let is_full = current.is_none()
            && (in_place >= limits.per_place
                || holder.members.len() >= limits.per_connection
                || self.members >= limits.total);
        if is_full || bytes > limits.bytes {
            return Err(Refusal::AtCapacity);
        }
        let change = match current {
            Some(_) => OccupantChange::Updated,
            None => OccupantChange::Entered,
        };
        let (occupant, user) = (Arc::new(occupant), holder.user.clone());
        holder.members.insert((place.clone(), key.client.clone()));
        let of_user = self.of_user.entry(user.clone()).or_default();
        of_user.entry(place.clone()).or_default().insert(key.clone());
        let member = Member { occupant: occupant.clone(), agents: update.agents, access };
        self.places.entry(place.clone()).or_default().insert(key, member);
        self.members += usize::from(change == OccupantChange::Entered);
        self.bytes = bytes;
        Ok(Some(Changed { place: place.clone(), user, change, occupant }))
    }

    /// Leaves a place. Returns `None` if the client is not a member, if the departure is older than the member's state,
    /// or if another guard has claimed the connection.
    pub fn leave(&mut self, hold: &Hold, place: &Path, update: OccupantUpdate, now: Time) -> Option<Changed> {
        self.held(hold)?;
        let key = MemberKey { connection: hold.connection.clone(), client: update.client };
        let current = &self.places.get(place)?.get(&key)?.occupant;
        let left = Occupant {
            connection: key.connection.clone(),
            client: key.client.clone(),
            id: update.id,
            order: update.order,
            at: now,
            source: match update.data {
                Some(data) => OccupantSource::Client { data: Some(data) },
                None => current.source.clone(),
            },
        };
        if !left.is_newer_than(current) {
            return None;
        }
        self.remove(place, &key)?;
        let user = self.connections.get(&hold.connection)?.user.clone();
        Some(Changed { place: place.clone(), user, change: OccupantChange::Left, occupant: Arc::new(left) })
    }

    /// Removes the members of a connection from one place.
    pub fn leave_place(&mut self, hold: &Hold, place: &Path, now: Time) -> Vec<Changed> {
        let Some(holder) = self.held(hold) else { return Vec::new() };
        let here = holder.members.iter().filter(|(of, _)| of == place).cloned().collect();
        self.depart(&hold.connection, here, now)
    }

    /// Removes a connection and its members at once.
    pub fn close(&mut self, hold: &Hold, now: Time) -> Vec<Changed> {
        match self.held(hold) {
            Some(_) => self.end_connection(&hold.connection, now),
            None => Vec::new(),
        }
    }

    /// Begins the grace period of a connection.
    pub fn lose(&mut self, hold: &Hold) {
        let Some(holder) = self.held(hold) else { return };
        if holder.members.is_empty() {
            self.connections.remove(&hold.connection);
            return;
        }
        self.lost.push_back((Instant::now() + self.limits.grace, hold.clone()));
    }

    /// End of the next grace period.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.lost.front().map(|(deadline, _)| *deadline)
    }

    /// Removes the members of the connections whose grace period has ended.
    pub fn take_due(&mut self, instant: Instant, now: Time) -> Vec<Changed> {
        let due = self.lost.partition_point(|(deadline, _)| *deadline <= instant);
        let due: Vec<Hold> = self.lost.drain(..due).map(|(_, hold)| hold).collect();
        due.iter().flat_map(|hold| self.close(hold, now)).collect()
    }

    /// Ends the connections of a user whose principal `matches`.
    pub fn end(&mut self, user: &UserId, matches: impl Fn(&Principal) -> bool, now: Time) -> Vec<Changed> {
        let mut ended = Vec::new();
        for (connection, holder) in &self.connections {
            if holder.user == *user && matches(&holder.principal) {
                ended.push(connection.clone());
            }
        }
        ended.iter().flat_map(|connection| self.end_connection(connection, now)).collect()
    }

    /// Replaces the principal of a connection, whose client has sent another credential.
    pub fn set_principal(&mut self, hold: &Hold, principal: &Principal) {
        if self.held(hold).is_some()
            && let Some(holder) = self.connections.get_mut(&hold.connection)
        {
            holder.principal = principal.clone();
        }
    }

    /// Places with members of a connection.
    pub fn places_of(&self, hold: &Hold) -> BTreeSet<Path> {
        let members = self.held(hold).into_iter().flat_map(|holder| &holder.members);
        members.map(|(place, _)| place.clone()).collect()
    }

    /// Principals of the connections that hold members.
    pub fn principals(&self) -> impl Iterator<Item = &Principal> {
        self.connections.values().map(|holder| &holder.principal)
    }

    /// Removes the members of a user from a place for which the user has lost the right.
    pub fn remove_user(&mut self, place: &Path, user: &UserId, now: Time) -> Vec<Changed> {
        self.remove_where(user, |of, _| of == place, now)
    }

    /// Removes the members that a user has by the role of the account.
    pub fn remove_by_role(&mut self, user: &UserId, now: Time) -> Vec<Changed> {
        self.remove_where(user, |_, member| member.access == Access::ByRole, now)
    }

    fn remove_where(
        &mut self,
        user: &UserId,
        matches: impl Fn(&Path, &Member) -> bool,
        now: Time,
    ) -> Vec<Changed> {
        let mut removed = Vec::new();
        for (place, keys) in self.of_user.get(user).into_iter().flatten() {
            for key in keys {
                if self.member(place, key).is_some_and(|member| matches(place, member)) {
                    removed.push((key.connection.clone(), (place.clone(), key.client.clone())));
                }
            }
        }
        removed.into_iter().flat_map(|(connection, one)| self.depart(&connection, vec![one], now)).collect()
    }

    /// Removes all members of a place that no longer exists.
    pub fn clear(&mut self, place: &Path, now: Time) -> Vec<Changed> {
        let keys: Vec<MemberKey> =
            self.places.get(place).into_iter().flatten().map(|(key, _)| key.clone()).collect();
        let one = |key: MemberKey| (key.connection, vec![(place.clone(), key.client)]);
        let all: Vec<_> = keys.into_iter().map(one).collect();
        all.into_iter().flat_map(|(connection, one)| self.depart(&connection, one, now)).collect()
    }

    /// Members of a place and their users, in the order of their connections and client ids.
    pub fn in_place(&self, place: &Path) -> impl Iterator<Item = (&UserId, &Arc<Occupant>)> {
        let members = self.places.get(place).into_iter().flatten();
        members.filter_map(|(key, member)| {
            let holder = self.connections.get(&key.connection)?;
            Some((&holder.user, &member.occupant))
        })
    }

    /// Members of a place that a user has entered.
    pub fn entered_by(&self, user: &UserId, place: &Path) -> Vec<Arc<Occupant>> {
        let keys = self.of_user.get(user).and_then(|places| places.get(place)).into_iter().flatten();
        keys.filter_map(|key| Some(self.member(place, key)?.occupant.clone())).collect()
    }

    /// Users with members.
    pub fn users(&self) -> impl Iterator<Item = &UserId> {
        self.of_user.keys()
    }

    pub fn has_user(&self, user: &UserId) -> bool {
        self.of_user.contains_key(user)
    }

    /// Whether a user has entered a place, and the agents that the members of the user announce there.
    pub fn of_user_in(&self, user: &UserId, place: &Path) -> Option<BTreeSet<&AgentId>> {
        let keys = self.of_user.get(user)?.get(place)?;
        let members = keys.iter().filter_map(|key| self.member(place, key));
        Some(members.flat_map(|member| &member.agents).collect())
    }

    /// Number for a state that the hub makes.
    pub fn next_number(&mut self, now: Time) -> u64 {
        self.last_number = (self.last_number + 1).max(now.0.max(0).unsigned_abs());
        self.last_number
    }

    /// Number and bytes of all members.
    #[cfg(test)]
    pub fn totals(&self) -> (usize, usize) {
        (self.members, self.bytes)
    }

    fn member(&self, place: &Path, key: &MemberKey) -> Option<&Member> {
        self.places.get(place)?.get(key)
    }

    fn held(&self, hold: &Hold) -> Option<&Holder> {
        self.connections.get(&hold.connection).filter(|holder| holder.hold == hold.number)
    }

    fn end_connection(&mut self, connection: &str, now: Time) -> Vec<Changed> {
        let members = self.connections.get(connection).map(|holder| holder.members.iter().cloned().collect());
        let changed = self.depart(connection, members.unwrap_or_default(), now);
        self.connections.remove(connection);
        changed
    }

    /// Removes members without a request of their client. The id of such a departure does not begin with the
    /// connection's name.
    fn depart(&mut self, connection: &str, members: Vec<(Path, Box<str>)>, now: Time) -> Vec<Changed> {
        let Some(user) = self.connections.get(connection).map(|holder| holder.user.clone()) else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        for (place, client) in members {
            let key = MemberKey { connection: connection.into(), client };
            let Some(last) = self.remove(&place, &key) else { continue };
            let id = hub_id(self.next_number(now));
            // At least the time of the last state, because the clock may have been set back.
            let (at, order) = (now.max(last.at), None);
            let occupant = Arc::new(Occupant { id, at, order, ..Occupant::clone(&last) });
            changed.push(Changed { place, user: user.clone(), change: OccupantChange::Left, occupant });
        }
        changed
    }

    fn remove(&mut self, place: &Path, key: &MemberKey) -> Option<Arc<Occupant>> {
        let members = self.places.get_mut(place)?;
        let removed = members.remove(key)?;
        if members.is_empty() {
            self.places.remove(place);
        }
        self.members -= 1;
        self.bytes -= removed.occupant.length();
        let holder = self.connections.get_mut(&key.connection)?;
        holder.members.remove(&(place.clone(), key.client.clone()));
        let of_user = self.of_user.get_mut(&holder.user)?;
        if let Some(keys) = of_user.get_mut(place) {
            keys.remove(key);
            if keys.is_empty() {
                of_user.remove(place);
            }
        }
        if of_user.is_empty() {
            self.of_user.remove(&holder.user);
        }
        Some(removed.occupant)
    }
}

/// Id of a state that the hub made.
pub fn hub_id(number: u64) -> Box<str> {
    format!("{}:{number}:0", Occupant::HUB).into()
}
