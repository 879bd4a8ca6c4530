//! Returns a router that the caller may change.

use crate::permission::{CallerContext, OwnRouter, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetOwnRouter;
use parlor_model::{Router, Scope};

impl Query for GetOwnRouter {
    type Facts = OwnRouter;
    type Answer = Router;

    /// Allowed for the user who created the router and, if it is shared, for site admins. Requires the scope
    /// for changing it, because the answer contains the base URL that the router's key is sealed for.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<OwnRouter, PermitError> {
        view.own_router(caller, &self.router, Scope::Write)
    }

    fn answer(&self, own: OwnRouter, _store: &mut dyn Snapshot, _limits: &Limits) -> Result<Router, Fault> {
        Ok(own.router)
    }
}
