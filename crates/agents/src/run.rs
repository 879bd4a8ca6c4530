//! One turn of an agent, as a kind of agent sees it: what it is asked, and how it makes itself heard.
//!
//! A kind knows nothing of frames and sockets: it plays a [`RunInput`] on a [`RunIo`], and whoever drives it passes on
//! what was said. A stage that is full makes its speaker wait.

use parlor_model::{Chunk, ChunkKind, Payload, RunEvent, RunId};
use parlor_wire::agentim::gateway::host::ingress::{
    InjectedMessage, PermissionOutcome, RoomView, RunRequest,
};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// What an agent is asked.
#[derive(Debug)]
pub struct RunInput {
    pub request: RunRequest,
    /// The room as the hub last told of it.
    pub room: Option<Arc<RoomView>>,
    /// What this agent called its session in this room, the last time it said so; kept over restarts.
    pub session: Option<Box<str>>,
}

/// How a turn ended, for whoever played it.
#[derive(Debug, PartialEq, Eq)]
pub enum RunResult {
    Finished,
    /// For the reason given, in words for people.
    Failed(Box<str>),
    Stopped,
}

/// What an agent says in a turn.
#[derive(Debug)]
pub enum AgentOutput {
    Chunk(Chunk),
    Event(RunEvent),
    Terminal(Box<str>),
    Question {
        tool: Box<str>,
        input: Payload,
        answer: oneshot::Sender<PermissionOutcome>,
    },
    /// To be given back with the next turn in this room.
    Session(Box<str>),
    /// It has what was said to it meanwhile, and the turn that would follow for that is not needed.
    Took(RunId),
}

/// Nobody listens any more.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputClosed;

/// Where an agent speaks while it plays a turn.
#[derive(Debug)]
pub struct RunIo {
    said: mpsc::Sender<AgentOutput>,
    stop: CancellationToken,
    /// What is said to it meanwhile.
    more: Mutex<Option<mpsc::Receiver<InjectedMessage>>>,
}

impl RunIo {
    /// With room for so many words that nobody has fetched yet.
    pub fn new(room: usize) -> (Self, mpsc::Receiver<AgentOutput>, CancellationToken) {
        let (said, heard) = mpsc::channel(room);
        let stop = CancellationToken::new();
        (Self { said, stop: stop.clone(), more: Mutex::new(None) }, heard, stop)
    }

    /// Where more may be said to the agent while it plays.
    pub fn open_to(self, more: mpsc::Receiver<InjectedMessage>) -> Self {
        Self { more: Mutex::new(Some(more)), ..self }
    }

    /// Waits for what is said to the agent while it plays. Who has made use of it says so with [`RunIo::accept_injection`], before
    /// its turn ends; what nobody took is another turn.
    pub async fn next_injection(&self) -> InjectedMessage {
        let mut more = self.more.lock().await;
        match more.as_mut() {
            Some(more) => match more.recv().await {
                Some(addition) => addition,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    pub async fn accept_injection(&self, addition: &InjectedMessage) -> Result<(), OutputClosed> {
        self.pass_on(AgentOutput::Took(addition.added.clone())).await
    }

    pub async fn say(&self, kind: ChunkKind, content: impl Into<Arc<str>>) -> Result<(), OutputClosed> {
        self.show(Chunk { kind, content: content.into(), metadata: None }).await
    }

    pub async fn show(&self, chunk: Chunk) -> Result<(), OutputClosed> {
        self.pass_on(AgentOutput::Chunk(chunk)).await
    }

    pub async fn tell(&self, event: RunEvent) -> Result<(), OutputClosed> {
        self.pass_on(AgentOutput::Event(event)).await
    }

    pub async fn print(&self, terminal: impl Into<Box<str>>) -> Result<(), OutputClosed> {
        self.pass_on(AgentOutput::Terminal(terminal.into())).await
    }

    pub async fn remember(&self, session: impl Into<Box<str>>) -> Result<(), OutputClosed> {
        self.pass_on(AgentOutput::Session(session.into())).await
    }

    /// Waits for people. Who cannot be asked has not said yes.
    pub async fn ask(
        &self,
        tool: impl Into<Box<str>>,
        input: Payload,
    ) -> Result<PermissionOutcome, OutputClosed> {
        let (answer, answered) = oneshot::channel();
        self.pass_on(AgentOutput::Question { tool: tool.into(), input, answer }).await?;
        Ok(answered.await.unwrap_or(PermissionOutcome::Denied { reason: None }))
    }

    /// Resolves when somebody said stop. Whoever plays has a moment to end by itself and is then dropped.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    async fn pass_on(&self, said: AgentOutput) -> Result<(), OutputClosed> {
        self.said.send(said).await.map_err(|_| OutputClosed)
    }
}
