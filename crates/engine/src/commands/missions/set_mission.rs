//! Starts a mission, which replaces the active mission of its scope.

use super::audit::audit_mission;
use super::in_scope::InScope;
use super::validate::{validate_idle_prompt, validate_text};
use crate::Limits;
use crate::changes::MissionChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::SetMission;
use parlor_model::{AgentId, Field, Mission, MissionAgent, MissionId, Refusal, RoomRole, Scope};
use std::collections::BTreeSet;
use std::sync::Arc;

pub struct Facts {
    admin: InRoom,
    in_scope: InScope,
}

impl Command for SetMission {
    type Facts = Facts;
    type Receipt = Arc<Mission>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        validate_text(Field::MissionText, &self.text, &mut field_errors);
        field_errors.unless(self.agents.len() <= Mission::MAX_AGENTS, Field::Agents, "at most 50");
        let different: BTreeSet<&AgentId> = self.agents.iter().map(|(agent, _)| agent).collect();
        field_errors.unless(
            different.len() == self.agents.len(),
            Field::Agents,
            "must not contain duplicates",
        );
        self.agents.iter().for_each(|(_, idle)| validate_idle_prompt(idle, &mut field_errors));
        field_errors.into_result()
    }

    /// Allowed for admins of the room, because a mission spends the room's budget repeatedly. A mission that
    /// was set in another room with the same project root may be replaced only by site admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let admin = view.only_selected_room(caller, &self.rooms, RoomRole::Admin, Scope::Write)?;
        let in_scope = InScope::of(&admin.room, view)?;
        in_scope.may_end(caller, &admin.room.id)?;
        Ok(Facts { admin, in_scope })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Mission>, Refusal> {
        let Facts { admin, in_scope } = facts;
        let replaced = in_scope.end_active(effects);
        let named = |(agent, idle)| MissionAgent { agent, named: true, idle, prompted_at: None };
        let mut agents: Vec<MissionAgent> = self.agents.into_iter().map(named).collect();
        agents.sort_by(|one, other| one.agent.cmp(&other.agent));
        let mission = Arc::new(Mission {
            id: MissionId::stored(effects.new_id()),
            mission_scope: in_scope.mission_scope.clone(),
            room: admin.room.id.clone(),
            text: self.text.trim().into(),
            agents,
            created_by: admin.caller.user.id.clone(),
            created_at: effects.now,
            ended_at: None,
            prompts: 0,
        });
        effects.change(MissionChange::PutMission(mission.clone()));
        in_scope.publish_rooms(effects);
        if let Some(replaced) = replaced {
            audit_mission(&replaced, effects);
        }
        audit_mission(&mission, effects);
        Ok(mission)
    }
}
