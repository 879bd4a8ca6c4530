//! Removes an agent and every agent whose id lies below its id.

use super::existing_agent::is_hosted_by_hub;
use super::removal::{Departure, remove_agents};
use crate::commands::Command;
use crate::commands::gateways::pending_removals::note_removals;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::RemoveAgent;
use parlor_model::{Agent, Gateway, Refusal, Scope};

pub struct Facts {
    /// The agents below the agent, then the agent itself.
    agents: Vec<Agent>,
    departure: Departure,
    /// Gateways of the caller; none for the operator.
    gateways: Vec<Gateway>,
}

impl Command for RemoveAgent {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the owner of the agent. The operator removes agents that the hub itself hosts.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let hubs_agent = match caller.is_operator() {
            true => view.agent(&self.id)?.filter(|agent| is_hosted_by_hub(agent)),
            false => None,
        };
        let (agent, gateways) = match hubs_agent {
            Some(agent) => (agent, Vec::new()),
            None => {
                let own = view.own_agent(caller, &self.id, Scope::Agents)?;
                (own.agent, view.store.gateways(Some(&own.caller.user.id))?)
            }
        };
        let mut agents = view.store.agents_below(&self.id)?;
        agents.push(Agent::clone(&agent));
        Ok(Facts { departure: Departure::of_agents(&agents, view)?, agents, gateways })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        note_removals(&facts.agents, &facts.gateways, effects);
        remove_agents(&facts.agents, &facts.departure, effects);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{AgentChange, Change};
    use crate::commands::test_fixtures::agent;
    use crate::commands::test_fixtures::{decide, gateway};
    use crate::routing_index::RouteChange;
    use parlor_model::{AgentId, Event, EventAudience, GatewayId, Time};

    fn facts(agents: &[Agent], gateways: Vec<Gateway>) -> Facts {
        Facts { agents: agents.to_vec(), departure: Departure::default(), gateways }
    }

    #[test]
    fn an_agent_is_removed_with_all_below_it() {
        let removed = ["coder/a", "coder/a/b", "coder"].map(agent);
        let command = RemoveAgent { id: removed[2].id.clone() };
        let ((), effects) = decide(command, facts(&removed, Vec::new())).unwrap();
        let counts = (effects.changes.len(), effects.route_changes.len(), effects.events.len());
        assert_eq!(counts, (3, 3, 3));
        for (index, agent) in removed.iter().enumerate() {
            assert!(
                matches!(&effects.changes[index], Change::Agent(AgentChange::RemoveAgent(id)) if *id == agent.id)
            );
            assert!(matches!(&effects.route_changes[index], RouteChange::RemoveAgent(id) if *id == agent.id));
            let audience = EventAudience::of(agent, []).into();
            assert_eq!(
                effects.events[index].event,
                Event::AgentRemoved { agent: agent.id.clone(), audience }
            );
        }
    }

    #[test]
    fn a_removed_agent_is_noted_at_its_disconnected_gateway() {
        let mut hosted = agent("coder");
        hosted.host.gateway = Some(GatewayId::stored("laptop"));
        let noted_at = |disconnected_at: Option<Time>| {
            let gateways = vec![gateway("laptop", disconnected_at), gateway("desktop", disconnected_at)];
            let command = RemoveAgent { id: hosted.id.clone() };
            let ((), effects) = decide(command, facts(std::slice::from_ref(&hosted), gateways)).unwrap();
            effects.changes.into_iter().find_map(|change| match change {
                Change::Agent(AgentChange::PutGateway(gateway)) => Some(gateway),
                _ => None,
            })
        };
        assert_eq!(noted_at(None), None, "a connected gateway is notified at once");
        let noted = noted_at(Some(Time(5))).unwrap();
        assert_eq!(
            (noted.id.as_str(), &noted.pending_removals[..]),
            ("laptop", &[AgentId::stored("coder")][..])
        );
    }
}
