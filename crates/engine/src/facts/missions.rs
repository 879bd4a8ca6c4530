//! Facts for missions.

use super::{Facts, LookupCache};
use crate::Fault;
use crate::ports::Lookup;
use parlor_model::{Caller, MissionScope, RoomId};
use std::sync::Arc;

impl Facts {
    /// Loads a room, the newest mission of its mission scope, and all rooms in that scope.
    pub(super) fn about_mission(
        &mut self,
        caller: &Caller,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        self.in_room(caller, room, store, lookup_cache)?;
        let Some(room) = &self.room else { return Ok(()) };
        self.mission = store.missions(&MissionScope::of(room), 1)?.pop();
        self.realm = match &room.project_root {
            Some(root) => store.rooms_about(root)?.into_iter().map(Arc::new).collect(),
            None => vec![room.clone()],
        };
        Ok(())
    }
}
