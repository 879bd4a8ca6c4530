//! Deletes a message.

use super::deletion::Deletable;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::Refusal;
use parlor_model::command::DeleteMessage;

impl Command for DeleteMessage {
    type Facts = Deletable;
    type Receipt = ();

    /// Allowed for the sender, while a member of the room, and for admins of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Deletable, PermitError> {
        Deletable::permit(caller, &self.message, view)
    }

    fn decide(self, message: Deletable, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        message.delete(effects);
        Ok(())
    }
}
