//! Scheduler: which agents are online and through which gateway connection, their queued runs, and their
//! active runs.
//!
//! Owns: the state that committed events and reports of gateways lead to; one file per topic. Pure state
//! machine without I/O or a clock: callers pass in events, reports and the current time. The resulting work
//! is a list of [`Action`]s, which the driver performs.

mod actions;
mod approvals;
mod connections;
mod ends;
mod idle;
mod injection;
mod queues;
mod replies;
mod resume;
mod rewinds;
mod starts;
mod stops;
mod triage_fallback;

pub use actions::Action;
pub use approvals::RunForApproval;
pub use connections::{GatewayAbilities, GatewayConnection, GatewayConnectionId, OnlineAgent};
pub use ends::{PendingEnd, RunToFinish};
pub use injection::InjectionOffer;
use injection::Injections;
use queues::Queues;
pub use replies::{ReplyBinding, ReplySlot};
pub use resume::ResumeStatus;

use super::host::HostCommand;
use super::inquiries::Inquiries;
use super::pending_approvals::PendingApprovals;
use super::terminal::TerminalFilter;
use parlor_model::{
    AgentId, AgentStatus, Approval, ConversationId, Event, MemberChange, MessageId, RoomId, Run, RunContext,
    RunId, RunOutcome, RunPlace, RunState, Time,
};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stops::STOP_GRACE;
use triage_fallback::TriageFallbackBucket;

/// Delay before the end of a run or the expiry of an approval is submitted to the store again.
pub(super) const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// State of online agents, queued runs and active runs, and the work that the driver has to do next.
#[derive(Default)]
pub struct Scheduler {
    links: HashMap<GatewayConnectionId, GatewayConnection>,
    next_link: u64,
    online_agents: HashMap<AgentId, OnlineAgent>,
    /// Queued runs per agent, oldest first.
    queued: HashMap<AgentId, VecDeque<QueuedRun>>,
    /// Runs that `take_ready` has returned and that the store has not started yet.
    starting: HashSet<RunId>,
    running: HashMap<RunId, ActiveRun>,
    runs_of: HashMap<AgentId, Vec<RunId>>,
    /// Stopped runs whose gateway has not confirmed the stop, with the time of the stop. Until it does, or
    /// until the agent's next run in the context starts, new replies of the agent in that context are dropped.
    stopped: HashMap<(AgentId, RunContext), Instant>,
    /// Changed rooms whose context has to be sent again to the agents in them.
    stale_room_contexts: BTreeSet<RoomId>,
    /// Runs that were cancelled while queued and have to be ended in the store.
    cancelled_before_start: Vec<RunId>,
    /// Agents that became busy or idle, until the driver publishes their status.
    changed: BTreeSet<AgentId>,
    /// Commands to send to gateways, oldest first.
    commands: Vec<(GatewayConnectionId, HostCommand)>,
    pending_approvals: PendingApprovals,
    /// Decided approvals, waiting to be sent to the gateway that requested them.
    decisions_to_send: Vec<(GatewayConnectionId, Arc<Approval>)>,
    /// Rewind requests for offline agents, oldest first. Sent when the agent comes online.
    pending_rewinds: HashMap<AgentId, Vec<(RoomId, MessageId)>>,
    /// Token buckets that limit the runs started without a triage decision.
    triage_fallback: HashMap<(AgentId, RunContext), TriageFallbackBucket>,
    /// Queued runs that wait for a token of their triage fallback bucket, with the time of the next refill.
    held_until: HashMap<RunId, Instant>,
    queues: Queues,
    injections: Injections,
    /// User requests relayed to agents that have no answer yet.
    pub inquiries: Inquiries,
}

/// Agents with an active run in a room and its context, and all active and queued runs there.
type RunsInRoom = (BTreeSet<(AgentId, RunContext)>, Vec<(RunId, AgentId)>);

/// A committed run that has not started.
#[derive(Debug)]
struct QueuedRun {
    run: RunId,
    place: RunPlace,
    message: Option<MessageId>,
    preview: Box<str>,
    at: Time,
    /// Whether this run may be injected into an active run; see `injection::may_join`.
    may_join: bool,
}

/// A run whose start is committed and whose end is not.
struct ActiveRun {
    place: RunPlace,
    conversation: ConversationId,
    reply: Option<MessageId>,
    terminal: TerminalFilter,
    /// Start of the grace period after the gateway connection was lost; `None` while the
    /// agent works on the run.
    lost_since: Option<Instant>,
    /// Deadline for the gateway to confirm a stop. The end of the run is submitted after the confirmation or
    /// after this deadline.
    stopping_until: Option<Instant>,
    ending: Option<PendingEnd>,
}

impl Scheduler {
    /// Applies a committed event.
    pub fn apply_event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::MessagePosted { message, .. } => self.queues.posted(message),
            Event::MessageEdited(message) => self.update_preview(&message.id, &message.text),
            Event::MessageDeleted { message, .. } => self.update_preview(message, ""),
            Event::RunChanged(run) => {
                self.queues.touch(&run.agent);
                self.apply_run(run, now);
                if run.has_ended() {
                    self.pending_approvals.run_ended(&run.id);
                }
            }
            Event::ApprovalAsked(approval) if approval.decision.is_none() => {
                self.pending_approvals.add(approval, approval.open_for(), now);
            }
            Event::ApprovalDecided(decided) => {
                self.pending_approvals.decided(decided);
                self.queue_decisions();
            }
            Event::RoomChanged(room) => {
                self.note_stale(&room.id);
                if room.is_frozen() {
                    self.cancel_runs(&room.id, None, now);
                }
            }
            Event::MembersChanged { room, change, .. } => {
                self.note_stale(&room.id);
                if let MemberChange::Removed(member) = change
                    && let Some(agent) = member.agent()
                {
                    self.cancel_runs(&room.id, Some(agent), now);
                    self.drop_pending_rewinds(&room.id, Some(agent));
                }
            }
            Event::RoomRemoved { room, .. } => {
                self.pending_approvals.room_removed(room);
                self.queues.forget_published(|_, of| of == room);
                let (active, lost) = self.in_room(room);
                for (run, agent) in lost {
                    self.forget(&run, &agent);
                }
                for (agent, context) in active {
                    self.stop(agent, context, now);
                }
                self.stale_room_contexts.remove(room);
                self.drop_pending_rewinds(room, None);
                self.triage_fallback.retain(|(_, undecided), _| undecided.room() != Some(room));
            }
            Event::AgentChanged { agent, .. } => {
                if let Some(online) = self.online_agents.get_mut(&agent.id) {
                    online.name = agent.name.clone();
                }
            }
            Event::AgentRemoved { agent, .. } => {
                self.pending_approvals.agent_removed(agent);
                self.queues.forget_published(|of, _| of == agent);
                for run in self.runs_of.get(agent).cloned().unwrap_or_default() {
                    self.forget(&run, agent);
                }
                self.queued.remove(agent);
                self.pending_rewinds.remove(agent);
                self.triage_fallback.retain(|(undecided, _), _| undecided != agent);
                self.stopped.retain(|(stopped, _), _| stopped != agent);
                if let Some(online) = self.online_agents.remove(agent) {
                    self.commands.push((online.connection, HostCommand::Remove { agent: agent.clone() }));
                }
            }
            _ => {}
        }
    }

    fn note_stale(&mut self, room: &RoomId) {
        if !self.online_agents.is_empty() {
            self.stale_room_contexts.insert(room.clone());
        }
    }

    /// Returns the agents with an active run in a room and its context, and all active and queued runs there.
    fn in_room(&self, room: &RoomId) -> RunsInRoom {
        let (mut active, mut runs) = (BTreeSet::new(), Vec::new());
        for (agent, of_agent) in &self.runs_of {
            for run in of_agent {
                let live = self.running.get(run).filter(|live| live.place.room() == Some(room));
                if let Some(live) = live {
                    active.insert((agent.clone(), live.place.context()));
                    runs.push((run.clone(), agent.clone()));
                }
            }
        }
        for (agent, queue) in &self.queued {
            let here = queue.iter().filter(|waiting| waiting.place.room() == Some(room));
            runs.extend(here.map(|waiting| (waiting.run.clone(), agent.clone())));
        }
        (active, runs)
    }

    fn apply_run(&mut self, run: &Run, now: Instant) {
        match run.state {
            RunState::Queued => {
                let queue = self.queued.entry(run.agent.clone()).or_default();
                if !queue.iter().any(|waiting| waiting.run == run.id) {
                    queue.push_back(QueuedRun {
                        run: run.id.clone(),
                        place: run.place.clone(),
                        message: run.message().cloned(),
                        preview: self.queues.preview(run),
                        at: run.queued_at,
                        may_join: injection::may_join(run),
                    });
                }
            }
            // An active run is published again when its usage changes or its stop is requested.
            RunState::Running if self.running.contains_key(&run.id) => {
                if run.stop_requested {
                    self.stop_run(run, now);
                }
            }
            RunState::Running => {
                self.forget(&run.id, &run.agent);
                self.stopped.remove(&(run.agent.clone(), run.place.context()));
                let live = ActiveRun {
                    place: run.place.clone(),
                    conversation: run.lineage.conversation.clone(),
                    reply: None,
                    terminal: TerminalFilter::default(),
                    lost_since: (!self.online_agents.contains_key(&run.agent)).then_some(now),
                    stopping_until: None,
                    ending: None,
                };
                self.running.insert(run.id.clone(), live);
                self.runs_of.entry(run.agent.clone()).or_default().push(run.id.clone());
                self.change_status(&run.agent, AgentStatus::Busy);
                if run.stop_requested {
                    self.stop_run(run, now);
                }
            }
            RunState::Ended(_) => {
                // The scheduler did not request this end, so a stop must be sent to the gateway.
                let unknown = self.running.get(&run.id).is_some_and(|live| live.ending.is_none());
                if unknown && run.state == RunState::Ended(RunOutcome::Cancelled) {
                    self.stop(run.agent.clone(), run.place.context(), now);
                }
                self.report_ended_run(run);
                self.forget(&run.id, &run.agent);
            }
        }
    }

    fn forget(&mut self, run: &RunId, agent: &AgentId) {
        self.queues.touch(agent);
        self.starting.remove(run);
        self.held_until.remove(run);
        self.injections.forget(run);
        if let Some(queue) = self.queued.get_mut(agent) {
            queue.retain(|waiting| waiting.run != *run);
            if queue.is_empty() {
                self.queued.remove(agent);
            }
        }
        if self.running.remove(run).is_some()
            && let Some(runs) = self.runs_of.get_mut(agent)
        {
            runs.retain(|other| other != run);
            if runs.is_empty() {
                self.runs_of.remove(agent);
                self.change_status(agent, AgentStatus::Online);
            }
        }
    }

    /// Returns the next time at which the driver has to act even if no event arrives.
    pub fn next_deadline(&self, grace_period: Duration, now: Instant) -> Option<Instant> {
        let lost = self.running.values().filter_map(|live| match &live.ending {
            Some(ending) => ending.submitted_at.map(|at| at + STORE_RETRY_DELAY).or(live.stopping_until),
            None => live.lost_since.map(|since| since + grace_period),
        });
        let stopping = self.stopped.values().map(|since| *since + STOP_GRACE).filter(|until| *until > now);
        let held = self.held_until.values().copied().filter(|until| *until > now);
        lost.chain(stopping).chain(held).chain(self.pending_approvals.next_deadline()).min()
    }
}

#[cfg(test)]
mod tests;
