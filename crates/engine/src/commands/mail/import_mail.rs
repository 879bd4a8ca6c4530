//! Adds messages that another program has delivered to a mailbox, or to none.

use crate::Limits;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::commands::mail::route::NO_SUBSCRIBERS;
use crate::commands::messages::recipients::put_message;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{ImportMail, ImportedMessage};
use parlor_model::{
    Agent, AgentId, Delivery, DeliveryState, Destination, EntityKind, Field, Message, Refusal, Sender, Seq,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of messages of one command, which is one transaction.
const MAX_MESSAGES: usize = 500;
const MAX_PAYLOAD_BYTES: usize = 1024 * 1024;

/// How a message of the command gets into the mailbox.
pub enum Import {
    /// It is stored, in the name of this agent if its sender is one.
    New(Option<Arc<Agent>>),
    /// It is stored already, for another mailbox.
    Copy(Seq),
    /// It is in the mailbox already, was deleted, or has the id of a different message.
    Skipped,
}

impl Command for ImportMail {
    /// One entry per message.
    type Facts = Vec<Import>;
    type Receipt = usize;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless(self.messages.len() <= MAX_MESSAGES, Field::Messages, "at most 500");
        for message in &self.messages {
            field_errors.line(Field::From, &message.from, 600);
            field_errors.line(Field::Command, &message.command, 100);
            field_errors.origin(&message.source, message.external_id.as_deref());
            let fits = message.payload.0.len() <= MAX_PAYLOAD_BYTES;
            field_errors.unless(fits, Field::Payload, "is larger than 1 MB");
        }
        field_errors.into_result()
    }

    /// Allowed for the operator.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Vec<Import>, PermitError> {
        caller.operator()?;
        if let Some(mailbox) = &self.mailbox {
            view.agent(&mailbox.agent)?.ok_or(Refusal::NotFound(EntityKind::Agent))?;
        }
        let mut imports = Vec::with_capacity(self.messages.len());
        let mut seen = HashSet::new();
        for imported in &self.messages {
            let known = view.store.message(&imported.id)?;
            imports.push(match known {
                _ if !seen.insert(&imported.id) => Import::Skipped,
                Some(known) if is_same(&known, imported) => match &self.mailbox {
                    Some(mailbox) if view.store.delivery(mailbox, &imported.id)?.is_none() => {
                        Import::Copy(known.seq)
                    }
                    _ => Import::Skipped,
                },
                Some(_) => Import::Skipped,
                None if view.store.was_said(&imported.id)? => Import::Skipped,
                None => Import::New(match AgentId::parse(&imported.from) {
                    Ok(id) => view.agent(&id)?,
                    Err(_) => None,
                }),
            });
        }
        Ok(imports)
    }

    fn decide(self, imports: Vec<Import>, effects: &mut EffectsBuilder<'_>) -> Result<usize, Refusal> {
        let Some(mailbox) = self.mailbox else {
            let mut added = 0;
            for (imported, import) in self.messages.into_iter().zip(imports) {
                if let Import::New(sender) = import {
                    let message = Arc::new(message(imported, sender.as_deref(), effects));
                    put_message(message.clone(), Arc::default(), None, effects);
                    effects.change(MailChange::DeadLetter { message, reason: NO_SUBSCRIBERS });
                    added += 1;
                }
            }
            return Ok(added);
        };
        let (mut added, mut delivered) = (0, Vec::new());
        for (imported, import) in self.messages.into_iter().zip(imports) {
            let (id, is_delivered) = (imported.id.clone(), imported.is_delivered);
            let state = if is_delivered { DeliveryState::Delivered } else { DeliveryState::Pending };
            let copy = |state| Delivery {
                message: id.clone(),
                mailbox: mailbox.clone(),
                state,
                attempts: 0,
                handled_by: Vec::new(),
            };
            match import {
                Import::Skipped => continue,
                Import::Copy(seq) => {
                    effects.change(MailChange::PutDelivery { delivery: copy(DeliveryState::Pending), seq });
                    effects.check_mail_of(mailbox.agent.clone());
                }
                Import::New(sender) => {
                    let message = Arc::new(message(imported, sender.as_deref(), effects));
                    put_message(message, [copy(state)].into(), None, effects);
                }
            }
            added += 1;
            if is_delivered {
                delivered.push(id);
            }
        }
        if !delivered.is_empty() {
            effects.change(MailChange::MarkDelivered { mailbox, messages: delivered });
        }
        Ok(added)
    }
}

/// Whether a stored message can be the imported one. Otherwise a file could add any message of the hub to a mailbox by
/// naming its id.
fn is_same(known: &Message, imported: &ImportedMessage) -> bool {
    let is_on_path = matches!(&known.destination, Destination::Path(path) if *path == imported.path);
    is_on_path && known.payload.as_ref() == Some(&imported.payload)
}

fn message(imported: ImportedMessage, sender: Option<&Agent>, effects: &EffectsBuilder<'_>) -> Message {
    let (sender, name) = match sender {
        Some(agent) => (Sender::Agent(agent.id.clone()), agent.name.clone()),
        None => (Sender::Source(imported.from.clone()), imported.from),
    };
    Message {
        id: imported.id,
        at: imported.at.min(effects.now),
        command: Some(imported.command),
        payload: Some(imported.payload),
        source: imported.source,
        external_id: imported.external_id,
        ..effects.message(Destination::Path(imported.path), sender, name, Arc::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{Change, MessageChange};
    use crate::commands::test_fixtures::{NOW, agent, decide, mailbox};
    use parlor_model::{MessageId, Path, Payload, Time};

    fn imported(id: &str, is_delivered: bool) -> ImportedMessage {
        ImportedMessage {
            id: MessageId::stored(id),
            at: Time(5),
            from: "slack".into(),
            path: Path::stored("slack/acme/ann"),
            command: "slack.message".into(),
            payload: Payload("{}".into()),
            source: "slack".into(),
            external_id: None,
            is_delivered,
        }
    }

    #[test]
    fn new_messages_are_stored_and_known_ones_only_copied() {
        let messages = vec![imported("a", true), imported("b", false), imported("c", false)];
        let command = ImportMail { mailbox: Some(mailbox("coder:side")), messages };
        let imports = vec![Import::New(None), Import::Copy(Seq(3)), Import::Skipped];
        let (added, effects) = decide(command, imports).unwrap();
        assert_eq!((added, effects.events.len()), (2, 1));
        let stored = effects.changes.iter().find_map(|change| match change {
            Change::Message(MessageChange::PutMessage(message)) => Some(message),
            _ => None,
        });
        let stored = stored.unwrap();
        assert_eq!((stored.id.as_str(), stored.at), ("a", Time(5)), "its time stays");
        assert!(effects.changes.iter().any(|change| matches!(change,
            Change::Mail(MailChange::MarkDelivered { messages, .. }) if *messages == [MessageId::stored("a")])));
    }

    #[test]
    fn new_messages_without_a_mailbox_become_dead_letters() {
        let command = ImportMail { mailbox: None, messages: vec![imported("a", true), imported("b", false)] };
        let (added, effects) = decide(command, vec![Import::New(None), Import::Skipped]).unwrap();
        let letters = effects.changes.iter().filter_map(|change| match change {
            Change::Mail(MailChange::DeadLetter { message, reason }) => Some((message.id.as_str(), *reason)),
            Change::Mail(other) => panic!("{other:?}"),
            _ => None,
        });
        assert_eq!((added, letters.collect::<Vec<_>>()), (1, vec![("a", "no_subscribers")]));
    }

    #[test]
    fn a_message_from_the_future_gets_the_present_time_and_an_agent_its_name() {
        let future = ImportedMessage { at: Time(NOW.0 + 1), ..imported("a", false) };
        let command = ImportMail { mailbox: Some(mailbox("coder")), messages: vec![future] };
        let sender = Arc::new(agent("lead"));
        let (_, effects) = decide(command, vec![Import::New(Some(sender.clone()))]).unwrap();
        let Some(Change::Message(MessageChange::PutMessage(stored))) = effects.changes.first() else {
            panic!("{:?}", effects.changes)
        };
        assert_eq!((stored.at, &stored.sender), (NOW, &Sender::Agent(sender.id.clone())));
    }
}
