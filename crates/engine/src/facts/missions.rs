//! Facts for missions and idle prompts.

use super::{Facts, LookupCache};
use crate::ports::Lookup;
use crate::routing_index::RoutingIndex;
use crate::{Fault, Limits};
use parlor_model::{AddressedBy, AgentId, Caller, MemberId, MissionId, MissionScope, RoomId};
use std::sync::Arc;

impl Facts {
    /// Loads a room, the newest mission of its mission scope, and all rooms in that scope.
    pub(super) fn about_mission(
        &mut self,
        caller: &Caller,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        self.in_room(caller, room, store, lookup_cache)?;
        self.about_realm(store)
    }

    /// Loads the newest mission in the mission scope of `room`, and all rooms in that scope.
    fn about_realm(&mut self, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        let Some(room) = &self.room else { return Ok(()) };
        self.mission = store.missions(&MissionScope::of(room), 1)?.pop();
        self.realm = match &room.project_root {
            Some(root) => store.rooms_about(root)?.into_iter().map(Arc::new).collect(),
            None => vec![room.clone()],
        };
        Ok(())
    }

    /// Loads the idle prompt of an agent: in the mission scope of a room, or globally.
    pub(super) fn about_idle(
        &mut self,
        caller: &Caller,
        agent: &AgentId,
        room: Option<&RoomId>,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        self.agent = store.agent(agent)?;
        let mission_scope = match room {
            None => {
                self.rooms_of_agent(store)?;
                Some(MissionScope::Global)
            }
            Some(room) => {
                self.in_room(caller, room, store, lookup_cache)?;
                self.target = store.member(room, &MemberId::Agent(agent.clone()))?;
                self.about_realm(store)?;
                self.room.as_deref().map(MissionScope::of)
            }
        };
        if let Some(mission_scope) = mission_scope {
            self.overridden = store.idle(&mission_scope, agent)?;
        }
        Ok(())
    }

    /// Loads a mission, the user who created it, and an agent to prompt for it.
    pub(super) fn about_prompt(
        &mut self,
        mission: &MissionId,
        agent: &AgentId,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        self.mission = store.mission(mission)?;
        let Some(mission) = self.mission.clone() else { return Ok(()) };
        self.about_speaker(agent, &mission.room, store)?;
        self.user = store.user(&mission.created_by)?;
        let by = MemberId::User(mission.created_by.clone());
        self.membership = store.member(&mission.room, &by)?.map(Into::into);
        self.overridden = store.idle(&mission.mission_scope, agent)?;
        self.own_idle = store.idle(&MissionScope::Global, agent)?;
        self.busy = store.has_open_run(agent)?;
        self.room_recipients(&mission.room, None, store, routing_index, lookup_cache)?;
        self.candidate(agent, AddressedBy::Directly, None, store, lookup_cache, limits)
    }
}
