//! Runs on the gateway: each run is executed in its own task, and its output is recorded for the hub.

use super::reply::{OutgoingPiece, Reply, ReplyTruncated, head};
use super::store::{FinishedReply, PersistedRun, new_id};
use super::{Gateway, GatewayNotice, HostedRun, HubRunState, ReplyTarget, changes, name_of, register};
use crate::kinds::AgentKind;
use crate::run::{self, RunInput, RunIo, RunResult};
use crate::sanitize::EscapeStripper;
use parking_lot::Mutex;
use parlor_model::{AgentId, Chunk, ChunkKind, MessageId, Payload, RunContext, RunEvent, RunId, RunOutcome};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{InjectedMessage, PermissionOutcome, RunRequest};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, MAX_CHUNKS, PermissionForm, read};
use parlor_wire::agentim::ingress::FrameLimits;
use parlor_wire::json::JsonLimits;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Default frame limits of a hub. Frames beyond them are not sent, because the hub would reject them.
const LIMITS: FrameLimits =
    FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MAX_CHUNKS } };
/// Maximum bytes of a reply text that is sent whole in one frame.
pub const MAX_FULL_TEXT_BYTES: usize = 200 * 1024;
/// Capacity of the output queue between an agent kind and the recorder.
const OUTPUT_QUEUE_CAPACITY: usize = 64;
/// Capacity of the queue of injected messages of a run. The hub starts a separate run for each message
/// beyond it.
const INJECTION_QUEUE_CAPACITY: usize = 16;
/// Time for a stopped agent to end by itself before its run is dropped.
const STOP_GRACE: Duration = Duration::from_millis(700);
/// Timeout for comparing the working directory before and after a run.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for users to decide a permission request.
const PERMISSION_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum bytes of terminal output in one frame.
const TERMINAL_CHUNK_BYTES: usize = 32 * 1024;
/// Maximum number of open permission requests of one run; further requests are denied.
const MAX_OPEN_REQUESTS: usize = 16;

/// Recorded output of a run. Shared by the task that executes the run and the gateway task that sends it to
/// the hub.
#[derive(Debug, Default)]
pub struct RunTranscript {
    pub reply: Mutex<Reply>,
    permissions: Mutex<PendingPermissions>,
    injections: Mutex<InjectionState>,
    /// Notified when a signal was sent or the hub was disconnected, so that there may be space for another
    /// signal.
    space: Notify,
    /// Whether the hub receives nothing now. Old signals are then dropped instead of blocking the agent.
    disconnected: std::sync::atomic::AtomicBool,
}

/// Messages injected into a run, each named by the run that the hub would start for it otherwise.
#[derive(Debug, Default)]
struct InjectionState {
    /// Queued for the agent.
    delivered: Vec<RunId>,
    /// Used by the agent.
    accepted: Vec<RunId>,
}

#[derive(Debug, Default)]
struct PendingPermissions {
    /// Number of permission requests so far, for their ids.
    count: usize,
    open: Vec<PendingPermission>,
}

/// A permission request that is waiting for a decision.
#[derive(Debug)]
struct PendingPermission {
    request: Box<str>,
    frame: String,
    answer: oneshot::Sender<PermissionOutcome>,
}

/// Handle to stop an active run and to inject messages into it.
#[derive(Debug)]
pub struct RunHandle {
    stop: CancellationToken,
    injections: mpsc::Sender<InjectedMessage>,
}

impl RunHandle {
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

/// Number and result of a run whose task has ended.
pub struct RunFinished {
    number: u64,
    result: RunResult,
}

impl RunTranscript {
    pub fn of(reply: Reply, accepted: Vec<RunId>) -> Self {
        let injections = Mutex::new(InjectionState { delivered: accepted.clone(), accepted });
        Self { reply: Mutex::new(reply), injections, ..Self::default() }
    }

    /// Runs that are not needed because the agent used their messages in this run.
    pub fn accepted_injections(&self) -> Vec<RunId> {
        self.injections.lock().accepted.clone()
    }

    pub fn next(&self) -> Option<OutgoingPiece> {
        self.disconnected.store(false, std::sync::atomic::Ordering::Relaxed);
        let next = self.reply.lock().next();
        if matches!(next, Some(OutgoingPiece::Signal(_))) {
            self.space.notify_one();
        }
        next
    }

    /// Marks that the hub receives nothing of this run for now.
    pub fn disconnect(&self) {
        self.disconnected.store(true, std::sync::atomic::Ordering::Relaxed);
        self.space.notify_one();
    }

    pub fn resend_permission_requests(&self, frames: &mut VecDeque<String>) {
        frames.extend(self.permissions.lock().open.iter().map(|pending| pending.frame.clone()));
    }

    /// Delivers a decision; returns `false` if the permission request is not one of this run.
    pub fn decide(&self, request: &str, outcome: &PermissionOutcome) -> bool {
        let mut permissions = self.permissions.lock();
        let Some(at) = permissions.open.iter().position(|pending| &*pending.request == request) else {
            return false;
        };
        let _ = permissions.open.swap_remove(at).answer.send(outcome.clone());
        true
    }

    /// Waits until another signal can be queued. Never waits for long while the hub is disconnected.
    async fn wait_for_space(&self) {
        loop {
            {
                let mut reply = self.reply.lock();
                if self.disconnected.load(std::sync::atomic::Ordering::Relaxed) {
                    reply.drop_old_signals();
                }
                if reply.has_space() {
                    return;
                }
            }
            self.space.notified().await;
        }
    }
}

/// Frame for an accepted injection: `run` used the message of the queued run `added`.
pub fn injection_accepted(agent: &AgentId, context: &RunContext, run: &RunId, added: RunId) -> String {
    let (agent, context, run) = (agent.clone(), context.clone(), run.clone());
    egress::write(&GatewayMessage::Added { agent, context, run, added })
}

impl Gateway {
    /// Injects a message into an active run. The hub starts a separate run if the agent does not accept it.
    pub(super) fn inject(&mut self, injection: InjectedMessage) {
        let matches =
            |hosted_run: &&HostedRun| hosted_run.run == injection.run && hosted_run.agent == injection.agent;
        let Some(hosted_run) = self.runs.values().find(matches) else { return };
        let mut state = hosted_run.transcript.injections.lock();
        if state.accepted.contains(&injection.added) {
            let frame =
                injection_accepted(&hosted_run.agent, &hosted_run.context, &hosted_run.run, injection.added);
            drop(state);
            return self.queue_frame(frame);
        }
        let is_active = hosted_run.hub_state == HubRunState::Active;
        let Some(handle) = hosted_run.handle.as_ref().filter(|_| is_active) else {
            return;
        };
        let run = injection.added.clone();
        if !state.delivered.contains(&run) && handle.injections.try_send(injection).is_ok() {
            state.delivered.push(run);
        }
    }

    pub(super) fn start_run(&mut self, request: RunRequest) {
        // A run without an id could not be resumed after a reconnect.
        let (Some(hosted), Some(run)) = (self.agents.get(&request.agent), request.run.clone()) else {
            return;
        };
        if self.runs.values().any(|hosted_run| hosted_run.run == run) {
            return;
        }
        let (agent, context) = (request.agent.clone(), request.context.clone());
        let reply = MessageId::stored(new_id());
        // The agent already used this message as an injection into an earlier run, which the hub gave up
        // before it received that information. The run is completed without output.
        let is_accepted =
            |hosted_run: &HostedRun| hosted_run.transcript.injections.lock().accepted.contains(&run);
        if self.runs.values().any(is_accepted) {
            let (context, message, run) = (Some(context), Some(reply), Some(run));
            let reply = ReplyTarget { agent, context, message, run, target_agent: None };
            let (text, chunks, outcome) = (None, Vec::new(), RunOutcome::Complete);
            let conversation = request.conversation.as_ref().map(|id| id.as_str().into());
            let depth = Some(request.depth);
            let completion = GatewayMessage::Complete { reply, text, chunks, conversation, depth, outcome };
            return self.queue_frame(egress::write(&completion));
        }
        let number = self.next_number;
        self.next_number += 1;
        let persisted = PersistedRun {
            agent: agent.to_string(),
            room: context.room().map(ToString::to_string),
            session: context.session().map(ToString::to_string),
            run: run.to_string(),
            reply: reply.to_string(),
            conversation: request.conversation.as_ref().map(ToString::to_string),
            depth: request.depth,
            taken: Vec::new(),
            finished: None,
        };
        if let Err(error) = self.data.put_run(number, &persisted) {
            tracing::warn!(%error, "cannot save a run: a crash would lose it");
        }
        let view = hosted.room_view(&context).cloned();
        let room_name = name_of(&context, view.as_ref());
        let (name, by) = (hosted.name.clone(), request.sender_name.clone());
        let session = self.data.session(&agent, &context);
        let run_input = RunInput { request, room: view, session };
        let transcript = Arc::<RunTranscript>::default();
        let (run_io, output, stop) = RunIo::new(OUTPUT_QUEUE_CAPACITY);
        let (injections, injection_receiver) = mpsc::channel(INJECTION_QUEUE_CAPACITY);
        let run_io = run_io.with_injections(injection_receiver);
        let output_recorder = OutputRecorder {
            transcript: transcript.clone(),
            folder: hosted.agent_config.directory.clone(),
            persisted: (number, persisted.clone()),
            agent: agent.clone(),
            context: context.clone(),
            reply: reply.clone(),
            text_stripper: Mutex::default(),
            thinking_stripper: Mutex::default(),
            data: self.data.clone(),
            output_ready: self.output_ready.clone(),
            stop: stop.clone(),
        };
        let (kind, output_ready) = (hosted.kind.clone(), self.output_ready.clone());
        let execution = output_recorder.execute(kind, run_input, run_io, output);
        // A separate task isolates a panic of the agent kind; it is aborted when its handle is dropped.
        let execution = AbortOnDropHandle::new(hosted.executions.spawn(execution));
        self.tasks.spawn(async move {
            let result = execution.await.unwrap_or_else(|error: JoinError| {
                tracing::error!(%error, "an agent kind panicked");
                RunResult::Failed("The agent failed because of an internal error.".into())
            });
            output_ready.notify_one();
            RunFinished { number, result }
        });
        let hosted_run = HostedRun {
            persisted,
            agent,
            context,
            run,
            reply,
            handle: Some(RunHandle { stop, injections }),
            transcript,
            hub_state: HubRunState::Active,
            outcome: None,
            completion_sent: false,
            end_confirmed: false,
        };
        self.runs.insert(number, hosted_run);
        self.notify(GatewayNotice::Began { agent: name, room: room_name, by });
    }

    /// Handles the end of a run's task: stores the reply, or completes a run that the hub has ended.
    pub(super) fn run_finished(&mut self, finished: Result<RunFinished, JoinError>) {
        let Ok(RunFinished { number, result }) = finished else { return };
        let Some(hosted_run) = self.runs.get_mut(&number) else { return };
        hosted_run.handle = None;
        let how = match &result {
            RunResult::Finished => RunOutcome::Complete,
            RunResult::Failed(reason) => {
                hosted_run.transcript.reply.lock().fail(reason);
                RunOutcome::Failed(reason.clone())
            }
            // The hub did not stop the run: its reply was truncated, which the reply itself says.
            RunResult::Stopped if hosted_run.hub_state != HubRunState::Ended => RunOutcome::Complete,
            RunResult::Stopped => RunOutcome::Cancelled,
        };
        let agent_id = hosted_run.agent.clone();
        let hosted = self.agents.get(&agent_id);
        let agent = hosted.map_or(hosted_run.agent.as_str(), |hosted| &hosted.name).into();
        let view = hosted.and_then(|hosted| hosted.room_view(&hosted_run.context));
        let room = name_of(&hosted_run.context, view);
        if hosted_run.hub_state == HubRunState::Ended {
            // The hub waits for this frame before it starts another run of the agent in this room.
            let frame = hosted_run.completion(RunOutcome::Complete);
            // Kept until the hub has stored the end of the run: after a crash the hub would start the run
            // again.
            (hosted_run.outcome, hosted_run.completion_sent) = (Some(RunOutcome::Interrupted), true);
            if hosted_run.end_confirmed {
                self.forget(number);
            }
            self.queue_frame(frame);
        } else {
            hosted_run.outcome = Some(how.clone());
            let parts = hosted_run.transcript.reply.lock().parts().to_vec();
            let failed = match &how {
                RunOutcome::Failed(reason) => Some(reason.clone()),
                _ => None,
            };
            hosted_run.persisted.finished = Some(FinishedReply { failed, parts });
            hosted_run.persisted.taken =
                hosted_run.transcript.accepted_injections().iter().map(ToString::to_string).collect();
            if let Err(error) = self.data.put_run(number, &hosted_run.persisted) {
                tracing::warn!(%error, "cannot save a reply: a crash would lose it");
            }
            // The parts are on disk and in the transcript; a third copy would waste memory.
            if let Some(finished) = &mut hosted_run.persisted.finished {
                finished.parts = Vec::new();
            }
        }
        self.notify(GatewayNotice::Ended { agent, room, how });
        self.update_commands(&agent_id);
    }

    /// Registers the agent again if its slash commands have changed: many agents announce them only during
    /// a run.
    fn update_commands(&mut self, agent: &AgentId) {
        let Some(hosted) = self.agents.get_mut(agent) else { return };
        let commands = hosted.kind.commands();
        if commands != hosted.commands {
            hosted.commands = commands;
            let frame = register(agent, hosted);
            self.queue_frame(frame);
        }
    }
}

/// Executes a run and records its output.
struct OutputRecorder {
    transcript: Arc<RunTranscript>,
    /// Working directory of the agent.
    folder: Option<PathBuf>,
    /// Number and stored form of the run, as saved at its start.
    persisted: (u64, PersistedRun),
    agent: AgentId,
    context: RunContext,
    reply: MessageId,
    text_stripper: Mutex<EscapeStripper>,
    thinking_stripper: Mutex<EscapeStripper>,
    data: Arc<super::GatewayStore>,
    output_ready: Arc<Notify>,
    stop: CancellationToken,
}

impl OutputRecorder {
    async fn execute(
        self,
        kind: Arc<AgentKind>,
        run_input: RunInput,
        run_io: RunIo,
        mut output: tokio::sync::mpsc::Receiver<run::AgentOutput>,
    ) -> RunResult {
        let before = match &self.folder {
            Some(folder) => tokio::select! {
                () = self.stop.cancelled() => return RunResult::Stopped,
                before = timeout(CHANGES_TIMEOUT, changes::snapshot(folder)) => before.ok().flatten(),
            },
            None => None,
        };
        let result = {
            let execution = kind.execute(&run_input, &run_io);
            let recording = async {
                while let Some(item) = output.recv().await {
                    self.record(item).await;
                }
            };
            let stop_timeout = async {
                self.stop.cancelled().await;
                sleep(STOP_GRACE).await;
            };
            tokio::select! {
                biased;
                () = stop_timeout => RunResult::Stopped,
                result = execution => result,
                () = recording => RunResult::Stopped,
            }
        };
        while let Ok(item) = output.try_recv() {
            self.record(item).await;
        }
        if result != RunResult::Stopped
            && let Some(before) = before
            && let Some(report) = self.unless_stopped(before.changes()).await
        {
            self.signal(self.event(RunEvent::Changes(report))).await;
        }
        result
    }

    /// Awaits optional work of the run; `None` if the run is stopped or the work takes longer than
    /// `CHANGES_TIMEOUT`.
    async fn unless_stopped<T>(&self, work: impl Future<Output = Option<T>>) -> Option<T> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            done = timeout(CHANGES_TIMEOUT, work) => done.ok().flatten(),
        }
    }

    async fn record(&self, output: run::AgentOutput) {
        match output {
            run::AgentOutput::Chunk(chunk) => {
                let chunk = self.limit_metadata(self.strip_escapes(chunk));
                if chunk.content.is_empty() && matches!(chunk.kind, ChunkKind::Text | ChunkKind::Thinking) {
                    return;
                }
                let pushed = self.transcript.reply.lock().push(&chunk);
                if pushed == Err(ReplyTruncated) {
                    self.stop.cancel();
                }
            }
            run::AgentOutput::Event(event) => self.signal(self.event(event)).await,
            run::AgentOutput::Terminal(data) => {
                let mut rest = &*data;
                while !rest.is_empty() {
                    let piece = head(rest, TERMINAL_CHUNK_BYTES);
                    let (agent, context) = (self.agent.clone(), Some(self.context.clone()));
                    self.signal(Some(GatewayMessage::Terminal { agent, context, data: piece.into() })).await;
                    rest = &rest[piece.len()..];
                }
            }
            run::AgentOutput::PermissionRequest { tool, input, answer } => {
                self.request_permission(tool, input, answer).await;
            }
            run::AgentOutput::Session(session) => {
                if let Err(error) = self.data.put_session(&self.agent, &self.context, Some(&session)) {
                    tracing::warn!(%error, "cannot save the session of an agent");
                }
            }
            run::AgentOutput::InjectionAccepted(run) => self.accept_injection(run),
        }
        self.output_ready.notify_one();
    }

    /// Saves an accepted injection before it is reported to the hub. Otherwise a crash in between would
    /// deliver the message to the agent twice.
    fn accept_injection(&self, run: RunId) {
        let taken = {
            let mut injections = self.transcript.injections.lock();
            injections.accepted.push(run.clone());
            injections.accepted.iter().map(ToString::to_string).collect()
        };
        let (number, persisted) = &self.persisted;
        if let Err(error) = self.data.put_run(*number, &PersistedRun { taken, ..persisted.clone() }) {
            tracing::warn!(%error, "cannot save an accepted injection: it would be repeated after a crash");
        }
        if let Ok(into) = RunId::parse(&persisted.run) {
            let frame = injection_accepted(&self.agent, &self.context, &into, run);
            self.transcript.reply.lock().signal(frame);
        }
    }

    /// Removes terminal escape sequences from the output of every agent kind.
    fn strip_escapes(&self, chunk: Chunk) -> Chunk {
        let content = match chunk.kind {
            // Text and thinking are streamed, so an escape sequence may be split over two chunks.
            ChunkKind::Text => self.text_stripper.lock().pass(&chunk.content),
            ChunkKind::Thinking => self.thinking_stripper.lock().pass(&chunk.content),
            _ => EscapeStripper::default().pass(&chunk.content),
        };
        Chunk { content: content.into(), ..chunk }
    }

    /// Removes metadata that is too deep or too large for the hub. The hub would reject the whole chunk,
    /// and the positions in the reply would differ between gateway and hub from then on.
    fn limit_metadata(&self, chunk: Chunk) -> Chunk {
        let Some(metadata) = &chunk.metadata else { return chunk };
        let framed = format!(
            "{{\"type\":\"gateway:message_chunk\",\"roomId\":\"r\",\"agentId\":\"a\",\"messageId\":\"m\",\"chunk\":{{\"type\":\"text\",\"content\":\"\",\"metadata\":{}}}}}",
            metadata.0
        );
        let fits = metadata.0.starts_with('{') && read(&framed, &LIMITS).is_ok();
        if fits { chunk } else { Chunk { metadata: None, ..chunk } }
    }

    fn event(&self, event: RunEvent) -> Option<GatewayMessage> {
        let (agent, context) = (self.agent.clone(), Some(self.context.clone()));
        Some(GatewayMessage::RunEvent { agent, context, message: Some(self.reply.clone()), event })
    }

    /// Queues a frame that is not part of the reply. A frame over the hub's limits is dropped.
    async fn signal(&self, message: Option<GatewayMessage>) {
        let Some(frame) = message.map(|message| egress::write(&message)) else { return };
        if read(&frame, &LIMITS).is_err() {
            tracing::debug!("dropped a frame of an agent that is over the limits of the hub");
            return;
        }
        self.transcript.wait_for_space().await;
        self.transcript.reply.lock().signal(frame);
    }

    async fn request_permission(
        &self,
        tool: Box<str>,
        input: Payload,
        answer: oneshot::Sender<PermissionOutcome>,
    ) {
        let request: Box<str> = {
            let mut permissions = self.transcript.permissions.lock();
            permissions.count += 1;
            format!("{}-p{}", self.reply, permissions.count).into()
        };
        let message = GatewayMessage::Permission(PermissionForm {
            request: request.clone(),
            agent: self.agent.clone(),
            context: Some(self.context.clone()),
            tool,
            input,
            timeout_ms: Some(PERMISSION_TIMEOUT.as_millis() as u64),
        });
        let frame = egress::write(&message);
        let open = self.transcript.permissions.lock().open.len();
        if read(&frame, &LIMITS).is_err() || open >= MAX_OPEN_REQUESTS {
            // Default deny: users cannot approve an input that they cannot see.
            let reason = Some("Denied: the request is too large to be shown to the users.".into());
            let _ = answer.send(PermissionOutcome::Denied { reason });
            return;
        }
        let pending = PendingPermission { request, frame: frame.clone(), answer };
        self.transcript.permissions.lock().open.push(pending);
        self.transcript.wait_for_space().await;
        self.transcript.reply.lock().signal(frame);
    }
}
