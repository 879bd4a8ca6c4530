//! Finds users by a part of their names.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::SearchUsers;
use parlor_model::{Scope, User};
use std::sync::Arc;

/// Maximum number of users in the answer.
const MAX_USERS: usize = 10;

impl Query for SearchUsers {
    type Facts = Arc<AuthContext>;
    type Answer = Vec<User>;

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
    ) -> Result<Vec<User>, Fault> {
        store.search_users(&self.text, &caller.user.id, MAX_USERS)
    }
}
