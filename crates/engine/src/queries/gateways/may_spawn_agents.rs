//! Checks whether the caller may start agents on a gateway.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::MaySpawnAgents;

impl Query for MaySpawnAgents {
    type Facts = ();
    type Answer = ();

    /// Allowed for the owner of the gateway.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.own_gateway(caller, &self.gateway, Scope::Agents).map(drop)
    }

    fn answer(&self, _facts: (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
