//! Reads an account with its second factor.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{AccountWithSecondFactor, GetSecondFactor};

impl Query for GetSecondFactor {
    type Facts = ();
    type Answer = Option<AccountWithSecondFactor>;

    /// Allowed for the authentication code only.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.authenticator()?)
    }

    fn answer(
        &self,
        (): (),
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Option<AccountWithSecondFactor>, Fault> {
        let Some(user) = store.user(&self.user)? else { return Ok(None) };
        Ok(Some((user, store.second_factor(&self.user)?)))
    }
}
