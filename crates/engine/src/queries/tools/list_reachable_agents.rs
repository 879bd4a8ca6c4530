//! Lists the agents that an agent can reach.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListReachableAgents;
use parlor_model::{Agent, Mailbox, UserId};

impl Query for ListReachableAgents {
    /// Owner of the agent.
    type Facts = UserId;
    type Answer = Vec<Agent>;

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        Ok(view.as_agent(caller, &Mailbox::of(self.agent.clone()))?.agent.owner.clone())
    }

    fn answer(&self, owner: UserId, store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<Agent>, Fault> {
        let mut agents = store.agents_of(&owner)?;
        agents.extend(store.agents_near(&owner)?);
        agents.retain(|agent| agent.id != self.agent);
        agents.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(agents)
    }
}
