//! Backlog operations of users: list and withdraw queued runs, and cancel a run with all runs that it
//! triggered.

use super::scheduler::QueueEntry;
use crate::Hub;
use parlor_model::query::{GetRun, ListRooms, MayFollowRoom, MayStopRuns};
use parlor_model::{AgentId, Caller, EntityKind, Refusal, RoomId, Run, RunId, RunOutcome, RunState};
use std::collections::HashSet;
use std::time::Instant;

impl Hub {
    /// Whether a run has to wait because its agent is offline or busy.
    pub async fn must_wait(&self, run: &Run) -> bool {
        let _ = self.wait_until_caught_up().await;
        self.scheduler().lock().must_wait(&run.id, &run.agent, Instant::now())
    }

    /// Returns the queued runs in all rooms of the caller, or in one room.
    pub async fn queue(&self, caller: &Caller, room: Option<RoomId>) -> Result<Vec<QueueEntry>, Refusal> {
        let rooms = match room {
            Some(room) => {
                self.may(caller, MayFollowRoom { room: room.clone() }).await?;
                vec![room]
            }
            None => self.read(caller, ListRooms).await?.into_iter().map(|(room, _)| room.id).collect(),
        };
        self.wait_until_caught_up().await?;
        Ok(self.scheduler().lock().queue_entries(&rooms))
    }

    /// Cancels queued runs in a room: all of them, those of one agent, or a single run. The messages that
    /// triggered them stay.
    pub async fn unqueue(
        &self,
        caller: &Caller,
        room: &RoomId,
        agent: Option<&AgentId>,
        run: Option<&RunId>,
    ) -> Result<Vec<RunId>, Refusal> {
        self.may(caller, MayStopRuns { room: room.clone() }).await?;
        self.wait_until_caught_up().await?;
        let taken = self.scheduler().lock().withdraw(room, agent, run);
        if taken.is_empty() && run.is_some() {
            return Err(Refusal::NotFound(EntityKind::Run));
        }
        for run in &taken {
            self.end_unstarted_run(run.clone(), RunOutcome::Cancelled).await;
        }
        self.scheduler().wake();
        Ok(taken)
    }

    /// Cancels a run and all its descendants. Returns the runs that had not ended.
    pub async fn cancel(&self, caller: &Caller, run: &RunId) -> Result<Vec<RunId>, Refusal> {
        let (root, _) = self.read(caller, GetRun { run: run.clone() }).await?;
        self.may(caller, MayStopRuns { room: root.room.clone() }).await?;
        let (first, room) = (root.clone(), root.room.clone());
        // The descendants of a run are always in the same room.
        let tree = self.read_snapshot(move |_, store| {
            let (mut tree, mut visited) = (vec![first.clone()], HashSet::from([first.id.clone()]));
            let mut next = 0;
            while let Some(parent) = tree.get(next).cloned() {
                let children = store.runs_below(&parent.id)?;
                tree.extend(children.into_iter().filter(|child| visited.insert(child.id.clone())));
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
                // The run was stopped together with the others, or has ended.
                Refusal::NotFound(EntityKind::Run) => Ok(Vec::new()),
                other => Err(other),
            })?;
        }
        Ok(open.into_iter().map(|run| run.id).collect())
    }
}
