//! Lists the folders that may be project roots.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListProjectRoots;

impl Query for ListProjectRoots {
    type Facts = ();
    type Answer = Vec<Box<str>>;

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin()?)
    }

    fn answer(&self, _facts: (), _store: &mut dyn Snapshot, limits: &Limits) -> Result<Vec<Box<str>>, Fault> {
        Ok(limits.project_roots.clone())
    }
}
