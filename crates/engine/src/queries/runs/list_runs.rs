//! Lists the newest runs of the selected rooms, or of all rooms of the caller and the sessions of the caller's agents.

use super::agent_names::with_agent_names;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRuns, NamedRun};
use parlor_model::{RoomId, Scope, UserId};

impl Query for ListRuns {
    /// The rooms, and the user whose runs without a room are listed.
    type Facts = (Vec<RoomId>, Option<UserId>);
    type Answer = Vec<NamedRun>;

    /// Allowed for members of the selected rooms; without a selection, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Self::Facts, PermitError> {
        let rooms = view.selected_rooms(caller, &self.rooms, Scope::Read)?;
        let owner = match self.rooms.is_empty() {
            true => Some(caller.signed_in(Scope::Read)?.user.id.clone()),
            false => None,
        };
        Ok((rooms, owner))
    }

    fn answer(
        &self,
        (rooms, owner): Self::Facts,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<NamedRun>, Fault> {
        let mut runs = Vec::new();
        for room in rooms {
            runs.extend(store.runs_in(&room, self.limit)?);
        }
        if let Some(owner) = owner {
            runs.extend(store.runs_of_owner(&owner, self.limit)?);
        }
        runs.sort_by_key(|run| std::cmp::Reverse(run.queued_at));
        runs.truncate(self.limit);
        with_agent_names(runs, store)
    }
}
