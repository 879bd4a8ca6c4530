//! Creates a room that the caller owns.

use super::audit::room_subject;
use super::members::{member, members_for_event};
use super::names::OwnNames;
use super::room_settings;
use crate::Limits;
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::CreateRoom;
use parlor_model::{
    AnswerPolicy, EntityKind, Event, Field, Member, MemberChange, MemberId, Refusal, Room, RoomId, RoomKind,
    RoomRole, Scope, User,
};
use std::sync::Arc;

pub struct Facts {
    creator: Arc<AuthContext>,
    /// The invited users, as often as the command names them.
    invited: Vec<Arc<User>>,
}

impl Command for CreateRoom {
    type Facts = Facts;
    type Receipt = Arc<Room>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless(self.changes.name.is_some(), Field::Name, "is required");
        room_settings::validate(&self.changes, &mut field_errors);
        field_errors.unless(self.members.len() <= 100, Field::Members, "at most 100 members at once");
        field_errors.into_result()
    }

    /// Allowed for every user. Agents are added with `AddMember`, which checks their owner.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let creator = caller.signed_in(Scope::Write)?;
        room_settings::require_router(&self.changes, &creator, view)?;
        if self.members.iter().any(|member| member.agent().is_some()) {
            return Err(Refusal::Forbidden.into());
        }
        let mut invited = Vec::new();
        for user in self.members.iter().filter_map(MemberId::user) {
            invited.push(view.user(user)?.ok_or(Refusal::NotFound(EntityKind::User))?);
        }
        Ok(Facts { creator, invited })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Room>, Refusal> {
        let (creator, now) = (&facts.creator.user, effects.now);
        let mut room = Room {
            id: RoomId::stored(effects.new_id()),
            name: "".into(),
            kind: RoomKind::Group,
            policy: AnswerPolicy::Mention,
            system_prompt: None,
            agent_command_role: RoomRole::Member,
            approve_role: RoomRole::Member,
            router: None,
            frozen: None,
            project_root: None,
            description: None,
            created_by: creator.id.clone(),
            created_at: now,
            updated_at: now,
        };
        room_settings::apply(&self.changes, &mut room);
        let room = Arc::new(room);
        let new = |user: &User, role, others: &[Member]| {
            let names = OwnNames::from(user);
            member(&room, MemberId::User(user.id.clone()), role, (names.among(others), &names), now)
        };
        let mut members = vec![new(creator, RoomRole::Owner, &[])];
        for user in &facts.invited {
            if members.iter().all(|member| member.member.user() != Some(&user.id)) {
                members.push(new(user, RoomRole::Member, &members));
            }
        }
        effects.change(RoomChange::PutRoom(room.clone()));
        for member in &members {
            effects.change(RoomChange::PutMember(Arc::new(member.clone())));
        }
        let event_members = members_for_event(&members);
        for member in members {
            let change = MemberChange::Added(member.member);
            let members = event_members.clone();
            effects.publish(Event::MembersChanged { room: room.clone(), change, members });
        }
        let count = self.members.len();
        let detail = format!("with {count} other{}", if count == 1 { "" } else { "s" });
        effects.audit(Action::RoomCreated, room_subject(&room.id), Some(detail.into()));
        Ok(room)
    }
}
