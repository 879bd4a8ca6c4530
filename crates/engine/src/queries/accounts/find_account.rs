//! Reads the account with a username, including its password hash.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::User;
use parlor_model::query::FindAccount;

impl Query for FindAccount {
    type Facts = ();
    type Answer = Option<User>;

    /// Allowed for the authentication code, and for the operator, who names users at the command line.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        if !caller.is_operator() {
            caller.authenticator()?;
        }
        Ok(())
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Option<User>, Fault> {
        store.user_named(&self.username)
    }
}
