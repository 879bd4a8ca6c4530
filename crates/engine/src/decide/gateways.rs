//! Decides commands on gateways and on the agents that they register.

use super::{Change, Effects, EffectsBuilder, agents};
use parlor_model::command::{AgentRegistration, NewGateway};
use parlor_model::{Agent, AgentHost, Command, EntityKind, Gateway, Receipt, Refusal, UserId, Visibility};
use std::sync::Arc;

/// Maximum number of gateways stored per user; beyond that, the one that disconnected first is removed.
const MAX_GATEWAYS: usize = 100;
/// Maximum number of removed agents that a disconnected gateway is notified of; beyond that, the oldest
/// entries are dropped.
const MAX_PENDING_REMOVALS: usize = 1000;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::ConnectGateway(new) => connect(new, effects_builder),
        Command::DisconnectGateway { .. } => disconnect(effects_builder),
        Command::RemoveGateway { gateway } => {
            let mut effects_builder = effects_builder;
            effects_builder.change(Change::RemoveGateway(gateway.clone()));
            agents::remove(effects_builder)
        }
        Command::RegisterAgent(new) => register(new, effects_builder),
        Command::HostAgent { owner, new } => host(owner, new, effects_builder),
        _ => unreachable!("the dispatcher sends only gateway commands here"),
    }
}

fn connect(new: &NewGateway, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let others = || effects_builder.facts.gateways.iter().filter(|other| other.id != new.id);
    let oldest = others().filter(|other| other.disconnected_at.is_some());
    let oldest = oldest.min_by_key(|other| other.disconnected_at).map(|other| other.id.clone());
    if let Some(oldest) = oldest.filter(|_| others().count() >= MAX_GATEWAYS) {
        effects_builder.change(Change::RemoveGateway(oldest));
    }
    let gateway = Arc::new(Gateway {
        id: new.id.clone(),
        owner: effects_builder.actor()?.id.clone(),
        device: new.device.clone(),
        ephemeral: new.ephemeral,
        connected_at: effects_builder.facts.now,
        disconnected_at: None,
        pending_removals: effects_builder
            .facts
            .gateway
            .as_ref()
            .map(|existing| existing.pending_removals.clone())
            .unwrap_or_default(),
    });
    effects_builder.change(Change::PutGateway(gateway.clone()));
    effects_builder.done(Receipt::Gateway(gateway))
}

fn disconnect(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let gateway = effects_builder.facts.gateway.as_ref().ok_or(Refusal::NotFound(EntityKind::Gateway))?;
    let now = Some(effects_builder.facts.now);
    effects_builder.change(match gateway.ephemeral {
        true => Change::RemoveGateway(gateway.id.clone()),
        false => {
            let disconnected_at = gateway.disconnected_at.or(now);
            Change::PutGateway(Arc::new(Gateway { disconnected_at, ..gateway.clone() }))
        }
    });
    for agent in &effects_builder.facts.agents {
        let mut agent = agent.clone();
        agent.host.seen_at = now;
        effects_builder.change(Change::PutAgent(Arc::new(agent)));
    }
    effects_builder.done(Receipt::Done)
}

/// Notes removed agents at their disconnected gateways, which would otherwise register them again.
pub fn note_removals(effects_builder: &mut EffectsBuilder) {
    for gateway in effects_builder.facts.gateways.iter().filter(|gateway| gateway.disconnected_at.is_some()) {
        let hosted = effects_builder
            .facts
            .agents
            .iter()
            .filter(|agent| agent.host.gateway.as_ref() == Some(&gateway.id));
        let mut pending_removals = gateway.pending_removals.clone();
        pending_removals
            .extend(hosted.map(|agent| agent.id.clone()).filter(|id| !gateway.pending_removals.contains(id)));
        if pending_removals.len() > gateway.pending_removals.len() {
            pending_removals.drain(..pending_removals.len().saturating_sub(MAX_PENDING_REMOVALS));
            effects_builder
                .change(Change::PutGateway(Arc::new(Gateway { pending_removals, ..gateway.clone() })));
        }
    }
}

fn hosted(new: &AgentRegistration, effects_builder: &EffectsBuilder) -> AgentHost {
    AgentHost {
        gateway: Some(new.gateway.clone()),
        kind: new.kind.clone(),
        working_directory: new.working_directory.clone(),
        capabilities: new.capabilities.clone(),
        model: new.model.clone(),
        slash_commands: new.slash_commands.clone(),
        mcp_servers: new.mcp_servers.clone(),
        seen_at: Some(effects_builder.facts.now),
    }
}

/// Registers an agent that the hub itself hosts. An agent of another host is not taken over.
fn host(
    owner: &UserId,
    new: &AgentRegistration,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let host = hosted(new, &effects_builder);
    match effects_builder.facts.agent.clone() {
        Some(existing) if existing.host.gateway != host.gateway => {
            Err(Refusal::AlreadyExists(EntityKind::Agent))
        }
        Some(existing) => {
            agents::replace(Agent { name: new.name.clone(), host, ..existing }, effects_builder)
        }
        None => {
            let agent = Agent {
                id: new.id.clone(),
                owner: owner.clone(),
                name: new.name.clone(),
                description: "".into(),
                settings: Default::default(),
                host,
                visibility: Visibility::Private,
                created_at: effects_builder.facts.now,
            };
            let (agent, subscriptions) = agents::apply_profile(agent, &[], &mut effects_builder)?;
            effects_builder.done(Receipt::Agent { agent, subscriptions })
        }
    }
}

fn register(new: &AgentRegistration, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let pending_removal_at =
        effects_builder.facts.gateway.as_ref().filter(|gateway| gateway.pending_removals.contains(&new.id));
    if let Some(mut gateway) = pending_removal_at.cloned() {
        gateway.pending_removals.retain(|id| *id != new.id);
        effects_builder.change(Change::PutGateway(Arc::new(gateway)));
        // An agent that was created again since its removal is registered normally.
        if effects_builder.facts.agent.is_none() {
            return effects_builder.done(Receipt::Dismissed(new.id.clone()));
        }
    }
    let host = hosted(new, &effects_builder);
    match effects_builder.facts.agent.clone() {
        Some(mut agent) => {
            (agent.name, agent.host) = (new.name.clone(), host);
            agents::replace(agent, effects_builder)
        }
        None => {
            let mut agent = agents::new(&new.id, &new.name, &effects_builder)?;
            agent.host = host;
            agents::create_agent(agent, &[], effects_builder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{NOW, agent, decide_with, facts};
    use super::*;
    use crate::facts::Facts;
    use parlor_model::{AgentId, Device, Event, GatewayId, Time};

    fn gateway(id: &str, disconnected_at: Option<Time>) -> Gateway {
        Gateway {
            id: GatewayId::stored(id),
            owner: UserId::stored("ann"),
            device: Device::default(),
            ephemeral: false,
            connected_at: Time(1),
            disconnected_at,
            pending_removals: Vec::new(),
        }
    }

    fn connect(id: &str) -> Command {
        let id = GatewayId::stored(id);
        Command::ConnectGateway(NewGateway { id, device: Device::default(), ephemeral: false })
    }

    fn registration() -> AgentRegistration {
        AgentRegistration {
            gateway: GatewayId::stored("laptop"),
            id: AgentId::stored("coder"),
            name: "Coder".into(),
            kind: "my-own-adapter".into(),
            working_directory: Some("/srv/ann".into()),
            capabilities: vec!["rewind".into()],
            model: None,
            slash_commands: None,
            mcp_servers: None,
        }
    }

    #[test]
    fn the_number_of_stored_gateways_is_limited() {
        let disconnected = |n: usize| gateway(&format!("g{n}"), Some(Time(((n + 7) % MAX_GATEWAYS) as i64)));
        let existing = Facts { gateways: (0..MAX_GATEWAYS).map(disconnected).collect(), ..facts() };
        let plan = decide_with(&connect("new"), &existing).unwrap();
        let [Change::RemoveGateway(forgotten), Change::PutGateway(new)] = &plan.changes[..] else {
            panic!("one removal, one new gateway: {:?}", plan.changes)
        };
        assert_eq!((forgotten.as_str(), new.id.as_str()), ("g93", "new"));
        let again = decide_with(&connect("g93"), &existing).unwrap();
        assert!(matches!(&again.changes[..], [Change::PutGateway(_)]));
    }

    #[test]
    fn a_registered_agent_is_created_or_changed() {
        let plan = decide_with(&Command::RegisterAgent(registration()), &facts()).unwrap();
        let Receipt::Agent { agent: made, .. } = &plan.receipt else { panic!("not an agent") };
        assert_eq!(
            (&*made.name, &*made.host.kind, made.host.seen_at),
            ("Coder", "my-own-adapter", Some(NOW))
        );
        assert_eq!(
            (plan.changes.len(), plan.routes.len()),
            (2, 1),
            "the agent with its session, and its address"
        );

        let mut existing = agent("coder");
        existing.visibility = Visibility::All;
        let plan = decide_with(
            &Command::RegisterAgent(registration()),
            &Facts { agent: Some(existing.clone()), ..facts() },
        )
        .unwrap();
        let changed = Agent { name: "Coder".into(), host: made.host.clone(), ..existing };
        assert!(matches!(&plan.events[0].event, Event::AgentChanged { agent, .. } if **agent == changed));
        assert_eq!((plan.changes.len(), plan.routes.len()), (1, 0));
    }

    #[test]
    fn an_agent_removed_while_its_gateway_was_disconnected_is_not_registered_again() {
        let mut hosted = agent("coder");
        hosted.host.gateway = Some(GatewayId::stored("laptop"));
        let remove = Command::RemoveAgent { id: AgentId::stored("coder") };
        let removed = |away: Option<Time>| {
            let gateways = vec![gateway("laptop", away), gateway("desktop", away)];
            let facts =
                Facts { agent: Some(hosted.clone()), agents: vec![hosted.clone()], gateways, ..facts() };
            let plan = decide_with(&remove, &facts).unwrap();
            plan.changes.into_iter().find_map(|change| match change {
                Change::PutGateway(gateway) => Some(gateway),
                _ => None,
            })
        };
        assert_eq!(removed(None), None, "a connected gateway is notified at once");
        let away = removed(Some(Time(5))).unwrap();
        assert_eq!(
            (away.id.as_str(), &away.pending_removals[..]),
            ("laptop", &[AgentId::stored("coder")][..])
        );

        let existing = Some(Gateway::clone(&away));
        let back =
            decide_with(&super::tests::connect("laptop"), &Facts { gateway: existing, ..facts() }).unwrap();
        let Receipt::Gateway(back) = back.receipt else { panic!("not a gateway") };
        assert_eq!(back.pending_removals, away.pending_removals);
        let register = |given: Facts| decide_with(&Command::RegisterAgent(registration()), &given).unwrap();
        let existing = Facts { gateway: Some(Gateway::clone(&back)), ..facts() };
        let plan = register(existing.clone());
        assert_eq!(plan.receipt, Receipt::Dismissed(AgentId::stored("coder")));
        let [Change::PutGateway(changed)] = &plan.changes[..] else { panic!("{:?}", plan.changes) };
        assert_eq!(changed.pending_removals, [], "the removal is reported once");
        let anew = register(Facts { agent: Some(agent("coder")), ..existing });
        assert!(matches!(anew.receipt, Receipt::Agent { .. }), "an agent created since then stays");
    }

    #[test]
    fn an_agent_was_last_seen_when_its_gateway_disconnected() {
        let disconnect = Command::DisconnectGateway { gateway: GatewayId::stored("laptop") };
        let agents = vec![agent("coder")];
        let facts = Facts { gateway: Some(gateway("laptop", None)), agents, ..facts() };
        let plan = decide_with(&disconnect, &facts).unwrap();
        let [Change::PutGateway(disconnected), Change::PutAgent(seen)] = &plan.changes[..] else {
            panic!("the gateway, its agent: {:?}", plan.changes)
        };
        assert_eq!((disconnected.disconnected_at, seen.host.seen_at), (Some(NOW), Some(NOW)));
        let ephemeral = Some(Gateway { ephemeral: true, ..gateway("laptop", None) });
        let plan = decide_with(&disconnect, &Facts { gateway: ephemeral, ..facts }).unwrap();
        assert!(matches!(&plan.changes[..], [Change::RemoveGateway(_), Change::PutAgent(_)]));
    }
}
