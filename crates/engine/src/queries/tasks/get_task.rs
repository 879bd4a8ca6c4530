//! Reads one task.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetTask;
use parlor_model::{Scope, Task};

impl Query for GetTask {
    type Facts = Task;
    type Answer = Task;

    /// Allowed for every member of the task's room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Task, PermitError> {
        view.seen_task(caller, &self.task, Scope::Read).map(|seen| seen.task)
    }

    fn answer(&self, task: Task, _store: &mut dyn Snapshot, _limits: &Limits) -> Result<Task, Fault> {
        Ok(task)
    }
}
