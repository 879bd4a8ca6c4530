//! Lanes: when the pending mail of each session with automatic turns is checked.
//!
//! Owns: the debounce, the full batch, one turn at a time per session, and the budget of turns without a decision by
//! triage. Pure state machine without I/O or a clock: callers pass in events, results and the current time. A lane holds
//! no message: each check reads the pending mail from the store, so a restart loses nothing.

use super::budget::Budget;
use crate::Limits;
use parlor_model::{AgentId, AutoRun, RoomId, Run, RunId, SessionRef};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Delay before a check is repeated that failed because the store is unavailable.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Lanes {
    /// Ordered, so that checks that are due at the same time begin in the same order everywhere.
    lanes: BTreeMap<SessionRef, Lane>,
    /// Queued and active runs of sessions with the rooms of these runs, also of sessions without automatic turns.
    open_runs: HashMap<SessionRef, BTreeMap<RunId, Option<RoomId>>>,
}

struct Lane {
    auto_run: AutoRun,
    /// Messages that arrived since the last check began.
    arrived: u32,
    /// Time of the next check.
    due: Option<Instant>,
    /// Time before which no check begins, because the budget is used up.
    held_until: Option<Instant>,
    /// Whether a check is in progress.
    checking: bool,
    /// Whether something happened during the check that its result may not include.
    repeat: bool,
    /// Whether pending mail waits until the agent comes online.
    needs_host: bool,
    budget: Budget,
}

/// Result of the check of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// No mail is pending. `next` is the time at which leased mail becomes pending again, if any.
    Empty { next: Option<Instant> },
    /// Mail is pending, but the batch is not complete before `until`.
    Collecting { count: u32, until: Instant },
    /// Part of the pending mail was decided; the rest is checked next.
    Decided,
    /// A run was queued, or another run of the session is open.
    Busy,
    /// The agent is offline, or its gateway cannot run sessions.
    NeedsHost,
    /// The budget is used up until this time.
    Held(Instant),
    /// The store was unavailable.
    Failed,
}

impl Lanes {
    /// Replaces the sessions with automatic turns. New and changed ones are checked at once, because mail may be pending
    /// already.
    pub fn configure(&mut self, sessions: BTreeMap<SessionRef, AutoRun>, now: Instant) {
        self.lanes.retain(|lane, _| sessions.contains_key(lane));
        for (id, auto_run) in sessions {
            match self.lanes.get_mut(&id) {
                Some(lane) if lane.auto_run == auto_run => {}
                Some(lane) => {
                    lane.auto_run = auto_run;
                    lane.touch(now);
                }
                None => drop(self.lanes.insert(id, Lane::new(auto_run, now))),
            }
        }
    }

    /// A message arrived in the mailbox of a session. Restarts the debounce; a full batch is due at once.
    pub fn arrived(&mut self, id: &SessionRef, now: Instant) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        lane.arrived = lane.arrived.saturating_add(1);
        let is_full = lane.arrived >= lane.auto_run.max_batch;
        lane.due = Some(if is_full { now } else { now + lane.auto_run.debounce });
    }

    /// Applies a committed state of a run. When the last open run of a session ends, its mail is checked.
    pub fn run_changed(&mut self, run: &Run, now: Instant) {
        let Some(session) = run.session() else { return };
        let id = SessionRef { agent: run.agent.clone(), session: session.clone() };
        if !run.has_ended() {
            self.open_runs.entry(id).or_default().insert(run.id.clone(), run.room().cloned());
            return;
        }
        if let Some(open) = self.open_runs.get_mut(&id) {
            open.remove(&run.id);
            if !open.is_empty() {
                return;
            }
            self.open_runs.remove(&id);
        }
        if let Some(lane) = self.lanes.get_mut(&id) {
            // A batch that was collected during the run keeps its debounce.
            let due = lane.due;
            lane.touch(now);
            if lane.arrived > 0 && !lane.checking {
                lane.due = due.or(lane.due);
            }
        }
    }

    /// The agent came online: mail that waited for it is checked.
    pub fn agent_online(&mut self, agent: &AgentId, now: Instant) {
        let lanes = self.lanes.iter_mut().filter(|(id, _)| id.agent == *agent);
        for (_, lane) in lanes.filter(|(_, lane)| lane.needs_host || lane.checking) {
            lane.needs_host = false;
            lane.touch(now);
        }
    }

    /// Agents got mail that no event reports: their sessions are checked.
    pub fn mail_moved(&mut self, to: &BTreeSet<AgentId>, now: Instant) {
        for (_, lane) in self.lanes.iter_mut().filter(|(id, _)| to.contains(&id.agent)) {
            lane.touch(now);
        }
    }

    /// Removes everything about a removed agent.
    pub fn agent_removed(&mut self, agent: &AgentId) {
        self.lanes.retain(|id, _| id.agent != *agent);
        self.open_runs.retain(|id, _| id.agent != *agent);
    }

    /// Forgets the runs of a removed room, which end without an event. Their sessions are checked.
    pub fn room_removed(&mut self, room: &RoomId, now: Instant) {
        for (id, open) in &mut self.open_runs {
            let count = open.len();
            open.retain(|_, of| of.as_ref() != Some(room));
            if open.len() < count
                && let Some(lane) = self.lanes.get_mut(id)
            {
                lane.touch(now);
            }
        }
        self.open_runs.retain(|_, open| !open.is_empty());
    }

    /// Returns the lanes whose checks are due, and marks them as being checked.
    pub fn take_due(&mut self, now: Instant) -> Vec<(SessionRef, AutoRun)> {
        let mut due = Vec::new();
        for (id, lane) in &mut self.lanes {
            if lane.check_at().is_some_and(|at| at <= now) && !self.open_runs.contains_key(id) {
                (lane.checking, lane.due, lane.held_until, lane.arrived) = (true, None, None, 0);
                due.push((id.clone(), lane.auto_run.clone()));
            }
        }
        due
    }

    /// Applies the result of a check.
    pub fn checked(&mut self, id: &SessionRef, result: Checked, now: Instant) {
        let Some(lane) = self.lanes.get_mut(id) else { return };
        lane.checking = false;
        lane.needs_host = result == Checked::NeedsHost;
        let next = match result {
            Checked::Empty { next } => next,
            // Messages that arrived during the check may count twice: the next check reads the true number.
            Checked::Collecting { count, until } => {
                lane.arrived = lane.arrived.saturating_add(count);
                Some(until)
            }
            Checked::Decided => Some(now),
            Checked::Busy | Checked::NeedsHost => None,
            Checked::Held(until) => {
                lane.held_until = Some(until);
                Some(until)
            }
            Checked::Failed => Some(now + STORE_RETRY_DELAY),
        };
        lane.due = lane.due.into_iter().chain(next).min();
        if std::mem::take(&mut lane.repeat) {
            lane.due = Some(now);
        }
    }

    /// Takes a token for a turn without a decision by triage. Returns the time of the next token if none is left.
    pub fn take_token(&mut self, id: &SessionRef, limits: &Limits, now: Instant) -> Result<(), Instant> {
        self.lanes.get_mut(id).map_or(Ok(()), |lane| lane.budget.take(limits, now))
    }

    /// Returns the next time at which a check is due even if nothing happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        let free = self.lanes.iter().filter(|(id, _)| !self.open_runs.contains_key(id));
        free.filter_map(|(_, lane)| lane.check_at()).min()
    }
}

impl Lane {
    fn new(auto_run: AutoRun, now: Instant) -> Self {
        Self {
            auto_run,
            arrived: 0,
            due: Some(now),
            held_until: None,
            checking: false,
            repeat: false,
            needs_host: false,
            budget: Budget::default(),
        }
    }

    /// Makes a check due at once; during a check, after it.
    fn touch(&mut self, now: Instant) {
        if self.checking {
            self.repeat = true;
        } else {
            self.due = Some(now);
        }
    }

    fn check_at(&self) -> Option<Instant> {
        match (self.due, self.held_until) {
            (Some(due), Some(until)) if !self.checking => Some(due.max(until)),
            (Some(due), None) if !self.checking => Some(due),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
