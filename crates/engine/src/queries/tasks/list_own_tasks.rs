//! Lists the tasks that the caller created or is assigned.

use super::truncate_tasks;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListOwnTasks;
use parlor_model::{Scope, Task, UserId};

impl Query for ListOwnTasks {
    type Facts = UserId;
    type Answer = Vec<Task>;

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        Ok(caller.signed_in(Scope::Read)?.user.id.clone())
    }

    fn answer(&self, user: UserId, store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<Task>, Fault> {
        Ok(truncate_tasks(store.tasks_of(&user, self.limit, self.offset)?))
    }
}
