//! Profile of an agent, as its owner sets it.

use crate::validate::FieldErrors;
use parlor_model::command::AgentProfile;
use parlor_model::{Agent, AutoRun, Field, InvalidAutoRun, Visibility};

pub fn check_profile(profile: &AgentProfile, field_errors: &mut FieldErrors) {
    if let Some(name) = &profile.name {
        field_errors.line(Field::Name, name, 100);
    }
    let description = profile.description.as_deref().unwrap_or_default();
    field_errors.unless(
        description.chars().count() <= 2000,
        Field::Description,
        "is longer than 2000 characters",
    );
    let size: usize = profile.settings.iter().map(|(key, value)| key.len() + value.0.len()).sum();
    field_errors.unless(size <= 65_536, Field::Settings, "is larger than 64 KB");
    for (_, json) in profile.settings.iter().filter(|(name, _)| &**name == Agent::AUTO_RUN_SETTING) {
        if let Err(InvalidAutoRun(rule)) = AutoRun::parse(&json.0) {
            field_errors.add(Field::AutoRun, rule);
        }
    }
    if let Some(kind) = &profile.kind {
        field_errors.line(Field::Kind, kind, 100);
    }
    if let Some(Visibility::List(people)) = &profile.visibility {
        field_errors.unless(people.len() <= 1000, Field::Visibility, "at most 1000");
    }
}

pub fn apply_profile(profile: AgentProfile, agent: &mut Agent) {
    if let Some(name) = profile.name {
        agent.name = name;
    }
    if let Some(description) = profile.description {
        agent.description = description;
    }
    agent.settings.extend(profile.settings);
    if let Some(visibility) = profile.visibility {
        agent.visibility = visibility;
    }
    if let Some(kind) = profile.kind {
        agent.host.kind = kind;
    }
}
