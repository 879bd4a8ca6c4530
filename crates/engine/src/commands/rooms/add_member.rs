//! Adds a user or an agent to a room.

use super::audit::{in_room_as, member_subject};
use super::members::{load_for_event, member, members_for_event};
use super::names::OwnNames;
use crate::Limits;
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::AddMember;
use parlor_model::{
    EntityKind, Event, Field, Member, MemberChange, MemberId, Operation, Refusal, RoomRole, Scope, Seq,
};
use std::sync::Arc;

pub struct Facts {
    admin: InRoom,
    names: OwnNames,
    /// Name of the new member in the room.
    name: Box<str>,
    /// Whether the user or agent is a member already.
    is_member: bool,
    /// Current members, as far as the event needs them.
    members: Vec<Member>,
    /// `Seq` of the newest event.
    head: Seq,
}

impl Command for AddMember {
    type Facts = Facts;
    type Receipt = Arc<Member>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        if let Some(description) = &self.description {
            field_errors.line(Field::MemberDescription, description, 500);
        }
        field_errors.into_result()
    }

    /// Allowed for admins of the room; only its owner may add admins. An agent may be added by its owner, and
    /// by users the owner shares it with. With `members_add_agents`, members of the room may add their own agents.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let own_agent = match &self.member {
            MemberId::Agent(agent) => view.agent(agent)?,
            MemberId::User(_) => None,
        };
        let own_agent = own_agent.filter(|agent| caller.caller.user() == Some(&agent.owner));
        let admin = match &own_agent {
            // Users with a grant may add only their own agents.
            Some(_) if caller.is_limited() => {
                caller.signed_in(Scope::Agents)?;
                view.at_room(caller, Operation::Publish, &self.room)?
            }
            _ => view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?,
        };
        let may_as_member =
            own_agent.is_some() && view.limits.members_add_agents && self.role == RoomRole::Member;
        if admin.member.role < RoomRole::Admin && !may_as_member {
            return Err(Refusal::Forbidden.into());
        }
        let is_below = may_as_member || self.role < admin.member.role || admin.member.role == RoomRole::Owner;
        if !is_below || self.role == RoomRole::Owner {
            return Err(Refusal::Forbidden.into());
        }
        let names = match &self.member {
            MemberId::User(user) => {
                OwnNames::from(&*view.user(user)?.ok_or(Refusal::NotFound(EntityKind::User))?)
            }
            MemberId::Agent(agent) => match &own_agent {
                Some(own) => OwnNames::load_agent(own, view)?,
                None => {
                    let shared = view.own_or_shared_agent(caller, agent, Scope::Write)?;
                    OwnNames::load_agent(&shared, view)?
                }
            },
        };
        let name = names.in_room(&admin.room, &self.member, view)?;
        let is_member = view.store.member(&self.room, &self.member)?.is_some();
        let members = load_for_event(&self.room, view)?;
        Ok(Facts { admin, names, name, is_member, members, head: view.head.seq })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Member>, Refusal> {
        let Facts { admin: InRoom { room, .. }, names, name, is_member, mut members, head } = facts;
        if is_member {
            return Err(Refusal::AlreadyExists(EntityKind::Member));
        }
        let new = Member {
            // Earlier messages count as read for a new member.
            read_through: head,
            role_description: self.description,
            ..member(&room, self.member.clone(), self.role, (name, &names), effects.now)
        };
        members.push(new.clone());
        let new = Arc::new(new);
        effects.change(RoomChange::PutMember(new.clone()));
        let (change, members) = (MemberChange::Added(self.member), members_for_event(&members));
        effects.publish(Event::MembersChanged { room, change, members });
        effects.audit(Action::MemberAdded, member_subject(&new), in_room_as(&self.room, new.role));
        Ok(new)
    }
}
