//! Marks all messages of a room as read by the caller.

use super::read_marks::mark_read;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::MarkRoomRead;
use parlor_model::{Refusal, RoomRole, Scope, Seq};

pub struct Facts {
    reader: InRoom,
    /// The newest message of the room, if any.
    newest: Option<Seq>,
}

impl Command for MarkRoomRead {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let reader = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        Ok(Facts { reader, newest: view.store.newest_message(&self.room)? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        mark_read(self.room, &facts.reader.caller.user, facts.newest.unwrap_or_default(), effects);
        Ok(())
    }
}
