//! Sets or removes the idle prompt of an agent, in a mission scope or globally.

use super::audit::audit_idle_prompt;
use super::in_scope::InScope;
use super::validate::validate_idle_prompt;
use crate::Limits;
use crate::changes::{Change, MissionChange};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::SetIdlePrompt;
use parlor_model::{
    Agent, EntityKind, Event, EventAudience, Field, IdlePrompt, MemberId, MissionScope, Refusal, RoomId,
    RoomRole, Scope,
};
use std::sync::Arc;

pub struct Facts {
    target: Target,
    /// Whether the agent has an idle prompt in the scope.
    is_set: bool,
}

/// Rooms in which the idle prompt applies.
enum Target {
    /// All rooms of the agent, which are listed.
    Agent {
        agent: Arc<Agent>,
        rooms: Vec<RoomId>,
    },
    Scope(InScope),
}

impl Target {
    fn mission_scope(&self) -> MissionScope {
        match self {
            Self::Agent { .. } => MissionScope::Global,
            Self::Scope(in_scope) => in_scope.mission_scope.clone(),
        }
    }
}

impl Command for SetIdlePrompt {
    type Facts = Facts;
    type Receipt = ();

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        if let Some(idle) = &self.idle {
            let is_set = *idle != IdlePrompt::default();
            field_errors.unless(is_set, Field::IdleSettings, "must have a text or an interval");
            validate_idle_prompt(idle, &mut field_errors);
        }
        field_errors.into_result()
    }

    /// Globally, allowed for the agent's owner. In a room, allowed for its admins; but in a room with a
    /// project root, where the prompt applies to all rooms with that root, for the room admin who set the
    /// active mission and for site admins who are members.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let target = if self.rooms.is_empty() {
            let agent = view.own_agent(caller, &self.agent, Scope::Agents)?.agent;
            let memberships = view.store.memberships(&MemberId::Agent(self.agent.clone()))?;
            Target::Agent { agent, rooms: memberships.into_iter().map(|member| member.room).collect() }
        } else {
            let own = view.only_selected_room(caller, &self.rooms, RoomRole::Member, Scope::Write)?;
            let in_scope = InScope::of(&own.room, view)?;
            let has_root = own.room.project_root.is_some();
            let set_mission =
                || in_scope.active.as_ref().is_some_and(|active| active.created_by == own.caller.user.id);
            let may = has_root && caller.site_admin().is_ok()
                || own.member.role >= RoomRole::Admin && (!has_root || set_mission());
            if !may {
                return Err(Refusal::Forbidden.into());
            }
            view.agent_in_room(&self.agent, &own.room.id)?;
            Target::Scope(in_scope)
        };
        let is_set = view.store.idle(&target.mission_scope(), &self.agent)?.is_some();
        Ok(Facts { target, is_set })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { target, is_set } = facts;
        if self.idle.is_none() && !is_set {
            return Err(Refusal::NotFound(EntityKind::Override));
        }
        let (mission_scope, idle, sets) = (target.mission_scope(), self.idle.clone(), self.idle.is_some());
        let change =
            Change::Mission(MissionChange::PutIdlePrompt { mission_scope, agent: self.agent.clone(), idle });
        effects.change(change);
        match &target {
            Target::Scope(in_scope) => in_scope.publish_rooms(effects),
            // An agent's own idle prompt is part of what clients see of the agent.
            Target::Agent { agent, rooms } => {
                let audience = EventAudience::of(agent, rooms.clone()).into();
                effects.publish(Event::AgentChanged { agent: agent.clone(), audience });
            }
        }
        audit_idle_prompt(&self.agent, &target.mission_scope(), sets, effects);
        Ok(())
    }
}
