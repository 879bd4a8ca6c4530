//! Removes the pin of a message.

use crate::changes::AnnotationChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::read_view::WriterView;
use parlor_model::command::UnpinMessage;
use parlor_model::{EntityKind, Event, Refusal, RoomRole, Scope};

impl Command for UnpinMessage {
    type Facts = SeenMessage;
    type Receipt = ();

    /// Allowed for the user who pinned the message, and for admins of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<SeenMessage, PermitError> {
        let seen = view.seen_message(caller, &self.message, Scope::Write)?;
        let pin = view.store.pin(&self.message)?.ok_or(Refusal::NotFound(EntityKind::Pin))?;
        let may = pin.by == seen.caller.user.id || seen.member.role >= RoomRole::Admin;
        if may { Ok(seen) } else { Err(Refusal::Forbidden.into()) }
    }

    fn decide(self, seen: SeenMessage, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(AnnotationChange::RemovePin(self.message.clone()));
        effects.publish(Event::MessageUnpinned { room: seen.room, message: self.message });
        Ok(())
    }
}
