//! Pins a message for all members of its room.

use crate::changes::AnnotationChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::read_view::WriterView;
use parlor_model::command::{PinMessage, Pinned};
use parlor_model::{Event, Field, Pin, Refusal, Scope};

pub struct Facts {
    seen: SeenMessage,
    /// Existing pin of this message, if any.
    pin: Option<Pin>,
    /// Number of pins in the room.
    pin_count: usize,
}

impl Command for PinMessage {
    type Facts = Facts;
    type Receipt = Pinned;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let seen = view.seen_message(caller, &self.message, Scope::Write)?;
        let pin = view.store.pin(&self.message)?;
        Ok(Facts { pin, pin_count: view.store.pin_count(&seen.room)?, seen })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Pinned, Refusal> {
        let SeenMessage { caller, message, room, .. } = facts.seen;
        if let Some(pin) = facts.pin {
            return Ok(Pinned { pin, message });
        }
        if facts.pin_count >= effects.limits.pins {
            return Err(Refusal::invalid(Field::Message, "cannot be pinned: the room has too many pins"));
        }
        let by = caller.user.id.clone();
        let pin = Pin { room, message: self.message, by, seq: effects.next_seq(), at: effects.now };
        effects.change(AnnotationChange::PutPin(pin.clone()));
        effects.publish(Event::MessagePinned(pin.clone()));
        Ok(Pinned { pin, message })
    }
}
