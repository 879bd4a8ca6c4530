//! Cancels queued runs in a room. The messages that triggered them stay.

use super::stopping::stop;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::WithdrawRuns;
use parlor_model::{EntityKind, Refusal, RoomRole, Run, RunId, RunState, Scope};

impl Command for WithdrawRuns {
    /// The queued runs to cancel.
    type Facts = Vec<Run>;
    type Receipt = Vec<RunId>;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Vec<Run>, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        let mut queued = view.store.open_runs_in(&self.room)?;
        queued.retain(|run| {
            run.state == RunState::Queued
                && self.agent.as_ref().is_none_or(|agent| *agent == run.agent)
                && self.run.as_ref().is_none_or(|id| *id == run.id)
        });
        Ok(queued)
    }

    fn decide(self, queued: Vec<Run>, effects: &mut EffectsBuilder<'_>) -> Result<Vec<RunId>, Refusal> {
        if queued.is_empty() && self.run.is_some() {
            return Err(Refusal::NotFound(EntityKind::Run));
        }
        queued.iter().for_each(|run| stop(run, effects));
        Ok(queued.into_iter().map(|run| run.id).collect())
    }
}
