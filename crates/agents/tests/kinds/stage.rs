//! A room with one person in it, who sees and answers everything.

use parlor_agents::kinds::AgentKind;
use parlor_agents::run::{AgentOutput, RunInput, RunIo, RunResult};
use parlor_model::{AgentId, Chunk, ChunkKind, MessageId, RoomId, RunEvent, RunId};
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

pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn turn(room: &str, content: &str, session: Option<&str>) -> RunInput {
    let request = RunRequest {
        agent: AgentId::parse("actor").unwrap(),
        room: RoomId::parse(room).unwrap(),
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

/// A turn that is under way.
pub struct Playing {
    pub stop: CancellationToken,
    pub heard: mpsc::Receiver<AgentOutput>,
    pub task: JoinHandle<RunResult>,
}

impl Playing {
    pub fn begin(agent: &Arc<AgentKind>, turn: RunInput) -> Self {
        Self::begin_with(agent, turn, &[])
    }

    /// With something that is said to it as soon as it listens.
    pub fn begin_with(agent: &Arc<AgentKind>, turn: RunInput, meanwhile: &[&str]) -> Self {
        let (stage, heard, stop) = RunIo::new(8);
        let (more, waiting) = mpsc::channel(8);
        for (number, content) in meanwhile.iter().enumerate() {
            let RunRequest { agent, room, .. } = turn.request.clone();
            let (run, added) = (RunId::stored("run"), RunId::stored(format!("next-{number}")));
            more.try_send(InjectedMessage { agent, room, run, added, content: (*content).into() }).unwrap();
        }
        let stage = stage.open_to(waiting);
        let agent = agent.clone();
        let task = tokio::spawn(async move { agent.execute(&turn, &stage).await });
        Self { stop, heard, task }
    }

    pub async fn next(&mut self) -> Option<AgentOutput> {
        timeout(PATIENCE, self.heard.recv()).await.expect("it says nothing more")
    }

    /// Passes over everything until this text was said.
    pub async fn until(&mut self, words: &str) -> String {
        let mut text = String::new();
        while !text.contains(words) {
            match self.next().await {
                Some(AgentOutput::Chunk(chunk)) if chunk.kind == ChunkKind::Text => text += &chunk.content,
                Some(_) => {}
                None => panic!("it ended with {text}"),
            }
        }
        text
    }

    pub async fn question(&mut self) -> (Box<str>, Value, oneshot::Sender<PermissionOutcome>) {
        loop {
            match self.next().await.expect("it ended without a question") {
                AgentOutput::Question { tool, input, answer } => {
                    return (tool, serde_json::from_str(&input.0).unwrap(), answer);
                }
                _ => continue,
            }
        }
    }

    /// Hears the rest of it.
    pub async fn end(mut self) -> Played {
        let mut played = Played::default();
        while let Some(said) = self.next().await {
            match said {
                AgentOutput::Chunk(chunk) => played.chunks.push(chunk),
                AgentOutput::Event(event) => played.events.push(event),
                AgentOutput::Session(session) => played.session = Some(session),
                AgentOutput::Question { tool, .. } => panic!("it asked for {tool}"),
                AgentOutput::Took(run) => played.taken.push(run),
                AgentOutput::Terminal(_) => {}
            }
        }
        played.ending = Some(timeout(PATIENCE, self.task).await.expect("it does not end").unwrap());
        played
    }
}

/// A turn that is over.
#[derive(Debug, Default)]
pub struct Played {
    pub chunks: Vec<Chunk>,
    pub events: Vec<RunEvent>,
    pub session: Option<Box<str>>,
    pub taken: Vec<RunId>,
    pub ending: Option<RunResult>,
}

impl Played {
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
        assert_eq!(self.ending, Some(RunResult::Finished), "{:?}", self.chunks);
        self
    }

    pub fn why_failed(&self) -> &str {
        match &self.ending {
            Some(RunResult::Failed(why)) => why,
            other => panic!("it ended with {other:?}"),
        }
    }
}
