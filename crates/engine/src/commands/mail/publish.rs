//! Publishes messages on a path outside rooms.
//!
//! A program publishes for the subscribers of the path, so a message without subscribed mailboxes is no dead letter.

use super::reach::may_receive_from_source;
use crate::Limits;
use crate::commands::Command;
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::messages::recipients::{deliveries, put_message};
use crate::digest::{digest, digest_of_publish, hex};
use crate::effects::EffectsBuilder;
use crate::paths::on_path;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{IdempotencyKey, IdempotencyKind};
use crate::read_view::WriterView;
use crate::routing_index::Recipient;
use crate::validate::FieldErrors;
use parlor_model::command::{PathMessage, Publish, Published};
use parlor_model::{Destination, Field, Message, MessageId, Operation, Refusal, Sender, Seq, UserId};
use std::sync::Arc;

/// Maximum number of messages of one command.
const MAX_MESSAGES: usize = 1000;
/// Maximum bytes of a name, which clients choose freely.
const MAX_NAME_BYTES: usize = 1000;

pub struct Facts {
    /// Subscribed mailboxes whose owners may receive messages of this publisher.
    mailboxes: Vec<Recipient>,
    idempotency: IdempotencyCheck,
}

impl Command for Publish {
    type Facts = Facts;
    type Receipt = Published;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let count = self.messages.len();
        field_errors.unless((1..=MAX_MESSAGES).contains(&count), Field::Messages, "must be 1 to 1000");
        field_errors.unless(self.sender_name.len() <= MAX_NAME_BYTES, Field::From, "is too long");
        for message in &self.messages {
            field_errors.unless(message.name.len() <= MAX_NAME_BYTES, Field::Command, "is too long");
            field_errors.origin(&self.source, Some(&message.external_id));
        }
        field_errors.into_result()
    }

    /// Allowed with a grant to publish on the path, and for site admins and keys with the `sources` scope.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let account = on_path(caller, Operation::Publish, &self.path)?;
        let mut mailboxes = Vec::new();
        for recipient in view.routes.matching(&self.path) {
            let Some(agent) = view.agent(&recipient.mailbox.agent)? else { continue };
            let owner = view.user(&agent.owner)?;
            if owner.is_some_and(|owner| may_receive_from_source(&owner, &account.user.id, &self.path)) {
                mailboxes.push(recipient);
            }
        }
        let key = idempotency_key(self, &account.user.id);
        let idempotency = IdempotencyCheck::load(key, digest_of_publish(self), view.store)?;
        Ok(Facts { mailboxes, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Published, Refusal> {
        let Facts { mailboxes, idempotency } = facts;
        if let Some(first) = IdempotencyCheck::first_receipt(Some(&idempotency), effects)? {
            // One transaction has published all of them, one event each.
            let messages = (0..self.messages.len()).map(|index| {
                let seq = Seq(first.position.seq.0 + index as u64);
                (id_of(&first.id, index), effects.position(seq))
            });
            return Ok(Published { messages: messages.collect(), repeated: true });
        }
        let Self { path, sender_name, source, messages } = self;
        let mut published: Vec<_> = Vec::with_capacity(messages.len());
        for PathMessage { name, payload, external_id } in messages {
            let sender = Sender::Source(source.clone());
            let destination = Destination::Path(path.clone());
            let new = effects.message(destination, sender, sender_name.clone(), Arc::default());
            let id = published.first().map_or(new.id.clone(), |(first, _)| id_of(first, published.len()));
            let message = Message {
                id,
                command: Some(name),
                payload: Some(payload),
                source: source.clone(),
                external_id: Some(external_id),
                ..new
            };
            let deliveries = deliveries(&message, &mailboxes, &[]);
            // The key of the first message stands for all of them.
            let key = Some(&idempotency).filter(|_| published.is_empty());
            let posted = put_message(Arc::new(message), deliveries, key, effects);
            published.push((posted.id, posted.position));
        }
        Ok(Published { messages: published, repeated: false })
    }
}

/// Id of a message of one command. Those of the later ones follow from the first, which is stored with the
/// idempotency key, so that the receipt of a retry needs no other row.
fn id_of(first: &MessageId, index: usize) -> MessageId {
    if index == 0 { first.clone() } else { MessageId::stored(format!("{first}-{index}")) }
}

/// Callers choose the source and the ids, so the key belongs to the account. Programs may use an id once on each path.
fn idempotency_key(publish: &Publish, account: &UserId) -> IdempotencyKey {
    let first = publish.messages.first().map_or("", |message| &*message.external_id);
    let key = hex(&digest(&["publish", &publish.source, publish.path.as_str(), first])).into();
    IdempotencyKey { kind: IdempotencyKind::External, owner: account.as_str().into(), key }
}
