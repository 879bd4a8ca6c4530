//! Replaces the text of a message and keeps the earlier version.

use crate::Limits;
use crate::changes::MessageChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::{FieldErrors, fits};
use parlor_model::command::EditMessage;
use parlor_model::mention::{self, Mentionable};
use parlor_model::{Event, Field, Message, Refusal, Revision, Scope};
use std::sync::Arc;

pub struct Facts {
    message: Arc<Message>,
    /// The members of the room, if the new text may mention one.
    members: Arc<[Mentionable]>,
}

impl Command for EditMessage {
    type Facts = Facts;
    type Receipt = Arc<Message>;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless(!self.text.trim().is_empty(), Field::Text, "must not be empty");
        fits(&self.text, limits.message_characters)?;
        field_errors.into_result()
    }

    /// Allowed for the sender, while a member of the room. A forwarded message quotes another user, so its text
    /// may not be changed.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let in_own_room = view.message_in_own_room(caller, &self.message, Scope::Write)?;
        let message = in_own_room.message.clone();
        if !in_own_room.is_own() || message.forwarded.is_some() {
            return Err(Refusal::Forbidden.into());
        }
        let room = match self.text.contains('@') {
            true => view.room(&in_own_room.room)?,
            false => None,
        };
        let members = match room {
            Some(room) => view.mentionable(&room)?,
            None => Arc::new([]),
        };
        Ok(Facts { message, members })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Message>, Refusal> {
        let (old, now) = (facts.message, effects.now);
        if old.text == self.text {
            return Ok(old);
        }
        let previous = Revision { message: old.id.clone(), text: (&*old.text).into(), edited_at: now };
        let message = Arc::new(Message {
            mentions: mention::resolve(&self.text, &[], &facts.members),
            text: self.text,
            edited_at: Some(now),
            ..Message::clone(&old)
        });
        effects.change(MessageChange::Revise { message: message.clone(), previous });
        effects.publish(Event::MessageEdited(message.clone()));
        Ok(message)
    }
}
