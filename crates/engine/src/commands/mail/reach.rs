//! Which agents a routed message may reach, and who may send as an external source.

use crate::Fault;
use crate::read_view::WriterView;
use foldhash::{HashMap, HashSet};
use parlor_model::{Agent, AgentId, MemberId, Path, Room, RoomId, SiteRole, User, UserId};
use std::sync::Arc;

/// Lookups for the routed messages of one batch that the writer's cache does not keep: rows that do not exist,
/// and shared rooms. There is only one writer, so entries stay valid until the batch changes something other
/// than messages; then they are removed. They are no more than one batch looks up, so an attacker gains little
/// from collisions in the fast hash function.
#[derive(Default)]
pub struct RouteLookups {
    absent_agents: HashSet<AgentId>,
    absent_rooms: HashSet<RoomId>,
    /// Whether a user has this id or user name.
    user_names: HashMap<Box<str>, bool>,
    /// Whether a user shares a room with an agent.
    shared_rooms: HashMap<(UserId, AgentId), bool>,
}

impl WriterView<'_> {
    /// An agent that a routed message names and that need not exist.
    pub(super) fn routed_agent(&mut self, id: &AgentId) -> Result<Option<Arc<Agent>>, Fault> {
        if self.route_lookups.absent_agents.contains(id) {
            return Ok(None);
        }
        let found = self.agent(id)?;
        if found.is_none() {
            self.route_lookups.absent_agents.insert(id.clone());
        }
        Ok(found)
    }

    /// A room that a routed message names and that need not exist.
    pub(super) fn routed_room(&mut self, id: &RoomId) -> Result<Option<Arc<Room>>, Fault> {
        if self.route_lookups.absent_rooms.contains(id) {
            return Ok(None);
        }
        let found = self.room(id)?;
        if found.is_none() {
            self.route_lookups.absent_rooms.insert(id.clone());
        }
        Ok(found)
    }

    /// Whether a user has this id or user name, so that a source of this name could impersonate the user.
    pub(super) fn is_name_of_user(&mut self, name: &str) -> Result<bool, Fault> {
        if let Some(known) = self.route_lookups.user_names.get(name) {
            return Ok(*known);
        }
        let by_id = match UserId::parse(name) {
            Ok(id) => self.user(&id)?.is_some(),
            Err(_) => false,
        };
        let found = by_id || self.store.user_named(name)?.is_some();
        self.route_lookups.user_names.insert(name.into(), found);
        Ok(found)
    }

    /// Whether an agent may send to another: to agents of its owner, agents shared with its owner, and agents
    /// that share a room with its owner.
    pub(super) fn may_reach(&mut self, sender: &Agent, target: &Agent) -> Result<bool, Fault> {
        if sender.owner == target.owner || target.is_shared_with(&sender.owner) {
            return Ok(true);
        }
        let key = (sender.owner.clone(), target.id.clone());
        if let Some(known) = self.route_lookups.shared_rooms.get(&key) {
            return Ok(*known);
        }
        let (owner, agent) = (MemberId::User(sender.owner.clone()), MemberId::Agent(target.id.clone()));
        let shares_room = self.store.share_a_room(&owner, &agent)?;
        self.route_lookups.shared_rooms.insert(key, shares_room);
        Ok(shares_room)
    }
}

/// Whether agents of `owner` may receive messages that a source publishes on a path. True for the account
/// behind the source, for site admins, and for users with a matching `source_patterns` entry, which an admin
/// grants.
pub fn may_receive_from_source(owner: &User, behind: &UserId, path: &Path) -> bool {
    let is_granted = || owner.source_patterns.iter().any(|pattern| pattern.matches(path));
    *behind == owner.id || owner.role == SiteRole::Admin || is_granted()
}
