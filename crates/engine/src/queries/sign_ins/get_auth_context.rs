//! Reads the account and the scopes of the caller.

use crate::permission::{AuthContext, CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Refusal;
use parlor_model::query::GetAuthContext;
use std::sync::Arc;

impl Query for GetAuthContext {
    /// The caller's auth context.
    type Facts = Arc<AuthContext>;
    type Answer = Arc<AuthContext>;

    /// Allowed for every user and every key, whatever its scopes.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut ReadView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.auth.clone().ok_or(Refusal::NotSignedIn)?)
    }

    fn answer(
        &self,
        auth: Arc<AuthContext>,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Arc<AuthContext>, Fault> {
        Ok(auth)
    }
}
