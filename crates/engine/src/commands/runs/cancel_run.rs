//! Cancels a run and all its descendants.

use super::stopping::stop;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenRun};
use crate::read_view::WriterView;
use parlor_model::command::CancelRun;
use parlor_model::{AgentId, Refusal, RoomRole, Run, RunId, RunState, Scope};
use std::collections::HashSet;

pub struct Facts {
    /// The run and its descendants, without those that have ended.
    tree: Vec<Run>,
    /// Queued and active runs in the room.
    open: Vec<Run>,
}

impl Command for CancelRun {
    type Facts = Facts;
    type Receipt = Vec<RunId>;

    /// Allowed for every member of the room of the run.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let SeenRun { run, .. } = view.seen_run(caller, &self.run, Scope::Read)?;
        let room = view.in_room(caller, &run.room, RoomRole::Member, Scope::Write)?.room;
        // The descendants of a run are always in the same room.
        let (mut tree, mut visited) = (vec![run.clone()], HashSet::from([run.id]));
        let mut next = 0;
        while let Some(parent) = tree.get(next).map(|parent| parent.id.clone()) {
            let children = view.store.runs_below(&parent)?;
            tree.extend(children.into_iter().filter(|child| visited.insert(child.id.clone())));
            next += 1;
        }
        tree.retain(|run| !run.has_ended());
        Ok(Facts { tree, open: view.store.open_runs_in(&room.id)? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Vec<RunId>, Refusal> {
        let Facts { tree, open } = facts;
        // A stop addresses an agent in a room, not a run, so the agent loses its queued runs there.
        let stopped: HashSet<&AgentId> =
            tree.iter().filter(|run| run.state == RunState::Running).map(|run| &run.agent).collect();
        let cancelled: HashSet<&RunId> = tree.iter().map(|run| &run.id).collect();
        for run in open.iter().filter(|run| stopped.contains(&run.agent) || cancelled.contains(&run.id)) {
            stop(run, effects);
        }
        Ok(tree.into_iter().map(|run| run.id).collect())
    }
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
