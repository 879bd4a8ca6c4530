//! Ends the active mission of a mission scope.

use super::audit::audit_mission;
use super::in_scope::InScope;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::EndMission;
use parlor_model::{EntityKind, Refusal, RoomRole, Scope};

impl Command for EndMission {
    type Facts = InScope;
    type Receipt = ();

    /// Allowed for admins of the room. A mission that was set in another room with the same project root may
    /// be ended only by site admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<InScope, PermitError> {
        let admin = view.only_selected_room(caller, &self.rooms, RoomRole::Admin, Scope::Write)?;
        let in_scope = InScope::of(&admin.room, view)?;
        in_scope.may_end(caller, &admin.room.id)?;
        Ok(in_scope)
    }

    fn decide(self, in_scope: InScope, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let ended = in_scope.end_and_publish(effects).ok_or(Refusal::NotFound(EntityKind::Mission))?;
        audit_mission(&ended, effects);
        Ok(())
    }
}
