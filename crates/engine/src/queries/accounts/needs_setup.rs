//! Checks whether the hub has no admin account yet.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::NeedsSetup;

impl Query for NeedsSetup {
    type Facts = ();
    type Answer = bool;

    /// Allowed for every caller: the setup page depends on it.
    fn permit(&self, _caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(())
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<bool, Fault> {
        Ok(store.admins()? == 0)
    }
}
