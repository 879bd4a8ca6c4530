//! The active mission that was set in a room. It ends when the room leaves its mission scope.

use super::audit::room_subject;
use crate::Fault;
use crate::decide::Change;
use crate::effects::EffectsBuilder;
use crate::read_view::ReadView;
use parlor_model::audit::Action;
use parlor_model::{Event, Mission, MissionScope, Room};
use std::sync::Arc;

pub struct RoomMission {
    mission: Mission,
    /// The other rooms of the mission scope.
    other_rooms: Vec<Arc<Room>>,
}

impl RoomMission {
    /// Returns `None` if the room's scope has no active mission, or one that was set in another room.
    pub fn load(room: &Room, view: &mut ReadView<'_>) -> Result<Option<Self>, Fault> {
        let newest = view.store.missions(&MissionScope::of(room), 1)?.pop();
        let Some(mission) = newest.filter(|mission| mission.is_on() && mission.room == room.id) else {
            return Ok(None);
        };
        let mut other_rooms = Vec::new();
        if let Some(root) = &room.project_root {
            let in_scope = view.store.rooms_about(root)?.into_iter();
            other_rooms.extend(in_scope.filter(|other| other.id != room.id).map(Arc::new));
        }
        Ok(Some(Self { mission, other_rooms }))
    }

    /// Ends the mission and publishes that to the other rooms of the scope: the mission is part of what
    /// clients see of a room.
    pub fn end(&self, effects: &mut EffectsBuilder<'_>) {
        let ended = Mission { ended_at: Some(effects.now), ..self.mission.clone() };
        effects.change(Change::PutMission(Arc::new(ended)));
        for other in &self.other_rooms {
            effects.publish(Event::RoomChanged(other.clone()));
        }
    }

    pub fn audit_end(&self, effects: &mut EffectsBuilder<'_>) {
        let Mission { id, mission_scope, room, .. } = &self.mission;
        let place = match mission_scope {
            MissionScope::Room(room) => format!("in room {room}"),
            MissionScope::Root(root) => format!("in {root}"),
            MissionScope::Global => "of itself".into(),
        };
        let detail = format!("mission {id} {place}");
        effects.audit(Action::MissionEnded, room_subject(room), Some(detail.into()));
    }
}
