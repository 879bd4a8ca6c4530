//! Starts of queued runs.
//!
//! Owns: one run at a time per agent, or per agent and context if its gateway supports that (`by_room`). Only such
//! gateways execute runs in sessions.

use super::stops::STOP_GRACE;
use super::{GatewayAbilities, QueuedRun, Scheduler};
use parlor_model::{AgentId, RunContext, RunId};
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
        let abilities = self.links.get(&online.connection).map(|connection| connection.abilities);
        let GatewayAbilities { by_room, in_sessions } = abilities.unwrap_or(GatewayAbilities::NONE);
        let running = self.runs_of.get(agent).into_iter().flatten();
        let mut taken: HashSet<RunContext> =
            running.filter_map(|run| self.running.get(run)).map(|live| live.place.context()).collect();
        let stopping = self
            .stopped
            .iter()
            .filter(|((stopped, _), since)| stopped == agent && now.duration_since(**since) < STOP_GRACE);
        taken.extend(stopping.map(|((_, context), _)| context.clone()));
        let mut free = Vec::new();
        for waiting in queue {
            // A run held back by the triage fallback limit does not block the runs behind it: it may never
            // start.
            if self.held_until.get(&waiting.run).is_some_and(|until| *until > now) {
                continue;
            }
            // The driver ends this run as refused.
            if !in_sessions && waiting.place.session().is_some() {
                continue;
            }
            let context = waiting.place.context();
            if if by_room { !taken.contains(&context) } else { taken.is_empty() } {
                free.push(waiting);
            }
            // Preserves the order of runs in a context: later ones wait while this one starts or waits.
            taken.insert(context);
            if !by_room {
                break;
            }
        }
        free
    }

    /// Returns the queued runs in sessions whose agent is online through a gateway that does not execute them. Each is
    /// returned once.
    pub(super) fn take_unsupported(&mut self) -> Vec<RunId> {
        let mut unsupported = Vec::new();
        for (agent, queue) in &self.queued {
            if self.online_agents.contains_key(agent) && !self.runs_sessions(agent) {
                let in_session = queue.iter().filter(|waiting| waiting.place.session().is_some());
                unsupported.extend(in_session.map(|waiting| waiting.run.clone()));
            }
        }
        unsupported.retain(|run| self.starting.insert(run.clone()));
        unsupported
    }

    /// Makes `take_ready` return a run again whose start failed.
    pub fn retry_start(&mut self, run: &RunId) {
        self.starting.remove(run);
    }
}
