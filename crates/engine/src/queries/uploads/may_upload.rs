//! Checks whether the caller may upload files.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::MayUpload;

impl Query for MayUpload {
    type Facts = ();
    type Answer = ();

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.signed_in(Scope::Write).map(drop)?)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
