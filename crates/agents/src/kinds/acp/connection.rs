//! A running ACP agent and the connection to it, shared by all rooms of the agent.
//!
//! Owns: the process, the routing of updates to sessions, and backpressure from a slow room. The ACP crate
//! has an unbounded queue between the pipe and the handlers, so lines are read only while no handler is
//! waiting.

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
use tokio_util::task::TaskTracker;

/// Timeout for the start of the program and its `initialize` answer; the first start may download the
/// program.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Timeout for every request except a prompt.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for the program to exit after it has closed the connection.
const EXIT_GRACE: Duration = Duration::from_millis(500);
/// Timeout for delivering the buffered output of a program that has exited; a slow room delays it.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of a line. A file's content or an image is sent as one line.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Capacity of the event queue of a session, between the connection and the run that reads it.
const EVENT_QUEUE: usize = 256;

pub(super) type PermissionResponder = v1::Responder<RequestPermissionResponse>;

/// An update or a permission request from the agent, for one session.
pub(super) enum SessionEvent {
    Update(Box<SessionUpdate>),
    Permission(Box<(RequestPermissionRequest, PendingPermission)>),
}

/// A permission request that the agent waits for. Dropping it cancels the request.
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

/// The sessions of a connection: their listeners, costs and slash commands.
#[derive(Default)]
struct SessionRegistry {
    listeners: Mutex<HashMap<SessionId, mpsc::Sender<SessionEvent>>>,
    /// Open sessions of this process, with their reported cost in millionths of a dollar.
    sessions: Mutex<HashMap<SessionId, Option<u64>>>,
    commands: Mutex<Vec<SlashCommand>>,
}

pub(super) struct Connection {
    agent: ConnectionTo<Agent>,
    pub(super) capabilities: AgentCapabilities,
    pub(super) info: Option<Implementation>,
    registry: Arc<SessionRegistry>,
    /// Why the connection ended, as a message for users; set once it has ended.
    exit_reason: Arc<OnceLock<Box<str>>>,
    ended: CancellationToken,
    kill: CancellationToken,
    /// Kills the program when the connection is dropped.
    _kill_on_drop: DropGuard,
}

impl Connection {
    /// Starts the program and initializes the connection. The error is a message for users. The task of the
    /// connection is one of `tasks` and ends after the program, also if this future is dropped.
    pub(super) async fn open(program: &Program, name: &str, tasks: &TaskTracker) -> Result<Self, Box<str>> {
        let start_error = |error| Box::<str>::from(format!("{name} cannot be started: {error}."));
        let mut running = program.start().map_err(start_error)?;
        let pipes = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(format!("{name} was started without its pipes.").into());
        };
        let (registry, reason) = (Arc::<SessionRegistry>::default(), Arc::<OnceLock<_>>::default());
        let (kill, ended) = (CancellationToken::new(), CancellationToken::new());
        let (connected, connection) = oneshot::channel();
        tasks.spawn({
            let (registry, reason, kill) = (registry.clone(), reason.clone(), kill.clone());
            let (name, ended) = (Box::<str>::from(name), ended.clone().drop_guard());
            let mut stderr_tail = StderrTail::of(stderr);
            async move {
                let connection = run_connection(running, stdin, stdout, registry, connected, &kill);
                let status = stderr_tail.read_during(connection).await;
                let text = exit_reason(&name, status, &kill, stderr_tail.finish().await);
                let _ = reason.set(text);
                drop(ended);
            }
        });
        let kill_on_drop = kill.clone().drop_guard();
        let early_exit = async {
            ended.cancelled().await;
            reason.get().cloned().unwrap_or_else(|| format!("{name} exited.").into())
        };
        let initialize = async {
            let agent = connection.await.ok()?;
            let request = InitializeRequest::new(ProtocolVersion::V1)
                .client_info(Implementation::new("parlor", env!("CARGO_PKG_VERSION")));
            Some((agent.send_request(request).block_task().await, agent))
        };
        let initialized = tokio::select! {
            initialized = timeout(START_TIMEOUT, initialize) => initialized,
            reason = early_exit => return Err(reason),
        };
        match initialized {
            Ok(Some((Ok(answer), agent))) => Ok(Self {
                agent,
                capabilities: answer.agent_capabilities,
                info: answer.agent_info,
                registry,
                exit_reason: reason,
                ended,
                kill,
                _kill_on_drop: kill_on_drop,
            }),
            // The ACP crate reports an answer with another protocol version as an invalid request.
            Ok(Some((Err(error), _))) if error.code == ErrorCode::INVALID_REQUEST => {
                Err(format!("{name} does not support version 1 of the Agent Client Protocol.").into())
            }
            Ok(Some((Err(error), _))) => {
                // If the program has exited, its exit reason is clearer than the connection error.
                let _ = timeout(EXIT_GRACE + EXIT_GRACE, ended.cancelled()).await;
                let reason = reason.get().cloned();
                Err(reason.unwrap_or_else(|| {
                    format!("{name} rejected the connection: {}.", error_text(&error)).into()
                }))
            }
            Ok(None) => Err(format!("{name} exited before it answered.").into()),
            Err(_) => {
                Err(format!("{name} did not answer within {} seconds.", START_TIMEOUT.as_secs()).into())
            }
        }
    }

    /// Whether the program has exited or is being killed.
    pub(super) fn has_ended(&self) -> bool {
        self.kill.is_cancelled() || self.ended.is_cancelled()
    }

    /// Kills the program and everything that it started.
    pub(super) fn kill(&self) {
        self.kill.cancel();
    }

    /// Why the connection ended. Waits shortly for a program that is about to exit; `None` if it still runs.
    pub(super) async fn exit_reason(&self) -> Option<Box<str>> {
        let _ = timeout(EXIT_GRACE + EXIT_GRACE, self.ended.cancelled()).await;
        self.exit_reason.get().cloned()
    }

    /// Sends a request with `REQUEST_TIMEOUT`.
    pub(super) async fn request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, Error> {
        let answer = timeout(REQUEST_TIMEOUT, self.agent.send_request(request).block_task()).await;
        answer.unwrap_or_else(|_| Err(Error::internal_error().data("the agent did not answer in time")))
    }

    /// Sends a request without a timeout.
    pub(super) fn request_without_timeout<R: JsonRpcRequest>(
        &self,
        request: R,
    ) -> impl Future<Output = Result<R::Response, Error>> + Send + use<R> {
        self.agent.send_request(request).block_task()
    }

    pub(super) fn cancel(&self, session: &SessionId) {
        let _ = self.agent.send_notification(CancelNotification::new(session.clone()));
    }

    pub(super) fn has_session(&self, session: &SessionId) -> bool {
        self.registry.sessions.lock().contains_key(session)
    }

    /// Registers a session that is open in this process, with its cost so far if it is known.
    pub(super) fn add_session(&self, session: &SessionId, cost: Option<u64>) {
        let mut sessions = self.registry.sessions.lock();
        let existing = sessions.entry(session.clone()).or_default();
        *existing = existing.or(cost);
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.registry.sessions.lock().remove(session);
    }

    pub(super) fn cost(&self, session: &SessionId) -> Option<u64> {
        self.registry.sessions.lock().get(session).copied().flatten()
    }

    pub(super) fn commands(&self) -> Vec<SlashCommand> {
        self.registry.commands.lock().clone()
    }

    /// Subscribes to the events of a session until the listener is dropped.
    pub(super) fn listen(&self, session: &SessionId) -> Listener {
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        self.registry.listeners.lock().insert(session.clone(), sender);
        Listener { events, session: session.clone(), registry: self.registry.clone() }
    }
}

pub(super) struct Listener {
    pub(super) events: mpsc::Receiver<SessionEvent>,
    session: SessionId,
    registry: Arc<SessionRegistry>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.registry.listeners.lock().remove(&self.session);
    }
}

/// Runs the connection until it closes, the program exits, or `kill` is cancelled. When it returns, the
/// program and everything that it started are dead.
async fn run_connection(
    mut running: RunningProgram,
    stdin: ChildStdin,
    stdout: ChildStdout,
    session_registry: Arc<SessionRegistry>,
    connected: oneshot::Sender<ConnectionTo<Agent>>,
    kill: &CancellationToken,
) -> Result<Option<ExitStatus>, Error> {
    // Backpressure: `false` while a handler waits for space in the full queue of a session's listener. No
    // lines are read from the program then.
    let (gate, open) = watch::channel(true);
    let gate = Arc::new(gate);
    let transport = agent_client_protocol::Lines::new(outgoing(stdin), incoming(stdout, open));
    let update = {
        let (session_registry, gate) = (session_registry.clone(), gate.clone());
        async move |notification: SessionNotification, _| {
            session_registry.record(&notification);
            let event = SessionEvent::Update(Box::new(notification.update));
            session_registry.deliver(&notification.session_id, event, &gate).await;
            Ok(())
        }
    };
    let permission = async move |request: RequestPermissionRequest, responder, _| {
        let session = request.session_id.clone();
        let event = SessionEvent::Permission(Box::new((request, PendingPermission(Some(responder)))));
        session_registry.deliver(&session, event, &gate).await;
        Ok(())
    };
    let connection = Client
        .v1()
        .name("parlor")
        .on_receive_notification(update, on_receive_notification!())
        .on_receive_request(permission, on_receive_request!())
        .connect_with(transport, async |agent: ConnectionTo<Agent>| {
            let _ = connected.send(agent.clone());
            agent.incoming_closed().await;
            Ok(())
        });
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        status = running.wait() => {
            // Output written before the exit is still in the pipe.
            let drained = timeout(OUTPUT_DRAIN_TIMEOUT, &mut connection);
            let _ = kill.run_until_cancelled(drained).await;
            return Ok(status.ok());
        }
        () = kill.cancelled() => Ok(()),
    };
    let status = match kill.is_cancelled() {
        true => None,
        false => timeout(EXIT_GRACE, running.wait()).await.ok().and_then(Result::ok),
    };
    if status.is_none() {
        running.stop().await;
    }
    outcome.map(|()| status)
}

impl SessionRegistry {
    /// Delivers an event to the listener of its session, and closes the gate while the listener's queue is
    /// full. Without a listener the event is dropped: it is history replayed by `session/load`, or the run
    /// has ended.
    async fn deliver(&self, session: &SessionId, event: SessionEvent, gate: &watch::Sender<bool>) {
        let listener = self.listeners.lock().get(session).cloned();
        let Some(listener) = listener else { return };
        if let Err(mpsc::error::TrySendError::Full(event)) = listener.try_send(event) {
            gate.send_replace(false);
            let _ = listener.send(event).await;
            gate.send_replace(true);
        }
    }

    /// Stores the cost or the slash commands from a notification.
    fn record(&self, notification: &SessionNotification) {
        match &notification.update {
            SessionUpdate::UsageUpdate(usage) => {
                let dollars = usage.cost.as_ref().filter(|cost| cost.currency == "USD");
                let Some(micros) = dollars.map(|cost| (cost.amount * 1e6).round() as u64) else { return };
                if let Some(cost) = self.sessions.lock().get_mut(&notification.session_id) {
                    *cost = Some(micros);
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

/// Lines from the program's stdout. Lines that are not JSON objects are skipped.
fn incoming(
    stdout: ChildStdout,
    open: watch::Receiver<bool>,
) -> impl stream::Stream<Item = io::Result<String>> + Send + 'static {
    stream::try_unfold((Lines::new(stdout, MAX_LINE_BYTES), open), |(mut lines, mut open)| async move {
        loop {
            let _ = open.wait_for(|open| *open).await;
            match lines.next().await? {
                None => return Ok(None),
                Some(Line::Text(line)) if line.trim_start().starts_with('{') => {
                    return Ok(Some((line, (lines, open))));
                }
                Some(Line::Text(_)) => {}
                // The skipped line may be an answer that a request waits for, so the connection fails.
                Some(Line::TooLong) => return Err(io::Error::other("a line is too long")),
            }
        }
    })
}

/// Writes lines to the program's stdin. Write errors are ignored: the program's exit shows the reason.
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
    stderr_tail: String,
) -> Box<str> {
    let mut reason = match status {
        _ if kill.is_cancelled() => return format!("{name} was stopped.").into(),
        Ok(Some(status)) => format!("{name} exited ({status})."),
        Ok(None) => format!("{name} closed the connection."),
        Err(error) => format!("The connection to {name} failed: {}.", error_text(&error)),
    };
    if !stderr_tail.is_empty() {
        reason += &format!(" Its last error output:\n{stderr_tail}");
    }
    reason.into()
}

/// Message and data of an ACP error as one text of at most 1,000 characters, without a full stop at its end.
pub(super) fn error_text(error: &Error) -> String {
    let data = error.data.as_ref().map(|data| match data {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(fields) => {
            let text = ["details", "message", "error"].iter().find_map(|field| fields.get(*field)?.as_str());
            text.map_or_else(|| data.to_string(), str::to_owned)
        }
        data => data.to_string(),
    });
    let text = match data {
        Some(data) if !error.message.contains(&data) => format!("{}: {data}", error.message),
        _ => error.message.clone(),
    };
    text.chars().take(1_000).collect::<String>().trim_end_matches('.').to_owned()
}
