//! Posts a copy of a message to another room, as a quotation.

use super::attachments::{copy_attachments, load_attached};
use super::idempotency::IdempotencyCheck;
use super::recipients::Recipients;
use crate::Limits;
use crate::commands::Command;
use crate::digest::digest_of_forward;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError, SeenMessage};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{ForwardMessage, Posted};
use parlor_model::{Destination, Forwarded, Message, Refusal, RoomRole, Scope, Sender, Upload};

pub struct Facts {
    original: SeenMessage,
    /// The sender in the room that the message is forwarded to.
    sender: InRoom,
    /// The uploads that are attached to the original.
    uploads: Vec<Upload>,
    recipients: Recipients,
    /// The sender's idempotency key with its first use, if any.
    idempotency: Option<IdempotencyCheck>,
}

impl Command for ForwardMessage {
    type Facts = Facts;
    type Receipt = Posted;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.client_message_id(self.client_message_id.as_deref());
        field_errors.into_result()
    }

    /// Allowed for every member of the target room who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let original = view.seen_message(caller, &self.message, Scope::Write)?;
        let sender = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        let uploads = load_attached(&original.message, view.store)?;
        // A quotation: users and agents that the text mentions are not addressed again.
        let recipients = Recipients::of_quiet_message(&sender.room, view)?;
        let (user, key) = (&sender.caller.user.id, self.client_message_id.as_deref());
        let digest = || digest_of_forward(&self.message, &self.room);
        let idempotency = IdempotencyCheck::of_client_message(user, key, digest, view.store)?;
        Ok(Facts { original, sender, uploads, recipients, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Posted, Refusal> {
        let Facts { original, sender, uploads, recipients, idempotency } = facts;
        if let Some(first) = IdempotencyCheck::first_receipt(idempotency.as_ref(), effects)? {
            return Ok(first);
        }
        let (original, user) = (original.message, &sender.caller.user);
        let (limit, got) = (effects.limits.message_characters, original.text.chars().count());
        if got > limit {
            return Err(Refusal::TooLarge { limit, got });
        }
        // A message that was forwarded before keeps the name of its original sender.
        let forwarded = original.forwarded.clone().unwrap_or_else(|| {
            Box::new(Forwarded {
                message: original.id.clone(),
                sender: original.sender.clone(),
                sender_name: original.sender_name.clone(),
                at: original.at,
            })
        });
        let attachments = copy_attachments(&uploads, &user.id, effects);
        let (destination, from) = (Destination::Room(self.room), Sender::User(user.id.clone()));
        let message = Message {
            forwarded: Some(forwarded),
            attachments,
            client_message_id: self.client_message_id,
            ..effects.message(destination, from, sender.member.name.clone(), original.text.clone())
        };
        Ok(recipients.deliver(message, &sender, idempotency.as_ref(), effects))
    }
}
