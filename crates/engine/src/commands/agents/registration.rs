//! Properties of an agent, as its gateway sends them.

use crate::validate::FieldErrors;
use parlor_model::characters::is_deceptive;
use parlor_model::command::AgentRegistration;
use parlor_model::{AgentHost, Field, Refusal, Time};

pub fn validate_registration(new: &AgentRegistration) -> Result<(), Refusal> {
    let mut field_errors = FieldErrors::default();
    field_errors.line(Field::Name, &new.name, 100);
    field_errors.line(Field::Kind, &new.kind, 100);
    let directory = new.working_directory.as_deref().unwrap_or_default();
    let plain = directory.chars().count() <= 4096 && !directory.chars().any(is_deceptive);
    let rule = "must have at most 4096 characters, without control characters";
    field_errors.unless(plain, Field::WorkingDirectory, rule);
    if let Some(model) = &new.model {
        field_errors.line(Field::Model, model, 200);
    }
    field_errors.unless(new.capabilities.len() <= 100, Field::Capabilities, "at most 100");
    for capability in &new.capabilities {
        field_errors.line(Field::Capabilities, capability, 100);
    }
    let lists = [&new.slash_commands, &new.mcp_servers];
    let size: usize = lists.into_iter().flatten().map(|list| list.0.len()).sum();
    field_errors.unless(size <= 262_144, Field::Registration, "has lists of more than 256 KB");
    field_errors.into_result()
}

/// The host of the registered agent.
pub fn host_of(new: &AgentRegistration, now: Time) -> AgentHost {
    AgentHost {
        gateway: Some(new.gateway.clone()),
        kind: new.kind.clone(),
        working_directory: new.working_directory.clone(),
        capabilities: new.capabilities.clone(),
        model: new.model.clone(),
        slash_commands: new.slash_commands.clone(),
        mcp_servers: new.mcp_servers.clone(),
        seen_at: Some(now),
        has_lasting_id: new.has_lasting_id,
    }
}
