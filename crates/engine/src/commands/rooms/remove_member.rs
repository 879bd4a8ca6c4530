//! Removes a member. A user's agents leave the room with the user, so that they cannot follow it any longer.

use super::audit::member_subject;
use super::members::{load_for_event, members_for_event};
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RemoveMember;
use parlor_model::{AgentId, EntityKind, Event, Member, MemberChange, MemberId, Refusal, RoomRole, Scope};
use std::collections::HashSet;

pub struct Facts {
    remover: InRoom,
    target: Member,
    /// Agents of the user who leaves.
    own_agents: HashSet<AgentId>,
    /// All members if the target has agents, otherwise as far as the event needs them.
    members: Vec<Member>,
}

impl Command for RemoveMember {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the member itself, for the owner of an agent, and for room admins with a higher role than
    /// the member. The owner of the room cannot be removed.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let remover = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        let target = view.store.member(&self.room, &self.member)?;
        let target = target.ok_or(Refusal::NotFound(EntityKind::Member))?;
        if target.role == RoomRole::Owner {
            return Err(Refusal::LastOneRequired(EntityKind::Room).into());
        }
        let (own, role) = (&remover.caller.user.id, remover.member.role);
        let removes_own = match &self.member {
            MemberId::User(user) => user == own,
            MemberId::Agent(agent) => view.agent(agent)?.is_some_and(|agent| agent.owner == *own),
        };
        let outranks = role >= RoomRole::Admin && role > target.role;
        if !removes_own && !outranks {
            return Err(Refusal::Forbidden.into());
        }
        let own_agents: HashSet<AgentId> = match &self.member {
            MemberId::User(user) => view.store.agents_of(user)?.into_iter().map(|agent| agent.id).collect(),
            MemberId::Agent(_) => HashSet::new(),
        };
        let members = match own_agents.is_empty() {
            true => load_for_event(&self.room, view)?,
            false => view.store.members(&self.room, usize::MAX, 0)?,
        };
        Ok(Facts { remover, target, own_agents, members })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { remover: InRoom { room, .. }, target, own_agents, mut members } = facts;
        let is_own = |member: &MemberId| member.agent().is_some_and(|agent| own_agents.contains(agent));
        let mut leaving = vec![target.member.clone()];
        leaving.extend(members.iter().map(|member| member.member.clone()).filter(is_own));
        members.retain(|member| member.member != target.member && !is_own(&member.member));
        let event_members = members_for_event(&members);
        for member in leaving {
            effects.change(RoomChange::RemoveMember(room.id.clone(), member.clone()));
            let (change, members) = (MemberChange::Removed(member), event_members.clone());
            effects.publish(Event::MembersChanged { room: room.clone(), change, members });
        }
        let detail = format!("in room {}", self.room);
        effects.audit(Action::MemberRemoved, member_subject(&target), Some(detail.into()));
        Ok(())
    }
}
