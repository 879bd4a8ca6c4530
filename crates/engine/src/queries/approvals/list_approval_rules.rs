//! Lists the approval rules of a room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListApprovalRules;
use parlor_model::{ApprovalRule, RoomRole, Scope};

impl Query for ListApprovalRules {
    type Facts = ();
    type Answer = Vec<ApprovalRule>;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Read).map(drop)
    }

    fn answer(
        &self,
        _facts: (),
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<ApprovalRule>, Fault> {
        store.approval_rules(&self.room)
    }
}
