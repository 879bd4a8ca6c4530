//! Which folders rooms are about, for doors that say so of everything that happens in one.

use parking_lot::RwLock;
use parlor_model::{Event, Room, RoomId};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Default)]
pub struct Roots(RwLock<HashMap<RoomId, Arc<str>>>);

impl Roots {
    pub fn of(&self, room: &RoomId) -> Option<Arc<str>> {
        self.0.read().get(room).cloned()
    }

    pub(crate) fn learn(&self, room: &Room) {
        match room.project_root.as_deref() {
            Some(root) if self.of(&room.id).as_deref() == Some(root) => {}
            Some(root) => drop(self.0.write().insert(room.id.clone(), root.into())),
            None => self.forget(&room.id),
        }
    }

    fn forget(&self, room: &RoomId) {
        if self.of(room).is_some() {
            self.0.write().remove(room);
        }
    }

    /// Before it is told, so that what is told of it says what holds from now on.
    pub(super) fn follow(&self, event: &Event) {
        match event {
            Event::RoomChanged(room) | Event::MembersChanged { room, .. } => self.learn(room),
            _ => {}
        }
    }

    /// When it was told.
    pub(super) fn leave(&self, event: &Event) {
        if let Event::RoomRemoved { room, .. } = event {
            self.forget(room);
        }
    }
}
