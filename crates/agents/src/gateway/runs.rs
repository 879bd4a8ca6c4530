//! Turns on this side: an agent plays on a task of its own, and what it says is kept for the hub.

use super::reply::{OutgoingPiece, Reply, ReplyTruncated, head};
use super::store::{FinishedReply, PersistedRun, new_id};
use super::{Gateway, GatewayNotice, HostedRun, HubRunState, Place, changes, register};
use crate::kinds::AgentKind;
use crate::run::{self, RunInput, RunIo, RunResult};
use crate::sanitize::EscapeStripper;
use parking_lot::Mutex;
use parlor_model::{AgentId, Chunk, ChunkKind, MessageId, Payload, RoomId, RunEvent, RunId, RunOutcome};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{InjectedMessage, PermissionOutcome, RunRequest};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, MOST_CHUNKS, PermissionForm, read};
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

/// What a hub reads, unless it was set otherwise.
const LIMITS: FrameLimits =
    FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MOST_CHUNKS } };
/// Of a text that goes as a whole.
pub const IN_ONE_FRAME: usize = 200 * 1024;
/// Words that wait between an agent and its reply.
const WORDS: usize = 64;
/// What is said to an agent meanwhile and waits for it; what comes beyond is another turn.
const WAITING: usize = 16;
/// How long an agent that was stopped may take to end by itself.
const STOP_GRACE: Duration = Duration::from_millis(700);
/// How long it may take to find out what a turn changed.
const REPORT: Duration = Duration::from_secs(5);
/// How long people have to answer a question.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(300);
/// Of what a terminal shows, so much goes into one frame.
const SHOWN: usize = 32 * 1024;
/// Questions of one turn that wait for an answer.
const QUESTIONS: usize = 16;

/// What an agent has said in a turn, in the hands of who plays it and of who tells the hub.
#[derive(Debug, Default)]
pub struct RunTranscript {
    pub reply: Mutex<Reply>,
    pending_questions: Mutex<PendingQuestions>,
    added: Mutex<InjectionState>,
    /// Rings when there is room again.
    room: Notify,
    /// Whether somebody is told; else what is only of the moment does not wait.
    alone: std::sync::atomic::AtomicBool,
}

/// What was said to the agent meanwhile, by the turns that would follow.
#[derive(Debug, Default)]
struct InjectionState {
    given: Vec<RunId>,
    taken: Vec<RunId>,
}

#[derive(Debug, Default)]
struct PendingQuestions {
    asked: usize,
    open: Vec<PendingQuestion>,
}

#[derive(Debug)]
struct PendingQuestion {
    request: Box<str>,
    frame: String,
    answer: oneshot::Sender<PermissionOutcome>,
}

/// An agent while it plays.
#[derive(Debug)]
pub struct RunHandle {
    stop: CancellationToken,
    more: mpsc::Sender<InjectedMessage>,
}

impl RunHandle {
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

/// Which turn is over, and how it ended on this side.
pub struct RunFinished {
    number: u64,
    ending: RunResult,
}

impl RunTranscript {
    pub fn of(reply: Reply, taken: Vec<RunId>) -> Self {
        let added = Mutex::new(InjectionState { given: taken.clone(), taken });
        Self { reply: Mutex::new(reply), added, ..Self::default() }
    }

    /// The turns that became part of this one.
    pub fn taken(&self) -> Vec<RunId> {
        self.added.lock().taken.clone()
    }

    pub fn next(&self) -> Option<OutgoingPiece> {
        self.alone.store(false, std::sync::atomic::Ordering::Relaxed);
        let next = self.reply.lock().next();
        if matches!(next, Some(OutgoingPiece::Signal(_))) {
            self.room.notify_one();
        }
        next
    }

    /// There is nobody to tell for now.
    pub fn disconnect(&self) {
        self.alone.store(true, std::sync::atomic::Ordering::Relaxed);
        self.room.notify_one();
    }

    pub fn ask_again(&self, frames: &mut VecDeque<String>) {
        frames.extend(self.pending_questions.lock().open.iter().map(|question| question.frame.clone()));
    }

    /// Whether it was a question of this turn.
    pub fn decided(&self, request: &str, verdict: &PermissionOutcome) -> bool {
        let mut pending_questions = self.pending_questions.lock();
        let Some(at) = pending_questions.open.iter().position(|one| &*one.request == request) else {
            return false;
        };
        let _ = pending_questions.open.swap_remove(at).answer.send(verdict.clone());
        true
    }

    async fn wait_for_room(&self) {
        loop {
            {
                let mut reply = self.reply.lock();
                if self.alone.load(std::sync::atomic::Ordering::Relaxed) {
                    reply.forget_old_signals();
                }
                if reply.has_room() {
                    return;
                }
            }
            self.room.notified().await;
        }
    }
}

/// A turn became part of another.
pub fn added(agent: &AgentId, room: &RoomId, run: &RunId, added: RunId) -> String {
    let (agent, room, run) = (agent.clone(), room.clone(), run.clone());
    egress::write(&GatewayMessage::Added { agent, room, run, added })
}

impl Gateway {
    /// Something was said to an agent while it is at work. What it does not take is another turn.
    pub(super) fn add_to(&mut self, addition: InjectedMessage) {
        let own = |one: &&HostedRun| one.run == addition.run && one.agent == addition.agent;
        let Some(playing) = self.turns.values().find(own) else { return };
        let mut known = playing.said.added.lock();
        if known.taken.contains(&addition.added) {
            let frame = added(&playing.agent, &playing.room, &playing.run, addition.added);
            drop(known);
            return self.say(frame);
        }
        let Some(act) = playing.act.as_ref().filter(|_| playing.standing == HubRunState::GoesOn) else {
            return;
        };
        let run = addition.added.clone();
        if !known.given.contains(&run) && act.more.try_send(addition).is_ok() {
            known.given.push(run);
        }
    }

    pub(super) fn begin(&mut self, request: RunRequest) {
        // A hub that does not name its turns cannot be come back to.
        let (Some(hosted), Some(run)) = (self.agents.get(&request.agent), request.run.clone()) else {
            return;
        };
        if self.turns.values().any(|playing| playing.run == run) {
            return;
        }
        let (agent, room) = (request.agent.clone(), request.room.clone());
        let reply = MessageId::stored(new_id());
        // The agent has it from the turn before, which the hub gave up before it heard so.
        if self.turns.values().any(|playing| playing.said.added.lock().taken.contains(&run)) {
            let (room, message, run) = (Some(room), Some(reply), Some(run));
            let reply = Place { agent, room, message, run, target_agent: None };
            let (text, chunks, outcome) = (None, Vec::new(), RunOutcome::Complete);
            let conversation = request.conversation.as_ref().map(|id| id.as_str().into());
            let depth = Some(request.depth);
            let told = GatewayMessage::Complete { reply, text, chunks, conversation, depth, outcome };
            return self.say(egress::write(&told));
        }
        let number = self.next;
        self.next += 1;
        let kept = PersistedRun {
            agent: agent.to_string(),
            room: room.to_string(),
            run: run.to_string(),
            reply: reply.to_string(),
            conversation: request.conversation.as_ref().map(ToString::to_string),
            depth: request.depth,
            taken: Vec::new(),
            finished: None,
        };
        if let Err(error) = self.data.keep(number, &kept) {
            tracing::warn!(%error, "a turn cannot be noted, and would be lost in a crash");
        }
        let view = hosted.rooms.get(&room).cloned();
        let named = view.as_ref().map_or(room.as_str(), |view| &*view.name).into();
        let (name, by) = (hosted.name.clone(), request.sender_name.clone());
        let session = self.data.session(&agent, &room);
        let turn = RunInput { request, room: view, session };
        let said = Arc::<RunTranscript>::default();
        let (stage, heard, stop) = RunIo::new(WORDS);
        let (more, meanwhile) = mpsc::channel(WAITING);
        let stage = stage.open_to(meanwhile);
        let output_recorder = OutputRecorder {
            said: said.clone(),
            folder: hosted.agent_config.directory.clone(),
            kept: (number, kept.clone()),
            agent: agent.clone(),
            room: room.clone(),
            reply: reply.clone(),
            words: Mutex::default(),
            thoughts: Mutex::default(),
            data: self.data.clone(),
            bell: self.output_ready.clone(),
            stop: stop.clone(),
        };
        let (kind, bell) = (hosted.kind.clone(), self.output_ready.clone());
        self.tasks.spawn(async move {
            // One that breaks down takes nobody else with it, and one that nobody waits for ends.
            let acting =
                AbortOnDropHandle::new(tokio::spawn(output_recorder.follow(kind, turn, stage, heard)));
            let ending = acting.await.unwrap_or_else(|error: JoinError| {
                tracing::error!(%error, "a kind of agent broke");
                RunResult::Failed("The agent broke down.".into())
            });
            bell.notify_one();
            RunFinished { number, ending }
        });
        let act = Some(RunHandle { stop, more });
        let standing = HubRunState::GoesOn;
        let playing = HostedRun {
            kept,
            agent,
            room,
            run,
            reply,
            act,
            said,
            standing,
            ending: None,
            told: false,
            over: false,
        };
        self.turns.insert(number, playing);
        self.tell(GatewayNotice::Began { agent: name, room: named, by });
    }

    pub(super) fn is_over(&mut self, over: Result<RunFinished, JoinError>) {
        let Ok(RunFinished { number, ending }) = over else { return };
        let Some(playing) = self.turns.get_mut(&number) else { return };
        playing.act = None;
        let how = match &ending {
            RunResult::Finished => RunOutcome::Complete,
            RunResult::Failed(reason) => {
                playing.said.reply.lock().fail(reason);
                RunOutcome::Failed(reason.clone())
            }
            // Where nobody stopped it, it was too long and says so.
            RunResult::Stopped if playing.standing != HubRunState::Over => RunOutcome::Complete,
            RunResult::Stopped => RunOutcome::Cancelled,
        };
        let playing_agent = playing.agent.clone();
        let hosted = self.agents.get(&playing_agent);
        let agent = hosted.map_or(playing.agent.as_str(), |hosted| &hosted.name).into();
        let view = hosted.and_then(|hosted| hosted.rooms.get(&playing.room));
        let room = view.map_or(playing.room.as_str(), |view| &view.name).into();
        if playing.standing == HubRunState::Over {
            // The hub waits for this before it gives the agent another turn there.
            let frame = playing.complete(RunOutcome::Complete);
            // Known until the hub keeps its end: a hub that dies before would hand it over once more.
            (playing.ending, playing.told) = (Some(RunOutcome::Interrupted), true);
            if playing.over {
                self.forget(number);
            }
            self.say(frame);
        } else {
            playing.ending = Some(how.clone());
            let parts = playing.said.reply.lock().parts().to_vec();
            let failed = match &how {
                RunOutcome::Failed(reason) => Some(reason.clone()),
                _ => None,
            };
            playing.kept.finished = Some(FinishedReply { failed, parts });
            playing.kept.taken = playing.said.taken().iter().map(ToString::to_string).collect();
            if let Err(error) = self.data.keep(number, &playing.kept) {
                tracing::warn!(%error, "a reply cannot be kept, and would be lost in a crash");
            }
            // It is in the reply.
            if let Some(finished) = &mut playing.kept.finished {
                finished.parts = Vec::new();
            }
        }
        let of = playing_agent;
        self.tell(GatewayNotice::Ended { agent, room, how });
        self.tell_commands(&of);
    }

    /// What an agent understands after a slash is often known only when it has run.
    fn tell_commands(&mut self, agent: &AgentId) {
        let Some(hosted) = self.agents.get_mut(agent) else { return };
        let commands = hosted.kind.commands();
        if commands != hosted.commands {
            hosted.commands = commands;
            let form = register(agent, hosted);
            self.say(form);
        }
    }
}

/// Takes down what an agent says.
struct OutputRecorder {
    said: Arc<RunTranscript>,
    /// Where the agent works.
    folder: Option<PathBuf>,
    /// The turn as it was noted when it began.
    kept: (u64, PersistedRun),
    agent: AgentId,
    room: RoomId,
    reply: MessageId,
    words: Mutex<EscapeStripper>,
    thoughts: Mutex<EscapeStripper>,
    data: Arc<super::GatewayStore>,
    bell: Arc<Notify>,
    stop: CancellationToken,
}

impl OutputRecorder {
    async fn follow(
        self,
        kind: Arc<AgentKind>,
        turn: RunInput,
        stage: RunIo,
        mut heard: tokio::sync::mpsc::Receiver<run::AgentOutput>,
    ) -> RunResult {
        let before = match &self.folder {
            Some(folder) => tokio::select! {
                () = self.stop.cancelled() => return RunResult::Stopped,
                before = timeout(REPORT, changes::snapshot(folder)) => before.ok().flatten(),
            },
            None => None,
        };
        let ending = {
            let playing = kind.execute(&turn, &stage);
            let listening = async {
                while let Some(said) = heard.recv().await {
                    self.take_down(said).await;
                }
            };
            let too_long = async {
                self.stop.cancelled().await;
                sleep(STOP_GRACE).await;
            };
            tokio::select! {
                biased;
                () = too_long => RunResult::Stopped,
                ending = playing => ending,
                () = listening => RunResult::Stopped,
            }
        };
        while let Ok(said) = heard.try_recv() {
            self.take_down(said).await;
        }
        if ending != RunResult::Stopped
            && let Some(before) = before
            && let Some(report) = self.unless_stopped(before.changes()).await
        {
            self.signal(self.event(RunEvent::Changes(report))).await;
        }
        ending
    }

    /// Nothing of a turn goes on after a stop, and nobody waits long for what is told beside it.
    async fn unless_stopped<T>(&self, work: impl Future<Output = Option<T>>) -> Option<T> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            done = timeout(REPORT, work) => done.ok().flatten(),
        }
    }

    async fn take_down(&self, said: run::AgentOutput) {
        match said {
            run::AgentOutput::Chunk(chunk) => {
                let chunk = self.readable(self.plain(chunk));
                if chunk.content.is_empty() && matches!(chunk.kind, ChunkKind::Text | ChunkKind::Thinking) {
                    return;
                }
                let pushed = self.said.reply.lock().push(&chunk);
                if pushed == Err(ReplyTruncated) {
                    self.stop.cancel();
                }
            }
            run::AgentOutput::Event(event) => self.signal(self.event(event)).await,
            run::AgentOutput::Terminal(data) => {
                let mut rest = &*data;
                while !rest.is_empty() {
                    let piece = head(rest, SHOWN);
                    let (agent, room) = (self.agent.clone(), Some(self.room.clone()));
                    self.signal(Some(GatewayMessage::Terminal { agent, room, data: piece.into() })).await;
                    rest = &rest[piece.len()..];
                }
            }
            run::AgentOutput::Question { tool, input, answer } => self.ask(tool, input, answer).await,
            run::AgentOutput::Session(session) => {
                if let Err(error) = self.data.put_session(&self.agent, &self.room, Some(&session)) {
                    tracing::warn!(%error, "the session of an agent cannot be kept");
                }
            }
            run::AgentOutput::Took(run) => self.took(run),
        }
        self.bell.notify_one();
    }

    /// Noted before the hub is told: who forgets it would have the agent hear it twice.
    fn took(&self, run: RunId) {
        let taken = {
            let mut added = self.said.added.lock();
            added.taken.push(run.clone());
            added.taken.iter().map(ToString::to_string).collect()
        };
        let (number, kept) = &self.kept;
        if let Err(error) = self.data.keep(*number, &PersistedRun { taken, ..kept.clone() }) {
            tracing::warn!(%error, "what an agent took up cannot be noted, and would be repeated after a crash");
        }
        if let Ok(into) = RunId::parse(&kept.run) {
            self.said.reply.lock().signal(added(&self.agent, &self.room, &into, run));
        }
    }

    /// Whatever kind of agent says it, words steer no terminal.
    fn plain(&self, chunk: Chunk) -> Chunk {
        let content = match chunk.kind {
            // These come in pieces, between which a sequence may be cut.
            ChunkKind::Text => self.words.lock().pass(&chunk.content),
            ChunkKind::Thinking => self.thoughts.lock().pass(&chunk.content),
            _ => EscapeStripper::default().pass(&chunk.content),
        };
        Chunk { content: content.into(), ..chunk }
    }

    /// A hub would pass over what is too deep or too large, and both would count differently from then on.
    fn readable(&self, chunk: Chunk) -> Chunk {
        let Some(metadata) = &chunk.metadata else { return chunk };
        let framed = format!(
            "{{\"type\":\"gateway:message_chunk\",\"roomId\":\"r\",\"agentId\":\"a\",\"messageId\":\"m\",\"chunk\":{{\"type\":\"text\",\"content\":\"\",\"metadata\":{}}}}}",
            metadata.0
        );
        let fits = metadata.0.starts_with('{') && read(&framed, &LIMITS).is_ok();
        if fits { chunk } else { Chunk { metadata: None, ..chunk } }
    }

    fn event(&self, event: RunEvent) -> Option<GatewayMessage> {
        let (agent, room) = (self.agent.clone(), Some(self.room.clone()));
        Some(GatewayMessage::RunEvent { agent, room, message: Some(self.reply.clone()), event })
    }

    /// What a hub cannot read is not told.
    async fn signal(&self, told: Option<GatewayMessage>) {
        let Some(frame) = told.map(|told| egress::write(&told)) else { return };
        if read(&frame, &LIMITS).is_err() {
            tracing::debug!("an agent told more than a hub reads");
            return;
        }
        self.said.wait_for_room().await;
        self.said.reply.lock().signal(frame);
    }

    async fn ask(&self, tool: Box<str>, input: Payload, answer: oneshot::Sender<PermissionOutcome>) {
        let request: Box<str> = {
            let mut pending_questions = self.said.pending_questions.lock();
            pending_questions.asked += 1;
            format!("{}-p{}", self.reply, pending_questions.asked).into()
        };
        let told = GatewayMessage::Permission(PermissionForm {
            request: request.clone(),
            agent: self.agent.clone(),
            room: Some(self.room.clone()),
            tool,
            input,
            timeout_ms: Some(QUESTION_TIMEOUT.as_millis() as u64),
        });
        let frame = egress::write(&told);
        let open = self.said.pending_questions.lock().open.len();
        if read(&frame, &LIMITS).is_err() || open >= QUESTIONS {
            // What people cannot be shown they cannot allow.
            let reason = Some("It is too large to be shown, and so to be allowed.".into());
            let _ = answer.send(PermissionOutcome::Denied { reason });
            return;
        }
        let question = PendingQuestion { request, frame: frame.clone(), answer };
        self.said.pending_questions.lock().open.push(question);
        self.said.wait_for_room().await;
        self.said.reply.lock().signal(frame);
    }
}
