//! Stops of runs: which runs are cancelled, and how long the next run waits for the gateway's confirmation.

use super::super::host::HostCommand;
use super::{ActiveRun, PendingEnd, Scheduler};
use parlor_model::{AgentId, RoomId, Run, RunContext, RunOutcome};
use std::time::{Duration, Instant};

/// Maximum time that the next run in a context waits for the gateway to confirm the stop of the previous run.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(5);

impl Scheduler {
    /// Stops the active runs in a room, of all agents or of one, and cancels the queued ones.
    pub fn cancel_runs(&mut self, room: &RoomId, agent: Option<&AgentId>, now: Instant) {
        let matches = |other: &AgentId| agent.is_none_or(|agent| agent == other);
        let (running, all) = self.in_room(room);
        for (run, of) in all.into_iter().filter(|(_, of)| matches(of)) {
            // A Parlor gateway confirms when the agent process has ended; the agent stays busy until then.
            let stopping_until = self.is_on_parlor_gateway(&of).then(|| now + STOP_GRACE);
            match self.running.get_mut(&run) {
                Some(live) => live.cancel(stopping_until),
                None => {
                    self.forget(&run, &of);
                    self.cancelled_before_start.push(run);
                }
            }
        }
        for (agent, context) in running.into_iter().filter(|(agent, _)| matches(agent)) {
            self.stop(agent, context, now);
        }
    }

    /// Stops an active run whose stop a user has requested.
    pub(super) fn stop_run(&mut self, run: &Run, now: Instant) {
        let stopping_until = self.is_on_parlor_gateway(&run.agent).then(|| now + STOP_GRACE);
        if let Some(live) = self.running.get_mut(&run.id).filter(|live| live.ending.is_none()) {
            live.cancel(stopping_until);
            self.stop(run.agent.clone(), run.place.context(), now);
        }
    }

    pub(super) fn stop(&mut self, agent: AgentId, context: RunContext, now: Instant) {
        let Some(online) = self.online_agents.get(&agent) else { return };
        let command = HostCommand::Stop { agent: agent.clone(), context: context.clone() };
        self.commands.push((online.connection, command));
        self.stopped.insert((agent, context), now);
    }

    /// Handles the gateway's confirmation that the agent's runs, in one context or in all, have stopped.
    pub fn stopped(&mut self, agent: &AgentId, context: Option<&RunContext>) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            let here = |live: &&mut ActiveRun| context.is_none_or(|context| live.place.is_in(context));
            if let Some(live) = self.running.get_mut(run).filter(here) {
                live.stopping_until = None;
            }
        }
        self.stopped
            .retain(|(stopped, at), _| stopped != agent || context.is_some_and(|context| context != at));
    }
}

impl ActiveRun {
    /// Makes the run end as cancelled, unless it is ending already: at once, or after the gateway's confirmation,
    /// for which the hub waits until `stopping_until`.
    fn cancel(&mut self, stopping_until: Option<Instant>) {
        if self.ending.is_none() && self.lost_since.is_none() {
            self.stopping_until = stopping_until;
        }
        self.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Cancelled));
    }
}
