//! Project roots by room, for protocols that add them to every event of a room. Updated by the fan-out as it
//! publishes.

use parking_lot::RwLock;
use parlor_model::{Event, Room, RoomId};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Default)]
pub struct RoomRoots(RwLock<HashMap<RoomId, Arc<str>>>);

impl RoomRoots {
    pub fn of(&self, room: &RoomId) -> Option<Arc<str>> {
        self.0.read().get(room).cloned()
    }

    pub(crate) fn apply_room(&self, room: &Room) {
        if self.of(&room.id).as_deref() != room.project_root.as_deref() {
            match room.project_root.as_deref() {
                Some(root) => drop(self.0.write().insert(room.id.clone(), root.into())),
                None => self.remove(&room.id),
            }
        }
    }

    fn remove(&self, room: &RoomId) {
        if self.of(room).is_some() {
            self.0.write().remove(room);
        }
    }

    /// Applies an event before it is published, so that its frames contain the new root. Returns the room if
    /// it lost or changed its root: clients that follow the old root receive no later events of it.
    pub(super) fn apply_before_publish(&self, event: &Event) -> Option<RoomId> {
        let (Event::RoomChanged(room) | Event::MembersChanged { room, .. }) = event else { return None };
        let before = self.of(&room.id);
        self.apply_room(room);
        before.filter(|before| room.project_root.as_deref() != Some(&**before)).map(|_| room.id.clone())
    }

    /// Applies an event after it was published: the frames of a room's removal still contain its root.
    pub(super) fn apply_after_publish(&self, event: &Event) {
        if let Event::RoomRemoved { room, .. } = event {
            self.remove(room);
        }
    }
}
