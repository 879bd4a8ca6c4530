//! Starts of queued runs.
//!
//! Owns: one run at a time per agent, or per agent and room if its gateway supports that (`by_room`).

use super::stops::STOP_GRACE;
use super::{QueuedRun, Scheduler};
use parlor_model::{AgentId, RoomId, RunId};
use std::collections::HashSet;
use std::time::Instant;

impl Scheduler {
    /// Returns the runs that can start now. Each is returned once, unless `retry_start` releases it.
    pub(super) fn take_ready(&mut self, now: Instant) -> Vec<RunId> {
        let free = self.queued.keys().flat_map(|agent| self.free(agent, now));
        let ready: Vec<RunId> =
            free.filter(|waiting| !self.starting.contains(&waiting.run)).map(|w| w.run.clone()).collect();
        self.starting.extend(ready.iter().cloned());
        ready
    }

    /// Returns the queued runs of an agent that can start now: the agent is online and not busy.
    pub(super) fn free(&self, agent: &AgentId, now: Instant) -> Vec<&QueuedRun> {
        let (Some(queue), Some(online)) = (self.queued.get(agent), self.online_agents.get(agent)) else {
            return Vec::new();
        };
        let by_room = self.links.get(&online.connection).is_some_and(|connection| connection.by_room);
        let running = self.runs_of.get(agent).into_iter().flatten();
        let mut taken: HashSet<&RoomId> =
            running.filter_map(|run| self.running.get(run)).map(|live| &live.room).collect();
        let stopping = self
            .stopped
            .iter()
            .filter(|((stopped, _), since)| stopped == agent && now.duration_since(**since) < STOP_GRACE);
        taken.extend(stopping.map(|((_, room), _)| room));
        let mut free = Vec::new();
        for waiting in queue {
            // A run held back by the triage fallback limit does not block the runs behind it: it may never
            // start.
            if self.held_until.get(&waiting.run).is_some_and(|until| *until > now) {
                continue;
            }
            if if by_room { !taken.contains(&waiting.room) } else { taken.is_empty() } {
                free.push(waiting);
            }
            // Preserves the order of runs in a room: later ones wait while this one starts or waits.
            taken.insert(&waiting.room);
            if !by_room {
                break;
            }
        }
        free
    }

    /// Makes `take_ready` return a run again whose start failed.
    pub fn retry_start(&mut self, run: &RunId) {
        self.starting.remove(run);
    }
}
