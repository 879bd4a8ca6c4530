//! Checks whether the caller may use the tools of an agent.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Agent;
use parlor_model::query::MayUseTools;
use std::sync::Arc;

impl Query for MayUseTools {
    type Facts = Arc<Agent>;
    type Answer = Arc<Agent>;

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Arc<Agent>, PermitError> {
        view.as_agent(caller, &self.mailbox).map(|own| own.agent)
    }

    fn answer(
        &self,
        agent: Arc<Agent>,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Arc<Agent>, Fault> {
        Ok(agent)
    }
}
