//! Lists decisions about automatic turns, with statistics.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListTurns, TurnList};
use parlor_model::{AgentId, Scope};

impl Query for ListTurns {
    /// Agents whose decisions are listed.
    type Facts = Vec<AgentId>;
    type Answer = TurnList;

    /// Allowed for the owner of the agent. Without an agent, the agents of the caller.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Vec<AgentId>, PermitError> {
        match &self.agent {
            Some(agent) => {
                view.own_agent(caller, agent, Scope::Agents)?;
                Ok(vec![agent.clone()])
            }
            None => {
                let caller = caller.signed_in(Scope::Agents)?;
                let agents = view.store.agents_of(&caller.user.id)?;
                Ok(agents.into_iter().map(|agent| agent.id).collect())
            }
        }
    }

    fn answer(
        &self,
        agents: Vec<AgentId>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<TurnList, Fault> {
        let decisions = store.turn_decisions(&agents, &self.page)?;
        Ok(TurnList { decisions, counts: store.turn_counts(&agents, self.page.session.as_ref())? })
    }
}
