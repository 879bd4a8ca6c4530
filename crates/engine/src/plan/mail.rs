//! Taking mail out of a mailbox, and what nobody took.

use super::{Change, Draft, Plan};
use parlor_model::{Command, DeliveryState, Mailbox, Receipt, Refusal};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often mail is handed out on a lease before it is given up.
const MOST_ATTEMPTS: u32 = 5;

pub fn plan(command: &Command, mut draft: Draft) -> Result<Plan, Refusal> {
    match command {
        Command::Receive { mailbox, lease: None, .. } => {
            let mut mail = draft.facts.mail.clone();
            if !mail.is_empty() {
                let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
                draft.change(Change::MarkDelivered { mailbox: mailbox.clone(), messages });
            }
            mail.iter_mut().for_each(|(_, delivery)| delivery.state = DeliveryState::Delivered);
            draft.done(Receipt::Received { mail })
        }
        Command::Receive { mailbox, lease: Some(lease), .. } => hand_out(mailbox, *lease, draft),
        Command::Acknowledge { mailbox, .. } => {
            let waiting = |state| matches!(state, DeliveryState::Pending | DeliveryState::Leased { .. });
            let waiting = draft.facts.deliveries.iter().filter(|delivery| waiting(delivery.state));
            // Named twice it is still one.
            let messages: BTreeSet<_> = waiting.map(|delivery| delivery.message.clone()).collect();
            let count = messages.len();
            if count > 0 {
                let messages = messages.into_iter().collect();
                draft.change(Change::MarkDelivered { mailbox: mailbox.clone(), messages });
            }
            draft.done(Receipt::Acknowledged(count))
        }
        Command::ClearDeadLetters => {
            draft.change(Change::ClearDeadLetters);
            draft.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only mail commands here"),
    }
}

fn hand_out(mailbox: &Mailbox, lease: Duration, mut draft: Draft) -> Result<Plan, Refusal> {
    let until = draft.facts.now.plus(lease);
    let mut mail = Vec::new();
    for (message, delivery) in &draft.facts.mail {
        if delivery.attempts >= MOST_ATTEMPTS {
            let (mailbox, message) = (mailbox.clone(), message.clone());
            draft.changes.push(Change::Bury { mailbox, message, reason: "not_acknowledged" });
            continue;
        }
        let mut delivery = delivery.clone();
        delivery.attempts += 1;
        delivery.state = DeliveryState::Leased { until };
        mail.push((message.clone(), delivery));
    }
    if !mail.is_empty() {
        let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
        draft.change(Change::Lease { mailbox: mailbox.clone(), messages, until });
    }
    draft.done(Receipt::Received { mail })
}
