//! Lists the newest runs of the selected rooms, or of all rooms of the caller.

use super::agent_names::with_agent_names;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRuns, NamedRun};
use parlor_model::{RoomId, Scope};

impl Query for ListRuns {
    type Facts = Vec<RoomId>;
    type Answer = Vec<NamedRun>;

    /// Allowed for members of the selected rooms; without a selection, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Vec<RoomId>, PermitError> {
        view.selected_rooms(caller, &self.rooms, Scope::Read)
    }

    fn answer(
        &self,
        rooms: Vec<RoomId>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<NamedRun>, Fault> {
        let mut runs = Vec::new();
        for room in rooms {
            runs.extend(store.runs_in(&room, self.limit)?);
        }
        runs.sort_by_key(|run| std::cmp::Reverse(run.queued_at));
        runs.truncate(self.limit);
        with_agent_names(runs, store)
    }
}
