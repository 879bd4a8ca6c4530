//! Scheduler: which agents are online and through which gateway connection, their queued runs, and their
//! active runs.
//!
//! Owns: one run at a time per agent, or per agent and room if its gateway supports that (`by_room`); an old
//! gateway connection never takes an agent offline that a newer one has registered; output of a stopped run
//! is dropped. Pure state machine without I/O or a clock: callers pass in committed events and the current
//! time, and the driver takes the resulting work.

mod approvals;
mod idle;
mod injection;
mod queues;
mod resume;
mod rewinds;
mod triage_fallback;

pub use approvals::RunForApproval;
pub use injection::InjectionOffer;
use injection::Injections;
pub use queues::QueueEntry;
use queues::Queues;
pub use resume::{EndedRun, ResumeStatus};

use super::host::Host;
use super::inquiries::Inquiries;
use super::pending_approvals::PendingApprovals;
use super::terminal::TerminalFilter;
use parlor_model::{
    AgentId, AgentStatus, Approval, Chunk, ConversationId, Event, GatewayId, MemberChange, MessageId, RoomId,
    Run, RunId, RunOutcome, RunState, Time, UserId,
};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use triage_fallback::TriageFallbackBucket;

/// Maximum time that the next run in a room waits for the gateway to confirm the stop of the previous run.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Delay before the end of a run or the expiry of an approval is submitted to the store again.
pub(super) const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Id of a gateway connection; newer connections have higher ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayConnectionId(pub u64);

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
    /// until the agent's next run in the room starts, new replies of the agent in that room are dropped.
    stopped: HashMap<(AgentId, RoomId), Instant>,
    /// Changed rooms whose context has to be sent again to the agents in them.
    stale_room_contexts: BTreeSet<RoomId>,
    /// Runs that were cancelled while queued and have to be ended in the store.
    cancelled_before_start: Vec<RunId>,
    /// Agents that became busy or idle, until the driver publishes their status.
    changed: BTreeSet<AgentId>,
    /// Stop commands to send: gateway connection, agent and room.
    stops: Vec<(GatewayConnectionId, AgentId, RoomId)>,
    /// Ended runs to report to their Parlor gateway.
    ended_runs: Vec<EndedRun>,
    /// Removed agents, with the gateway connection that has to be notified.
    removed: Vec<(GatewayConnectionId, AgentId)>,
    pending_approvals: PendingApprovals,
    /// Decided approvals, waiting to be sent to the gateway that requested them.
    decisions_to_send: Vec<(GatewayConnectionId, Arc<Approval>)>,
    /// Rewind requests for offline agents, oldest first. Sent when the agent comes online.
    pending_rewinds: HashMap<AgentId, Vec<(RoomId, MessageId)>>,
    /// Token buckets that limit the runs started without a triage decision.
    triage_fallback: HashMap<(AgentId, RoomId), TriageFallbackBucket>,
    /// Queued runs that wait for a token of their triage fallback bucket, with the time of the next refill.
    held_until: HashMap<RunId, Instant>,
    queues: Queues,
    injections: Injections,
    /// User requests relayed to agents that have no answer yet.
    pub inquiries: Inquiries,
}

/// A live connection of a gateway.
pub struct GatewayConnection {
    pub gateway: GatewayId,
    pub owner: UserId,
    /// Whether the gateway runs an agent in several rooms in parallel and can stop it in a single room.
    /// Parlor gateways do; they also address runs by id.
    pub by_room: bool,
    pub host: Arc<dyn Host>,
}

/// An agent that is online through a gateway connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineAgent {
    pub connection: GatewayConnectionId,
    pub name: Box<str>,
    pub status: AgentStatus,
    pub queue_depth: u32,
}

/// A committed run that has not started.
#[derive(Debug)]
struct QueuedRun {
    run: RunId,
    room: RoomId,
    message: Option<MessageId>,
    preview: Box<str>,
    at: Time,
    /// Whether this run may be injected into an active run; see `injection::may_join`.
    may_join: bool,
}

/// A run whose start is committed and whose end is not.
struct ActiveRun {
    room: RoomId,
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

/// End of a run that the store has not accepted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEnd {
    pub outcome: RunOutcome,
    pub text: Option<Arc<str>>,
    pub chunks: Vec<Chunk>,
    pub target: Option<Box<str>>,
    pub claimed_depth: u32,
    /// Time of the last attempt to commit this end.
    pub(super) submitted_at: Option<Instant>,
}

impl PendingEnd {
    pub fn plain(outcome: RunOutcome) -> Self {
        Self { outcome, text: None, chunks: Vec::new(), target: None, claimed_depth: 0, submitted_at: None }
    }
}

/// A run whose end has to be committed now, with the reply that it was streaming.
pub struct RunToFinish {
    pub run: RunId,
    pub reply: Option<MessageId>,
    pub ending: PendingEnd,
}

/// The run to which a chunk or a completed reply of an agent belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBinding {
    /// This active run; `true` if the run had no reply before.
    Run(RunId, bool),
    /// A run that is ending or was stopped: the output is dropped.
    Ended,
    /// The gateway named a run that is not an active run of this agent in this room.
    UnknownRun,
    /// The agent has no active run in the room that could own this reply.
    Unbound,
}

impl Scheduler {
    pub fn connect_gateway(&mut self, connection: GatewayConnection) -> GatewayConnectionId {
        self.next_link += 1;
        let id = GatewayConnectionId(self.next_link);
        self.links.insert(id, connection);
        id
    }

    /// Connected gateways of a user, without duplicates.
    pub fn gateways_of(&self, owner: &UserId) -> HashSet<&GatewayId> {
        self.links
            .values()
            .filter(|connection| connection.owner == *owner)
            .map(|connection| &connection.gateway)
            .collect()
    }

    pub fn is_gateway_connected(&self, gateway: &GatewayId) -> bool {
        self.links.values().any(|connection| connection.gateway == *gateway)
    }

    pub fn gateway(&self, connection: GatewayConnectionId) -> Option<&GatewayId> {
        self.links.get(&connection).map(|connection| &connection.gateway)
    }

    pub fn host(&self, connection: GatewayConnectionId) -> Option<Arc<dyn Host>> {
        self.links.get(&connection).map(|connection| connection.host.clone())
    }

    /// User who owns the gateway of a connection.
    pub fn owner(&self, connection: GatewayConnectionId) -> Option<&UserId> {
        self.links.get(&connection).map(|connection| &connection.owner)
    }

    /// Host of the newest connection of a gateway.
    pub fn host_of_gateway(&self, gateway: &GatewayId) -> Option<Arc<dyn Host>> {
        let links = self.links.iter().filter(|(_, connection)| connection.gateway == *gateway);
        links.max_by_key(|(id, _)| **id).map(|(_, connection)| connection.host.clone())
    }

    /// Registers an agent as online through `link`. Returns its previous connection if that belonged to a
    /// different gateway. If the connection changed, the agent's active runs are interrupted after the grace
    /// period unless the agent proves that it is still working on them.
    pub fn agent_online(
        &mut self,
        agent: &AgentId,
        connection: GatewayConnectionId,
        name: &str,
        now: Instant,
    ) -> Option<GatewayConnectionId> {
        // A gateway that registers the agent again on the same connection does not change its status.
        let (status, queue_depth) = self
            .agent_on_connection(agent, connection)
            .map_or((AgentStatus::Online, 0), |online| (online.status, online.queue_depth));
        let online = OnlineAgent { connection, name: name.into(), status, queue_depth };
        let before = self.online_agents.insert(agent.clone(), online);
        self.queues.touch(agent);
        self.queue_decisions();
        let before = before?.connection;
        if before != connection {
            // The new connection may not know the active runs, and the hub may never notice that the old one
            // closed.
            self.mark_lost(agent, now);
        }
        let gateway = |connection: GatewayConnectionId| {
            self.links.get(&connection).map(|connection| &connection.gateway)
        };
        (before != connection && gateway(before) != gateway(connection)).then_some(before)
    }

    /// Whether the agent is online through a Parlor gateway.
    pub fn is_on_parlor_gateway(&self, agent: &AgentId) -> bool {
        let connection = self.online_agents.get(agent).and_then(|online| self.links.get(&online.connection));
        connection.is_some_and(|connection| connection.by_room)
    }

    pub fn online_agent(&self, agent: &AgentId) -> Option<&OnlineAgent> {
        self.online_agents.get(agent)
    }

    /// Returns the agent if it is online through exactly this connection.
    pub fn agent_on_connection(
        &self,
        agent: &AgentId,
        connection: GatewayConnectionId,
    ) -> Option<&OnlineAgent> {
        self.online_agents.get(agent).filter(|online| online.connection == connection)
    }

    /// Returns whether the status or the queue depth changed.
    pub fn set_status(&mut self, agent: &AgentId, status: AgentStatus, queue_depth: u32) -> bool {
        let Some(online) = self.online_agents.get_mut(agent) else { return false };
        let changed = (online.status, online.queue_depth) != (status, queue_depth);
        (online.status, online.queue_depth) = (status, queue_depth);
        changed
    }

    /// Takes an agent offline. Returns `false` and does nothing if it is online through another connection.
    pub fn agent_offline(&mut self, agent: &AgentId, connection: GatewayConnectionId, now: Instant) -> bool {
        if self.agent_on_connection(agent, connection).is_none() {
            return false;
        }
        self.online_agents.remove(agent);
        self.queues.touch(agent);
        self.mark_lost(agent, now);
        true
    }

    /// Starts the grace period of the agent's active runs.
    fn mark_lost(&mut self, agent: &AgentId, now: Instant) {
        self.stopped.retain(|(stopped, _), _| stopped != agent);
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run) {
                live.lost_since.get_or_insert(now);
                live.stopping_until = None;
            }
        }
    }

    /// Removes a gateway connection and returns the agents that went offline with it.
    pub fn disconnect_gateway(&mut self, connection: GatewayConnectionId, now: Instant) -> Vec<AgentId> {
        let agents = self.online_agents.iter().filter(|(_, online)| online.connection == connection);
        let agents: Vec<AgentId> = agents.map(|(agent, _)| agent.clone()).collect();
        for agent in &agents {
            self.agent_offline(agent, connection, now);
        }
        self.links.remove(&connection);
        agents
    }

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
                let (agents, lost) = self.in_room(room);
                for (run, agent) in lost {
                    self.forget(&run, &agent);
                }
                for agent in agents {
                    self.stop(agent, room, now);
                }
                self.stale_room_contexts.remove(room);
                self.drop_pending_rewinds(room, None);
                self.triage_fallback.retain(|(_, undecided), _| undecided != room);
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
                    self.removed.push((online.connection, agent.clone()));
                }
            }
            _ => {}
        }
    }

    fn change_status(&mut self, agent: &AgentId, status: AgentStatus) {
        if self.online_agents.get(agent).is_some_and(|online| online.status != status) {
            self.set_status(agent, status, 0);
            self.changed.insert(agent.clone());
        }
    }

    fn note_stale(&mut self, room: &RoomId) {
        if !self.online_agents.is_empty() {
            self.stale_room_contexts.insert(room.clone());
        }
    }

    /// Returns the agents with an active run in a room, and all active and queued runs there.
    fn in_room(&self, room: &RoomId) -> (BTreeSet<AgentId>, Vec<(RunId, AgentId)>) {
        let (mut agents, mut runs) = (BTreeSet::new(), Vec::new());
        for (agent, of_agent) in &self.runs_of {
            for run in of_agent.iter().filter(|run| self.running.get(*run).is_some_and(|l| l.room == *room)) {
                agents.insert(agent.clone());
                runs.push((run.clone(), agent.clone()));
            }
        }
        for (agent, queue) in &self.queued {
            let here = queue.iter().filter(|waiting| waiting.room == *room);
            runs.extend(here.map(|waiting| (waiting.run.clone(), agent.clone())));
        }
        (agents, runs)
    }

    fn apply_run(&mut self, run: &Run, now: Instant) {
        match run.state {
            RunState::Queued => {
                let queue = self.queued.entry(run.agent.clone()).or_default();
                if !queue.iter().any(|waiting| waiting.run == run.id) {
                    queue.push_back(QueuedRun {
                        run: run.id.clone(),
                        room: run.room.clone(),
                        message: run.trigger.clone(),
                        preview: self.queues.preview(run.trigger.as_ref()),
                        at: run.queued_at,
                        may_join: injection::may_join(run),
                    });
                }
            }
            // An active run is published again when its usage changes.
            RunState::Running if self.running.contains_key(&run.id) => {}
            RunState::Running => {
                self.forget(&run.id, &run.agent);
                self.stopped.remove(&(run.agent.clone(), run.room.clone()));
                let live = ActiveRun {
                    room: run.room.clone(),
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
            }
            RunState::Ended(_) => {
                self.note_ended_run(run);
                // The scheduler did not request this end, so the gateway has to be told to stop.
                let unknown = self.running.get(&run.id).is_some_and(|live| live.ending.is_none());
                if unknown && run.state == RunState::Ended(RunOutcome::Cancelled) {
                    self.stop(run.agent.clone(), &run.room, now);
                }
                self.forget(&run.id, &run.agent);
            }
        }
    }

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

    /// Stops the active runs in a room, of all agents or of one, and cancels the queued ones.
    pub fn cancel_runs(&mut self, room: &RoomId, agent: Option<&AgentId>, now: Instant) {
        let matches = |other: &AgentId| agent.is_none_or(|agent| agent == other);
        let (running, all) = self.in_room(room);
        for (run, of) in all.into_iter().filter(|(_, of)| matches(of)) {
            // A Parlor gateway confirms when the agent process has ended; the agent stays busy until then.
            let stopping_until = self.is_on_parlor_gateway(&of).then(|| now + STOP_GRACE);
            match self.running.get_mut(&run) {
                Some(live) => {
                    if live.ending.is_none() && live.lost_since.is_none() {
                        live.stopping_until = stopping_until;
                    }
                    live.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Cancelled));
                }
                None => {
                    self.forget(&run, &of);
                    self.cancelled_before_start.push(run);
                }
            }
        }
        for agent in running.into_iter().filter(matches) {
            self.stop(agent, room, now);
        }
    }

    fn stop(&mut self, agent: AgentId, room: &RoomId, now: Instant) {
        let Some(online) = self.online_agents.get(&agent) else { return };
        self.stops.push((online.connection, agent.clone(), room.clone()));
        self.stopped.insert((agent, room.clone()), now);
    }

    /// Returns the runs that can start now. Each is returned once, unless `retry_start` releases it.
    pub fn take_ready(&mut self, now: Instant) -> Vec<RunId> {
        let free = self.queued.keys().flat_map(|agent| self.free(agent, now));
        let ready: Vec<RunId> =
            free.filter(|waiting| !self.starting.contains(&waiting.run)).map(|w| w.run.clone()).collect();
        self.starting.extend(ready.iter().cloned());
        ready
    }

    /// Returns the queued runs of an agent that can start now: the agent is online and not busy.
    fn free(&self, agent: &AgentId, now: Instant) -> Vec<&QueuedRun> {
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

    /// Finds the run that a chunk of a reply belongs to: the run that already streams this reply, or else the
    /// agent's active run in the room without a reply. The run is then bound to the reply id.
    pub fn bind(&mut self, agent: &AgentId, room: &RoomId, reply: &MessageId) -> ReplyBinding {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let here: Vec<&RunId> =
            runs.filter(|run| self.running.get(*run).is_some_and(|live| live.room == *room)).collect();
        let find = |matches: &dyn Fn(&ActiveRun) -> bool| {
            here.iter().find(|run| self.running.get(**run).is_some_and(matches)).map(|run| (*run).clone())
        };
        let (run, first) = match find(&|live| live.reply.as_ref() == Some(reply)) {
            Some(run) => (run, false),
            None if self.stopped.contains_key(&(agent.clone(), room.clone())) => return ReplyBinding::Ended,
            None => match find(&|live| live.reply.is_none() && live.ending.is_none()) {
                Some(run) => (run, true),
                None => return ReplyBinding::Unbound,
            },
        };
        let Some(live) = self.running.get_mut(&run) else { return ReplyBinding::Unbound };
        if live.ending.is_some() {
            return ReplyBinding::Ended;
        }
        (live.reply, live.lost_since) = (Some(reply.clone()), None);
        ReplyBinding::Run(run, first)
    }

    /// Whether the agent has an active run in this room that is not ending.
    pub fn is_replying(&self, agent: &AgentId, room: &RoomId) -> bool {
        let mut runs = self.runs_of.get(agent).into_iter().flatten().filter_map(|run| self.running.get(run));
        runs.any(|live| live.room == *room && live.ending.is_none())
    }

    /// Removes the reply of a run, after the reply id turned out to belong to another message.
    pub fn unbind(&mut self, run: &RunId) {
        if let Some(live) = self.running.get_mut(run) {
            live.reply = None;
        }
    }

    /// Binds a run to a reply id.
    pub fn bind_reply(&mut self, run: &RunId, reply: &MessageId) {
        if let Some(live) = self.running.get_mut(run) {
            live.reply = Some(reply.clone());
        }
    }

    /// Whether the agent has an active run in this conversation.
    pub fn is_in(&self, agent: &AgentId, conversation: &ConversationId) -> bool {
        let mut runs = self.runs_of.get(agent).into_iter().flatten().filter_map(|run| self.running.get(run));
        runs.any(|live| live.conversation == *conversation)
    }

    /// Finds the active run that is bound to a reply and unbinds it, because the reply belongs to an earlier
    /// run.
    pub fn run_bound_to(&mut self, agent: &AgentId, reply: &MessageId) -> Option<RunId> {
        let mut runs = self.runs_of.get(agent).into_iter().flatten();
        let is_bound = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.ending.is_none());
            live.is_some_and(|live| live.reply.as_ref() == Some(reply))
        };
        let run = runs.find(is_bound).cloned()?;
        self.unbind(&run);
        Some(run)
    }

    /// Returns the active run in the room that a reply with a new id would be bound to.
    pub fn run_without_reply(&self, agent: &AgentId, room: &RoomId) -> Option<RunId> {
        let mut runs = self.runs_of.get(agent).into_iter().flatten();
        let without_reply = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.room == *room);
            live.is_some_and(|live| live.reply.is_none() && live.ending.is_none())
        };
        runs.find(without_reply).cloned()
    }

    /// Handles the gateway's confirmation that the agent's runs, in one room or in all, have stopped.
    pub fn stopped(&mut self, agent: &AgentId, room: Option<&RoomId>) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            let here = |live: &&mut ActiveRun| room.is_none_or(|room| live.room == *room);
            if let Some(live) = self.running.get_mut(run).filter(here) {
                live.stopping_until = None;
            }
        }
        self.stopped.retain(|(stopped, at), _| stopped != agent || room.is_some_and(|room| room != at));
    }

    /// Whether a run has started a reply.
    pub fn has_spoken(&self, run: &RunId) -> bool {
        self.running.get(run).is_some_and(|live| live.reply.is_some())
    }

    /// Ends the grace period of the agent's runs, in one room or in all: the agent is working on them.
    pub fn mark_alive(&mut self, agent: &AgentId, room: Option<&RoomId>) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            let here = |live: &&mut ActiveRun| room.is_none_or(|room| live.room == *room);
            if let Some(live) = self.running.get_mut(run).filter(here) {
                live.lost_since = None;
            }
        }
    }

    /// Returns the replies that are being streamed in a room, with their runs.
    pub fn replies_in(&self, room: &RoomId) -> Vec<(RunId, MessageId)> {
        let here = self.running.iter().filter(|(_, live)| live.room == *room);
        here.filter_map(|(run, live)| Some((run.clone(), live.reply.clone()?))).collect()
    }

    /// Returns the active runs of an agent, in one room or in all.
    pub fn runs(&self, agent: &AgentId, room: Option<&RoomId>) -> Vec<(RunId, RoomId)> {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let live = runs.filter_map(|run| self.running.get(run).map(|live| (run, live)));
        live.filter(|(_, live)| room.is_none_or(|room| live.room == *room))
            .map(|(run, live)| (run.clone(), live.room.clone()))
            .collect()
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

    /// Returns the runs whose end has to be committed now: runs with a pending end, and runs lost for longer
    /// than `grace_period`, which end as interrupted. A run is returned again after `STORE_RETRY_DELAY` while
    /// it has not ended.
    pub fn take_runs_to_finish(&mut self, grace_period: Duration, now: Instant) -> Vec<RunToFinish> {
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

    pub fn take_stale(&mut self) -> BTreeSet<RoomId> {
        std::mem::take(&mut self.stale_room_contexts)
    }

    pub fn take_cancelled_before_start(&mut self) -> Vec<RunId> {
        std::mem::take(&mut self.cancelled_before_start)
    }

    pub fn take_changed(&mut self) -> BTreeSet<AgentId> {
        std::mem::take(&mut self.changed)
    }

    pub fn take_stops(&mut self) -> Vec<(GatewayConnectionId, AgentId, RoomId)> {
        std::mem::take(&mut self.stops)
    }

    pub fn take_removed(&mut self) -> Vec<(GatewayConnectionId, AgentId)> {
        std::mem::take(&mut self.removed)
    }

    /// Filters terminal output of an agent's newest active run and returns it with the room to publish it in;
    /// `None` if no active run owns it.
    pub fn terminal(
        &mut self,
        agent: &AgentId,
        room: Option<&RoomId>,
        data: &str,
    ) -> Option<(RoomId, String)> {
        let (run, _) = self.runs(agent, room).pop()?;
        let live = self.running.get_mut(&run).filter(|live| live.ending.is_none())?;
        Some((live.room.clone(), live.terminal.pass(data)))
    }
}

#[cfg(test)]
mod tests;
