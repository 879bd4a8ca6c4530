//! Permission and effects that freezing and thawing a room share.

use crate::changes::RoomChange;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::ReadView;
use parlor_model::{EntityKind, Event, Frozen, Refusal, Room, RoomId, RoomRole, Scope};
use std::sync::Arc;

/// Evidence that the caller may freeze a room.
pub struct Freezer {
    pub room: Arc<Room>,
    /// The caller's membership; `None` for the operator.
    pub member: Option<InRoom>,
}

impl Freezer {
    /// Requires the operator or a user in the room; refuses API keys.
    pub fn require(
        room: &RoomId,
        caller: &CallerContext,
        view: &mut ReadView<'_>,
    ) -> Result<Self, PermitError> {
        if caller.is_operator() {
            let room = view.room(room)?.ok_or(Refusal::NotFound(EntityKind::Room))?;
            return Ok(Self { room, member: None });
        }
        caller.person()?;
        let member = view.in_room(caller, room, RoomRole::Member, Scope::Write)?;
        Ok(Self { room: member.room.clone(), member: Some(member) })
    }

    /// Stores and publishes the room with this freeze, or without one.
    pub fn put(&self, frozen: Option<Frozen>, effects: &mut EffectsBuilder<'_>) -> Arc<Room> {
        let room = Arc::new(Room { frozen, updated_at: effects.now, ..Room::clone(&self.room) });
        effects.change(RoomChange::PutRoom(room.clone()));
        effects.publish(Event::RoomChanged(room.clone()));
        room
    }
}
