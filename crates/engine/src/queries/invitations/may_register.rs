//! Checks whether an account can be created with an invitation, or without one.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MayRegister;

impl Query for MayRegister {
    type Facts = ();
    type Answer = ();

    /// Allowed for everyone with the token of an open invitation, and for everyone if registration is open.
    fn permit(&self, _caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.registration(self.token.as_ref()).map(drop)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
