//! Decides what becomes of a mission when a room leaves its mission scope.

use super::{Change, EffectsBuilder};
use parlor_model::{Event, Mission, RoomId};
use std::sync::Arc;

/// A room leaves its mission scope. Ends the active mission if it was set in this room, and publishes that to
/// the other rooms of the scope.
pub fn leave_mission_scope(room: &RoomId, effects_builder: &mut EffectsBuilder) {
    let facts = effects_builder.facts;
    let active = facts.mission.clone().filter(Mission::is_on);
    let Some(mission) = active.filter(|mission| mission.room == *room) else { return };
    let ended = Mission { ended_at: Some(facts.now), ..mission };
    effects_builder.change(Change::PutMission(Arc::new(ended)));
    let others = facts.realm.iter().filter(|other| other.id != *room);
    others.for_each(|other| effects_builder.publish(Event::RoomChanged(other.clone())));
}
