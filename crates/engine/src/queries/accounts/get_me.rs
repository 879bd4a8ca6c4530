//! Reads the caller's own account.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetMe;
use parlor_model::{Scope, User};
use std::sync::Arc;

impl Query for GetMe {
    /// The account of the caller.
    type Facts = Arc<User>;
    type Answer = Arc<User>;

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<Arc<User>, PermitError> {
        Ok(caller.signed_in(Scope::Read)?.user.clone())
    }

    fn answer(
        &self,
        user: Arc<User>,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Arc<User>, Fault> {
        Ok(user)
    }
}
