//! Decides commands on services: agents that the hub itself hosts, backed by a model.

use super::{Change, Effects, EffectsBuilder, HUB, rooms};
use crate::commands::agents::existing_agent::publish_agent;
use crate::commands::agents::new_agent::{check_agent_count, new_agent, put_new_agent};
use crate::commands::agents::removal::remove_agent;
use parlor_model::command::{NewService, ServiceChanges};
use parlor_model::{
    Agent, AgentHost, AgentId, Command, EntityKind, GatewayId, Receipt, Refusal, Service, Visibility,
};
use std::sync::Arc;

/// The agent kind, with the same name as in gateways.
const KIND: &str = "model";

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateService(new) => create(new, effects_builder),
        Command::ChangeService { changes, .. } => change(changes, effects_builder),
        Command::RemoveService { .. } => {
            let mut effects_builder = effects_builder;
            let agents = &effects_builder.facts.agents;
            rooms::leave_all(&mut effects_builder);
            agents.iter().for_each(|agent| remove_agent(agent, &mut effects_builder));
            effects_builder.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only service commands here"),
    }
}

fn create(new: &NewService, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let now = effects_builder.facts.now;
    let id = AgentId::stored(effects_builder.decide_context.ids.next());
    check_agent_count(effects_builder.facts.agents.len())?;
    let agent = Agent {
        description: new.description.clone(),
        host: hosted(&new.model.model, &effects_builder),
        // Visible to all users, so that every user can add it to a room.
        visibility: Visibility::All,
        ..new_agent(id.clone(), effects_builder.actor()?.id.clone(), new.name.trim(), now)
    };
    let agent = put_new_agent(agent, &[], 0, &mut effects_builder)?.agent;
    let service = Service {
        agent: id,
        active: new.active,
        model: new.model.clone(),
        fallback: new.fallback.clone(),
        instructions: new.instructions.clone(),
        most_tokens: new.most_tokens,
        updated_at: now,
    };
    put(agent, service, effects_builder)
}

fn change(changes: &ServiceChanges, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let missing = Refusal::NotFound(EntityKind::Service);
    let (Some(mut agent), Some(mut service)) =
        (effects_builder.facts.agent.clone(), effects_builder.facts.service.clone())
    else {
        return Err(missing);
    };
    service.model.change(&changes.model);
    service.active = changes.active.unwrap_or(service.active);
    changes.fallback.apply_to(&mut service.fallback);
    changes.instructions.apply_to(&mut service.instructions);
    changes.most_tokens.apply_to(&mut service.most_tokens);
    service.updated_at = effects_builder.facts.now;
    if let Some(name) = &changes.name {
        agent.name = name.trim().into();
    }
    if let Some(description) = &changes.description {
        agent.description = description.clone();
    }
    agent.host = hosted(&service.model.model, &effects_builder);
    let agent = Arc::new(agent);
    effects_builder.change(Change::PutAgent(agent.clone()));
    let facts = effects_builder.facts;
    publish_agent(&agent, facts.agent.as_ref(), &facts.rooms, &mut effects_builder);
    put(agent, service, effects_builder)
}

fn put(agent: Arc<Agent>, service: Service, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let service = Arc::new(service);
    effects_builder.change(Change::PutService(service.clone()));
    effects_builder.done(Receipt::Service { agent, service })
}

fn hosted(model: &str, effects_builder: &EffectsBuilder) -> AgentHost {
    AgentHost {
        gateway: Some(GatewayId::stored(HUB)),
        kind: KIND.into(),
        capabilities: vec!["rewind".into()],
        model: Some(model.into()),
        seen_at: Some(effects_builder.facts.now),
        ..AgentHost::default()
    }
}
