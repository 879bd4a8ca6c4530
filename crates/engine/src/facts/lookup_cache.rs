//! What one group of commands looks up only once.

use super::AuthContext;
use crate::Fault;
use crate::ports::Lookup;
use foldhash::HashMap;
use parlor_model::{Agent, AgentId, Caller, Member, MemberId, Room, RoomId, User, UserId};
use std::sync::Arc;

/// What was already looked up within one open transaction. Nobody else can write meanwhile, so it stays true
/// until the transaction itself changes something other than messages; then it is emptied. It never holds more than a
/// group asks for, so its quick hashing can be fooled into little.
#[derive(Default)]
pub struct LookupCache {
    pub(super) standings: HashMap<Caller, Option<Arc<AuthContext>>>,
    pub(super) rooms: HashMap<RoomId, Option<Arc<Room>>>,
    pub(super) memberships: HashMap<(RoomId, UserId), Option<Arc<Member>>>,
    pub(super) members: HashMap<RoomId, Arc<[Member]>>,
    agents_in: HashMap<RoomId, Arc<[AgentId]>>,
    pub(super) agents: HashMap<AgentId, Option<Arc<Agent>>>,
    owners: HashMap<UserId, Option<Arc<User>>>,
    pub(super) visible_agents: HashMap<(UserId, AgentId), bool>,
    /// The person whom a source's name would be taken for.
    users_by_source_name: HashMap<Box<str>, Option<User>>,
}

impl LookupCache {
    pub(super) fn agent(
        &mut self,
        id: &AgentId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Arc<Agent>>, Fault> {
        if let Some(known) = self.agents.get(id) {
            return Ok(known.clone());
        }
        let found = store.agent(id)?.map(Arc::new);
        self.agents.insert(id.clone(), found.clone());
        Ok(found)
    }

    /// The agents among the members of a room.
    pub(super) fn agents_in(
        &mut self,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Arc<[AgentId]>, Fault> {
        if let Some(known) = self.agents_in.get(room) {
            return Ok(known.clone());
        }
        let found: Arc<[AgentId]> = store.agents_in(room)?.into();
        self.agents_in.insert(room.clone(), found.clone());
        Ok(found)
    }

    /// The person with this id or this name.
    pub(super) fn namesake(
        &mut self,
        name: &str,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<User>, Fault> {
        if let Some(known) = self.users_by_source_name.get(name) {
            return Ok(known.clone());
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

    /// The person who answers for an agent.
    pub(super) fn owner(
        &mut self,
        agent: &Agent,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Arc<User>>, Fault> {
        if let Some(known) = self.owners.get(&agent.owner) {
            return Ok(known.clone());
        }
        let found = store.user(&agent.owner)?.map(Arc::new);
        self.owners.insert(agent.owner.clone(), found.clone());
        Ok(found)
    }

    /// An agent reaches those its owner may know of: the owner's own, those shared with them, and those in a
    /// common room.
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
        if let Some(known) = self.visible_agents.get(&key) {
            return Ok(*known);
        }
        let (owner, agent) = (MemberId::User(sender.owner.clone()), MemberId::Agent(target.id.clone()));
        let acquainted = store.share_a_room(&owner, &agent)?;
        self.visible_agents.insert(key, acquainted);
        Ok(acquainted)
    }
}
