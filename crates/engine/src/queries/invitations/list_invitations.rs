//! Lists the unexpired invitations.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListInvitations;
use parlor_model::{Invitation, Time};

impl Query for ListInvitations {
    /// The current time.
    type Facts = Time;
    type Answer = Vec<Invitation>;

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Time, PermitError> {
        caller.site_admin()?;
        Ok(view.now)
    }

    fn answer(
        &self,
        now: Time,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Invitation>, Fault> {
        store.invitations(now)
    }
}
