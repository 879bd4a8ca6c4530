//! Lists the caller's routers and the shared ones.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListRouters;
use parlor_model::{Router, Scope};
use std::sync::Arc;

impl Query for ListRouters {
    type Facts = Arc<AuthContext>;
    type Answer = Vec<Router>;

    /// Allowed for every user.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut ReadView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.signed_in(Scope::Read)?)
    }

    fn answer(
        &self,
        caller: Arc<AuthContext>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Router>, Fault> {
        store.routers(&caller.user.id)
    }
}
