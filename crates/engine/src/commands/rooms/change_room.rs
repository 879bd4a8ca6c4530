//! Changes the settings of a room.

use super::room_settings;
use crate::Limits;
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::ChangeRoom;
use parlor_model::{Event, Refusal, Room, RoomRole, Scope};
use std::sync::Arc;

impl Command for ChangeRoom {
    type Facts = InRoom;
    type Receipt = Arc<Room>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        room_settings::validate(&self.changes, &mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for admins of the room. They may assign a shared router or one of their own.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<InRoom, PermitError> {
        let admin = view.in_room(caller, &self.room, RoomRole::Admin, Scope::Write)?;
        room_settings::require_router(&self.changes, &admin.caller, view)?;
        Ok(admin)
    }

    fn decide(self, admin: InRoom, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Room>, Refusal> {
        let mut room = Room::clone(&admin.room);
        room_settings::apply(&self.changes, &mut room);
        room.updated_at = effects.now;
        let room = Arc::new(room);
        effects.change(RoomChange::PutRoom(room.clone()));
        effects.publish(Event::RoomChanged(room.clone()));
        Ok(room)
    }
}
