//! Marks a gateway as offline.

use super::hosted_agents::hosted_agents;
use crate::changes::{AgentChange, Change};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::DisconnectGateway;
use parlor_model::{Agent, EntityKind, Gateway, Refusal, Scope};
use std::sync::Arc;

pub struct Facts {
    gateway: Gateway,
    /// Agents that the gateway hosts.
    agents: Vec<Agent>,
}

impl Command for DisconnectGateway {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the owner. The hub itself marks a gateway as disconnected even when its owner's account or key
    /// has been revoked.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let gateway = if caller.is_operator() {
            view.store.gateway(&self.gateway)?.ok_or(Refusal::NotFound(EntityKind::Gateway))?
        } else {
            view.own_gateway(caller, &self.gateway, Scope::Hosting)?.gateway
        };
        Ok(Facts { agents: hosted_agents(&gateway, view)?, gateway })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let (Facts { gateway, agents }, now) = (facts, Some(effects.now));
        effects.change(match gateway.ephemeral {
            true => Change::Agent(AgentChange::RemoveGateway(gateway.id)),
            false => {
                let disconnected_at = gateway.disconnected_at.or(now);
                Change::Agent(AgentChange::PutGateway(Arc::new(Gateway { disconnected_at, ..gateway })))
            }
        });
        for mut agent in agents {
            agent.host.seen_at = now;
            effects.change(AgentChange::PutAgent(Arc::new(agent)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::{NOW, agent};
    use crate::commands::test_fixtures::{decide, gateway};

    #[test]
    fn an_agent_was_last_seen_when_its_gateway_disconnected() {
        let disconnect = |gateway: Gateway| {
            let facts = Facts { gateway, agents: vec![agent("coder")] };
            decide(DisconnectGateway { gateway: facts.gateway.id.clone() }, facts).unwrap().1
        };
        let effects = disconnect(gateway("laptop", None));
        let [
            Change::Agent(AgentChange::PutGateway(disconnected)),
            Change::Agent(AgentChange::PutAgent(seen)),
        ] = &effects.changes[..]
        else {
            panic!("the gateway, its agent: {:?}", effects.changes)
        };
        assert_eq!((disconnected.disconnected_at, seen.host.seen_at), (Some(NOW), Some(NOW)));
        let effects = disconnect(Gateway { ephemeral: true, ..gateway("laptop", None) });
        assert!(matches!(
            &effects.changes[..],
            [Change::Agent(AgentChange::RemoveGateway(_)), Change::Agent(AgentChange::PutAgent(_))]
        ));
    }
}
