//! Models that answer as agents from within the hub.

use super::{Change, Effects, EffectsBuilder, HUB, agents};
use parlor_model::command::{NewService, ServiceChanges};
use parlor_model::{
    Agent, AgentHost, AgentId, Command, EntityKind, GatewayId, Receipt, Refusal, Service, Visibility,
};
use std::sync::Arc;

/// As gateways call it.
const KIND: &str = "model";

pub fn decide(command: &Command, draft: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateService(new) => create(new, draft),
        Command::ChangeService { changes, .. } => change(changes, draft),
        Command::RemoveService { .. } => agents::remove(draft),
        _ => unreachable!("the dispatcher sends only service agents here"),
    }
}

fn create(new: &NewService, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let now = draft.facts.now;
    let id = AgentId::stored(draft.mint.ids.next());
    let agent = Agent {
        description: new.description.clone(),
        host: hosted(&new.model.model, &draft),
        // Everybody brings it into their rooms.
        visibility: Visibility::All,
        ..agents::new(&id, new.name.trim(), &draft)?
    };
    let (agent, _) = agents::apply_profile(agent, &[], &mut draft)?;
    let service = Service {
        agent: id,
        active: new.active,
        model: new.model.clone(),
        fallback: new.fallback.clone(),
        instructions: new.instructions.clone(),
        most_tokens: new.most_tokens,
        updated_at: now,
    };
    put(agent, service, draft)
}

fn change(changes: &ServiceChanges, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let missing = Refusal::NotFound(EntityKind::Service);
    let (Some(mut agent), Some(mut service)) = (draft.facts.agent.clone(), draft.facts.service.clone())
    else {
        return Err(missing);
    };
    service.model.change(&changes.model);
    service.active = changes.active.unwrap_or(service.active);
    if let Some(fallback) = &changes.fallback {
        service.fallback = fallback.clone();
    }
    if let Some(instructions) = &changes.instructions {
        service.instructions = instructions.clone();
    }
    service.most_tokens = changes.most_tokens.unwrap_or(service.most_tokens);
    service.updated_at = draft.facts.now;
    if let Some(name) = &changes.name {
        agent.name = name.trim().into();
    }
    if let Some(description) = &changes.description {
        agent.description = description.clone();
    }
    agent.host = hosted(&service.model.model, &draft);
    let agent = Arc::new(agent);
    draft.change(Change::PutAgent(agent.clone()));
    agents::tell(&agent, &mut draft);
    put(agent, service, draft)
}

fn put(agent: Arc<Agent>, service: Service, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let service = Arc::new(service);
    draft.change(Change::PutService(service.clone()));
    draft.done(Receipt::Service { agent, service })
}

fn hosted(model: &str, draft: &EffectsBuilder) -> AgentHost {
    AgentHost {
        gateway: Some(GatewayId::stored(HUB)),
        kind: KIND.into(),
        capabilities: vec!["rewind".into()],
        model: Some(model.into()),
        seen_at: Some(draft.facts.now),
        ..AgentHost::default()
    }
}
