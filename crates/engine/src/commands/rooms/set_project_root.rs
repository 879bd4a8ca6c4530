//! Sets or clears the project root of a room.

use super::audit::room_subject;
use crate::Limits;
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::commands::missions::audit::audit_mission;
use crate::commands::missions::in_scope::InScope;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::SetProjectRoot;
use parlor_model::{EntityKind, Event, Field, Refusal, Room, RoomRole, Scope};
use std::sync::Arc;

/// Maximum bytes of a file system path.
const MAX_PATH_BYTES: usize = 4096;

pub struct Facts {
    room: Arc<Room>,
    /// Mission of the room, which ends because the room leaves its mission scope.
    mission: Option<InScope>,
}

impl Command for SetProjectRoot {
    type Facts = Facts;
    type Receipt = Arc<Room>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let plain = self.root.as_deref().is_none_or(is_plain_folder);
        field_errors.unless(plain, Field::ProjectRoot, "must be the whole path of a folder");
        field_errors.into_result()
    }

    /// Allowed for the operator and for site admins who are members, because the folder's content becomes
    /// visible to the room. Only folders allowed by the `project_roots` setting.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let room = match caller.is_operator() {
            true => view.room(&self.room)?.ok_or(Refusal::NotFound(EntityKind::Room))?,
            false => view.in_room(caller, &self.room, RoomRole::Member, Scope::Admin)?.room,
        };
        let allowed = self.root.as_deref().is_none_or(|root| self.there && view.limits.allows_root(root));
        if !allowed {
            return Err(Refusal::Forbidden.into());
        }
        let mission = InScope::with_mission_of(&room, view)?;
        Ok(Facts { room, mission })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Room>, Refusal> {
        let Facts { room, mission } = facts;
        if room.project_root == self.root {
            return Ok(room);
        }
        let ended = mission.and_then(|in_scope| in_scope.end_and_publish(effects));
        let detail = self.root.clone().unwrap_or_else(|| "none".into());
        let room = Room { project_root: self.root, updated_at: effects.now, ..Room::clone(&room) };
        let room = Arc::new(room);
        effects.change(RoomChange::PutRoom(room.clone()));
        effects.publish(Event::RoomChanged(room.clone()));
        effects.audit(Action::ProjectRootSet, room_subject(&room.id), Some(detail));
        if let Some(mission) = ended {
            audit_mission(&mission, effects);
        }
        Ok(room)
    }
}

/// Whether the path is absolute and has no empty, `.` or `..` component.
fn is_plain_folder(path: &str) -> bool {
    let steps = path.strip_prefix('/').filter(|_| path.len() <= MAX_PATH_BYTES && !path.contains('\0'));
    let is_plain = |step: &str| !matches!(step, "" | "." | "..");
    steps.is_some_and(|steps| steps.is_empty() || steps.split('/').all(is_plain))
}
