//! Lists the tasks of a room.

use super::truncate_tasks;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListTasks;
use parlor_model::{RoomRole, Scope, Task};

impl Query for ListTasks {
    type Facts = ();
    type Answer = Vec<Task>;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Read).map(drop)
    }

    fn answer(&self, _facts: (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<Task>, Fault> {
        Ok(truncate_tasks(store.tasks(&self.room)?))
    }
}
