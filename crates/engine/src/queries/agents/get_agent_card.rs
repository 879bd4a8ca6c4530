//! Reads the card of an agent.

use super::card::card;
use crate::permission::{CallerContext, PermitError, VisibleAgent};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{AgentCard, GetAgentCard};
use parlor_model::{Agent, Scope};

impl Query for GetAgentCard {
    type Facts = VisibleAgent;
    type Answer = AgentCard;

    /// Allowed for the owner, for users with whom the agent is shared, and for users in a common room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<VisibleAgent, PermitError> {
        view.visible_agent(caller, &self.id, Scope::Read)
    }

    fn answer(
        &self,
        facts: VisibleAgent,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<AgentCard, Fault> {
        card(Agent::clone(&facts.agent), &facts.caller.user.id, store)
    }
}
