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
        let mut sessions = Vec::new();
        for session in store.sessions(&self.id)? {
            let mailbox = Mailbox { agent: self.id.clone(), session: Some(session.id.clone()) };
            sessions.push((session, store.subscriptions_of(&mailbox)?));
        }
        Ok(FoundAgent::Own { agent, subscriptions, sessions })
    }
}
