//! Changes the role or the description of a member.

use super::audit::{in_room_as, member_subject};
use super::members::{load_for_event, members_for_event};
use crate::Limits;
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::ChangeMember;
use parlor_model::{Edit, EntityKind, Event, Field, Member, MemberChange, Refusal, RoomRole, Scope};
use std::sync::Arc;

pub struct Facts {
    changer: InRoom,
    target: Member,
    /// All members, as far as the event needs them.
    members: Vec<Member>,
}

impl Command for ChangeMember {
    type Facts = Facts;
    type Receipt = Arc<Member>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        match &self.description {
            Edit::Set(description) => field_errors.line(Field::MemberDescription, description, 500),
            Edit::Keep => field_errors.unless(self.role.is_some(), Field::Role, "is required"),
            Edit::Clear => {}
        }
        field_errors.into_result()
    }

    /// Roles are changed by the room's owner, other member fields by room admins. An agent cannot become the
    /// owner.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let least = if self.role.is_some() { RoomRole::Owner } else { RoomRole::Admin };
        let changer = view.in_room(caller, &self.room, least, Scope::Write)?;
        let target = view.store.member(&self.room, &self.member)?;
        let target = target.ok_or(Refusal::NotFound(EntityKind::Member))?;
        if let Some(role) = self.role {
            if target.role >= changer.member.role {
                return Err(Refusal::LastOneRequired(EntityKind::Room).into());
            }
            if role == RoomRole::Owner && target.member.agent().is_some() {
                return Err(Refusal::Forbidden.into());
            }
        }
        let members = load_for_event(&self.room, view)?;
        Ok(Facts { changer, target, members })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Member>, Refusal> {
        let Facts { changer: InRoom { room, member: own, .. }, target, mut members } = facts;
        let target = Arc::new(Member {
            role: self.role.unwrap_or(target.role),
            role_description: self.description.apply(&target.role_description),
            ..target
        });
        let mut changed = vec![target.clone()];
        if self.role == Some(RoomRole::Owner) {
            // A room has one owner: the previous owner becomes an admin.
            changed.push(Arc::new(Member { role: RoomRole::Admin, ..Member::clone(&own) }));
        }
        for member in &changed {
            if let Some(old) = members.iter_mut().find(|old| old.member == member.member) {
                *old = Member::clone(member);
            }
            effects.change(RoomChange::PutMember(member.clone()));
        }
        let event_members = members_for_event(&members);
        for member in &changed {
            let (change, members) = (MemberChange::Changed(member.member.clone()), event_members.clone());
            effects.publish(Event::MembersChanged { room: room.clone(), change, members });
        }
        effects.audit(Action::MemberChanged, member_subject(&target), in_room_as(&self.room, target.role));
        Ok(target)
    }
}
