//! Returns a room with its first members.

use super::member_page;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{GetRoom, RoomWithMembers};
use parlor_model::{RoomRole, Scope};

/// Maximum number of members in the answer. `ListMembers` returns the others.
const MAX_MEMBERS: usize = 100;

impl Query for GetRoom {
    type Facts = InRoom;
    type Answer = RoomWithMembers;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<InRoom, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Read)
    }

    fn answer(
        &self,
        reader: InRoom,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<RoomWithMembers, Fault> {
        let members = member_page::read(&reader, MAX_MEMBERS, 0, store)?;
        Ok(RoomWithMembers { room: reader.room, members })
    }
}
