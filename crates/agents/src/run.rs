//! The interface between an agent kind and the code that drives its runs.
//!
//! An agent kind receives a [`RunInput`] and writes its output to a [`RunIo`]. It knows nothing of frames
//! or sockets: the driver (the gateway, or a test) reads the output and forwards it. The output queue is
//! bounded; when it is full, the agent kind waits.

use parlor_model::{Chunk, ChunkKind, Payload, RunEvent, RunId};
use parlor_wire::agentim::gateway::host::ingress::{
    InjectedMessage, PermissionOutcome, RoomView, RunRequest,
};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Everything an agent kind receives when a run starts.
#[derive(Debug)]
pub struct RunInput {
    pub request: RunRequest,
    /// Newest description of the room that the hub sent, if any; `None` in a session.
    pub room: Option<Arc<RoomView>>,
    /// Session id that the agent last saved for this context with [`RunIo::save_session`]; survives restarts.
    pub session: Option<Box<str>>,
}

/// How a run ended, as reported by the agent kind that executed it.
#[derive(Debug, PartialEq, Eq)]
pub enum RunResult {
    Finished,
    /// The run failed; the text is a reason to show to users.
    Failed(Box<str>),
    Stopped,
}

/// One item of output that an agent kind produces during a run.
#[derive(Debug)]
pub enum AgentOutput {
    Chunk(Chunk),
    Event(RunEvent),
    Terminal(Box<str>),
    PermissionRequest {
        tool: Box<str>,
        input: Payload,
        answer: oneshot::Sender<PermissionOutcome>,
    },
    /// Session id to pass in [`RunInput::session`] of the next run in this context.
    Session(Box<str>),
    /// The agent used an injected message. The hub has queued this run for it, which is no longer needed.
    InjectionAccepted(RunId),
}

/// Error: the driver has dropped the receiver of the run's output.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputClosed;

/// Output, injected messages and the stop signal of one run, as seen by its agent kind.
#[derive(Debug)]
pub struct RunIo {
    output: mpsc::Sender<AgentOutput>,
    stop: CancellationToken,
    /// Messages injected while the run is active; `None` if this run accepts none.
    injections: Mutex<Option<mpsc::Receiver<InjectedMessage>>>,
}

impl RunIo {
    /// Creates the I/O of one run, with an output queue of `capacity` items.
    ///
    /// Returns it with the two ends for the driver: the receiver of the output and the token that stops the
    /// run.
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<AgentOutput>, CancellationToken) {
        let (output, receiver) = mpsc::channel(capacity);
        let stop = CancellationToken::new();
        (Self { output, stop: stop.clone(), injections: Mutex::new(None) }, receiver, stop)
    }

    /// Sets the source of the messages that are injected while the run is active.
    pub fn with_injections(self, injections: mpsc::Receiver<InjectedMessage>) -> Self {
        Self { injections: Mutex::new(Some(injections)), ..self }
    }

    /// Waits for the next message that is injected into the active run; pending forever if there is no
    /// source.
    ///
    /// An agent kind that used the message calls [`RunIo::accept_injection`] before the run ends. The hub
    /// starts a separate run for every injected message that was not accepted.
    pub async fn next_injection(&self) -> InjectedMessage {
        let mut injections = self.injections.lock().await;
        match injections.as_mut() {
            Some(injections) => match injections.recv().await {
                Some(injection) => injection,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    pub async fn accept_injection(&self, injection: &InjectedMessage) -> Result<(), OutputClosed> {
        self.send(AgentOutput::InjectionAccepted(injection.added.clone())).await
    }

    pub async fn send_text(&self, kind: ChunkKind, content: impl Into<Arc<str>>) -> Result<(), OutputClosed> {
        self.send_chunk(Chunk { kind, content: content.into(), metadata: None }).await
    }

    pub async fn send_chunk(&self, chunk: Chunk) -> Result<(), OutputClosed> {
        self.send(AgentOutput::Chunk(chunk)).await
    }

    pub async fn send_event(&self, event: RunEvent) -> Result<(), OutputClosed> {
        self.send(AgentOutput::Event(event)).await
    }

    pub async fn send_terminal(&self, terminal: impl Into<Box<str>>) -> Result<(), OutputClosed> {
        self.send(AgentOutput::Terminal(terminal.into())).await
    }

    pub async fn save_session(&self, session: impl Into<Box<str>>) -> Result<(), OutputClosed> {
        self.send(AgentOutput::Session(session.into())).await
    }

    /// Requests approval for a tool call and waits for the decision.
    ///
    /// Default deny: if the driver drops the request without a decision, the outcome is `Denied`.
    pub async fn request_permission(
        &self,
        tool: impl Into<Box<str>>,
        input: Payload,
    ) -> Result<PermissionOutcome, OutputClosed> {
        let (answer, answered) = oneshot::channel();
        self.send(AgentOutput::PermissionRequest { tool: tool.into(), input, answer }).await?;
        Ok(answered.await.unwrap_or(PermissionOutcome::Denied { reason: None }))
    }

    /// Resolves when the run is stopped. The agent kind then has a grace period to return before it is
    /// dropped.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    async fn send(&self, output: AgentOutput) -> Result<(), OutputClosed> {
        self.output.send(output).await.map_err(|_| OutputClosed)
    }
}
