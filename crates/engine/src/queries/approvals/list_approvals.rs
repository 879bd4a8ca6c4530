//! Lists the open approvals of a room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::{OpenApprovalsOf, Snapshot};
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListApprovals;
use parlor_model::{Approval, RoomRole, Scope};

impl Query for ListApprovals {
    type Facts = ();
    type Answer = Vec<Approval>;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Read).map(drop)
    }

    fn answer(&self, _facts: (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<Approval>, Fault> {
        store.open_approvals(OpenApprovalsOf::Room(&self.room))
    }
}
