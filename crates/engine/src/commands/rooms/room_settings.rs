//! Settings of a room that its creator and its admins choose.

use crate::permission::AuthContext;
use crate::permission::PermitError;
use crate::read_view::ReadView;
use crate::validate::FieldErrors;
use parlor_model::command::RoomChanges;
use parlor_model::{Edit, EntityKind, Field, Refusal, Room};

pub fn validate(changes: &RoomChanges, field_errors: &mut FieldErrors) {
    if let Some(name) = &changes.name {
        field_errors.line(Field::Name, name, 100);
    }
    if let Edit::Set(description) = &changes.description {
        let fits = description.chars().count() <= 2000;
        field_errors.unless(fits, Field::Description, "is longer than 2000 characters");
    }
    if let Edit::Set(prompt) = &changes.system_prompt {
        let fits = prompt.chars().count() <= 10_000;
        field_errors.unless(fits, Field::SystemPrompt, "is longer than 10000 characters");
    }
}

/// Requires that a newly assigned router is shared or was created by the caller. Another user's router and a
/// missing one yield the same refusal.
pub fn require_router(
    changes: &RoomChanges,
    caller: &AuthContext,
    view: &mut ReadView<'_>,
) -> Result<(), PermitError> {
    let Edit::Set(router) = &changes.router else { return Ok(()) };
    match view.store.router(router)? {
        Some(router) if router.shared || router.created_by == caller.user.id => Ok(()),
        _ => Err(Refusal::NotFound(EntityKind::Router).into()),
    }
}

pub fn apply(changes: &RoomChanges, room: &mut Room) {
    if let Some(name) = &changes.name {
        room.name = name.trim().into();
    }
    if let Some(kind) = changes.kind {
        room.kind = kind;
    }
    if let Some(policy) = changes.policy {
        room.policy = policy;
    }
    changes.system_prompt.apply_to(&mut room.system_prompt);
    changes.description.apply_to(&mut room.description);
    if let Some(role) = changes.agent_command_role {
        room.agent_command_role = role;
    }
    if let Some(role) = changes.approve_role {
        room.approve_role = role;
    }
    changes.router.apply_to(&mut room.router);
}
