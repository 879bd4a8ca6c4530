//! Stops the active run of an agent in a room and cancels its queued runs there.

use super::stopping::stop;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::StopRuns;
use parlor_model::{Refusal, RoomRole, Run, Scope};

impl Command for StopRuns {
    /// The agent's queued and active runs in the room.
    type Facts = Vec<Run>;
    type Receipt = ();

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Vec<Run>, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        let mut open = view.store.open_runs_in(&self.room)?;
        open.retain(|run| run.agent == self.agent);
        Ok(open)
    }

    fn decide(self, open: Vec<Run>, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        open.iter().for_each(|run| stop(run, effects));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::run;
    use super::*;
    use crate::commands::test_fixtures::decide;
    use parlor_model::{AgentId, Event, RoomId, RunOutcome, RunState};

    fn stopped(runs: Vec<Run>) -> Vec<(RunState, bool)> {
        let command = StopRuns { room: RoomId::stored("room"), agent: AgentId::stored("coder") };
        let ((), effects) = decide(command, runs).unwrap();
        let state = |event: &Event| match event {
            Event::RunChanged(run) => (run.state.clone(), run.stop_requested),
            other => panic!("{other:?}"),
        };
        effects.events.iter().map(|logged_event| state(&logged_event.event)).collect()
    }

    #[test]
    fn a_stop_ends_queued_runs_and_is_recorded_once_for_an_active_run() {
        let active = run(RunState::Running);
        let cancelled = (RunState::Ended(RunOutcome::Cancelled), false);
        let requested = (RunState::Running, true);
        assert_eq!(stopped(vec![active.clone(), run(RunState::Queued)]), [requested, cancelled]);
        assert_eq!(stopped(vec![Run { stop_requested: true, ..active }]), []);
    }
}
