//! Takes pending mail out of a mailbox, with or without a lease.
//!
//! Owns: mail is handed out once, or leased until it is acknowledged; after too many leases it becomes a dead
//! letter.

use crate::changes::MailChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use crate::{Fault, Limits};
use parlor_model::command::{ReceiveMail, ReceivedMail};
use parlor_model::{Delivery, DeliveryState, Field, Mailbox, Refusal};
use std::time::Duration;

/// Maximum number of times mail is leased; after that it becomes a dead letter.
pub const MAX_DELIVERY_ATTEMPTS: u32 = 5;

impl Command for ReceiveMail {
    /// The pending mail, oldest first. With a lease it may hold more than `limit` entries, so that mail that
    /// becomes a dead letter does not hide deliverable mail.
    type Facts = ReceivedMail;
    type Receipt = ReceivedMail;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let fits = self.lease.is_none_or(|lease| (1..=86_400_000).contains(&lease.as_millis()));
        field_errors.unless(fits, Field::Lease, "must be between a millisecond and a day");
        field_errors.into_result()
    }

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<ReceivedMail, PermitError> {
        view.as_agent(caller, &self.mailbox)?;
        Ok(pending_mail(self, view)?)
    }

    fn decide(
        self,
        mut mail: ReceivedMail,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<ReceivedMail, Refusal> {
        if let Some(lease) = self.lease {
            return Ok(lease_mail(self.mailbox, self.limit, lease, mail, effects));
        }
        if !mail.is_empty() {
            let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
            effects.change(MailChange::MarkDelivered { mailbox: self.mailbox, messages });
        }
        mail.iter_mut().for_each(|(_, delivery)| delivery.state = DeliveryState::Delivered);
        Ok(mail)
    }
}

/// The pending mail that one response can contain.
fn pending_mail(command: &ReceiveMail, view: &mut WriterView<'_>) -> Result<ReceivedMail, Fault> {
    let (now, leased) = (view.now, command.lease.is_some());
    let is_deliverable = |delivery: &Delivery| !leased || delivery.attempts < MAX_DELIVERY_ATTEMPTS;
    let mut requested = command.limit;
    let mut mail = view.store.pending(&command.mailbox, now, requested)?;
    // Doubles the page size until the page contains mail that can be delivered. If all of it had used up
    // its attempts, the response would be empty, and the client would take the mailbox for empty.
    while requested > 0
        && mail.len() == requested
        && !mail.iter().any(|(_, delivery)| is_deliverable(delivery))
    {
        requested = requested.saturating_mul(2);
        mail = view.store.pending(&command.mailbox, now, requested)?;
    }
    // Mail beyond the size budget of one response stays for the next. Mail that has used up its attempts
    // is dead-lettered instead of returned, so it does not count.
    let lengths = mail.iter().filter(|(_, delivery)| is_deliverable(delivery));
    let fits = count_within_budget(lengths.map(|(message, _)| message.length()));
    let mut deliverable = 0;
    mail.retain(|(_, delivery)| {
        deliverable += usize::from(is_deliverable(delivery));
        deliverable <= fits
    });
    Ok(mail)
}

/// Leases up to `limit` messages of the pending mail.
fn lease_mail(
    mailbox: Mailbox,
    limit: usize,
    lease: Duration,
    pending: ReceivedMail,
    effects: &mut EffectsBuilder<'_>,
) -> ReceivedMail {
    let until = effects.now.plus(lease);
    let mut mail = Vec::new();
    for (message, mut delivery) in pending {
        if delivery.attempts >= MAX_DELIVERY_ATTEMPTS {
            let (mailbox, reason) = (mailbox.clone(), "not_acknowledged".into());
            effects.change(MailChange::DeadLetterDelivery { mailbox, message, reason });
            continue;
        }
        if mail.len() == limit {
            break;
        }
        delivery.attempts += 1;
        delivery.state = DeliveryState::Leased { until };
        mail.push((message, delivery));
    }
    if !mail.is_empty() {
        let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
        effects.change(MailChange::Lease { mailbox, messages, until });
    }
    mail
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::decide;
    use crate::commands::test_fixtures::{NOW, mail, mailbox};
    use crate::effects::Effects;
    use parlor_model::DeliveryState::{Delivered, Leased, Pending};
    use parlor_model::{Message, MessageId, Time};
    use std::sync::Arc;

    const LEASE: Duration = Duration::from_secs(30);
    const LEASED: DeliveryState = Leased { until: Time(NOW.0 + 30_000_000) };
    const EXPIRED: DeliveryState = Leased { until: NOW };

    fn receive(mail: ReceivedMail, limit: usize, lease: Option<Duration>) -> (ReceivedMail, Effects) {
        decide(ReceiveMail { mailbox: mailbox("coder"), limit, lease }, mail).unwrap()
    }

    fn received(mail: &ReceivedMail) -> Vec<(&str, DeliveryState, u32)> {
        mail.iter().map(|(message, copy)| (message.id.as_str(), copy.state, copy.attempts)).collect()
    }

    fn copies(id: &str, attempts: u32) -> (Arc<Message>, Delivery) {
        mail(id, "coder", if attempts == 0 { Pending } else { EXPIRED }, attempts)
    }

    #[test]
    fn a_lease_has_the_requested_duration_and_is_counted() {
        let waiting = vec![copies("a", 0), copies("b", 1), copies("c", 4)];
        let (mail, effects) = receive(waiting, 9, Some(LEASE));
        assert_eq!(received(&mail), [("a", LEASED, 1), ("b", LEASED, 2), ("c", LEASED, 5)]);
        let [Change::Mail(MailChange::Lease { mailbox: of, messages, until })] = &effects.changes[..] else {
            panic!("one lease for all: {:?}", effects.changes)
        };
        assert_eq!((of, LEASED), (&mailbox("coder"), Leased { until: *until }));
        assert_eq!(*messages, ["a", "b", "c"].map(MessageId::stored));
    }

    #[test]
    fn mail_that_was_leased_five_times_becomes_a_dead_letter() {
        let (mail, effects) = receive(vec![copies("a", 5), copies("b", 0)], 9, Some(LEASE));
        assert_eq!(received(&mail), [("b", LEASED, 1)]);
        let [
            Change::Mail(MailChange::DeadLetterDelivery { mailbox: of, message, reason }),
            Change::Mail(MailChange::Lease { messages, .. }),
        ] = &effects.changes[..]
        else {
            panic!("a dead letter, then a lease: {:?}", effects.changes)
        };
        assert_eq!((of, message.id.as_str(), &**reason), (&mailbox("coder"), "a", "not_acknowledged"));
        assert_eq!(*messages, [MessageId::stored("b")]);
    }

    #[test]
    fn a_dead_letter_does_not_count_towards_the_limit() {
        let waiting = vec![copies("a", 5), copies("b", 0), copies("c", 5), copies("d", 0), copies("e", 5)];
        let (mail, effects) = receive(waiting, 1, Some(LEASE));
        assert_eq!(received(&mail), [("b", LEASED, 1)]);
        let dead = effects
            .changes
            .iter()
            .filter(|change| matches!(change, Change::Mail(MailChange::DeadLetterDelivery { .. })));
        assert_eq!(dead.count(), 2, "only those before the first mail beyond the limit");
    }

    #[test]
    fn without_a_lease_mail_is_delivered_however_often_it_was_leased() {
        let (mail, effects) = receive(vec![copies("a", 5), copies("b", 0)], 9, None);
        assert_eq!(received(&mail), [("a", Delivered, 5), ("b", Delivered, 0)]);
        let [Change::Mail(MailChange::MarkDelivered { messages, .. })] = &effects.changes[..] else {
            panic!("marked once")
        };
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn an_empty_mailbox_changes_nothing() {
        for lease in [None, Some(LEASE)] {
            let (mail, effects) = receive(vec![], 9, lease);
            assert_eq!((mail.len(), effects.changes.len(), effects.events.len()), (0, 0, 0));
        }
    }
}
