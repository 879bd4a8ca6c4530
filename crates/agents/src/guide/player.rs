//! Plays a script: from steps to frames, with time between them and people's answers in it.
//!
//! Owns: pieces come in order, and together they are the text that the reply ends with. To stop it, drop it: nothing
//! of the reply comes afterwards.

use super::script::Step;
use parlor_model::{Chunk, ChunkKind, MessageId, Payload, RunOutcome};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{PermissionOutcome, QuestionReply, RunRequest};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, PermissionForm, ReplyTarget};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Between two pieces, so that it can be seen to write.
const PACE: Duration = Duration::from_millis(20);
/// A piece is cut at the first space after so many bytes.
const PIECE: usize = 12;
/// How long people have for an answer.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The hub gives them as much for questions.
const OPEN_FOR: Duration = Duration::from_secs(300);
/// The hub tells when that time is over; should it not, this much later the guide goes on by itself.
const GRACE: Duration = Duration::from_secs(10);

pub struct ScriptPlayer {
    pub request: RunRequest,
    pub reply: MessageId,
    pub outgoing: mpsc::Sender<String>,
    /// What people decided or said, with the name of the question.
    pub answers: mpsc::Receiver<(Box<str>, UserResponse)>,
}

/// What came of a question.
#[derive(Debug, Clone)]
pub enum UserResponse {
    Verdict(PermissionOutcome),
    Answers(Vec<QuestionReply>),
}

/// The hub does not listen any more.
struct HubGone;

impl ScriptPlayer {
    pub async fn perform(mut self, steps: Vec<Step>) {
        // Whoever stops listening needs no farewell.
        let _ = self.play(steps).await;
    }

    async fn play(&mut self, steps: Vec<Step>) -> Result<(), HubGone> {
        let mut steps = VecDeque::from(steps);
        let mut said: Vec<Chunk> = Vec::new();
        let mut asked = 0;
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Say(text) => said.push(self.stream(ChunkKind::Text, &text).await?),
                Step::Think(text) => said.push(self.stream(ChunkKind::Thinking, text).await?),
                Step::Show { kind, content, metadata } => {
                    let metadata = metadata.map(|value| Payload(value.to_string().into()));
                    let chunk = Chunk { kind, content: content.into(), metadata };
                    self.piece(chunk.clone()).await?;
                    said.push(chunk);
                }
                Step::Tell(event) => {
                    let (agent, room) = (self.request.agent.clone(), Some(self.request.room.clone()));
                    let message = Some(self.reply.clone());
                    self.tell(&GatewayMessage::RunEvent { agent, room, message, event }).await?;
                }
                Step::Print(data) => {
                    let (agent, room) = (self.request.agent.clone(), Some(self.request.room.clone()));
                    self.tell(&GatewayMessage::Terminal { agent, room, data: data.into() }).await?;
                }
                Step::Ask { tool, input, then } => {
                    asked += 1;
                    let request: Box<str> = format!("{}-p{asked}", self.reply).into();
                    let verdict = self.ask(request, tool, Payload(input.to_string().into())).await?;
                    for step in then(&verdict).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Hear { then } => {
                    let question = format!("{}-q", self.reply);
                    let said = match self.heard(&question, OPEN_FOR + GRACE).await? {
                        Some(UserResponse::Answers(said)) => said,
                        _ => Vec::new(),
                    };
                    for step in then(&said).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Pause(time) => sleep(time).await,
            }
        }
        self.complete(said).await
    }

    async fn stream(&self, kind: ChunkKind, text: &str) -> Result<Chunk, HubGone> {
        for piece in pieces(text) {
            self.piece(Chunk { kind, content: piece.into(), metadata: None }).await?;
        }
        Ok(Chunk { kind, content: text.into(), metadata: None })
    }

    async fn piece(&self, chunk: Chunk) -> Result<(), HubGone> {
        sleep(PACE).await;
        self.tell(&GatewayMessage::Chunk { reply: self.place(), chunk }).await
    }

    async fn ask(
        &mut self,
        request: Box<str>,
        tool: &'static str,
        input: Payload,
    ) -> Result<PermissionOutcome, HubGone> {
        self.tell(&GatewayMessage::Permission(PermissionForm {
            request: request.clone(),
            agent: self.request.agent.clone(),
            room: Some(self.request.room.clone()),
            tool: tool.into(),
            input,
            timeout_ms: Some(PATIENCE.as_millis() as u64),
        }))
        .await?;
        Ok(match self.heard(&request, PATIENCE + GRACE).await? {
            Some(UserResponse::Verdict(verdict)) => verdict,
            _ => PermissionOutcome::Expired,
        })
    }

    /// What came of this question, if anything does in time.
    async fn heard(&mut self, question: &str, within: Duration) -> Result<Option<UserResponse>, HubGone> {
        let answer = async {
            loop {
                match self.answers.recv().await {
                    Some((of, heard)) if *of == *question => return Ok(Some(heard)),
                    Some(_) => {}
                    None => return Err(HubGone),
                }
            }
        };
        timeout(within, answer).await.unwrap_or(Ok(None))
    }

    /// The end of a reply that was stopped: what was heard of it is all there is.
    pub fn stopped_frame(&self) -> String {
        egress::write(&GatewayMessage::Complete {
            reply: self.place(),
            text: None,
            chunks: Vec::new(),
            conversation: self.request.conversation.as_ref().map(|id| id.as_str().into()),
            depth: Some(self.request.depth),
            outcome: RunOutcome::Complete,
        })
    }

    async fn complete(&self, said: Vec<Chunk>) -> Result<(), HubGone> {
        let texts = said.iter().filter(|chunk| chunk.kind == ChunkKind::Text);
        let text: String = texts.map(|chunk| &*chunk.content).collect();
        self.tell(&GatewayMessage::Complete {
            reply: self.place(),
            text: Some(text.into()),
            chunks: said,
            conversation: self.request.conversation.as_ref().map(|id| id.as_str().into()),
            depth: Some(self.request.depth),
            outcome: RunOutcome::Complete,
        })
        .await
    }

    fn place(&self) -> ReplyTarget {
        ReplyTarget {
            agent: self.request.agent.clone(),
            room: Some(self.request.room.clone()),
            message: Some(self.reply.clone()),
            run: self.request.run.clone(),
            target_agent: None,
        }
    }

    async fn tell(&self, told: &GatewayMessage) -> Result<(), HubGone> {
        self.outgoing.send(egress::write(told)).await.map_err(|_| HubGone)
    }
}

/// The text in small pieces, cut after spaces.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let cut = rest.char_indices().find(|(at, c)| *at >= PIECE && c.is_whitespace());
        let (piece, left) = rest.split_at(cut.map_or(rest.len(), |(at, c)| at + c.len_utf8()));
        rest = left;
        Some(piece)
    })
}
