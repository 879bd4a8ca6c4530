//! Drives single runs of an agent kind without a gateway: collects the output and answers permission
//! requests.

use parlor_agents::kinds::AgentKind;
use parlor_agents::run::{AgentOutput, RunInput, RunIo, RunResult};
use parlor_model::{AgentId, Chunk, ChunkKind, MessageId, RoomId, RunContext, RunEvent, RunId};
use parlor_wire::agentim::gateway::host::ingress::{
    InjectedMessage, PermissionOutcome, RunRequest, SenderType,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Timeout for each step of a run.
pub const RUN_TIMEOUT: Duration = Duration::from_secs(60);

pub fn run_input(room: &str, content: &str, session: Option<&str>) -> RunInput {
    let request = RunRequest {
        agent: AgentId::parse("actor").unwrap(),
        context: RunContext::Room(RoomId::parse(room).unwrap()),
        message: MessageId::parse("m").unwrap(),
        run: None,
        content: content.into(),
        sender_name: "Ada".into(),
        sender: SenderType::User,
        by_policy: false,
        conversation: None,
        depth: 0,
        earlier: Vec::new(),
    };
    RunInput { request, room: None, session: session.map(Into::into) }
}

/// An active run.
pub struct ActiveRun {
    pub stop: CancellationToken,
    pub output: mpsc::Receiver<AgentOutput>,
    pub task: JoinHandle<RunResult>,
}

impl ActiveRun {
    pub fn begin(agent: &Arc<AgentKind>, run_input: RunInput) -> Self {
        Self::begin_with(agent, run_input, &[])
    }

    /// Starts a run with messages that are queued for injection before it begins.
    pub fn begin_with(agent: &Arc<AgentKind>, run_input: RunInput, injected: &[&str]) -> Self {
        let (run_io, output, stop) = RunIo::new(8);
        let (sender, injections) = mpsc::channel(8);
        for (number, content) in injected.iter().enumerate() {
            let RunRequest { agent, context, .. } = run_input.request.clone();
            let (run, added) = (RunId::stored("run"), RunId::stored(format!("next-{number}")));
            sender
                .try_send(InjectedMessage { agent, context, run, added, content: (*content).into() })
                .unwrap();
        }
        let run_io = run_io.with_injections(injections);
        let agent = agent.clone();
        let task = tokio::spawn(async move { agent.execute(&run_input, &run_io).await });
        Self { stop, output, task }
    }

    pub async fn next(&mut self) -> Option<AgentOutput> {
        timeout(RUN_TIMEOUT, self.output.recv()).await.expect("the run sends output in time")
    }

    /// Reads output until the text contains `expected`, and returns the text read so far.
    pub async fn until(&mut self, expected: &str) -> String {
        let mut text = String::new();
        while !text.contains(expected) {
            match self.next().await {
                Some(AgentOutput::Chunk(chunk)) if chunk.kind == ChunkKind::Text => text += &chunk.content,
                Some(_) => {}
                None => panic!("the run ended with {text}"),
            }
        }
        text
    }

    /// Reads output until the agent requests a permission, and returns the tool, its input and the reply
    /// channel.
    pub async fn permission_request(&mut self) -> (Box<str>, Value, oneshot::Sender<PermissionOutcome>) {
        loop {
            match self.next().await.expect("the run requests a permission before it ends") {
                AgentOutput::PermissionRequest { tool, input, answer } => {
                    return (tool, serde_json::from_str(&input.0).unwrap(), answer);
                }
                _ => continue,
            }
        }
    }

    /// Collects the remaining output and the result of the run.
    pub async fn end(mut self) -> FinishedRun {
        let mut finished_run = FinishedRun::default();
        while let Some(output) = self.next().await {
            match output {
                AgentOutput::Chunk(chunk) => finished_run.chunks.push(chunk),
                AgentOutput::Event(event) => finished_run.events.push(event),
                AgentOutput::Session(session) => finished_run.session = Some(session),
                AgentOutput::PermissionRequest { tool, .. } => {
                    panic!("unexpected permission request for {tool}")
                }
                AgentOutput::InjectionAccepted(run) => finished_run.accepted.push(run),
                AgentOutput::Terminal(_) => {}
            }
        }
        finished_run.result =
            Some(timeout(RUN_TIMEOUT, self.task).await.expect("the run ends in time").unwrap());
        finished_run
    }
}

/// The output and the result of a run that has ended.
#[derive(Debug, Default)]
pub struct FinishedRun {
    pub chunks: Vec<Chunk>,
    pub events: Vec<RunEvent>,
    pub session: Option<Box<str>>,
    pub accepted: Vec<RunId>,
    pub result: Option<RunResult>,
}

impl FinishedRun {
    pub fn of(&self, kind: ChunkKind) -> String {
        self.chunks.iter().filter(|chunk| chunk.kind == kind).map(|chunk| &*chunk.content).collect()
    }

    pub fn text(&self) -> String {
        self.of(ChunkKind::Text)
    }

    /// Kind, content and metadata of each tool chunk.
    pub fn tools(&self) -> Vec<(ChunkKind, &str, Value)> {
        let of_tools = |chunk: &&Chunk| matches!(chunk.kind, ChunkKind::ToolUse | ChunkKind::ToolResult);
        let metadata = |chunk: &Chunk| serde_json::from_str(&chunk.metadata.as_ref().unwrap().0).unwrap();
        self.chunks
            .iter()
            .filter(of_tools)
            .map(|chunk| (chunk.kind, &*chunk.content, metadata(chunk)))
            .collect()
    }

    pub fn finished(self) -> Self {
        assert_eq!(self.result, Some(RunResult::Finished), "{:?}", self.chunks);
        self
    }

    pub fn why_failed(&self) -> &str {
        match &self.result {
            Some(RunResult::Failed(reason)) => reason,
            other => panic!("the run ended with {other:?}"),
        }
    }
}
