//! Marks received mail as delivered.

use crate::Limits;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::AcknowledgeMail;
use parlor_model::{Delivery, DeliveryState, Field, Refusal};
use std::collections::BTreeSet;

impl Command for AcknowledgeMail {
    /// The copies of the named messages in the mailbox, each once.
    type Facts = Vec<Delivery>;
    /// Number of pending or leased messages that were acknowledged.
    type Receipt = usize;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless(self.messages.len() <= 1000, Field::Messages, "at most 1000");
        field_errors.into_result()
    }

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Vec<Delivery>, PermitError> {
        view.as_agent(caller, &self.mailbox)?;
        let mut deliveries = Vec::new();
        // A set, because a command may name a message twice.
        for message in self.messages.iter().collect::<BTreeSet<_>>() {
            deliveries.extend(view.store.delivery(&self.mailbox, message)?);
        }
        Ok(deliveries)
    }

    fn decide(self, deliveries: Vec<Delivery>, effects: &mut EffectsBuilder<'_>) -> Result<usize, Refusal> {
        let is_open = |state| matches!(state, DeliveryState::Pending | DeliveryState::Leased { .. });
        let open = deliveries.into_iter().filter(|delivery| is_open(delivery.state));
        let messages: Vec<_> = open.map(|delivery| delivery.message).collect();
        let count = messages.len();
        if count > 0 {
            effects.change(MailChange::MarkDelivered { mailbox: self.mailbox, messages });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::decide;
    use crate::commands::test_fixtures::{NOW, mail, mailbox};
    use parlor_model::DeliveryState::{Dead, Delivered, Leased, Pending};
    use parlor_model::{MessageId, Time};

    #[test]
    fn only_pending_or_leased_mail_is_acknowledged() {
        let (leased, expired) = (Leased { until: Time(NOW.0 + 1) }, Leased { until: NOW });
        let states = [("a", Pending), ("b", leased), ("c", expired), ("d", Delivered), ("e", Dead)];
        let deliveries = states.map(|(id, state)| mail(id, "coder", state, 1).1).into();
        let messages = states.map(|(id, _)| MessageId::stored(id)).into();
        let acknowledge = AcknowledgeMail { mailbox: mailbox("coder"), messages };
        let (count, effects) = decide(acknowledge, deliveries).unwrap();
        assert_eq!(count, 3);
        let [Change::Mail(MailChange::MarkDelivered { messages, .. })] = &effects.changes[..] else {
            panic!("marked once")
        };
        assert_eq!(*messages, ["a", "b", "c"].map(MessageId::stored));
    }
}
