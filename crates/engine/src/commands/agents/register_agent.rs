//! Registers an agent of a connected gateway.

use super::existing_agent::publish_agent;
use super::existing_agent::{ExistingAgent, is_hosted_by_hub};
use super::new_agent::{NewAgent, put_new_agent, require_own_family};
use super::predecessors::Predecessors;
use super::registration::{host_of, validate_registration};
use crate::Limits;
use crate::changes::AgentChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::{RegisterAgent, Registered};
use parlor_model::{Agent, EntityKind, Gateway, Refusal, Scope};
use std::sync::Arc;

pub struct Facts {
    gateway: Gateway,
    target: Target,
}

/// The agent that is changed or created.
enum Target {
    Existing(ExistingAgent),
    /// Created, in place of its predecessors if it has any.
    New(NewAgent, Predecessors),
}

impl Command for RegisterAgent {
    type Facts = Facts;
    type Receipt = Registered;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        validate_registration(&self.registration)
    }

    /// Requires the caller's own gateway, and an agent that the caller owns or that does not exist yet. An agent
    /// that the hub itself hosts cannot be registered through a gateway, not even by its owner. A new agent whose gateway
    /// gives it a new id at each start replaces the owner's offline agents of this kind with its name.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let id = &self.registration.id;
        let own = view.own_gateway(caller, &self.registration.gateway, Scope::Hosting)?;
        let user = &own.caller.user.id;
        let target = match view.agent(id)? {
            Some(agent) if agent.owner == *user && !is_hosted_by_hub(&agent) => {
                Target::Existing(ExistingAgent::load(agent, Some(&self.registration.name), view)?)
            }
            Some(_) => return Err(Refusal::BelongsToAnother(EntityKind::Agent).into()),
            None => {
                require_own_family(id, user, view)?;
                let predecessors = match self.registration.has_lasting_id {
                    true => Predecessors::default(),
                    false => Predecessors::load(id, &self.registration.name, user, view)?,
                };
                let mut new = NewAgent::load(id, user, view)?;
                new.agent_count -= predecessors.count();
                Target::New(new, predecessors)
            }
        };
        Ok(Facts { gateway: own.gateway, target })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Registered, Refusal> {
        let (Facts { mut gateway, target }, new) = (facts, self.registration);
        if gateway.pending_removals.contains(&new.id) {
            gateway.pending_removals.retain(|id| *id != new.id);
            effects.change(AgentChange::PutGateway(Arc::new(gateway)));
            // An agent that was created again since its removal is registered normally.
            if let Target::New(..) = target {
                return Ok(Registered::Dismissed(new.id));
            }
        }
        let host = host_of(&new, effects.now);
        let agent = match target {
            Target::Existing(existing) => {
                let agent = Agent { name: new.name, host, ..Agent::clone(&existing.agent) };
                existing.replace(agent, effects)
            }
            Target::New(facts, predecessors) => {
                let agent = Agent { host, ..facts.agent(new.id, &new.name, effects.now)? };
                if predecessors.count() == 0 {
                    put_new_agent(agent, &[], facts.globstar_patterns, effects)?.agent
                } else {
                    let agent = Arc::new(predecessors.describe(agent));
                    effects.change(AgentChange::PutAgent(agent.clone()));
                    publish_agent(&agent, None, &[], effects);
                    predecessors.replace(&agent, effects);
                    agent
                }
            }
        };
        Ok(Registered::Agent(agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::{NOW, agent};
    use crate::commands::test_fixtures::{decide, gateway, registration};
    use parlor_model::{AgentId, Event, UserId, Visibility};

    fn register(gateway: &Gateway, target: Target) -> (Registered, crate::effects::Effects) {
        let command = RegisterAgent { registration: registration() };
        decide(command, Facts { gateway: gateway.clone(), target }).unwrap()
    }

    fn new() -> Target {
        let owner = UserId::stored("ann");
        let new = NewAgent { owner, is_id_of_user: false, agent_count: 0, globstar_patterns: 0 };
        Target::New(new, Predecessors::default())
    }

    fn existing(agent: &Agent) -> Target {
        let (rooms, names) = (Vec::new(), Default::default());
        Target::Existing(ExistingAgent { agent: agent.clone().into(), rooms, names })
    }

    #[test]
    fn a_registered_agent_is_created_or_changed() {
        let laptop = gateway("laptop", None);
        let (receipt, effects) = register(&laptop, new());
        let Registered::Agent(made) = receipt else { panic!("not an agent: {receipt:?}") };
        assert_eq!(
            (&*made.name, &*made.host.kind, made.host.seen_at),
            ("Coder", "my-own-adapter", Some(NOW))
        );
        assert_eq!(
            (effects.changes.len(), effects.route_changes.len()),
            (2, 1),
            "the agent with its session, and its address"
        );

        let old = Agent { visibility: Visibility::All, ..agent("coder") };
        let (_, effects) = register(&laptop, existing(&old));
        let changed = Agent { name: "Coder".into(), host: made.host.clone(), ..old };
        assert!(matches!(&effects.events[0].event, Event::AgentChanged { agent, .. } if **agent == changed));
        assert_eq!((effects.changes.len(), effects.route_changes.len()), (1, 0));
    }

    #[test]
    fn an_agent_removed_while_its_gateway_was_disconnected_is_not_registered_again() {
        let pending_removals = vec![AgentId::stored("coder")];
        let laptop = Gateway { pending_removals, ..gateway("laptop", None) };
        let (receipt, effects) = register(&laptop, new());
        assert_eq!(receipt, Registered::Dismissed(AgentId::stored("coder")));
        let [Change::Agent(AgentChange::PutGateway(changed))] = &effects.changes[..] else {
            panic!("{:?}", effects.changes)
        };
        assert_eq!(changed.pending_removals, [], "the removal is reported once");
        let (receipt, _) = register(&laptop, existing(&agent("coder")));
        assert!(matches!(receipt, Registered::Agent(_)), "an agent created since then stays");
    }
}
