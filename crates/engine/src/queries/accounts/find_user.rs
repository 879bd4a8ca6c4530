//! Finds a user by the username.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::FindUser;
use parlor_model::{EntityKind, Refusal, Scope, User};

impl Query for FindUser {
    type Facts = User;
    type Answer = User;

    /// Allowed for every user: the search for users lists the same accounts.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<User, PermitError> {
        caller.signed_in(Scope::Read)?;
        Ok(view.store.user_named(&self.username)?.ok_or(Refusal::NotFound(EntityKind::User))?)
    }

    fn answer(&self, user: User, _store: &mut dyn Snapshot, _limits: &Limits) -> Result<User, Fault> {
        Ok(user)
    }
}
