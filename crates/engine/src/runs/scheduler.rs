//! Who hosts which agent now, what waits for it and what runs: the memory behind the turns.
//!
//! Owns: one run at a time for each agent, or for each agent and room where its host can tell them apart; an old
//! link never takes away what a newer one brought; what was stopped says nothing more. Pure: it is told what happened
//! and asked what to do.

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

/// How long the next turn waits for a host to say that the one that was stopped is over.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long the store is given before it is asked again to take the end of a turn.
pub(super) const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayConnectionId(pub u64);

#[derive(Default)]
pub struct Scheduler {
    links: HashMap<GatewayConnectionId, GatewayConnection>,
    next_link: u64,
    seats: HashMap<AgentId, OnlineAgent>,
    /// In the order in which they came.
    queued: HashMap<AgentId, VecDeque<QueuedRun>>,
    /// Asked to start, not decided yet.
    starting: HashSet<RunId>,
    running: HashMap<RunId, ActiveRun>,
    runs_of: HashMap<AgentId, Vec<RunId>>,
    /// Turns that were stopped and whose host has not said so yet: it says nothing until then, or its next turn.
    stopped: HashMap<(AgentId, RoomId), Instant>,
    /// Rooms that changed, of which the agents in them are to be told.
    stale_room_contexts: BTreeSet<RoomId>,
    /// Turns that wait and shall not begin.
    cancelled_before_start: Vec<RunId>,
    /// Agents that began or ended to be busy.
    changed: BTreeSet<AgentId>,
    /// What hosts are to stop: which agent, where.
    stops: Vec<(GatewayConnectionId, AgentId, RoomId)>,
    /// Turns whose end is kept, for hosts that know them by name.
    over: Vec<EndedRun>,
    /// Agents that are gone, with the link to tell.
    removed: Vec<(GatewayConnectionId, AgentId)>,
    pending_approvals: PendingApprovals,
    /// What was decided, for who is to hear it.
    answers: Vec<(GatewayConnectionId, Arc<Approval>)>,
    /// What agents that were away have not forgotten yet, in the order in which it was taken back.
    pending_rewinds: HashMap<AgentId, Vec<(RoomId, MessageId)>>,
    /// Turns that began though nobody could say whether they should.
    triage_fallback: HashMap<(AgentId, RoomId), TriageFallbackBucket>,
    /// Turns that wait until there is room for another of these.
    held_until: HashMap<RunId, Instant>,
    queues: Queues,
    adding: Injections,
    /// What people asked of agents, until it is answered.
    pub inquiries: Inquiries,
}

pub struct GatewayConnection {
    pub gateway: GatewayId,
    pub owner: UserId,
    /// Whether it can run an agent in several rooms at once, and stop it in one of them.
    pub by_room: bool,
    pub host: Arc<dyn Host>,
}

/// An agent that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineAgent {
    pub link: GatewayConnectionId,
    pub name: Box<str>,
    pub status: AgentStatus,
    pub queue_depth: u32,
}

#[derive(Debug)]
struct QueuedRun {
    run: RunId,
    room: RoomId,
    message: Option<MessageId>,
    preview: Box<str>,
    at: Time,
    /// Whether a person said it to this very agent, so that it can become part of what the agent does.
    may_join: bool,
}

struct ActiveRun {
    room: RoomId,
    conversation: ConversationId,
    reply: Option<MessageId>,
    terminal: TerminalFilter,
    /// Since when its agent was not heard of, where its host was lost.
    lost_since: Option<Instant>,
    /// Until when its host is given time to end what it was told to stop.
    stopping_until: Option<Instant>,
    ending: Option<PendingEnd>,
}

/// How a turn is to end, once the store takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEnd {
    pub outcome: RunOutcome,
    pub text: Option<Arc<str>>,
    pub chunks: Vec<Chunk>,
    pub target: Option<Box<str>>,
    pub claimed_depth: u32,
    /// When the store was asked.
    pub(super) asked_at: Option<Instant>,
}

impl PendingEnd {
    pub fn plain(outcome: RunOutcome) -> Self {
        Self { outcome, text: None, chunks: Vec::new(), target: None, claimed_depth: 0, asked_at: None }
    }
}

/// A turn that is to end.
pub struct RunToFinish {
    pub run: RunId,
    pub reply: Option<MessageId>,
    pub ending: PendingEnd,
}

/// Where a piece of a reply belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBinding {
    /// To this turn; whether it is its first piece.
    Run(RunId, bool),
    /// To a turn that is over: nobody is to hear it.
    Over,
    /// To one that was named, and that is over or never was.
    Gone,
    /// To none.
    Unknown,
}

impl Scheduler {
    pub fn connect_gateway(&mut self, link: GatewayConnection) -> GatewayConnectionId {
        self.next_link += 1;
        let id = GatewayConnectionId(self.next_link);
        self.links.insert(id, link);
        id
    }

    /// The gateways of a person that are there, each once.
    pub fn gateways_of(&self, owner: &UserId) -> HashSet<&GatewayId> {
        self.links.values().filter(|link| link.owner == *owner).map(|link| &link.gateway).collect()
    }

    pub fn is_linked(&self, gateway: &GatewayId) -> bool {
        self.links.values().any(|link| link.gateway == *gateway)
    }

    pub fn gateway(&self, link: GatewayConnectionId) -> Option<&GatewayId> {
        self.links.get(&link).map(|link| &link.gateway)
    }

    pub fn host(&self, link: GatewayConnectionId) -> Option<Arc<dyn Host>> {
        self.links.get(&link).map(|link| link.host.clone())
    }

    /// Whose the gateway behind a link is.
    pub fn owner(&self, link: GatewayConnectionId) -> Option<&UserId> {
        self.links.get(&link).map(|link| &link.owner)
    }

    /// A host that some link of this gateway, the newest, leads to.
    pub fn host_of_gateway(&self, gateway: &GatewayId) -> Option<Arc<dyn Host>> {
        let links = self.links.iter().filter(|(_, link)| link.gateway == *gateway);
        links.max_by_key(|(id, _)| **id).map(|(_, link)| link.host.clone())
    }

    /// An agent is there, through this link from now on. Gives the link it was there through before, if that was of
    /// another gateway. A turn that was going on goes on, if the agent is heard of in time.
    pub fn agent_online(
        &mut self,
        agent: &AgentId,
        link: GatewayConnectionId,
        name: &str,
        now: Instant,
    ) -> Option<GatewayConnectionId> {
        // Who is presented once more by the same link is as busy as before.
        let (status, queue_depth) = self
            .agent_on_connection(agent, link)
            .map_or((AgentStatus::Online, 0), |seat| (seat.status, seat.queue_depth));
        let seat = OnlineAgent { link, name: name.into(), status, queue_depth };
        let before = self.seats.insert(agent.clone(), seat);
        self.queues.touch(agent);
        self.hand_answers_out();
        let before = before?.link;
        if before != link {
            // Whoever comes by another way may know nothing of it, and the old way may never be seen to end.
            self.lose(agent, now);
        }
        let gateway = |link: GatewayConnectionId| self.links.get(&link).map(|link| &link.gateway);
        (before != link && gateway(before) != gateway(link)).then_some(before)
    }

    /// Whether the host of an agent is one of ours.
    pub fn is_hosted_by_us(&self, agent: &AgentId) -> bool {
        let link = self.seats.get(agent).and_then(|seat| self.links.get(&seat.link));
        link.is_some_and(|link| link.by_room)
    }

    pub fn online_agent(&self, agent: &AgentId) -> Option<&OnlineAgent> {
        self.seats.get(agent)
    }

    /// The name of an agent that is there through this very link.
    pub fn agent_on_connection(&self, agent: &AgentId, link: GatewayConnectionId) -> Option<&OnlineAgent> {
        self.seats.get(agent).filter(|seat| seat.link == link)
    }

    /// Says whether that is news.
    pub fn set_status(&mut self, agent: &AgentId, status: AgentStatus, queue_depth: u32) -> bool {
        let Some(seat) = self.seats.get_mut(agent) else { return false };
        let news = (seat.status, seat.queue_depth) != (status, queue_depth);
        (seat.status, seat.queue_depth) = (status, queue_depth);
        news
    }

    /// An agent leaves; only the link it is there through can say so.
    pub fn agent_offline(&mut self, agent: &AgentId, link: GatewayConnectionId, now: Instant) -> bool {
        if self.agent_on_connection(agent, link).is_none() {
            return false;
        }
        self.seats.remove(agent);
        self.queues.touch(agent);
        self.lose(agent, now);
        true
    }

    /// What an agent does is lost, unless it is heard of.
    fn lose(&mut self, agent: &AgentId, now: Instant) {
        self.stopped.retain(|(stopped, _), _| stopped != agent);
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run) {
                live.lost_since.get_or_insert(now);
                live.stopping_until = None;
            }
        }
    }

    /// A link is gone: gives the agents that were there through it.
    pub fn disconnect_gateway(&mut self, link: GatewayConnectionId, now: Instant) -> Vec<AgentId> {
        let agents = self.seats.iter().filter(|(_, seat)| seat.link == link);
        let agents: Vec<AgentId> = agents.map(|(agent, _)| agent.clone()).collect();
        for agent in &agents {
            self.agent_offline(agent, link, now);
        }
        self.links.remove(&link);
        agents
    }

    /// Takes in what was committed.
    pub fn apply_event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::MessagePosted { message, .. } => self.queues.posted(message),
            Event::MessageEdited(message) => self.update_preview(&message.id, &message.text),
            Event::MessageDeleted { message, .. } => self.update_preview(message, ""),
            Event::RunChanged(run) => {
                self.queues.touch(&run.agent);
                self.learn_run(run, now);
                if run.has_ended() {
                    self.pending_approvals.run_ended(&run.id);
                }
            }
            Event::ApprovalAsked(asked) if asked.decision.is_none() => {
                self.pending_approvals.asked(asked, asked.open_for(), now);
            }
            Event::ApprovalDecided(decided) => {
                self.pending_approvals.decided(decided);
                self.hand_answers_out();
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
                    self.has_nothing_to_forget(&room.id, Some(agent));
                }
            }
            Event::RoomRemoved { room, .. } => {
                self.pending_approvals.room_gone(room);
                self.queues.gone(|_, of| of == room);
                let (agents, lost) = self.in_room(room);
                for (run, agent) in lost {
                    self.forget(&run, &agent);
                }
                for agent in agents {
                    self.stop(agent, room, now);
                }
                self.stale_room_contexts.remove(room);
                self.has_nothing_to_forget(room, None);
                self.triage_fallback.retain(|(_, undecided), _| undecided != room);
            }
            Event::AgentChanged { agent, .. } => {
                if let Some(seat) = self.seats.get_mut(&agent.id) {
                    seat.name = agent.name.clone();
                }
            }
            Event::AgentRemoved { agent, .. } => {
                self.pending_approvals.agent_gone(agent);
                self.queues.gone(|of, _| of == agent);
                for run in self.runs_of.get(agent).cloned().unwrap_or_default() {
                    self.forget(&run, agent);
                }
                self.queued.remove(agent);
                self.pending_rewinds.remove(agent);
                self.triage_fallback.retain(|(undecided, _), _| undecided != agent);
                self.stopped.retain(|(stopped, _), _| stopped != agent);
                if let Some(seat) = self.seats.remove(agent) {
                    self.removed.push((seat.link, agent.clone()));
                }
            }
            _ => {}
        }
    }

    fn is_now(&mut self, agent: &AgentId, status: AgentStatus) {
        if self.seats.get(agent).is_some_and(|seat| seat.status != status) {
            self.set_status(agent, status, 0);
            self.changed.insert(agent.clone());
        }
    }

    fn note_stale(&mut self, room: &RoomId) {
        if !self.seats.is_empty() {
            self.stale_room_contexts.insert(room.clone());
        }
    }

    /// The agents that run something in a room, and every turn there that waits or runs.
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

    fn learn_run(&mut self, run: &Run, now: Instant) {
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
            // Its usage may change while it runs.
            RunState::Running if self.running.contains_key(&run.id) => {}
            RunState::Running => {
                self.forget(&run.id, &run.agent);
                self.stopped.remove(&(run.agent.clone(), run.room.clone()));
                let live = ActiveRun {
                    room: run.room.clone(),
                    conversation: run.lineage.conversation.clone(),
                    reply: None,
                    terminal: TerminalFilter::default(),
                    lost_since: (!self.seats.contains_key(&run.agent)).then_some(now),
                    stopping_until: None,
                    ending: None,
                };
                self.running.insert(run.id.clone(), live);
                self.runs_of.entry(run.agent.clone()).or_default().push(run.id.clone());
                self.is_now(&run.agent, AgentStatus::Busy);
            }
            RunState::Ended(_) => {
                self.note_over(run);
                // Somebody else ended it: its host does not know yet.
                let unknown = self.running.get(&run.id).is_some_and(|live| live.ending.is_none());
                if unknown && run.state == RunState::Ended(RunOutcome::Cancelled) {
                    self.stop(run.agent.clone(), &run.room, now);
                }
                self.forget(&run.id, &run.agent);
            }
        }
    }

    /// Whether a turn goes on and its host is to know of it.
    pub fn is_active(&self, run: &RunId) -> bool {
        self.running.get(run).is_some_and(|live| live.ending.is_none())
    }

    /// The store says that a turn is over, or knows of none.
    pub fn is_over(&mut self, run: &RunId) {
        let of = self.runs_of.iter().find(|(_, runs)| runs.contains(run));
        if let Some(agent) = of.map(|(agent, _)| agent.clone()) {
            self.forget(run, &agent);
        }
    }

    fn forget(&mut self, run: &RunId, agent: &AgentId) {
        self.queues.touch(agent);
        self.starting.remove(run);
        self.held_until.remove(run);
        self.adding.forget(run);
        if let Some(queue) = self.queued.get_mut(agent) {
            queue.retain(|waiting| waiting.run != *run);
            if queue.is_empty() {
                self.queued.remove(agent);
            }
        }
        if self.running.remove(run).is_some()
            && let Some(runs) = self.runs_of.get_mut(agent)
        {
            runs.retain(|known| known != run);
            if runs.is_empty() {
                self.runs_of.remove(agent);
                self.is_now(agent, AgentStatus::Online);
            }
        }
    }

    /// Ends what agents, or one of them, do in a room, and lets nothing begin that waits there.
    pub fn cancel_runs(&mut self, room: &RoomId, agent: Option<&AgentId>, now: Instant) {
        let meant = |other: &AgentId| agent.is_none_or(|agent| agent == other);
        let (running, all) = self.in_room(room);
        for (run, of) in all.into_iter().filter(|(_, of)| meant(of)) {
            // A host of ours says when nothing of it is left; only then is the agent idle.
            let patience = self.is_hosted_by_us(&of).then(|| now + STOP_GRACE);
            match self.running.get_mut(&run) {
                Some(live) => {
                    if live.ending.is_none() && live.lost_since.is_none() {
                        live.stopping_until = patience;
                    }
                    live.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Cancelled));
                }
                None => {
                    self.forget(&run, &of);
                    self.cancelled_before_start.push(run);
                }
            }
        }
        for agent in running.into_iter().filter(meant) {
            self.stop(agent, room, now);
        }
    }

    fn stop(&mut self, agent: AgentId, room: &RoomId, now: Instant) {
        let Some(seat) = self.seats.get(&agent) else { return };
        self.stops.push((seat.link, agent.clone(), room.clone()));
        self.stopped.insert((agent, room.clone()), now);
    }

    /// The runs that can begin now; each is given once, until it is told to be tried again.
    pub fn take_ready(&mut self, now: Instant) -> Vec<RunId> {
        let free = self.queued.keys().flat_map(|agent| self.free(agent, now));
        let ready: Vec<RunId> =
            free.filter(|waiting| !self.starting.contains(&waiting.run)).map(|w| w.run.clone()).collect();
        self.starting.extend(ready.iter().cloned());
        ready
    }

    /// What waits for an agent and need not: it is there, and does nothing else.
    fn free(&self, agent: &AgentId, now: Instant) -> Vec<&QueuedRun> {
        let (Some(queue), Some(seat)) = (self.queued.get(agent), self.seats.get(agent)) else {
            return Vec::new();
        };
        let by_room = self.links.get(&seat.link).is_some_and(|link| link.by_room);
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
            // It holds up nobody: whether it is wanted at all is not known.
            if self.held_until.get(&waiting.run).is_some_and(|until| *until > now) {
                continue;
            }
            if if by_room { !taken.contains(&waiting.room) } else { taken.is_empty() } {
                free.push(waiting);
            }
            // One that is about to start, or must wait, is not overtaken in its room.
            taken.insert(&waiting.room);
            if !by_room {
                break;
            }
        }
        free
    }

    /// A run that could not be started is tried again.
    pub fn not_started(&mut self, run: &RunId) {
        self.starting.remove(run);
    }

    /// The run that a piece of a reply belongs to: the one that said this before, or else the agent's one in
    /// that room that has said nothing yet.
    pub fn bind(&mut self, agent: &AgentId, room: &RoomId, reply: &MessageId) -> ReplyBinding {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let here: Vec<&RunId> =
            runs.filter(|run| self.running.get(*run).is_some_and(|live| live.room == *room)).collect();
        let find = |wanted: &dyn Fn(&ActiveRun) -> bool| {
            here.iter().find(|run| self.running.get(**run).is_some_and(wanted)).map(|run| (*run).clone())
        };
        let (run, first) = match find(&|live| live.reply.as_ref() == Some(reply)) {
            Some(run) => (run, false),
            None if self.stopped.contains_key(&(agent.clone(), room.clone())) => return ReplyBinding::Over,
            None => match find(&|live| live.reply.is_none() && live.ending.is_none()) {
                Some(run) => (run, true),
                None => return ReplyBinding::Unknown,
            },
        };
        let Some(live) = self.running.get_mut(&run) else { return ReplyBinding::Unknown };
        if live.ending.is_some() {
            return ReplyBinding::Over;
        }
        (live.reply, live.lost_since) = (Some(reply.clone()), None);
        ReplyBinding::Run(run, first)
    }

    /// Whether the agent is in the middle of another reply in this room.
    pub fn is_speaking(&self, agent: &AgentId, room: &RoomId) -> bool {
        let mut runs = self.runs_of.get(agent).into_iter().flatten().filter_map(|run| self.running.get(run));
        runs.any(|live| live.room == *room && live.ending.is_none())
    }

    /// The reply was not this run's after all.
    pub fn unbind(&mut self, run: &RunId) {
        if let Some(live) = self.running.get_mut(run) {
            live.reply = None;
        }
    }

    /// This is what a turn says.
    pub fn bind_reply(&mut self, run: &RunId, reply: &MessageId) {
        if let Some(live) = self.running.get_mut(run) {
            live.reply = Some(reply.clone());
        }
    }

    /// Whether what an agent runs belongs to this conversation.
    pub fn is_in(&self, agent: &AgentId, conversation: &ConversationId) -> bool {
        let mut runs = self.runs_of.get(agent).into_iter().flatten().filter_map(|run| self.running.get(run));
        runs.any(|live| live.conversation == *conversation)
    }

    /// A reply was taken for that of this turn, which has said nothing yet.
    pub fn run_bound_to(&mut self, agent: &AgentId, reply: &MessageId) -> Option<RunId> {
        let mut runs = self.runs_of.get(agent).into_iter().flatten();
        let took = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.ending.is_none());
            live.is_some_and(|live| live.reply.as_ref() == Some(reply))
        };
        let run = runs.find(took).cloned()?;
        self.unbind(&run);
        Some(run)
    }

    /// The turn that a reply under a new id would be of.
    pub fn run_without_reply(&self, agent: &AgentId, room: &RoomId) -> Option<RunId> {
        let mut runs = self.runs_of.get(agent).into_iter().flatten();
        let speechless = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.room == *room);
            live.is_some_and(|live| live.reply.is_none() && live.ending.is_none())
        };
        runs.find(speechless).cloned()
    }

    /// The host says that what it was told to stop is over.
    pub fn stopped(&mut self, agent: &AgentId, room: Option<&RoomId>) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            let here = |live: &&mut ActiveRun| room.is_none_or(|room| live.room == *room);
            if let Some(live) = self.running.get_mut(run).filter(here) {
                live.stopping_until = None;
            }
        }
        self.stopped.retain(|(stopped, at), _| stopped != agent || room.is_some_and(|room| room != at));
    }

    /// Whether a run has said anything.
    pub fn has_spoken(&self, run: &RunId) -> bool {
        self.running.get(run).is_some_and(|live| live.reply.is_some())
    }

    /// The agent is there and alive: its turns, or the one in that room, are not lost.
    pub fn mark_alive(&mut self, agent: &AgentId, room: Option<&RoomId>) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            let here = |live: &&mut ActiveRun| room.is_none_or(|room| live.room == *room);
            if let Some(live) = self.running.get_mut(run).filter(here) {
                live.lost_since = None;
            }
        }
    }

    /// What is being said in a room, and in which turn.
    pub fn replies_in(&self, room: &RoomId) -> Vec<(RunId, MessageId)> {
        let here = self.running.iter().filter(|(_, live)| live.room == *room);
        here.filter_map(|(run, live)| Some((run.clone(), live.reply.clone()?))).collect()
    }

    /// What the agent runs, in this room or in any.
    pub fn runs(&self, agent: &AgentId, room: Option<&RoomId>) -> Vec<(RunId, RoomId)> {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let live = runs.filter_map(|run| self.running.get(run).map(|live| (run, live)));
        live.filter(|(_, live)| room.is_none_or(|room| live.room == *room))
            .map(|(run, live)| (run.clone(), live.room.clone()))
            .collect()
    }

    /// A run is to end so; the first who says so is right.
    pub fn end(&mut self, run: &RunId, ending: PendingEnd) {
        if let Some(live) = self.running.get_mut(run) {
            live.ending.get_or_insert(ending);
        }
    }

    /// An agent that is idle has lost the end of what it was saying: what was heard is all there is.
    pub fn idle(&mut self, agent: &AgentId) {
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run).filter(|live| live.reply.is_some()) {
                live.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Complete));
            }
        }
    }

    /// Turns to end now: asked to, or of an agent that has been away for longer than the patience with it.
    pub fn take_runs_to_finish(&mut self, patience: Duration, now: Instant) -> Vec<RunToFinish> {
        let mut due = Vec::new();
        for (run, live) in &mut self.running {
            if live.lost_since.is_some_and(|since| now.duration_since(since) >= patience) {
                live.ending.get_or_insert_with(|| PendingEnd::plain(RunOutcome::Interrupted));
            }
            let stopping = live.stopping_until.is_some_and(|until| until > now);
            let Some(ending) = live.ending.as_mut().filter(|_| !stopping) else { continue };
            if ending.asked_at.is_none_or(|asked| now.duration_since(asked) >= STORE_RETRY_DELAY) {
                ending.asked_at = Some(now);
                due.push(RunToFinish { run: run.clone(), reply: live.reply.clone(), ending: ending.clone() });
            }
        }
        due
    }

    /// When there may be something to do though nothing happens.
    pub fn next_deadline(&self, patience: Duration, now: Instant) -> Option<Instant> {
        let lost = self.running.values().filter_map(|live| match &live.ending {
            Some(ending) => ending.asked_at.map(|asked| asked + STORE_RETRY_DELAY).or(live.stopping_until),
            None => live.lost_since.map(|since| since + patience),
        });
        let stopping = self.stopped.values().map(|since| *since + STOP_GRACE).filter(|until| *until > now);
        let held = self.held_until.values().copied().filter(|until| *until > now);
        lost.chain(stopping).chain(held).chain(self.pending_approvals.next_deadline()).min()
    }

    pub fn take_stale(&mut self) -> BTreeSet<RoomId> {
        std::mem::take(&mut self.stale_room_contexts)
    }

    pub fn take_unwanted(&mut self) -> Vec<RunId> {
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

    /// Terminal bytes as they may be shown, and where; `None` if the agent runs nothing they could belong to.
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
