//! Taking mail out of a mailbox, and what nobody took.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::{Command, DeliveryState, Mailbox, Receipt, Refusal};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often mail is handed out on a lease before it is given up.
pub const MOST_ATTEMPTS: u32 = 5;

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
            hand_out(mailbox, *limit, *lease, effects_builder)
        }
        Command::Acknowledge { mailbox, .. } => {
            let waiting = |state| matches!(state, DeliveryState::Pending | DeliveryState::Leased { .. });
            let waiting = effects_builder.facts.deliveries.iter().filter(|delivery| waiting(delivery.state));
            // Named twice it is still one.
            let messages: BTreeSet<_> = waiting.map(|delivery| delivery.message.clone()).collect();
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

/// The facts may hold more than the limit, so that what is given up hides nothing.
fn hand_out(
    mailbox: &Mailbox,
    limit: usize,
    lease: Duration,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let until = effects_builder.facts.now.plus(lease);
    let mut mail = Vec::new();
    for (message, delivery) in &effects_builder.facts.mail {
        if delivery.attempts >= MOST_ATTEMPTS {
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
    const RUN_OUT: DeliveryState = Leased { until: NOW };

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
        mail(id, "coder", if attempts == 0 { Pending } else { RUN_OUT }, attempts)
    }

    #[test]
    fn a_lease_lasts_as_long_as_asked_and_is_counted() {
        let plan = receive(vec![copies("a", 0), copies("b", 1), copies("c", 4)], 9, Some(LEASE));
        assert_eq!(received(&plan), [("a", LEASED, 1), ("b", LEASED, 2), ("c", LEASED, 5)]);
        let [Change::Lease { mailbox: of, messages, until }] = &plan.changes[..] else {
            panic!("one lease for all: {:?}", plan.changes)
        };
        assert_eq!((of, LEASED), (&mailbox("coder"), Leased { until: *until }));
        assert_eq!(*messages, ["a", "b", "c"].map(MessageId::stored));
    }

    #[test]
    fn what_was_lent_out_five_times_is_given_up() {
        let plan = receive(vec![copies("a", 5), copies("b", 0)], 9, Some(LEASE));
        assert_eq!(received(&plan), [("b", LEASED, 1)]);
        let [Change::DeadLetterDelivery { mailbox: of, message, reason }, Change::Lease { messages, .. }] =
            &plan.changes[..]
        else {
            panic!("buried, then lent out: {:?}", plan.changes)
        };
        assert_eq!((of, message.id.as_str(), *reason), (&mailbox("coder"), "a", "not_acknowledged"));
        assert_eq!(*messages, [MessageId::stored("b")]);
    }

    #[test]
    fn what_is_given_up_does_not_count_as_handed_out() {
        let waiting = vec![copies("a", 5), copies("b", 0), copies("c", 5), copies("d", 0), copies("e", 5)];
        let plan = receive(waiting, 1, Some(LEASE));
        assert_eq!(received(&plan), [("b", LEASED, 1)]);
        let buried = plan.changes.iter().filter(|change| matches!(change, Change::DeadLetterDelivery { .. }));
        assert_eq!(buried.count(), 2, "up to the first that is one too many");
    }

    #[test]
    fn without_a_lease_mail_is_delivered_however_often_it_was_lent_out() {
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
    fn only_what_waits_or_is_lent_out_is_acknowledged() {
        let states = [("a", Pending), ("b", LEASED), ("c", RUN_OUT), ("d", Delivered), ("e", Dead)];
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
