//! Freezes a room: agents post nothing and run nothing there.

use super::audit::room_subject;
use super::freezing::Freezer;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::FreezeRoom;
use parlor_model::{Frozen, Refusal, Room};
use std::sync::Arc;

impl Command for FreezeRoom {
    type Facts = Freezer;
    type Receipt = Arc<Room>;

    /// Allowed for every user in the room, and for the operator; not for API keys.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Freezer, PermitError> {
        Freezer::require(&self.room, caller, view)
    }

    fn decide(self, freezer: Freezer, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Room>, Refusal> {
        if freezer.room.is_frozen() {
            // The room keeps its original user and time.
            return Ok(freezer.room);
        }
        let by = freezer.member.as_ref().map(|member| member.caller.user.id.clone());
        let room = freezer.put(Some(Frozen { by, at: effects.now }), effects);
        effects.audit(Action::RoomFrozen, room_subject(&room.id), None);
        Ok(room)
    }
}
