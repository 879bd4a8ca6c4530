//! Stops the active run in a session of an agent and cancels its queued runs there.

use super::stopping::stop;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::StopSession;
use parlor_model::{Refusal, Run, RunId, Scope};

impl Command for StopSession {
    /// The queued and active runs in the session.
    type Facts = Vec<Run>;
    type Receipt = Vec<RunId>;

    /// Allowed for the owner of the agent and site admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Vec<Run>, PermitError> {
        view.controlled_agent(caller, &self.agent, Scope::Agents)?;
        Ok(view.store.open_runs_of_session(&self.agent, &self.session)?)
    }

    fn decide(self, open: Vec<Run>, effects: &mut EffectsBuilder<'_>) -> Result<Vec<RunId>, Refusal> {
        open.iter().for_each(|run| stop(run, effects));
        Ok(open.into_iter().map(|run| run.id).collect())
    }
}
