//! Publishes messages on a path outside rooms.
//!
//! Live subscribers of the path receive each message, so a message without subscribed mailboxes is no dead letter.

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
use parlor_model::{Destination, Field, Message, MessageId, Operation, Origin, Refusal, Sender, Seq, UserId};
use std::sync::Arc;

/// Maximum number of messages of one command.
const MAX_MESSAGES: usize = 1000;
/// Maximum bytes of the name of a message or publisher.
const MAX_NAME_BYTES: usize = 1000;

#[cfg_attr(test, derive(Clone))]
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
            // One transaction stores all messages, with one event each.
            let messages = (0..self.messages.len()).map(|index| {
                let seq = Seq(first.position.seq.0 + index as u64);
                (id_of(&first.id, index), effects.position(seq))
            });
            return Ok(Published { messages: messages.collect(), repeated: true });
        }
        let Self { path, sender_name, source, messages } = self;
        let mut published: Vec<_> = Vec::with_capacity(messages.len());
        for PathMessage { name, payload, external_id, connection } in messages {
            let sender = Sender::Source(source.clone());
            let destination = Destination::Path(path.clone());
            let new = effects.message(destination, sender, sender_name.clone(), Arc::default());
            let id = published.first().map_or(new.id.clone(), |(first, _)| id_of(first, published.len()));
            let origin = connection.map(|connection| {
                Box::new(Origin { connection, client: None, id: external_id.clone(), fields: None })
            });
            let message = Message {
                id,
                origin,
                command: Some(name),
                payload: Some(payload),
                source: source.clone(),
                external_id: Some(external_id),
                ..new
            };
            let deliveries = deliveries(&message, &mailboxes, &[]);
            // The idempotency key is stored with the first message only.
            let key = Some(&idempotency).filter(|_| published.is_empty());
            let posted = put_message(Arc::new(message), deliveries, key, effects);
            published.push((posted.id, posted.position));
        }
        Ok(Published { messages: published, repeated: false })
    }
}

/// Id of the message at `index` of a command. It is derived from the first id, which is stored with the idempotency
/// key, so that the receipt of a retry needs no other row.
fn id_of(first: &MessageId, index: usize) -> MessageId {
    if index == 0 { first.clone() } else { MessageId::stored(format!("{first}-{index}")) }
}

/// Idempotency key of a publication: callers choose the ids, so an id is unique for each account and path.
fn idempotency_key(publish: &Publish, account: &UserId) -> IdempotencyKey {
    let first = publish.messages.first().map_or("", |message| &*message.external_id);
    let key = hex(&digest(&["publish", &publish.source, publish.path.as_str(), first])).into();
    IdempotencyKey { kind: IdempotencyKind::External, owner: account.as_str().into(), key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{Change, MailChange};
    use crate::commands::test_fixtures::{NOW, decide, name, recipients};
    use crate::effects::Effects;
    use crate::ports::FirstRequest;
    use parlor_model::{Event, Path, Payload};

    fn publish(names: &[&str]) -> Publish {
        let message = |name: &&str| PathMessage {
            name: (*name).into(),
            payload: Payload("{}".into()),
            external_id: format!("id-{name}").into(),
            connection: None,
        };
        let messages = names.iter().map(message).collect();
        Publish { path: Path::stored("x/a"), sender_name: "ann".into(), source: "test".into(), messages }
    }

    fn given(command: &Publish, found: &[&str]) -> Facts {
        let key = idempotency_key(command, &UserId::stored("ann"));
        let digest = digest_of_publish(command);
        let (first, first_message, first_deliveries) = (None, None, Vec::new());
        let idempotency = IdempotencyCheck { key, digest, first, first_message, first_deliveries };
        Facts { mailboxes: recipients(found), idempotency }
    }

    /// The names of the published messages with the mailboxes that received them.
    fn published(effects: &Effects) -> Vec<(&str, Vec<String>)> {
        let posted = effects.events.iter().map(|logged_event| match &logged_event.event {
            Event::MessagePosted { message, deliveries } => {
                assert_eq!((message.seq, message.at), (logged_event.seq, NOW));
                assert_eq!(message.destination, Destination::Path(Path::stored("x/a")));
                let copies = deliveries.iter().map(|delivery| name(&delivery.mailbox)).collect();
                (message.command.as_deref().unwrap_or_default(), copies)
            }
            other => panic!("{other:?}"),
        });
        posted.collect()
    }

    #[test]
    fn the_messages_of_a_command_follow_each_other_and_have_ids_of_their_own() {
        let command = publish(&["a", "b", "c"]);
        let facts = given(&command, &[]);
        let (receipt, effects) = decide(command, facts).unwrap();
        let found: Vec<_> =
            receipt.messages.iter().map(|(id, position)| (id.as_str(), position.seq.0)).collect();
        assert_eq!(found, [("new", 11), ("new-1", 12), ("new-2", 13)]);
        assert_eq!(published(&effects), [("a", vec![]), ("b", vec![]), ("c", vec![])]);
        let keys = effects.changes.iter().filter(|change| {
            matches!(change, Change::Message(crate::changes::MessageChange::RememberIdempotencyKey { .. }))
        });
        assert_eq!(keys.count(), 1);
    }

    #[test]
    fn subscribed_mailboxes_receive_copies_and_without_them_there_is_no_dead_letter() {
        let command = publish(&["a"]);
        let facts = given(&command, &["coder:main"]);
        let (_, effects) = decide(command.clone(), facts).unwrap();
        assert_eq!(published(&effects), [("a", vec!["coder:main".into(), "coder".into()])]);
        let facts = given(&command, &[]);
        let (_, effects) = decide(command, facts).unwrap();
        let is_dead = |change: &Change| matches!(change, Change::Mail(MailChange::DeadLetter { .. }));
        assert!(!effects.changes.iter().any(is_dead));
    }

    #[test]
    fn a_retry_returns_the_receipt_of_the_first_command() {
        let command = publish(&["a", "b"]);
        let facts = given(&command, &[]);
        let (first, _) = decide(command.clone(), facts).unwrap();
        let mut facts = given(&command, &["coder"]);
        let digest = facts.idempotency.digest;
        facts.idempotency.first =
            Some(FirstRequest { digest, message: first.messages[0].0.clone(), seq: Seq(11) });
        let (again, effects) = decide(command, facts.clone()).unwrap();
        assert_eq!((again.messages, again.repeated), (first.messages, true));
        assert!(effects.events.is_empty() && effects.changes.is_empty());
        let other = Publish { sender_name: "ben".into(), ..publish(&["a", "b"]) };
        facts.idempotency.digest = digest_of_publish(&other);
        assert!(matches!(decide(other, facts), Err(Refusal::Conflict { .. })));
    }

    #[test]
    fn a_retry_may_come_from_another_connection() {
        let from = |connection: &str| {
            let mut command = publish(&["a"]);
            command.messages[0].connection = Some(connection.into());
            command
        };
        assert_eq!(digest_of_publish(&from("c1")), digest_of_publish(&from("c2")));
        let (_, effects) = decide(from("c1"), given(&from("c1"), &[])).unwrap();
        let Event::MessagePosted { message, .. } = &effects.events[0].event else {
            panic!("{:?}", effects.events)
        };
        assert_eq!(message.origin.as_ref().map(|origin| &*origin.connection), Some("c1"));
    }

    #[test]
    fn an_id_may_be_used_once_on_each_path_by_each_account() {
        let (command, ann) = (publish(&["a"]), UserId::stored("ann"));
        let elsewhere = Publish { path: Path::stored("x/b"), ..command.clone() };
        assert_ne!(idempotency_key(&command, &ann), idempotency_key(&elsewhere, &ann));
        assert_ne!(idempotency_key(&command, &ann), idempotency_key(&command, &UserId::stored("ben")));
        assert_eq!(idempotency_key(&command, &ann), idempotency_key(&publish(&["a", "b"]), &ann));
    }

    #[test]
    fn the_form_of_a_publication_is_checked() {
        let check = |command: Publish| command.validate(&Limits::default()).is_ok();
        assert!(check(publish(&["a"])) && check(publish(&[""; 1000])));
        assert!(!check(publish(&[])) && !check(publish(&["a"; 1001])));
        assert!(!check(publish(&[&"a".repeat(1001)])));
        let without_id = PathMessage { external_id: "".into(), ..publish(&["a"]).messages.remove(0) };
        assert!(!check(Publish { messages: vec![without_id], ..publish(&[]) }));
    }
}
