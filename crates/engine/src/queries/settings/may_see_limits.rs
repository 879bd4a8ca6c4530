//! Checks whether the caller may read the limits.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MaySeeLimits;

impl Query for MaySeeLimits {
    type Facts = ();
    type Answer = ();

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin()?)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
