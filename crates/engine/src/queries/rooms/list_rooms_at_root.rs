//! Lists the caller's rooms with a project root.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRoomsAtRoot, OwnRooms};
use parlor_model::{MemberId, Refusal, Room, RoomRole, Scope};

impl Query for ListRoomsAtRoot {
    type Facts = OwnRooms;
    type Answer = OwnRooms;

    /// Allowed for members of a room with this project root, while `project_roots` lists it. Any other folder
    /// yields the same refusal, whether it exists or not.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<OwnRooms, PermitError> {
        let own = MemberId::User(caller.signed_in(Scope::Read)?.user.id.clone());
        if let Some(room) = &self.room {
            view.in_room(caller, room, RoomRole::Member, Scope::Read)?;
        }
        let mut rooms = Vec::new();
        if view.limits.allows_root(&self.root) {
            let mut memberships = view.store.memberships(&own)?;
            memberships.retain(|own| self.room.as_ref().is_none_or(|only| own.room == *only));
            for member in memberships {
                let room = view.room(&member.room)?;
                if let Some(room) = room.filter(|room| room.project_root.as_ref() == Some(&self.root)) {
                    rooms.push((Room::clone(&room), member));
                }
            }
        }
        if rooms.is_empty() { Err(Refusal::Forbidden.into()) } else { Ok(rooms) }
    }

    fn answer(
        &self,
        rooms: OwnRooms,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<OwnRooms, Fault> {
        Ok(rooms)
    }
}
