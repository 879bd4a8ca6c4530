//! Cancels a run and all its descendants.

use super::stopping::stop;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenRun};
use crate::read_view::WriterView;
use parlor_model::command::CancelRun;
use parlor_model::{
    AgentId, EntityKind, Refusal, RoomRole, Run, RunContext, RunId, RunPlace, RunState, Scope,
};
use std::collections::HashSet;

pub struct Facts {
    /// The run and its descendants, without those that have ended.
    tree: Vec<Run>,
    /// Queued and active runs in the room; without a room, those in the session.
    open: Vec<Run>,
}

impl Command for CancelRun {
    type Facts = Facts;
    type Receipt = Vec<RunId>;

    /// Allowed for every member of the room of the run; without a room, for the owner of the agent and site admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let (run, open) = match run_of_session(&self.run, caller, view)? {
            Some(found) => found,
            None => {
                let SeenRun { run, .. } = view.seen_run(caller, &self.run, Scope::Read)?;
                let room = run.room().ok_or(Refusal::NotFound(EntityKind::Run))?;
                let room = view.in_room(caller, room, RoomRole::Member, Scope::Write)?.room;
                let open = view.store.open_runs_in(&room.id)?;
                (run, open)
            }
        };
        // The descendants of a run are always in the same place.
        let (mut tree, mut visited) = (vec![run.clone()], HashSet::from([run.id]));
        let mut next = 0;
        while let Some(parent) = tree.get(next).map(|parent| parent.id.clone()) {
            let children = view.store.runs_below(&parent)?;
            tree.extend(children.into_iter().filter(|child| visited.insert(child.id.clone())));
            next += 1;
        }
        tree.retain(|run| !run.has_ended());
        Ok(Facts { tree, open })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Vec<RunId>, Refusal> {
        let Facts { tree, open } = facts;
        // A stop addresses an agent in a context, not a run, so the agent loses its queued runs there.
        let stopped: HashSet<(&AgentId, RunContext)> = tree
            .iter()
            .filter(|run| run.state == RunState::Running)
            .map(|run| (&run.agent, run.place.context()))
            .collect();
        let cancelled: HashSet<&RunId> = tree.iter().map(|run| &run.id).collect();
        let is_stopped = |run: &Run| stopped.contains(&(&run.agent, run.place.context()));
        for run in open.iter().filter(|run| is_stopped(run) || cancelled.contains(&run.id)) {
            stop(run, effects);
        }
        Ok(tree.into_iter().map(|run| run.id).collect())
    }
}

/// The run and the open runs of its session, if it has no room and the caller may stop it.
fn run_of_session(
    id: &RunId,
    caller: &CallerContext,
    view: &mut WriterView<'_>,
) -> Result<Option<(Run, Vec<Run>)>, PermitError> {
    let Some(run) = view.store.run(id)? else { return Ok(None) };
    let RunPlace::Session { session, room: None, .. } = &run.place else { return Ok(None) };
    let refused = view.controlled_agent(caller, &run.agent, Scope::Write);
    if PermitError::split(refused)?.is_err() {
        return Ok(None);
    }
    let open = view.store.open_runs_of_session(&run.agent, session)?;
    Ok(Some((run, open)))
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::run;
    use super::*;
    use crate::commands::test_fixtures::decide;
    use parlor_model::Event;

    fn named(id: &str, agent: &str, state: RunState) -> Run {
        Run { id: RunId::stored(id), agent: AgentId::stored(agent), ..run(state) }
    }

    #[test]
    fn the_descendants_are_cancelled_with_the_other_runs_of_stopped_agents() {
        let (root, child) = (named("root", "a", RunState::Running), named("child", "b", RunState::Queued));
        let (queued, other) = (named("queued", "a", RunState::Queued), named("other", "b", RunState::Queued));
        let tree = vec![root.clone(), child.clone()];
        let facts = Facts { tree, open: vec![root, child, queued, other] };
        let (cancelled, effects) = decide(CancelRun { run: RunId::stored("root") }, facts).unwrap();
        assert_eq!(cancelled, ["root", "child"].map(RunId::stored));
        let changed = |event: &Event| match event {
            Event::RunChanged(run) => run.id.to_string(),
            other => panic!("{other:?}"),
        };
        let changed: Vec<_> = effects.events.iter().map(|logged| changed(&logged.event)).collect();
        assert_eq!(changed, ["root", "child", "queued"]);
    }
}
