//! Adds a user or an agent to a room.

use super::members::{NewMember, add_member};
use super::names::OwnNames;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError, may_give};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::AddMember;
use parlor_model::{EntityKind, Field, Member, MemberId, Operation, Refusal, RoomRole, Scope};
use std::sync::Arc;

pub struct Facts {
    admin: InRoom,
    new: NewMember,
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
        if !may_as_member && !may_give(admin.member.role, self.role) {
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
        let new = NewMember::load(&admin.room, self.member.clone(), names, view)?;
        Ok(Facts { admin, new })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Member>, Refusal> {
        add_member(&facts.admin.room, facts.new, self.role, self.description, effects)
    }
}
