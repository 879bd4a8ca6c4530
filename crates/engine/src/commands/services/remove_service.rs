//! Removes a service together with its agent.

use super::subject;
use crate::commands::Command;
use crate::commands::agents::removal::{Departure, remove_agent};
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::commands::rooms::leave_all::leave_all;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RemoveService;
use parlor_model::{Agent, Refusal};
use std::sync::Arc;

pub struct Facts {
    /// Agent of the service.
    agent: Arc<Agent>,
    /// All agents that are removed: those below the service's agent, then itself.
    agents: Vec<Agent>,
    departure: Departure,
}

impl Command for RemoveService {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for site admins, whoever created the service.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let agent = view.managed_service(caller, &self.agent)?.agent;
        let mut agents = view.store.agents_below(&self.agent)?;
        agents.push(Agent::clone(&agent));
        Ok(Facts { departure: Departure::of_agents(&agents, view)?, agent, agents })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let withdrawn = withdraw(&facts.departure.open_approvals, effects);
        leave_all(&facts.departure.memberships, effects);
        facts.agents.iter().for_each(|agent| remove_agent(agent, effects));
        effects.audit(Action::ServiceRemoved, Some(subject(&facts.agent)), None);
        audit_withdrawn(&withdrawn, effects);
        Ok(())
    }
}
