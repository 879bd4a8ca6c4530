//! Audit entries of missions and idle prompts, without their texts.

use crate::effects::EffectsBuilder;
use parlor_model::audit::{Action, Subject, SubjectKind};
use parlor_model::{AgentId, Mission, MissionScope};

/// Records that a mission was set or, if it has ended, that it was ended.
pub fn audit_mission(mission: &Mission, effects: &mut EffectsBuilder<'_>) {
    let action = if mission.is_on() { Action::MissionSet } else { Action::MissionEnded };
    let room = Subject { kind: SubjectKind::Room, id: mission.room.as_str().into(), name: None };
    let detail = format!("mission {} {}", mission.id, describe(&mission.mission_scope));
    effects.audit(action, Some(room), Some(detail.into()));
}

/// Records that an idle prompt was set or removed.
pub fn audit_idle_prompt(
    agent: &AgentId,
    mission_scope: &MissionScope,
    is_set: bool,
    effects: &mut EffectsBuilder<'_>,
) {
    let action = if is_set { Action::OverrideSet } else { Action::OverrideRemoved };
    let agent = Subject { kind: SubjectKind::Agent, id: agent.as_str().into(), name: None };
    effects.audit(action, Some(agent), Some(describe(mission_scope).into()));
}

fn describe(mission_scope: &MissionScope) -> String {
    match mission_scope {
        MissionScope::Room(room) => format!("in room {room}"),
        MissionScope::Root(root) => format!("in {root}"),
        MissionScope::Global => "of itself".into(),
    }
}
