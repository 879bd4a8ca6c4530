//! Removes a gateway together with the agents that it hosts.

use super::hosted_agents::hosted_agents;
use crate::changes::AgentChange;
use crate::commands::Command;
use crate::commands::agents::removal::{Departure, remove_agents};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::RemoveGateway;
use parlor_model::{Agent, Refusal, Scope};

pub struct Facts {
    /// Agents that the gateway hosts.
    agents: Vec<Agent>,
    departure: Departure,
}

impl Command for RemoveGateway {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the owner of the gateway.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let own = view.own_gateway(caller, &self.gateway, Scope::Agents)?;
        let agents = hosted_agents(&own.gateway, view)?;
        Ok(Facts { departure: Departure::of_agents(&agents, view)?, agents })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(AgentChange::RemoveGateway(self.gateway));
        remove_agents(&facts.agents, &facts.departure, effects);
        Ok(())
    }
}
