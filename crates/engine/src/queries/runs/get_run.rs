//! Returns a run, active or ended.

use super::agent_names::with_agent_name;
use crate::permission::{CallerContext, PermitError, SeenRun};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{GetRun, NamedRun};

impl Query for GetRun {
    type Facts = SeenRun;
    type Answer = NamedRun;

    /// Allowed for every member of the room of the run; without a room, for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenRun, PermitError> {
        view.seen_run(caller, &self.run, Scope::Read)
    }

    fn answer(&self, seen: SeenRun, store: &mut dyn Snapshot, _limits: &Limits) -> Result<NamedRun, Fault> {
        with_agent_name(seen.run, store)
    }
}
