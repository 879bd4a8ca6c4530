//! Registers an agent that the hub itself hosts.

use super::existing_agent::ExistingAgent;
use super::new_agent::{new_agent, put_new_agent, require_own_family};
use super::registration::{host_of, validate_registration};
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::HostAgent;
use parlor_model::{Agent, EntityKind, Refusal};
use std::sync::Arc;

pub struct Facts {
    existing: Option<ExistingAgent>,
}

impl Command for HostAgent {
    type Facts = Facts;
    type Receipt = Arc<Agent>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        validate_registration(&self.registration)
    }

    /// Allowed for the operator. The owner must exist, and own all agents above and below a new agent's id.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        view.user(&self.owner)?.ok_or(Refusal::NotFound(EntityKind::User))?;
        let existing = match view.agent(&self.registration.id)? {
            Some(agent) => Some(ExistingAgent::load(agent, Some(&self.registration.name), view)?),
            None => {
                require_own_family(&self.registration.id, &self.owner, view)?;
                None
            }
        };
        Ok(Facts { existing })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Agent>, Refusal> {
        let new = self.registration;
        let host = host_of(&new, effects.now);
        match facts.existing {
            // An agent of another host is not taken over.
            Some(existing) if existing.agent.host.gateway != host.gateway => {
                Err(Refusal::AlreadyExists(EntityKind::Agent))
            }
            Some(existing) => {
                let agent = Agent { name: new.name, host, ..Agent::clone(&existing.agent) };
                Ok(existing.replace(agent, effects))
            }
            None => {
                let agent = Agent { host, ..new_agent(new.id, self.owner, &new.name, effects.now) };
                Ok(put_new_agent(agent, &[], 0, effects)?.agent)
            }
        }
    }
}
