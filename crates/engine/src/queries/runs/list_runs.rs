//! Lists the newest runs of a room, or of all rooms of the caller.

use super::agent_names::with_agent_names;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRuns, NamedRun};
use parlor_model::{MemberId, RoomRole, Scope};
use std::sync::Arc;

impl Query for ListRuns {
    type Facts = Arc<AuthContext>;
    type Answer = Vec<NamedRun>;

    /// Allowed for every member of the room, and for every user without a room.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut ReadView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        match &self.room {
            Some(room) => Ok(view.in_room(caller, room, RoomRole::Member, Scope::Read)?.caller),
            None => Ok(caller.signed_in(Scope::Read)?),
        }
    }

    fn answer(
        &self,
        caller: Arc<AuthContext>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<NamedRun>, Fault> {
        let rooms = match &self.room {
            Some(room) => vec![room.clone()],
            None => {
                let own = store.memberships(&MemberId::User(caller.user.id.clone()))?;
                own.into_iter().map(|member| member.room).collect()
            }
        };
        let mut runs = Vec::new();
        for room in rooms {
            runs.extend(store.runs_in(&room, self.limit)?);
        }
        runs.sort_by_key(|run| std::cmp::Reverse(run.queued_at));
        runs.truncate(self.limit);
        with_agent_names(runs, store)
    }
}
