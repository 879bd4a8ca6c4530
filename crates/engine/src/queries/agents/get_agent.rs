//! Reads an agent that the caller may see.

use crate::permission::{CallerContext, PermitError, VisibleAgent};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{FoundAgent, GetAgent};
use parlor_model::{Mailbox, Scope};

impl Query for GetAgent {
    type Facts = VisibleAgent;
    type Answer = FoundAgent;

    /// Allowed for the owner, for users with whom the agent is shared, and for users in a common room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<VisibleAgent, PermitError> {
        view.visible_agent(caller, &self.id, Scope::Agents)
    }

    fn answer(
        &self,
        facts: VisibleAgent,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<FoundAgent, Fault> {
        let VisibleAgent { caller, agent } = facts;
        if agent.owner != caller.user.id {
            return Ok(FoundAgent::OfAnother(agent));
        }
        let subscriptions = store.subscriptions_of(&Mailbox::of(self.id.clone()))?;
        Ok(FoundAgent::Own { agent, subscriptions, sessions: store.sessions(&self.id)? })
    }
}
