//! Which folders rooms are about, for doors that say so of everything that happens in one.

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

    pub(crate) fn learn(&self, room: &Room) {
        if self.of(&room.id).as_deref() != room.project_root.as_deref() {
            match room.project_root.as_deref() {
                Some(root) => drop(self.0.write().insert(room.id.clone(), root.into())),
                None => self.forget(&room.id),
            }
        }
    }

    fn forget(&self, room: &RoomId) {
        if self.of(room).is_some() {
            self.0.write().remove(room);
        }
    }

    /// Before it is told, so that what is told of it says what holds from now on. Gives the room that left its folder:
    /// who follows that folder hears nothing of it any more.
    pub(super) fn follow(&self, event: &Event) -> Option<RoomId> {
        let (Event::RoomChanged(room) | Event::MembersChanged { room, .. }) = event else { return None };
        let before = self.of(&room.id);
        self.learn(room);
        before.filter(|before| room.project_root.as_deref() != Some(&**before)).map(|_| room.id.clone())
    }

    /// When it was told.
    pub(super) fn leave(&self, event: &Event) {
        if let Event::RoomRemoved { room, .. } = event {
            self.forget(room);
        }
    }
}
