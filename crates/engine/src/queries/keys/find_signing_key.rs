//! Reads an API key whose secret signs tokens.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::SigningKey;
use parlor_model::query::FindSigningKey;

impl Query for FindSigningKey {
    type Facts = ();
    type Answer = Option<SigningKey>;

    /// Allowed only for the authentication code of the hub.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.authenticator()?)
    }

    fn answer(
        &self,
        (): (),
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Option<SigningKey>, Fault> {
        store.signing_key(&self.key)
    }
}
