//! Lists the open approvals of the caller's agents that belong to no room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::{OpenApprovalsOf, Snapshot};
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListOwnApprovals;
use parlor_model::{Approval, Scope, UserId};

impl Query for ListOwnApprovals {
    type Facts = UserId;
    type Answer = Vec<Approval>;

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        Ok(caller.signed_in(Scope::Read)?.user.id.clone())
    }

    fn answer(
        &self,
        owner: UserId,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Approval>, Fault> {
        store.open_approvals(OpenApprovalsOf::Owner(&owner))
    }
}
