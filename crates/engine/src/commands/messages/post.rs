//! Posts a message to a room. The hot path: in the steady state, `permit` reads only the idempotency key.

use super::attachments::{load_attachable, require_attachable};
use super::idempotency::IdempotencyCheck;
use super::recipients::Recipients;
use crate::Limits;
use crate::commands::Command;
use crate::digest::digest_of_post;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::Posted;
use parlor_model::{Destination, Field, Message, Operation, Post, Refusal, Sender, Upload};
use std::sync::Arc;

pub struct Facts {
    sender: InRoom,
    /// The message that it replies to, if that is in the same room.
    parent: Option<Arc<Message>>,
    /// The named uploads that exist.
    uploads: Vec<Upload>,
    recipients: Recipients,
    /// The sender's idempotency key with its first use, if any.
    idempotency: Option<IdempotencyCheck>,
}

impl Command for Post {
    type Facts = Facts;
    type Receipt = Posted;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.post(self, limits)?;
        field_errors.into_result()
    }

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let sender = view.at_room(caller, Operation::Publish, &self.room)?;
        let parent = match &self.reply_to {
            Some(id) => {
                view.store.message(id)?.filter(|parent| parent.destination.room() == Some(&self.room))
            }
            None => None,
        };
        let uploads = load_attachable(&self.attachments, view.store)?;
        let recipients = Recipients::of_user_message(&self.text, &self.mentions, &sender.room, view)?;
        let (user, key) = (&sender.caller.user.id, self.client_message_id.as_deref());
        let idempotency =
            IdempotencyCheck::of_client_message(user, key, || digest_of_post(self), view.store)?;
        Ok(Facts { sender, parent, uploads, recipients, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Posted, Refusal> {
        let Facts { sender, parent, uploads, recipients, idempotency } = facts;
        if let Some(first) = IdempotencyCheck::first_receipt(idempotency.as_ref(), effects)? {
            return Ok(first);
        }
        let user = &sender.caller.user;
        let attachments = require_attachable(&self.attachments, &uploads, &user.id)?;
        if self.reply_to.is_some() && parent.is_none() {
            return Err(Refusal::invalid(Field::ReplyTo, "no such message in this room"));
        }
        let (destination, from) = (Destination::Room(self.room), Sender::User(user.id.clone()));
        let message = Message {
            mentions: recipients.mentions.clone(),
            reply_to: self.reply_to,
            // A reply to a reply belongs to the same thread.
            thread: parent.map(|parent| parent.thread.as_ref().unwrap_or(&parent.id).clone()),
            attachments,
            client_message_id: self.client_message_id,
            ..effects.message(destination, from, user.display_name.clone(), self.text)
        };
        Ok(recipients.deliver(message, &sender, idempotency.as_ref(), effects))
    }
}
