//! Lists the unexpired invitations to a room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListRoomInvitations;
use parlor_model::{RoomInvitation, RoomRole, Scope, Time};

impl Query for ListRoomInvitations {
    /// The current time.
    type Facts = Time;
    type Answer = Vec<RoomInvitation>;

    /// Allowed for admins of the room, and for keys that may invite: the answer contains tokens.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Time, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Admin, Scope::Write)?;
        Ok(view.now)
    }

    fn answer(
        &self,
        now: Time,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<RoomInvitation>, Fault> {
        store.room_invitations(&self.room, now)
    }
}
