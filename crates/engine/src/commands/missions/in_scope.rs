//! Mission and rooms of one mission scope.
//!
//! Owns: a scope has at most one active mission, and a change of it is published to all rooms of the scope.

use crate::Fault;
use crate::changes::MissionChange;
use crate::effects::EffectsBuilder;
use crate::permission::CallerContext;
use crate::read_view::ReadView;
use parlor_model::{Event, Mission, MissionScope, Refusal, Room, RoomId};
use std::sync::Arc;

/// The active mission of a mission scope, and the rooms in it.
pub struct InScope {
    pub mission_scope: MissionScope,
    pub active: Option<Mission>,
    rooms: Vec<Arc<Room>>,
}

impl InScope {
    /// Loads the mission scope of a room.
    pub fn of(room: &Arc<Room>, view: &mut ReadView<'_>) -> Result<Self, Fault> {
        let mission_scope = MissionScope::of(room);
        let active = view.store.missions(&mission_scope, 1)?.pop().filter(Mission::is_on);
        let rooms = match &room.project_root {
            Some(root) => view.store.rooms_about(root)?.into_iter().map(Arc::new).collect(),
            None => vec![room.clone()],
        };
        Ok(Self { mission_scope, active, rooms })
    }

    /// Loads the mission scope of a room, without the room itself, if the scope's active mission was set in the
    /// room. The mission ends when the room leaves the scope.
    pub fn with_mission_of(room: &Arc<Room>, view: &mut ReadView<'_>) -> Result<Option<Self>, Fault> {
        let mut in_scope = Self::of(room, view)?;
        in_scope.rooms.retain(|other| other.id != room.id);
        let set_here = in_scope.active.as_ref().is_some_and(|mission| mission.room == room.id);
        Ok(set_here.then_some(in_scope))
    }

    /// Requires a caller who may end the active mission: one that was set in another room with the same
    /// project root may be ended only by site admins.
    pub fn may_end(&self, caller: &CallerContext, room: &RoomId) -> Result<(), Refusal> {
        match &self.active {
            Some(mission) if mission.room != *room => caller.site_admin(),
            _ => Ok(()),
        }
    }

    /// Publishes a change of every room in the scope: the mission is part of what clients see of a room.
    pub fn publish_rooms(&self, effects: &mut EffectsBuilder<'_>) {
        self.rooms.iter().for_each(|room| effects.publish(Event::RoomChanged(room.clone())));
    }

    /// Ends the active mission, if there is one. Returns the ended mission, which the command records in the
    /// audit log after its other changes.
    pub fn end_active(&self, effects: &mut EffectsBuilder<'_>) -> Option<Arc<Mission>> {
        let ended = self.active.clone().map(|mission| Mission { ended_at: Some(effects.now), ..mission });
        let ended = ended.map(Arc::new);
        if let Some(ended) = &ended {
            effects.change(MissionChange::PutMission(ended.clone()));
        }
        ended
    }

    /// Ends the active mission, if there is one, and publishes the change of every room in the scope.
    pub fn end_and_publish(&self, effects: &mut EffectsBuilder<'_>) -> Option<Arc<Mission>> {
        let ended = self.end_active(effects)?;
        self.publish_rooms(effects);
        Some(ended)
    }
}
