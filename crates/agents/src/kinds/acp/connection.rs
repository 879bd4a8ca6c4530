//! A running agent and the connection to it, shared by the rooms it is in.
//!
//! Owns: the process; which session hears what; that nothing piles up in front of a room that is slow. The protocol's
//! crate queues without bounds between the pipe and our handlers, so lines are read only while no handler waits.

use super::super::lines::{Line, Lines};
use super::super::stderr_tail::StderrTail;
use super::super::{SlashCommand, tools};
use crate::process::{Program, RunningProgram};
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, Implementation, InitializeRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionNotification, SessionUpdate,
};
use agent_client_protocol::{
    Agent, Client, Error, ErrorCode, JsonRpcRequest, on_receive_notification, on_receive_request, v1,
};
use futures_util::{sink, stream};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The first start may have to fetch the program.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// For everything but a prompt.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Between the end of what a program prints and its own end.
const LAG: Duration = Duration::from_millis(500);
/// For what a program said before it ended, at the pace of the slowest room.
const REST: Duration = Duration::from_secs(5);
/// A file that was read, or a picture, comes in one line.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// What a session has told and its turn has not taken yet.
const EVENT_QUEUE: usize = 256;

pub(super) type PermissionResponder = v1::Responder<RequestPermissionResponse>;

/// What an agent says of one session.
pub(super) enum SessionEvent {
    Update(Box<SessionUpdate>),
    Permission(Box<(RequestPermissionRequest, PendingPermission)>),
}

/// A question that the agent waits for. Whoever drops it calls it off.
pub(super) struct PendingPermission(Option<PermissionResponder>);

impl PendingPermission {
    pub(super) fn answer(mut self, outcome: RequestPermissionOutcome) {
        if let Some(responder) = self.0.take() {
            let _ = responder.respond(RequestPermissionResponse::new(outcome));
        }
    }
}

impl Drop for PendingPermission {
    fn drop(&mut self) {
        if let Some(responder) = self.0.take() {
            let _ = responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
        }
    }
}

/// Which session is listened to, and what is known of each.
#[derive(Default)]
struct SessionRegistry {
    listeners: Mutex<HashMap<SessionId, mpsc::Sender<SessionEvent>>>,
    /// Sessions that this process knows, with what they have cost as far as it said so, in millionths of a dollar.
    sessions: Mutex<HashMap<SessionId, Option<u64>>>,
    commands: Mutex<Vec<SlashCommand>>,
}

pub(super) struct Connection {
    agent: ConnectionTo<Agent>,
    pub(super) abilities: AgentCapabilities,
    pub(super) info: Option<Implementation>,
    board: Arc<SessionRegistry>,
    /// In words for people, once it is over.
    why_ended: Arc<OnceLock<Box<str>>>,
    ended: CancellationToken,
    kill: CancellationToken,
    /// Nobody needs it any more when the last of us is gone.
    _killed_when_dropped: DropGuard,
}

impl Connection {
    /// Starts the program and greets it. `Err` in words for people.
    pub(super) async fn open(program: &Program, name: &str) -> Result<Self, Box<str>> {
        let cannot = |error| Box::<str>::from(format!("{name} cannot be started: {error}."));
        let mut running = program.start().map_err(cannot)?;
        let pipes = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(format!("{name} has no pipes to talk through.").into());
        };
        let (session_registry, why_ended) =
            (Arc::<SessionRegistry>::default(), Arc::<OnceLock<_>>::default());
        let (kill, ended) = (CancellationToken::new(), CancellationToken::new());
        let (connected, connection) = oneshot::channel();
        tokio::spawn({
            let (session_registry, why_ended, kill) =
                (session_registry.clone(), why_ended.clone(), kill.clone());
            let (name, ended) = (Box::<str>::from(name), ended.clone().drop_guard());
            let stderr_tail = StderrTail::of(stderr);
            async move {
                let status = converse(running, stdin, stdout, session_registry, connected, &kill).await;
                let why = exit_reason(&name, status, &kill, stderr_tail.finish().await);
                let _ = why_ended.set(why);
                drop(ended);
            }
        });
        let killed_when_dropped = kill.clone().drop_guard();
        let over = async {
            ended.cancelled().await;
            why_ended.get().cloned().unwrap_or_else(|| format!("{name} ended.").into())
        };
        let greeting = async {
            let agent = connection.await.ok()?;
            let greeting = InitializeRequest::new(ProtocolVersion::V1)
                .client_info(Implementation::new("parlor", env!("CARGO_PKG_VERSION")));
            Some((agent.send_request(greeting).block_task().await, agent))
        };
        let greeted = tokio::select! {
            greeted = timeout(START_TIMEOUT, greeting) => greeted,
            why = over => return Err(why),
        };
        match greeted {
            Ok(Some((Ok(answer), agent))) => Ok(Self {
                agent,
                abilities: answer.agent_capabilities,
                info: answer.agent_info,
                board: session_registry,
                why_ended,
                ended,
                kill,
                _killed_when_dropped: killed_when_dropped,
            }),
            // The crate takes no answer of another version.
            Ok(Some((Err(error), _))) if error.code == ErrorCode::INVALID_REQUEST => {
                Err(format!("{name} speaks another version of the Agent Client Protocol than 1.").into())
            }
            Ok(Some((Err(error), _))) => {
                // A program that ended says why more plainly than the connection that broke.
                let _ = timeout(LAG + LAG, ended.cancelled()).await;
                let why = why_ended.get().cloned();
                Err(why.unwrap_or_else(|| format!("{name} does not greet us: {}.", told(&error)).into()))
            }
            Ok(None) => Err(format!("{name} ended before it said anything.").into()),
            Err(_) => Err(format!("{name} says nothing, after {} seconds.", START_TIMEOUT.as_secs()).into()),
        }
    }

    /// Or is being ended.
    pub(super) fn has_ended(&self) -> bool {
        self.kill.is_cancelled() || self.ended.is_cancelled()
    }

    /// Ends the program and all it started, at once.
    pub(super) fn kill(&self) {
        self.kill.cancel();
    }

    /// Why it ended, if it has or is about to.
    pub(super) async fn exit_reason(&self) -> Option<Box<str>> {
        let _ = timeout(LAG + LAG, self.ended.cancelled()).await;
        self.why_ended.get().cloned()
    }

    /// A request that is answered soon.
    pub(super) async fn request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, Error> {
        let answer = timeout(REQUEST_TIMEOUT, self.agent.send_request(request).block_task()).await;
        answer.unwrap_or_else(|_| Err(Error::internal_error().data("it did not answer in time")))
    }

    /// A request that takes as long as it takes.
    pub(super) fn begin<R: JsonRpcRequest>(
        &self,
        request: R,
    ) -> impl Future<Output = Result<R::Response, Error>> + Send + use<R> {
        self.agent.send_request(request).block_task()
    }

    pub(super) fn cancel(&self, session: &SessionId) {
        let _ = self.agent.send_notification(CancelNotification::new(session.clone()));
    }

    pub(super) fn knows(&self, session: &SessionId) -> bool {
        self.board.sessions.lock().contains_key(session)
    }

    /// From now on it can be prompted here.
    pub(super) fn has_session(&self, session: &SessionId, cost: Option<u64>) {
        let mut sessions = self.board.sessions.lock();
        let known = sessions.entry(session.clone()).or_default();
        *known = known.or(cost);
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.board.sessions.lock().remove(session);
    }

    pub(super) fn cost(&self, session: &SessionId) -> Option<u64> {
        self.board.sessions.lock().get(session).copied().flatten()
    }

    pub(super) fn commands(&self) -> Vec<SlashCommand> {
        self.board.commands.lock().clone()
    }

    /// What is said of a session from now on, until this is dropped.
    pub(super) fn listen(&self, session: &SessionId) -> Listener {
        let (heard, listening) = mpsc::channel(EVENT_QUEUE);
        self.board.listeners.lock().insert(session.clone(), heard);
        Listener { heard: listening, session: session.clone(), board: self.board.clone() }
    }
}

pub(super) struct Listener {
    pub(super) heard: mpsc::Receiver<SessionEvent>,
    session: SessionId,
    board: Arc<SessionRegistry>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.board.listeners.lock().remove(&self.session);
    }
}

/// Runs the connection until it or the program ends or is ended; nothing of the program is left then.
async fn converse(
    mut running: RunningProgram,
    stdin: ChildStdin,
    stdout: ChildStdout,
    session_registry: Arc<SessionRegistry>,
    connected: oneshot::Sender<ConnectionTo<Agent>>,
    kill: &CancellationToken,
) -> Result<Option<ExitStatus>, Error> {
    // Closed while a handler waits for a room that is slow.
    let (gate, open) = watch::channel(true);
    let gate = Arc::new(gate);
    let transport = agent_client_protocol::Lines::new(outgoing(stdin), incoming(stdout, open));
    let update = {
        let (session_registry, gate) = (session_registry.clone(), gate.clone());
        async move |told: SessionNotification, _| {
            session_registry.note(&told);
            let heard = SessionEvent::Update(Box::new(told.update));
            session_registry.pass_on(&told.session_id, heard, &gate).await;
            Ok(())
        }
    };
    let permission = async move |asked: RequestPermissionRequest, responder, _| {
        let session = asked.session_id.clone();
        let heard = SessionEvent::Permission(Box::new((asked, PendingPermission(Some(responder)))));
        session_registry.pass_on(&session, heard, &gate).await;
        Ok(())
    };
    let conversation = Client
        .v1()
        .name("parlor")
        .on_receive_notification(update, on_receive_notification!())
        .on_receive_request(permission, on_receive_request!())
        .connect_with(transport, async |agent: ConnectionTo<Agent>| {
            let _ = connected.send(agent.clone());
            agent.incoming_closed().await;
            Ok(())
        });
    let mut conversation = pin!(conversation);
    let outcome = tokio::select! {
        outcome = &mut conversation => outcome,
        status = running.wait() => {
            // What it said before it ended is still in the pipe.
            let rest = timeout(REST, &mut conversation);
            let _ = kill.run_until_cancelled(rest).await;
            return Ok(status.ok());
        }
        () = kill.cancelled() => Ok(()),
    };
    let status = match kill.is_cancelled() {
        true => None,
        false => timeout(LAG, running.wait()).await.ok().and_then(Result::ok),
    };
    if status.is_none() {
        running.stop().await;
    }
    outcome.map(|()| status)
}

impl SessionRegistry {
    /// To whoever listens to that session; what nobody listens to is history that a load repeats, or comes too late.
    async fn pass_on(&self, session: &SessionId, heard: SessionEvent, gate: &watch::Sender<bool>) {
        let listener = self.listeners.lock().get(session).cloned();
        let Some(listener) = listener else { return };
        if let Err(mpsc::error::TrySendError::Full(heard)) = listener.try_send(heard) {
            gate.send_replace(false);
            let _ = listener.send(heard).await;
            gate.send_replace(true);
        }
    }

    fn note(&self, told: &SessionNotification) {
        match &told.update {
            SessionUpdate::UsageUpdate(usage) => {
                let dollars = usage.cost.as_ref().filter(|cost| cost.currency == "USD");
                let Some(micros) = dollars.map(|cost| (cost.amount * 1e6).round() as u64) else { return };
                if let Some(known) = self.sessions.lock().get_mut(&told.session_id) {
                    *known = Some(micros);
                }
            }
            SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = update.available_commands.iter().take(200).map(|command| SlashCommand {
                    name: tools::line(&command.name, 100).into(),
                    description: tools::line(&command.description, 300).into(),
                });
                *self.commands.lock() = commands.collect();
            }
            _ => {}
        }
    }
}

/// Whatever else a program prints on its standard output is not for us.
fn incoming(
    stdout: ChildStdout,
    open: watch::Receiver<bool>,
) -> impl stream::Stream<Item = io::Result<String>> + Send + 'static {
    stream::try_unfold((Lines::new(stdout, LONGEST_LINE), open), |(mut lines, mut open)| async move {
        loop {
            let _ = open.wait_for(|open| *open).await;
            match lines.next().await? {
                None => return Ok(None),
                Some(Line::Text(line)) if line.trim_start().starts_with('{') => {
                    return Ok(Some((line, (lines, open))));
                }
                Some(Line::Text(_)) => {}
                // It may have been the answer that somebody waits for.
                Some(Line::TooLong) => return Err(io::Error::other("it sent more in one line than fits")),
            }
        }
    })
}

/// Why a program does not listen any more is told by how it ends.
fn outgoing(stdin: ChildStdin) -> impl sink::Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold(stdin, |mut stdin, mut line: String| async move {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_ok() {
            let _ = stdin.flush().await;
        }
        Ok::<_, io::Error>(stdin)
    })
}

fn exit_reason(
    name: &str,
    status: Result<Option<ExitStatus>, Error>,
    kill: &CancellationToken,
    last_words: String,
) -> Box<str> {
    let mut words = match status {
        _ if kill.is_cancelled() => return format!("{name} was ended.").into(),
        Ok(Some(status)) => format!("{name} ended ({status})."),
        Ok(None) => format!("{name} closed the connection."),
        Err(error) => format!("{name} cannot be understood: {}.", told(&error)),
    };
    if !last_words.is_empty() {
        words += &format!(" It last wrote:\n{last_words}");
    }
    words.into()
}

/// What an error says beyond its code.
pub(super) fn told(error: &Error) -> String {
    let data = error.data.as_ref().map(|data| match data {
        serde_json::Value::String(words) => words.clone(),
        serde_json::Value::Object(fields) => {
            let words = ["details", "message", "error"].iter().find_map(|field| fields.get(*field)?.as_str());
            words.map_or_else(|| data.to_string(), str::to_owned)
        }
        data => data.to_string(),
    });
    let words = match data {
        Some(data) if !error.message.contains(&data) => format!("{}: {data}", error.message),
        _ => error.message.clone(),
    };
    words.chars().take(1_000).collect::<String>().trim_end_matches('.').to_owned()
}
