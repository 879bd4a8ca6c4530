//! Decides taking mail out of a mailbox, with and without a lease, and clearing dead letters.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::{Command, DeliveryState, Mailbox, Receipt, Refusal};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of times mail is leased; after that it becomes a dead letter.
pub const MAX_DELIVERY_ATTEMPTS: u32 = 5;

pub fn decide(command: &Command, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::Receive { mailbox, lease: None, .. } => {
            let mut mail = effects_builder.facts.mail.clone();
            if !mail.is_empty() {
                let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
                effects_builder.change(Change::MarkDelivered { mailbox: mailbox.clone(), messages });
            }
            mail.iter_mut().for_each(|(_, delivery)| delivery.state = DeliveryState::Delivered);
            effects_builder.done(Receipt::Received { mail })
        }
        Command::Receive { mailbox, limit, lease: Some(lease) } => {
            lease_mail(mailbox, *limit, *lease, effects_builder)
        }
        Command::Acknowledge { mailbox, .. } => {
            let is_open = |state| matches!(state, DeliveryState::Pending | DeliveryState::Leased { .. });
            let open = effects_builder.facts.deliveries.iter().filter(|delivery| is_open(delivery.state));
            // A set, because a command may name a message twice.
            let messages: BTreeSet<_> = open.map(|delivery| delivery.message.clone()).collect();
            let count = messages.len();
            if count > 0 {
                let messages = messages.into_iter().collect();
                effects_builder.change(Change::MarkDelivered { mailbox: mailbox.clone(), messages });
            }
            effects_builder.done(Receipt::Acknowledged(count))
        }
        Command::ClearDeadLetters => {
            effects_builder.change(Change::ClearDeadLetters);
            effects_builder.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only mail commands here"),
    }
}

/// Leases mail to the caller. The facts may hold more than `limit` entries, so that mail that becomes a dead
/// letter does not hide deliverable mail.
fn lease_mail(
    mailbox: &Mailbox,
    limit: usize,
    lease: Duration,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let until = effects_builder.facts.now.plus(lease);
    let mut mail = Vec::new();
    for (message, delivery) in &effects_builder.facts.mail {
        if delivery.attempts >= MAX_DELIVERY_ATTEMPTS {
            let (mailbox, message) = (mailbox.clone(), message.clone());
            effects_builder.changes.push(Change::DeadLetterDelivery {
                mailbox,
                message,
                reason: "not_acknowledged",
            });
            continue;
        }
        if mail.len() == limit {
            break;
        }
        let mut delivery = delivery.clone();
        delivery.attempts += 1;
        delivery.state = DeliveryState::Leased { until };
        mail.push((message.clone(), delivery));
    }
    if !mail.is_empty() {
        let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
        effects_builder.change(Change::Lease { mailbox: mailbox.clone(), messages, until });
    }
    effects_builder.done(Receipt::Received { mail })
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{NOW, decide_with, facts, mail, mailbox};
    use super::*;
    use parlor_model::DeliveryState::{Dead, Delivered, Leased, Pending};
    use parlor_model::{Delivery, Message, MessageId, Time};
    use std::sync::Arc;

    const LEASE: Duration = Duration::from_secs(30);
    const LEASED: DeliveryState = Leased { until: Time(NOW.0 + 30_000_000) };
    const EXPIRED: DeliveryState = Leased { until: NOW };

    fn receive(mail: Vec<(Arc<Message>, Delivery)>, limit: usize, lease: Option<Duration>) -> Effects {
        let mut facts = facts();
        facts.mail = mail;
        decide_with(&Command::Receive { mailbox: mailbox("coder"), limit, lease }, &facts).unwrap()
    }

    fn received(plan: &Effects) -> Vec<(&str, DeliveryState, u32)> {
        let Receipt::Received { mail } = &plan.receipt else { panic!("not received") };
        mail.iter().map(|(message, copy)| (message.id.as_str(), copy.state, copy.attempts)).collect()
    }

    fn copies(id: &str, attempts: u32) -> (Arc<Message>, Delivery) {
        mail(id, "coder", if attempts == 0 { Pending } else { EXPIRED }, attempts)
    }

    #[test]
    fn a_lease_has_the_requested_duration_and_is_counted() {
        let plan = receive(vec![copies("a", 0), copies("b", 1), copies("c", 4)], 9, Some(LEASE));
        assert_eq!(received(&plan), [("a", LEASED, 1), ("b", LEASED, 2), ("c", LEASED, 5)]);
        let [Change::Lease { mailbox: of, messages, until }] = &plan.changes[..] else {
            panic!("one lease for all: {:?}", plan.changes)
        };
        assert_eq!((of, LEASED), (&mailbox("coder"), Leased { until: *until }));
        assert_eq!(*messages, ["a", "b", "c"].map(MessageId::stored));
    }

    #[test]
    fn mail_that_was_leased_five_times_becomes_a_dead_letter() {
        let plan = receive(vec![copies("a", 5), copies("b", 0)], 9, Some(LEASE));
        assert_eq!(received(&plan), [("b", LEASED, 1)]);
        let [Change::DeadLetterDelivery { mailbox: of, message, reason }, Change::Lease { messages, .. }] =
            &plan.changes[..]
        else {
            panic!("a dead letter, then a lease: {:?}", plan.changes)
        };
        assert_eq!((of, message.id.as_str(), *reason), (&mailbox("coder"), "a", "not_acknowledged"));
        assert_eq!(*messages, [MessageId::stored("b")]);
    }

    #[test]
    fn a_dead_letter_does_not_count_towards_the_limit() {
        let waiting = vec![copies("a", 5), copies("b", 0), copies("c", 5), copies("d", 0), copies("e", 5)];
        let plan = receive(waiting, 1, Some(LEASE));
        assert_eq!(received(&plan), [("b", LEASED, 1)]);
        let dead = plan.changes.iter().filter(|change| matches!(change, Change::DeadLetterDelivery { .. }));
        assert_eq!(dead.count(), 2, "only those before the first mail beyond the limit");
    }

    #[test]
    fn without_a_lease_mail_is_delivered_however_often_it_was_leased() {
        let plan = receive(vec![copies("a", 5), copies("b", 0)], 9, None);
        assert_eq!(received(&plan), [("a", Delivered, 5), ("b", Delivered, 0)]);
        assert!(matches!(&plan.changes[..], [Change::MarkDelivered { messages, .. }] if messages.len() == 2));
    }

    #[test]
    fn an_empty_mailbox_changes_nothing() {
        for lease in [None, Some(LEASE)] {
            let plan = receive(vec![], 9, lease);
            assert_eq!((received(&plan), plan.changes.len(), plan.events.len()), (vec![], 0, 0));
        }
    }

    #[test]
    fn only_pending_or_leased_mail_is_acknowledged() {
        let states = [("a", Pending), ("b", LEASED), ("c", EXPIRED), ("d", Delivered), ("e", Dead)];
        let mut facts = facts();
        facts.deliveries = states.map(|(id, state)| mail(id, "coder", state, 1).1).into();
        let messages = states.map(|(id, _)| MessageId::stored(id)).into();
        let plan =
            decide_with(&Command::Acknowledge { mailbox: mailbox("coder"), messages }, &facts).unwrap();
        assert_eq!(plan.receipt, Receipt::Acknowledged(3));
        let [Change::MarkDelivered { messages, .. }] = &plan.changes[..] else { panic!("marked once") };
        assert_eq!(*messages, ["a", "b", "c"].map(MessageId::stored));
    }
}
