//! Ends of active runs, until the store has committed them.

use super::{ActiveRun, STORE_RETRY_DELAY, Scheduler};
use parlor_model::{AgentId, Chunk, MessageId, Origin, RunContext, RunId, RunOutcome};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// End of a run that the store has not accepted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEnd {
    pub outcome: RunOutcome,
    pub text: Option<Arc<str>>,
    pub chunks: Vec<Chunk>,
    pub target: Option<Box<str>>,
    pub claimed_depth: u32,
    pub claimed_chain: Vec<Box<str>>,
    pub origin: Option<Box<Origin>>,
    /// Time of the last attempt to commit this end.
    pub(in crate::runs) submitted_at: Option<Instant>,
}

impl PendingEnd {
    pub fn plain(outcome: RunOutcome) -> Self {
        Self {
            outcome,
            text: None,
            chunks: Vec::new(),
            target: None,
            claimed_depth: 0,
            claimed_chain: Vec::new(),
            origin: None,
            submitted_at: None,
        }
    }
}

/// A run whose end has to be committed now, with the reply that it was streaming.
pub struct RunToFinish {
    pub run: RunId,
    pub reply: Option<MessageId>,
    pub ending: PendingEnd,
}

impl Scheduler {
    /// Whether a run is active and no end is pending.
    pub fn is_active(&self, run: &RunId) -> bool {
        self.running.get(run).is_some_and(|live| live.ending.is_none())
    }

    /// Removes a run that the store reports as ended or unknown.
    pub fn forget_ended(&mut self, run: &RunId) {
        let of = self.runs_of.iter().find(|(_, runs)| runs.contains(run));
        if let Some(agent) = of.map(|(agent, _)| agent.clone()) {
            self.forget(run, &agent);
        }
    }

    /// Sets how a run ends; if an end is already pending, that one is kept.
    pub fn end(&mut self, run: &RunId, ending: PendingEnd) {
        if let Some(live) = self.running.get_mut(run) {
            live.ending.get_or_insert(ending);
        }
    }

    /// Completes the runs of an idle agent that have started a reply: the gateway will not send the rest, so
    /// the streamed text becomes the reply.
    pub fn idle(&mut self, agent: &AgentId) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run).filter(|live| live.reply.is_some()) {
                live.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Complete));
            }
        }
    }

    /// Ends the grace period of the agent's runs, in one context or in all: the agent is working on them.
    pub fn mark_alive(&mut self, agent: &AgentId, context: Option<&RunContext>) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            let here = |live: &&mut ActiveRun| context.is_none_or(|context| live.place.is_in(context));
            if let Some(live) = self.running.get_mut(run).filter(here) {
                live.lost_since = None;
            }
        }
    }

    /// Returns the runs whose end has to be committed now: runs with a pending end, and runs lost for longer
    /// than `grace_period`, which end as interrupted. A run is returned again after `STORE_RETRY_DELAY` while
    /// it has not ended.
    pub(super) fn take_runs_to_finish(&mut self, grace_period: Duration, now: Instant) -> Vec<RunToFinish> {
        let mut due = Vec::new();
        for (run, live) in &mut self.running {
            if live.lost_since.is_some_and(|since| now.duration_since(since) >= grace_period) {
                live.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Interrupted));
            }
            let stopping = live.stopping_until.is_some_and(|until| until > now);
            let Some(ending) = live.ending.as_mut().filter(|_| !stopping) else { continue };
            if ending.submitted_at.is_none_or(|at| now.duration_since(at) >= STORE_RETRY_DELAY) {
                ending.submitted_at = Some(now);
                due.push(RunToFinish { run: run.clone(), reply: live.reply.clone(), ending: ending.clone() });
            }
        }
        due
    }
}
