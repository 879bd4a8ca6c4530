//! Facts for tasks.

use super::{Facts, LookupCache};
use crate::ports::Lookup;
use crate::{Fault, Limits};
use parlor_model::command::NewTask;
use parlor_model::{AddressedBy, AgentId, Caller, MemberId, RoomId, TaskId};

impl Facts {
    pub(super) fn about_new_task(
        &mut self,
        caller: &Caller,
        new: &NewTask,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        self.in_room(caller, &new.room, store, lookup_cache)?;
        self.tasks = store.task_count(&new.room)?;
        if let Some(agent) = &new.by {
            self.agent_in_room(agent, store)?;
        }
        self.assignee(&new.room, new.assignee.as_ref(), store, lookup_cache, limits)
    }

    pub(super) fn about_task(
        &mut self,
        caller: &Caller,
        id: &TaskId,
        assignee: Option<&MemberId>,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        self.task = store.task(id)?;
        let Some(room) = self.task.as_ref().map(|task| task.room.clone()) else { return Ok(()) };
        self.in_room(caller, &room, store, lookup_cache)?;
        self.assignee(&room, assignee, store, lookup_cache, limits)
    }

    /// Loads an agent that acts on its own behalf, and its membership in `room`.
    pub(super) fn agent_in_room(
        &mut self,
        agent: &AgentId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.agent = store.agent(agent)?;
        if let Some(room) = &self.room {
            self.target = store.member(&room.id, &MemberId::Agent(agent.clone()))?;
        }
        Ok(())
    }

    fn assignee(
        &mut self,
        room: &RoomId,
        assignee: Option<&MemberId>,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        if let Some(assignee) = assignee {
            self.assignable = store.member(room, assignee)?.is_some();
            if let (true, Some(agent)) = (self.assignable, assignee.agent()) {
                self.candidate(agent, AddressedBy::Directly, None, store, lookup_cache, limits)?;
            }
        }
        Ok(())
    }
}
