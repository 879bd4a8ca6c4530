//! Checks whether the caller may create a router.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MayCreateRouter;

impl Query for MayCreateRouter {
    type Facts = ();
    type Answer = ();

    /// Any user may create a private router; only site admins may create a shared one.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        caller.may_create_router(self.shared)?;
        Ok(())
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
