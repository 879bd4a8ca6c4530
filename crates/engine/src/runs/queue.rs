//! What waits for agents, in the hands of people: looked at, taken back, and ended with everything it set off.

use super::scheduler::QueueEntry;
use crate::Hub;
use crate::fanout::RoomFilter;
use parlor_model::query::RunDetail;
use parlor_model::{
    AgentId, Answer, Caller, EntityKind, Query, Refusal, RoomId, Run, RunId, RunOutcome, RunState,
};
use std::collections::HashSet;
use std::time::Instant;

impl Hub {
    /// Whether a turn that was asked for has to wait: its agent is away, or does something else.
    pub async fn must_wait(&self, run: &Run) -> bool {
        self.wait_until_caught_up().await;
        self.turns().desk().must_wait(&run.id, &run.agent, Instant::now())
    }

    /// What waits in the rooms that the caller may see, or in one of them.
    pub async fn queue(&self, caller: &Caller, room: Option<RoomId>) -> Result<Vec<QueueEntry>, Refusal> {
        let rooms = match room {
            Some(room) => {
                self.may_follow(caller, &RoomFilter::Only(room.clone())).await?;
                vec![room]
            }
            None => match self.read(caller, Query::Rooms).await? {
                Answer::Rooms(rooms) => rooms.into_iter().map(|(room, _)| room.id).collect(),
                _ => return Err(Refusal::Unavailable),
            },
        };
        self.wait_until_caught_up().await;
        Ok(self.turns().desk().all_waiting(&rooms))
    }

    /// Takes back what waits in a room: all of it, what is for one agent, or one turn. What was said stays.
    pub async fn unqueue(
        &self,
        caller: &Caller,
        room: &RoomId,
        agent: Option<&AgentId>,
        run: Option<&RunId>,
    ) -> Result<Vec<RunId>, Refusal> {
        self.may(caller, Query::MayStop { room: room.clone() }).await?;
        self.wait_until_caught_up().await;
        let taken = self.turns().desk().withdraw(room, agent, run);
        if taken.is_empty() && run.is_some() {
            return Err(Refusal::NotFound(EntityKind::Run));
        }
        for run in &taken {
            self.end_unstarted_run(run.clone(), RunOutcome::Cancelled).await;
        }
        self.turns().wake();
        Ok(taken)
    }

    /// Ends a turn and every turn that came of it, and says which of them were not over.
    pub async fn cancel(&self, caller: &Caller, run: &RunId) -> Result<Vec<RunId>, Refusal> {
        let Answer::Runs(found) =
            self.read(caller, Query::Run { run: run.clone(), what: RunDetail::Itself }).await?
        else {
            return Err(Refusal::Unavailable);
        };
        let Some((root, _)) = found.into_iter().next() else {
            return Err(Refusal::NotFound(EntityKind::Run));
        };
        self.may(caller, Query::MayStop { room: root.room.clone() }).await?;
        let (first, room) = (root.clone(), root.room.clone());
        // What one turn sets off is in its own room.
        let tree = self.read_snapshot(move |_, store| {
            let (mut tree, mut known) = (vec![first.clone()], HashSet::from([first.id.clone()]));
            let mut next = 0;
            while let Some(parent) = tree.get(next).cloned() {
                let children = store.runs_below(&parent.id)?;
                tree.extend(children.into_iter().filter(|child| known.insert(child.id.clone())));
                next += 1;
            }
            Ok(tree)
        });
        let open: Vec<Run> = tree.await?.into_iter().filter(|run| !run.has_ended()).collect();
        let running: HashSet<&AgentId> =
            open.iter().filter(|run| run.state == RunState::Running).map(|run| &run.agent).collect();
        for agent in running {
            self.stop(caller, &room, agent).await?;
        }
        for waiting in open.iter().filter(|run| run.state == RunState::Queued) {
            self.unqueue(caller, &room, None, Some(&waiting.id)).await.or_else(|refusal| match refusal {
                // It was stopped with the others, or is over.
                Refusal::NotFound(EntityKind::Run) => Ok(Vec::new()),
                other => Err(other),
            })?;
        }
        Ok(open.into_iter().map(|run| run.id).collect())
    }
}
