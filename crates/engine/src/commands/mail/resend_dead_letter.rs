//! Delivers a dead letter again and removes it.
//!
//! The message keeps its id and its place in the order of each mailbox.

use super::route::reachable_mailboxes;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::commands::messages::recipients::deliveries;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::routing_index::Recipient;
use parlor_model::audit::{Action, Subject, SubjectKind};
use parlor_model::command::ResendDeadLetter;
use parlor_model::{
    DeadLetter, Delivery, DeliveryState, Destination, EntityKind, Event, Refusal, Scope, Sender,
};

pub struct Facts {
    letter: DeadLetter,
    target: Target,
}

enum Target {
    /// The dead copy of the mailbox that did not acknowledge the message.
    Copy(Delivery),
    /// Mailboxes that subscribe to the path now and have no copy of the message.
    Subscribers(Vec<Recipient>),
}

impl Command for ResendDeadLetter {
    type Facts = Facts;
    /// The copies that are pending now.
    type Receipt = Vec<Delivery>;

    /// Allowed for site admins and keys with the dead-letter scope: an undelivered message may have been meant
    /// for any user. The message reaches the mailboxes that its sender may reach now.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.site_admin_or_key(Scope::DeadLetters)?;
        let not_found = Refusal::NotFound(EntityKind::DeadLetter);
        let letter =
            view.store.dead_letter(&self.message, self.mailbox.as_ref())?.ok_or(not_found.clone())?;
        let target = match &self.mailbox {
            Some(mailbox) => {
                let copy = view.store.delivery(mailbox, &self.message)?;
                Target::Copy(copy.filter(|copy| copy.state == DeliveryState::Dead).ok_or(not_found)?)
            }
            None => Target::Subscribers(subscribers(&letter, caller, view)?),
        };
        Ok(Facts { letter, target })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Vec<Delivery>, Refusal> {
        let Facts { letter: DeadLetter { message, mailbox, .. }, target } = facts;
        let resent: Vec<Delivery> = match target {
            Target::Copy(copy) => {
                let (mailbox, message) = (copy.mailbox.clone(), copy.message.clone());
                effects.change(MailChange::ReviveDelivery { mailbox, message });
                vec![Delivery { state: DeliveryState::Pending, attempts: 0, ..copy }]
            }
            Target::Subscribers(mailboxes) => deliveries(&message, &mailboxes, &[]).to_vec(),
        };
        if resent.is_empty() {
            return Err(Refusal::NoSubscribers);
        }
        if mailbox.is_none() {
            for delivery in &resent {
                effects.change(MailChange::PutDelivery { delivery: delivery.clone(), seq: message.seq });
            }
        }
        let subject = mailbox.as_ref().map(|mailbox| {
            let id = mailbox.agent.as_str().into();
            Subject { kind: SubjectKind::Agent, id, name: None }
        });
        effects.audit(Action::DeadLetterResent, subject, Some(message.id.as_str().into()));
        effects.change(MailChange::RemoveDeadLetter { message: message.clone(), mailbox: mailbox.clone() });
        effects.publish(Event::MailResent { message, mailbox, deliveries: resent.clone().into() });
        Ok(resent)
    }
}

/// The mailboxes that a routed message reaches now. None if the agent that sent it does not exist any more.
fn subscribers(
    letter: &DeadLetter,
    caller: &CallerContext,
    view: &mut WriterView<'_>,
) -> Result<Vec<Recipient>, PermitError> {
    let account = caller.auth.clone().ok_or(Refusal::NotSignedIn)?;
    let message = &letter.message;
    let Destination::Path(path) = &message.destination else { return Ok(Vec::new()) };
    let sender = match &message.sender {
        Sender::Agent(id) => {
            // A later agent with the same id may belong to another user.
            let agent = view.routed_agent(id)?.filter(|agent| agent.created_at <= message.at);
            let Some(agent) = agent else { return Ok(Vec::new()) };
            Some(agent)
        }
        Sender::User(_) | Sender::Source(_) => None,
    };
    let mut mailboxes = reachable_mailboxes(path, sender.as_deref(), &account.user.id, view)?;
    let copies = view.store.deliveries(&message.id)?;
    mailboxes.retain(|recipient| copies.iter().all(|copy| copy.mailbox != recipient.mailbox));
    Ok(mailboxes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::{decide, mail, mailbox, name, recipients};
    use crate::effects::Effects;
    use parlor_model::DeliveryState::{Dead, Pending};
    use parlor_model::Mailbox;

    fn resend(mailbox: Option<Mailbox>, target: Target) -> Result<(Vec<Delivery>, Effects), Refusal> {
        let (message, _) = mail("m", "coder", Dead, 5);
        let letter =
            DeadLetter { message: message.clone(), reason: "reason".into(), mailbox: mailbox.clone() };
        decide(ResendDeadLetter { message: message.id.clone(), mailbox }, Facts { letter, target })
    }

    fn names(effects: &Effects) -> Vec<&'static str> {
        let names = effects.changes.iter().map(|change| match change {
            Change::Mail(MailChange::PutDelivery { .. }) => "put",
            Change::Mail(MailChange::ReviveDelivery { .. }) => "revive",
            Change::Mail(MailChange::RemoveDeadLetter { .. }) => "remove",
            Change::Audit(_) => "audit",
            other => panic!("{other:?}"),
        });
        names.collect()
    }

    fn event(effects: &Effects) -> Vec<String> {
        let [logged] = &effects.events[..] else { panic!("one event") };
        let Event::MailResent { message, deliveries, .. } = &logged.event else { panic!("{logged:?}") };
        assert_eq!(message.id.as_str(), "m");
        deliveries.iter().map(|copy| name(&copy.mailbox)).collect()
    }

    #[test]
    fn a_dead_copy_is_pending_again_without_attempts() {
        let (_, copy) = mail("m", "coder", Dead, 5);
        let (resent, effects) = resend(Some(mailbox("coder")), Target::Copy(copy)).unwrap();
        let states: Vec<_> = resent.iter().map(|copy| (copy.state, copy.attempts)).collect();
        assert_eq!(states, [(Pending, 0)]);
        assert_eq!(names(&effects), ["revive", "audit", "remove"]);
        assert_eq!(event(&effects), ["coder"]);
    }

    #[test]
    fn a_message_without_a_mailbox_goes_to_the_subscribers_of_its_path() {
        let target = Target::Subscribers(recipients(&["coder:main", "writer"]));
        let (resent, effects) = resend(None, target).unwrap();
        assert_eq!(resent.len(), 3, "the session, its agent and the writer");
        assert_eq!(names(&effects), ["put", "put", "put", "audit", "remove"]);
        assert_eq!(event(&effects), ["coder:main", "coder", "writer"]);
    }

    #[test]
    fn without_subscribers_the_dead_letter_stays() {
        let refused = resend(None, Target::Subscribers(Vec::new())).map(|(resent, _)| resent);
        assert_eq!(refused, Err(Refusal::NoSubscribers));
    }
}
