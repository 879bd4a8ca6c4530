//! Lists the runs that a run triggered, oldest first.

use super::agent_names::with_agent_names;
use crate::permission::{CallerContext, PermitError, SeenRun};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{ListChildRuns, NamedRun};

impl Query for ListChildRuns {
    type Facts = SeenRun;
    type Answer = Vec<NamedRun>;

    /// Allowed for every member of the room of the run; without a room, for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenRun, PermitError> {
        view.seen_run(caller, &self.run, Scope::Read)
    }

    fn answer(
        &self,
        seen: SeenRun,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<NamedRun>, Fault> {
        let mut children = store.runs_below(&self.run)?;
        children
            .retain(|child| child.place.scope() == seen.run.place.scope() && !child.is_part_of(&seen.run));
        with_agent_names(children, store)
    }
}
