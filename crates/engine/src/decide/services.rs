//! Decides commands on services: agents that the hub itself hosts, backed by a model.

use super::{Change, Effects, EffectsBuilder, HUB, agents};
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
        Command::RemoveService { .. } => agents::remove(effects_builder),
        _ => unreachable!("the dispatcher sends only service commands here"),
    }
}

fn create(new: &NewService, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let now = effects_builder.facts.now;
    let id = AgentId::stored(effects_builder.decide_context.ids.next());
    let agent = Agent {
        description: new.description.clone(),
        host: hosted(&new.model.model, &effects_builder),
        // Visible to all users, so that every user can add it to a room.
        visibility: Visibility::All,
        ..agents::new(&id, new.name.trim(), &effects_builder)?
    };
    let (agent, _) = agents::apply_profile(agent, &[], &mut effects_builder)?;
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
    agents::publish_agent(&agent, &mut effects_builder);
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
