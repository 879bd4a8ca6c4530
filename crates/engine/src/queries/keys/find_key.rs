//! Reads the API key with a secret.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::ApiKey;
use parlor_model::query::FindKey;

impl Query for FindKey {
    type Facts = ();
    type Answer = Option<ApiKey>;

    /// Allowed for the authentication code only.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.authenticator()?)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Option<ApiKey>, Fault> {
        store.key_with(&self.secret)
    }
}
