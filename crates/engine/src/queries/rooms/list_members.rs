//! Lists members of a room.

use super::member_page;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListMembers, MemberPage};
use parlor_model::{RoomRole, Scope};

impl Query for ListMembers {
    type Facts = InRoom;
    type Answer = MemberPage;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<InRoom, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Read)
    }

    fn answer(
        &self,
        reader: InRoom,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<MemberPage, Fault> {
        member_page::read(&reader, self.limit, self.offset, store)
    }
}
