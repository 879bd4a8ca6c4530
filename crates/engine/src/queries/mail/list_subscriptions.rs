//! Lists the subscriptions of a mailbox.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListSubscriptions;
use parlor_model::{Scope, Subscription};

impl Query for ListSubscriptions {
    type Facts = ();
    type Answer = Vec<Subscription>;

    /// Allowed for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.own_agent(caller, &self.mailbox.agent, Scope::Agents).map(drop)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<Subscription>, Fault> {
        store.subscriptions_of(&self.mailbox)
    }
}
