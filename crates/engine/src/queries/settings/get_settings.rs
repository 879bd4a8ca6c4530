//! Reads the hub's settings.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetSettings;
use parlor_model::{HubSettings, Scope};

impl Query for GetSettings {
    type Facts = ();
    type Answer = HubSettings;

    /// Allowed for every user, the operator, and the authentication code, which applies the lockout settings.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        if !caller.is_operator() && !caller.is_authenticator() {
            caller.signed_in(Scope::Read)?;
        }
        Ok(())
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<HubSettings, Fault> {
        store.settings()
    }
}
