//! The gateway: hosts agents and executes their runs for a hub, across lost connections and restarts.
//!
//! Owns: each run is completed at the hub exactly once; no output is lost or sent twice when the connection
//! breaks; a stop reaches the agent at once. One task owns all of this state, and every queue is bounded:
//! output waits in the reply of its run, which has a maximum size, and is turned into frames only when
//! there is space to send them. [`Gateway::stop`] awaits every task and every program that the gateway
//! started.

mod answers;
mod changes;
mod closing;
pub mod connect;
mod registration;
pub mod remote;
mod reply;
mod runs;
pub mod sign_in;
pub mod store;
pub mod trust;
mod workspace;

use crate::FrameChannel;
use crate::kinds::{AgentConfig, AgentKind, SlashCommand};
use answers::WorkspaceAnswer;
use closing::log_panic;
use parlor_model::{AgentId, MessageId, RoomId, RunContext, RunId, RunOutcome};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{Instruction, RoomView, read};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, ReplyTarget};
use registration::{register, slash_commands};
use reply::{OutgoingPiece, Reply, ReplyPosition};
use runs::{RunFinished, RunHandle};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use store::{GatewayStore, PersistedRun};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Maximum number of queued frames outside of replies. When it is exceeded, the gateway reconnects.
const MAX_QUEUED_FRAMES: usize = 1024;

/// An agent to be hosted: its configuration with id and name.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    pub id: AgentId,
    pub name: Box<str>,
    pub agent_config: AgentConfig,
}

/// Notices for the operator of the gateway, shown in the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayNotice {
    Began {
        agent: Box<str>,
        room: Box<str>,
        by: Box<str>,
    },
    Ended {
        agent: Box<str>,
        room: Box<str>,
        how: RunOutcome,
    },
    /// The hub removed this agent from the gateway: it was deleted, or another gateway hosts it.
    Dismissed {
        agent: Box<str>,
    },
    /// The hub rejected a frame; the message is the hub's.
    Refused {
        message: Box<str>,
    },
}

/// Which agents their owner may create on this machine remotely.
#[derive(Debug, Clone, Default)]
pub struct SpawnPolicy {
    /// Allowed agent kinds; none by default.
    pub kinds: Vec<String>,
}

pub struct Gateway {
    data: Arc<GatewayStore>,
    agents: HashMap<AgentId, HostedAgent>,
    /// Runs by the number under which they are stored on disk.
    runs: BTreeMap<u64, HostedRun>,
    next_number: u64,
    tasks: JoinSet<RunFinished>,
    /// Workspace requests that read the disk; separate tasks, so that the stop of a run does not wait for
    /// them.
    workspace_tasks: JoinSet<WorkspaceAnswer>,
    /// Number of connections so far.
    connections: u64,
    /// Agents that were removed or replaced, until their runs and programs have ended.
    closing: JoinSet<()>,
    /// Notified when there may be a frame to send.
    output_ready: Arc<Notify>,
    /// Queued frames that belong to no run, or to a run that has ended.
    frames: VecDeque<String>,
    /// Whether `frames` overflowed and a frame was dropped. The gateway then reconnects, because a new
    /// connection resends everything that matters.
    overflowed: bool,
    /// Number of the run whose frame was sent last, for the round robin.
    last_sent: u64,
    spawning: SpawnPolicy,
    notices: mpsc::Sender<GatewayNotice>,
}

struct HostedAgent {
    name: Box<str>,
    agent_config: AgentConfig,
    kind: Arc<AgentKind>,
    /// Runs that execute on `kind`.
    executions: TaskTracker,
    /// Slash commands as last sent to the hub.
    commands: Vec<SlashCommand>,
    rooms: HashMap<RoomId, Arc<RoomView>>,
}

struct HostedRun {
    persisted: PersistedRun,
    agent: AgentId,
    context: RunContext,
    run: RunId,
    reply: MessageId,
    /// `None` if the agent has finished, or if an earlier process started the run.
    handle: Option<RunHandle>,
    transcript: Arc<runs::RunTranscript>,
    hub_state: HubRunState,
    /// `None` while the agent is executing the run.
    outcome: Option<RunOutcome>,
    /// Whether the completion was sent on this connection.
    completion_sent: bool,
    /// Whether the hub has confirmed the end of the run.
    end_confirmed: bool,
}

/// State of a run at the hub, as far as the gateway knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HubRunState {
    /// The connection is new, and the hub has not sent yet how much of the reply it has.
    Unknown,
    Active,
    /// The hub interrupted the run; its reply is sent as a whole when it is complete.
    GivenUp,
    /// The hub ended the run and accepts no more output.
    Ended,
}

impl Gateway {
    /// Creates a gateway with the unfinished runs and the remotely created agents of earlier processes.
    pub fn new(
        data: Arc<GatewayStore>,
        spawning: SpawnPolicy,
        notices: mpsc::Sender<GatewayNotice>,
    ) -> io::Result<Self> {
        let mut runs = BTreeMap::new();
        for (number, persisted) in data.unfinished_runs()? {
            let Some((agent, context, run, reply)) = persisted.ids() else {
                data.forget(number);
                continue;
            };
            let (parts, outcome) = match &persisted.finished {
                Some(finished) => {
                    let outcome = finished.failed.clone().map_or(RunOutcome::Complete, RunOutcome::Failed);
                    (finished.parts.clone(), outcome)
                }
                // The run was active when that process died.
                None => (Vec::new(), RunOutcome::Interrupted),
            };
            let accepted = persisted.taken.iter().filter_map(|id| RunId::parse(id).ok()).collect();
            let transcript = Arc::new(runs::RunTranscript::of(Reply::of(parts), accepted));
            let hosted_run = HostedRun {
                persisted,
                agent,
                context,
                run,
                reply,
                handle: None,
                transcript,
                hub_state: HubRunState::Unknown,
                outcome: Some(outcome),
                completion_sent: false,
                end_confirmed: false,
            };
            runs.insert(number, hosted_run);
        }
        let next_number = runs.keys().next_back().map_or(0, |last| last + 1);
        let mut gateway = Self {
            data,
            agents: HashMap::new(),
            runs,
            next_number,
            tasks: JoinSet::new(),
            workspace_tasks: JoinSet::new(),
            connections: 0,
            closing: JoinSet::new(),
            output_ready: Arc::default(),
            frames: VecDeque::new(),
            overflowed: false,
            last_sent: 0,
            spawning,
            notices,
        };
        for spec in gateway.data.spawned() {
            let name = spec.name.clone();
            if !gateway.spawning.kinds.contains(&spec.agent_config.kind) {
                tracing::warn!(agent = %name, kind = spec.agent_config.kind, "a remotely created agent is not hosted: its kind is no longer allowed");
            } else if let Err(problem) = gateway.add(spec) {
                tracing::warn!(agent = %name, %problem, "a remotely created agent cannot be hosted");
            }
        }
        Ok(gateway)
    }

    /// Adds an agent, which the hub learns of with the next connection. Fails if its configuration is
    /// invalid. An agent that is already hosted with this configuration keeps its program and its sessions.
    pub fn add(&mut self, spec: AgentSpec) -> Result<(), Box<str>> {
        if let Some(hosted) = self.agents.get_mut(&spec.id)
            && hosted.agent_config == spec.agent_config
        {
            hosted.name = spec.name;
            return Ok(());
        }
        let kind = AgentKind::new(&spec.agent_config)?;
        self.add_with_kind(spec, kind);
        Ok(())
    }

    /// Adds an agent with a kind that was not built from its configuration alone. An agent with the same id is
    /// replaced: its active runs continue, and it is closed when they have ended.
    pub fn add_with_kind(&mut self, spec: AgentSpec, kind: AgentKind) {
        let AgentSpec { id, name, agent_config } = spec;
        let commands = kind.commands();
        let (kind, executions) = (Arc::new(kind), TaskTracker::new());
        let hosted = HostedAgent { name, agent_config, kind, executions, commands, rooms: HashMap::new() };
        if let Some(replaced) = self.agents.insert(id, hosted) {
            self.close(replaced);
        }
    }

    /// Serves a connection until it is lost. Runs continue without a connection, as long as the caller then
    /// calls `serve` again or [`Gateway::idle`].
    pub async fn serve(&mut self, channel: FrameChannel) {
        let FrameChannel { mut incoming, outgoing } = channel;
        self.begin_connection();
        let output_ready = self.output_ready.clone();
        while !self.overflowed {
            let has_frames = self.has_frames();
            tokio::select! {
                biased;
                // Incoming frames are read even while the outgoing side is full, so that a stop is never
                // delayed.
                frame = incoming.recv() => match frame {
                    Some(frame) => self.handle_frame(&frame),
                    None => break,
                },
                Some(finished) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.run_finished(finished);
                }
                Some(answer) = self.workspace_tasks.join_next(), if !self.workspace_tasks.is_empty() => {
                    self.workspace_answered(answer);
                }
                Some(closed) = self.closing.join_next(), if !self.closing.is_empty() => log_panic(closed),
                permit = outgoing.reserve(), if has_frames => match permit {
                    Ok(permit) => {
                        if let Some(frame) = self.next_frame() {
                            permit.send(frame);
                        }
                    }
                    Err(_) => break,
                },
                () = output_ready.notified() => {}
            }
        }
        self.end_connection();
    }

    /// Handles finished runs and closed agents while there is no connection. Never returns.
    pub async fn idle(&mut self) {
        loop {
            tokio::select! {
                Some(finished) = self.tasks.join_next() => self.run_finished(finished),
                Some(closed) = self.closing.join_next() => log_panic(closed),
                else => std::future::pending().await,
            }
        }
    }

    fn begin_connection(&mut self) {
        self.frames.clear();
        self.overflowed = false;
        self.connections += 1;
        // The last connection has ended, so its requests are no longer answered.
        self.workspace_tasks.abort_all();
        let forms: Vec<String> = self.agents.iter().map(|(id, hosted)| register(id, hosted)).collect();
        self.frames.extend(forms);
        for hosted_run in self.runs.values_mut() {
            hosted_run.hub_state = HubRunState::Unknown;
            hosted_run.completion_sent = false;
            let (agent, context, run) =
                (hosted_run.agent.clone(), hosted_run.context.clone(), hosted_run.run.clone());
            self.frames.push_back(egress::write(&GatewayMessage::Resume { agent, context, run }));
        }
        // A run of an agent that is no longer hosted cannot be resumed.
        let is_orphaned = |hosted_run: &HostedRun| !self.agents.contains_key(&hosted_run.agent);
        let orphaned: Vec<u64> =
            self.runs.iter().filter(|(_, hosted_run)| is_orphaned(hosted_run)).map(|(n, _)| *n).collect();
        for number in orphaned {
            self.forget(number);
        }
    }

    fn end_connection(&mut self) {
        for hosted_run in self.runs.values() {
            hosted_run.transcript.disconnect();
        }
    }

    fn has_frames(&self) -> bool {
        let is_due = |hosted_run: &HostedRun| match hosted_run.hub_state {
            HubRunState::Active => {
                let reply = hosted_run.transcript.reply.lock();
                !reply.is_sent() || (hosted_run.outcome.is_some() && !hosted_run.completion_sent)
            }
            HubRunState::GivenUp => hosted_run.outcome.is_some() && !hosted_run.completion_sent,
            HubRunState::Unknown | HubRunState::Ended => false,
        };
        !self.frames.is_empty() || self.runs.values().any(is_due)
    }

    /// Takes the next frame to send: queued frames first, then the runs in round robin, so that a run with
    /// much output does not block the others.
    fn next_frame(&mut self) -> Option<String> {
        if let Some(frame) = self.frames.pop_front() {
            return Some(frame);
        }
        let after = self.runs.range(self.last_sent + 1..).map(|(number, _)| *number);
        let order: Vec<u64> = after.chain(self.runs.range(..=self.last_sent).map(|(n, _)| *n)).collect();
        for number in order {
            let Some(hosted_run) = self.runs.get_mut(&number) else { continue };
            if let Some(frame) = hosted_run.next_frame() {
                self.last_sent = number;
                return Some(frame);
            }
        }
        None
    }

    fn handle_frame(&mut self, frame: &str) {
        // Invalid frames and unknown types are ignored: a newer hub may send frames that this version does
        // not have.
        let Ok(Some(instruction)) = read(frame) else { return };
        match instruction {
            Instruction::Answer(request) => self.start_run(request),
            Instruction::Add(injection) => self.inject(injection),
            Instruction::Look { agent, room } => {
                if let Some(hosted) = self.agents.get_mut(&agent) {
                    hosted.rooms.insert(room.room.clone(), Arc::new(room));
                }
            }
            Instruction::Stop { agent, context } => {
                let matches = |hosted_run: &HostedRun| {
                    let here = context.as_ref().is_none_or(|context| hosted_run.context == *context);
                    hosted_run.agent == agent && here
                };
                for hosted_run in self.runs.values_mut().filter(|hosted_run| matches(hosted_run)) {
                    hosted_run.cancel();
                }
            }
            Instruction::Ended { run, interrupted } => self.run_ended_at_hub(&run, interrupted),
            Instruction::Resumed { run, parts, bytes } => {
                if let Some(hosted_run) = self.runs.values_mut().find(|hosted_run| hosted_run.run == run) {
                    hosted_run.hub_state = HubRunState::Active;
                    hosted_run.transcript.reply.lock().resume(ReplyPosition { part: parts, byte: bytes });
                    hosted_run.transcript.resend_permission_requests(&mut self.frames);
                    self.frames.extend(hosted_run.accepted_injections());
                }
            }
            Instruction::Decided { agent, request, verdict } => {
                let mut own = self.runs.values().filter(|hosted_run| hosted_run.agent == agent);
                own.any(|hosted_run| hosted_run.transcript.decide(&request, &verdict));
            }
            Instruction::Remove { agent } => self.remove_agent(&agent),
            Instruction::Refused { message, .. } => self.notify(GatewayNotice::Refused { message }),
            // `Answered` never applies: the agent kinds request permissions only, and ask no other questions.
            Instruction::Welcome
            | Instruction::Answered { .. }
            | Instruction::AuthFailed { .. }
            | Instruction::Pong { .. } => {}
            request => self.answer(request),
        }
    }

    /// Handles the hub's message that it has stored the end of a run. An interrupted run whose completion
    /// was not sent stays: its reply is sent as a whole later.
    fn run_ended_at_hub(&mut self, run: &RunId, interrupted: bool) {
        let Some((number, hosted_run)) = self.runs.iter_mut().find(|(_, hosted_run)| hosted_run.run == *run)
        else {
            return;
        };
        let number = *number;
        let completed = hosted_run.completion_sent || hosted_run.outcome == Some(RunOutcome::Interrupted);
        match (interrupted && !completed, hosted_run.outcome.is_some()) {
            (true, _) => {
                hosted_run.hub_state = HubRunState::GivenUp;
                hosted_run.transcript.disconnect();
            }
            (false, true) => self.forget(number),
            (false, false) => {
                hosted_run.end_confirmed = true;
                hosted_run.cancel();
            }
        }
    }

    fn forget(&mut self, number: u64) {
        if self.runs.remove(&number).is_some() {
            self.data.forget(number);
        }
    }

    fn queue_frame(&mut self, frame: String) {
        if self.frames.len() < MAX_QUEUED_FRAMES {
            self.frames.push_back(frame);
        } else if !self.overflowed {
            tracing::warn!("the queue of frames for the hub is full: reconnecting");
            self.overflowed = true;
            self.output_ready.notify_one();
        }
    }

    fn notify(&self, notice: GatewayNotice) {
        // A notice is dropped if its queue is full or closed.
        let _ = self.notices.try_send(notice);
    }
}

impl HostedAgent {
    /// Newest description of the room that the hub sent; `None` in a session.
    fn room_view(&self, context: &RunContext) -> Option<&Arc<RoomView>> {
        self.rooms.get(context.room()?)
    }
}

/// Name of a context for the operator of the gateway.
fn name_of(context: &RunContext, view: Option<&Arc<RoomView>>) -> Box<str> {
    match (view, context) {
        (Some(view), _) => view.name.clone(),
        (None, RunContext::Room(room)) => room.as_str().into(),
        (None, RunContext::Session(session)) => format!("session {session}").into(),
    }
}

impl HostedRun {
    fn reply_target(&self) -> ReplyTarget {
        ReplyTarget {
            agent: self.agent.clone(),
            context: Some(self.context.clone()),
            message: Some(self.reply.clone()),
            run: Some(self.run.clone()),
            target_agent: None,
        }
    }

    /// Frames for all accepted injections, resent to a hub that may have missed them.
    fn accepted_injections(&self) -> Vec<String> {
        self.transcript
            .accepted_injections()
            .into_iter()
            .map(|added| runs::injection_accepted(&self.agent, &self.context, &self.run, added))
            .collect()
    }

    fn next_frame(&mut self) -> Option<String> {
        let next = match self.hub_state {
            HubRunState::Active => self.transcript.next(),
            HubRunState::GivenUp => None,
            HubRunState::Unknown | HubRunState::Ended => return None,
        };
        match next {
            Some(OutgoingPiece::Chunk(chunk)) => {
                Some(egress::write(&GatewayMessage::Chunk { reply: self.reply_target(), chunk }))
            }
            Some(OutgoingPiece::Signal(frame)) => Some(frame),
            None if self.completion_sent => None,
            None => {
                let outcome = self.outcome.clone()?;
                self.completion_sent = true;
                Some(self.completion(outcome))
            }
        }
    }

    /// The frame that completes the reply. It has no text if the hub received the chunks; for a run that
    /// the hub gave up, it contains the whole text.
    fn completion(&self, outcome: RunOutcome) -> String {
        let full_text = (self.hub_state == HubRunState::GivenUp).then(|| self.transcript.reply.lock().text());
        let text = full_text.map(|text| reply::head(&text, runs::MAX_FULL_TEXT_BYTES).into());
        egress::write(&GatewayMessage::Complete {
            reply: self.reply_target(),
            text,
            chunks: Vec::new(),
            conversation: self.persisted.conversation.as_deref().map(Into::into),
            depth: Some(self.persisted.depth),
            outcome,
        })
    }

    /// Stops the run and discards its further output.
    fn cancel(&mut self) {
        self.hub_state = HubRunState::Ended;
        self.transcript.disconnect();
        if let Some(handle) = &self.handle {
            handle.stop();
        }
    }
}
