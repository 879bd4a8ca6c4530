//! Lists all services with their agents.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListServices, Services};

impl Query for ListServices {
    type Facts = ();
    type Answer = Services;

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin()?)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Services, Fault> {
        store.services()
    }
}
