//! Returns the idle prompt of an agent, in a mission scope or globally.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetIdlePrompt;
use parlor_model::{IdlePrompt, MissionScope, RoomRole, Scope};

impl Query for GetIdlePrompt {
    type Facts = MissionScope;
    /// `None` if no idle prompt is set there.
    type Answer = Option<IdlePrompt>;

    /// Globally, allowed for users who may know of the agent. In a room, allowed for its members.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<MissionScope, PermitError> {
        if self.rooms.is_empty() {
            view.visible_agent(caller, &self.agent, Scope::Read)?;
            return Ok(MissionScope::Global);
        }
        let room = view.only_selected_room(caller, &self.rooms, RoomRole::Member, Scope::Read)?.room;
        view.agent_in_room(&self.agent, &room.id)?;
        Ok(MissionScope::of(&room))
    }

    fn answer(
        &self,
        mission_scope: MissionScope,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Option<IdlePrompt>, Fault> {
        store.idle(&mission_scope, &self.agent)
    }
}
