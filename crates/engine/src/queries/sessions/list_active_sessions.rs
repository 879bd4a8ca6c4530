//! Lists the queued and active runs in sessions of the caller's agents.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListActiveSessions;
use parlor_model::{Run, RunPlace, Scope, UserId};

impl Query for ListActiveSessions {
    type Facts = UserId;
    type Answer = Vec<Run>;

    /// Allowed for every user; a named agent must be the caller's.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        let own = super::owner(caller)?;
        if let Some(agent) = &self.agent {
            view.own_agent(caller, agent, Scope::Agents)?;
        }
        Ok(own.user.id.clone())
    }

    fn answer(&self, user: UserId, store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<Run>, Fault> {
        let mut runs = store.open_runs()?;
        runs.retain(|run| {
            let is_own = matches!(&run.place, RunPlace::Session { owner, .. } if *owner == user);
            is_own && self.agent.as_ref().is_none_or(|agent| *agent == run.agent)
        });
        runs.sort_by(|one, other| (one.queued_at, &one.id).cmp(&(other.queued_at, &other.id)));
        Ok(runs)
    }
}
