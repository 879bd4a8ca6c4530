//! Cache of the lookups of one batch of commands.

use crate::Fault;
use crate::ports::Lookup;
use foldhash::HashMap;
use parlor_model::{Agent, AgentId, Member, Room, RoomId, UserId};
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
}
