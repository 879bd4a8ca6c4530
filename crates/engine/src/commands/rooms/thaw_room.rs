//! Ends the freeze of a room.

use super::audit::room_subject;
use super::freezing::Freezer;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::ThawRoom;
use parlor_model::{Refusal, Room, RoomRole};
use std::sync::Arc;

impl Command for ThawRoom {
    type Facts = Freezer;
    type Receipt = Arc<Room>;

    /// Allowed for the user who froze the room, for room admins, and for the operator; not for API keys.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Freezer, PermitError> {
        let freezer = Freezer::require(&self.room, caller, view)?;
        let Some(member) = &freezer.member else { return Ok(freezer) };
        let frozen_by = freezer.room.frozen.as_ref().and_then(|frozen| frozen.by.as_ref());
        let may = frozen_by == Some(&member.caller.user.id) || member.member.role >= RoomRole::Admin;
        if may { Ok(freezer) } else { Err(Refusal::Forbidden.into()) }
    }

    fn decide(self, freezer: Freezer, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Room>, Refusal> {
        if !freezer.room.is_frozen() {
            return Ok(freezer.room);
        }
        let room = freezer.put(None, effects);
        effects.audit(Action::RoomThawed, room_subject(&room.id), None);
        Ok(room)
    }
}
