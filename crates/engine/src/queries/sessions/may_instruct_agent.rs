//! Checks whether the caller may read and replace the instructions of an agent.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::MayInstructAgent;

impl Query for MayInstructAgent {
    type Facts = ();
    type Answer = ();

    /// Allowed for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        super::owner(caller)?;
        view.own_agent(caller, &self.agent, Scope::Agents).map(drop)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
