//! Returns a service with its agent.

use crate::permission::{CallerContext, ManagedService, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{FoundService, GetService};

impl Query for GetService {
    type Facts = ManagedService;
    type Answer = FoundService;

    /// Allowed for site admins and the operator, whoever created the service.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<ManagedService, PermitError> {
        view.managed_service(caller, &self.agent)
    }

    fn answer(
        &self,
        managed: ManagedService,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<FoundService, Fault> {
        let ManagedService { agent, service } = managed;
        Ok(FoundService { agent, service })
    }
}
