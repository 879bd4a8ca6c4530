//! Deletion of messages, by any command.

use crate::changes::MessageChange;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::{Event, MessageId, Refusal, RoomId, RoomRole, Scope};

/// Evidence that the caller may delete a message.
pub struct Deletable {
    message: MessageId,
    room: RoomId,
}

impl Deletable {
    /// Requires a message of the caller, or that the caller is an admin of its room.
    pub fn permit(
        caller: &CallerContext,
        message: &MessageId,
        view: &mut WriterView<'_>,
    ) -> Result<Self, PermitError> {
        let found = view.message_in_own_room(caller, message, Scope::Write)?;
        let may = found.is_own() || found.member.role >= RoomRole::Admin;
        if may {
            Ok(Self { message: found.message.id.clone(), room: found.room })
        } else {
            Err(Refusal::Forbidden.into())
        }
    }

    pub fn delete(self, effects: &mut EffectsBuilder<'_>) {
        delete(self.room, self.message, effects);
    }
}

/// Deletes a message of a room.
pub fn delete(room: RoomId, message: MessageId, effects: &mut EffectsBuilder<'_>) {
    effects.change(MessageChange::DeleteMessage(message.clone()));
    effects.publish(Event::MessageDeleted { room, message });
}
