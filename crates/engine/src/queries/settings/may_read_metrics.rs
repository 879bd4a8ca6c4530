//! Checks whether the caller may read the metrics.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::MayReadMetrics;

impl Query for MayReadMetrics {
    type Facts = ();
    type Answer = ();

    /// Allowed for site admins, and for API keys with the scope for metrics.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin_or_key(Scope::Metrics)?)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
