//! Lists the runs of an agent in the caller's rooms and, for its owner, in its sessions.

use crate::permission::{CallerContext, PermitError, VisibleAgent};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRunsOfAgent, NamedRun};
use parlor_model::{EventScope, MemberId, RoomId, Run, Scope};
use std::collections::HashSet;

/// Maximum number of an agent's latest runs that are scanned for those in the caller's rooms. Bounds the
/// cost; older runs of a busy agent may be missing.
const MAX_RUNS_SCANNED: usize = 1000;

impl Query for ListRunsOfAgent {
    type Facts = VisibleAgent;
    type Answer = Vec<NamedRun>;

    /// Allowed for the owner of the agent, users with whom it is shared, and users who share a room with it.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<VisibleAgent, PermitError> {
        view.visible_agent(caller, &self.agent, Scope::Read)
    }

    fn answer(
        &self,
        visible: VisibleAgent,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<NamedRun>, Fault> {
        let VisibleAgent { caller, agent } = visible;
        let own = store.memberships(&MemberId::User(caller.user.id.clone()))?;
        let rooms: HashSet<RoomId> = own.into_iter().map(|member| member.room).collect();
        let latest = store.latest_runs(&self.agent, MAX_RUNS_SCANNED)?.into_iter();
        let is_visible = |run: &Run| match run.place.scope() {
            EventScope::Room(room) => rooms.contains(room),
            EventScope::Owner(owner) => *owner == caller.user.id,
            EventScope::User(_) | EventScope::Audience(_) | EventScope::None => false,
        };
        let visible = latest.filter(is_visible).take(self.limit);
        Ok(visible.map(|run| (run, agent.name.clone())).collect())
    }
}
