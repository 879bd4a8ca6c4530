//! Reads an approval that the caller may decide.

use crate::permission::{CallerContext, DecidableApproval, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Approval;
use parlor_model::query::GetApproval;

impl Query for GetApproval {
    type Facts = DecidableApproval;
    type Answer = Approval;

    /// Allowed for users who may approve in the room; never for API keys, which the agent itself may hold.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut ReadView<'_>,
    ) -> Result<DecidableApproval, PermitError> {
        view.decidable_approval(caller, &self.approval)
    }

    fn answer(
        &self,
        facts: DecidableApproval,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Approval, Fault> {
        Ok(facts.approval)
    }
}
