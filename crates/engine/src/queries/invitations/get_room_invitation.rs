//! Returns the open invitation to a room with a token, and the room.

use crate::permission::{CallerContext, InvitedToRoom, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{GetRoomInvitation, OpenRoomInvitation};

impl Query for GetRoomInvitation {
    type Facts = InvitedToRoom;
    type Answer = OpenRoomInvitation;

    /// Allowed for every user with the token of an open invitation.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<InvitedToRoom, PermitError> {
        view.open_room_invitation(caller, &self.token, Scope::Read)
    }

    fn answer(
        &self,
        invited: InvitedToRoom,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<OpenRoomInvitation, Fault> {
        Ok(OpenRoomInvitation { invitation: invited.invitation, room: invited.room })
    }
}
