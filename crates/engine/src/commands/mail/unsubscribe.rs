//! Removes a subscription of a mailbox.

use super::subscriptions::own_address;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::routing_index::RouteChange;
use parlor_model::command::Unsubscribe;
use parlor_model::{EntityKind, Refusal, Scope, Subscription};

impl Command for Unsubscribe {
    /// Subscriptions of the mailbox.
    type Facts = Vec<Subscription>;
    type Receipt = Vec<Subscription>;

    /// Allowed for the owner of the agent.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Vec<Subscription>, PermitError> {
        view.own_agent(caller, &self.mailbox.agent, Scope::Agents)?;
        Ok(view.store.subscriptions_of(&self.mailbox)?)
    }

    fn decide(
        self,
        mut subscriptions: Vec<Subscription>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Vec<Subscription>, Refusal> {
        let Self { mailbox, pattern } = self;
        if mailbox.session.is_none() && pattern == own_address(&mailbox.agent) {
            return Err(Refusal::LastOneRequired(EntityKind::Subscription));
        }
        let known = subscriptions.len();
        subscriptions.retain(|known| known.pattern != pattern);
        if subscriptions.len() < known {
            effects.change(MailChange::RemoveSubscription(mailbox.clone(), pattern.clone()));
            effects.routes.push(RouteChange::Remove { pattern, mailbox });
        }
        Ok(subscriptions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::decide;
    use crate::commands::test_fixtures::{mailbox, pattern, subscription};
    use crate::effects::Effects;

    fn unsubscribe(of: &str, text: &str, known: &[&str]) -> Result<(Vec<Subscription>, Effects), Refusal> {
        let subscriptions = known.iter().map(|text| subscription(of, text)).collect();
        decide(Unsubscribe { mailbox: mailbox(of), pattern: pattern(text) }, subscriptions)
    }

    /// The number of remaining patterns and of changes.
    fn counts(of: &str, text: &str, known: &[&str]) -> (usize, usize) {
        let (left, effects) = unsubscribe(of, text, known).unwrap();
        assert_eq!(effects.changes.len(), effects.route_changes.len());
        (left.len(), effects.changes.len())
    }

    #[test]
    fn the_automatic_subscription_of_an_agent_stays_and_that_of_its_session_is_optional() {
        let refused = unsubscribe("coder", "agent/coder", &["agent/coder", "slack/**"]).map(|(left, _)| left);
        assert_eq!(refused, Err(Refusal::LastOneRequired(EntityKind::Subscription)));
        assert_eq!(counts("coder:main", "agent/coder", &["agent/coder"]), (0, 1));
    }

    #[test]
    fn a_pattern_is_removed_once() {
        assert_eq!(counts("coder", "email/*", &["slack/**"]), (1, 0));
        assert_eq!(counts("coder", "slack/**", &["slack/**"]), (0, 1));
    }
}
