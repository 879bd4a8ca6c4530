//! Cache of the lookups of one batch of commands.

use crate::Fault;
use crate::ports::Lookup;
use foldhash::HashMap;
use parlor_model::{Agent, AgentId, Member, MemberId, Room, RoomId, User, UserId};
use std::sync::Arc;

/// Lookup results of one open transaction. There is only one writer, so entries stay valid until the
/// transaction changes something other than messages; then the cache is cleared. It holds no more than one
/// batch looks up, so an attacker gains little from collisions in its fast hash function.
#[derive(Default)]
pub struct LookupCache {
    pub(super) rooms: HashMap<RoomId, Option<Arc<Room>>>,
    pub(super) memberships: HashMap<(RoomId, UserId), Option<Arc<Member>>>,
    pub(super) members: HashMap<RoomId, Arc<[Member]>>,
    agents_in: HashMap<RoomId, Arc<[AgentId]>>,
    pub(super) agents: HashMap<AgentId, Option<Arc<Agent>>>,
    owners: HashMap<UserId, Option<Arc<User>>>,
    pub(super) visible_agents: HashMap<(UserId, AgentId), bool>,
    /// User whose id or name equals the name of a source.
    users_by_source_name: HashMap<Box<str>, Option<User>>,
}

impl LookupCache {
    pub(super) fn agent(
        &mut self,
        id: &AgentId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Arc<Agent>>, Fault> {
        if let Some(cached) = self.agents.get(id) {
            return Ok(cached.clone());
        }
        let found = store.agent(id)?.map(Arc::new);
        self.agents.insert(id.clone(), found.clone());
        Ok(found)
    }

    /// Returns the agents that are members of a room.
    pub(super) fn agents_in(
        &mut self,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Arc<[AgentId]>, Fault> {
        if let Some(cached) = self.agents_in.get(room) {
            return Ok(cached.clone());
        }
        let found: Arc<[AgentId]> = store.agents_in(room)?.into();
        self.agents_in.insert(room.clone(), found.clone());
        Ok(found)
    }

    /// Returns the user with this id or user name.
    pub(super) fn user_named_like_source(
        &mut self,
        name: &str,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<User>, Fault> {
        if let Some(cached) = self.users_by_source_name.get(name) {
            return Ok(cached.clone());
        }
        let mut found = match UserId::parse(name) {
            Ok(id) => store.user(&id)?,
            Err(_) => None,
        };
        if found.is_none() {
            found = store.user_named(name)?;
        }
        self.users_by_source_name.insert(name.into(), found.clone());
        Ok(found)
    }

    /// Returns the user who owns an agent.
    pub(super) fn owner(
        &mut self,
        agent: &Agent,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Arc<User>>, Fault> {
        if let Some(cached) = self.owners.get(&agent.owner) {
            return Ok(cached.clone());
        }
        let found = store.user(&agent.owner)?.map(Arc::new);
        self.owners.insert(agent.owner.clone(), found.clone());
        Ok(found)
    }

    /// Whether an agent may send to another: to agents of its owner, agents shared with its owner, and agents
    /// that share a room with its owner.
    pub(super) fn may_reach(
        &mut self,
        sender: &Agent,
        target: &Agent,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<bool, Fault> {
        if sender.owner == target.owner || target.is_shared_with(&sender.owner) {
            return Ok(true);
        }
        let key = (sender.owner.clone(), target.id.clone());
        if let Some(cached) = self.visible_agents.get(&key) {
            return Ok(*cached);
        }
        let (owner, agent) = (MemberId::User(sender.owner.clone()), MemberId::Agent(target.id.clone()));
        let shares_room = store.share_a_room(&owner, &agent)?;
        self.visible_agents.insert(key, shares_room);
        Ok(shares_room)
    }
}
