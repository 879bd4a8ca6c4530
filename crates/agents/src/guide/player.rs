//! Executes a script: sends its steps as frames with pauses between them, and waits for the answers of users.
//!
//! Owns: chunks are sent in order, and together they are the final text of the reply. Dropping the future
//! stops the reply: no frame is sent afterwards.

use super::script::Step;
use parlor_model::{Chunk, ChunkKind, MessageId, Payload, RunOutcome};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{PermissionOutcome, QuestionReply, RunRequest};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, PermissionForm, ReplyTarget};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Delay between two chunks, so that users see the text appear.
const CHUNK_DELAY: Duration = Duration::from_millis(20);
/// Minimum bytes of a chunk; it ends at the first space after them.
const MIN_CHUNK_BYTES: usize = 12;
/// Timeout for users to decide a permission request.
pub const PERMISSION_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of the hub for answers to questions.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(300);
/// Additional time before the guide continues by itself if the hub does not report an expired timeout.
const HUB_GRACE: Duration = Duration::from_secs(10);

pub struct ScriptPlayer {
    pub request: RunRequest,
    pub reply: MessageId,
    pub outgoing: mpsc::Sender<String>,
    /// Responses of users, each with the id of its question.
    pub responses: mpsc::Receiver<(Box<str>, UserResponse)>,
}

/// A user's decision on a permission request, or answers to questions.
#[derive(Debug, Clone)]
pub enum UserResponse {
    Verdict(PermissionOutcome),
    Answers(Vec<QuestionReply>),
}

/// Error: the hub has closed the channel.
struct HubGone;

impl ScriptPlayer {
    pub async fn play(mut self, steps: Vec<Step>) {
        // If the hub has closed the channel, there is no receiver for the rest of the reply.
        let _ = self.play_steps(steps).await;
    }

    async fn play_steps(&mut self, steps: Vec<Step>) -> Result<(), HubGone> {
        let mut steps = VecDeque::from(steps);
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut requests = 0;
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Say(text) => chunks.push(self.stream(ChunkKind::Text, &text).await?),
                Step::Think(text) => chunks.push(self.stream(ChunkKind::Thinking, text).await?),
                Step::Show { kind, content, metadata } => {
                    let metadata = metadata.map(|value| Payload(value.to_string().into()));
                    let chunk = Chunk { kind, content: content.into(), metadata };
                    self.send_chunk(chunk.clone()).await?;
                    chunks.push(chunk);
                }
                Step::Event(event) => {
                    let (agent, context) = (self.request.agent.clone(), Some(self.request.context.clone()));
                    let message = Some(self.reply.clone());
                    self.send(&GatewayMessage::RunEvent { agent, context, message, event }).await?;
                }
                Step::Print(data) => {
                    let (agent, context) = (self.request.agent.clone(), Some(self.request.context.clone()));
                    self.send(&GatewayMessage::Terminal { agent, context, data: data.into() }).await?;
                }
                Step::Ask { tool, input, then } => {
                    requests += 1;
                    let request: Box<str> = format!("{}-p{requests}", self.reply).into();
                    let input = Payload(input.to_string().into());
                    let outcome = self.request_permission(request, tool, input).await?;
                    for step in then(&outcome).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::AwaitAnswers { then } => {
                    let question = format!("{}-q", self.reply);
                    let answers = match self.response(&question, QUESTION_TIMEOUT + HUB_GRACE).await? {
                        Some(UserResponse::Answers(answers)) => answers,
                        _ => Vec::new(),
                    };
                    for step in then(&answers).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Pause(time) => sleep(time).await,
            }
        }
        self.complete(chunks).await
    }

    async fn stream(&self, kind: ChunkKind, text: &str) -> Result<Chunk, HubGone> {
        for part in split(text) {
            self.send_chunk(Chunk { kind, content: part.into(), metadata: None }).await?;
        }
        Ok(Chunk { kind, content: text.into(), metadata: None })
    }

    async fn send_chunk(&self, chunk: Chunk) -> Result<(), HubGone> {
        sleep(CHUNK_DELAY).await;
        self.send(&GatewayMessage::Chunk { reply: self.reply_target(), chunk }).await
    }

    async fn request_permission(
        &mut self,
        request: Box<str>,
        tool: &'static str,
        input: Payload,
    ) -> Result<PermissionOutcome, HubGone> {
        self.send(&GatewayMessage::Permission(PermissionForm {
            request: request.clone(),
            agent: self.request.agent.clone(),
            context: Some(self.request.context.clone()),
            tool: tool.into(),
            input,
            timeout_ms: Some(PERMISSION_TIMEOUT.as_millis() as u64),
        }))
        .await?;
        Ok(match self.response(&request, PERMISSION_TIMEOUT + HUB_GRACE).await? {
            Some(UserResponse::Verdict(outcome)) => outcome,
            _ => PermissionOutcome::Expired,
        })
    }

    /// Waits for the response to this question; `None` after the timeout.
    async fn response(
        &mut self,
        question: &str,
        max_wait: Duration,
    ) -> Result<Option<UserResponse>, HubGone> {
        let response = async {
            loop {
                match self.responses.recv().await {
                    Some((id, response)) if *id == *question => return Ok(Some(response)),
                    Some(_) => {}
                    None => return Err(HubGone),
                }
            }
        };
        timeout(max_wait, response).await.unwrap_or(Ok(None))
    }

    /// Frame that completes a stopped reply. It has no text: the chunks that were sent are the reply.
    pub fn stopped_frame(&self) -> String {
        egress::write(&GatewayMessage::Complete {
            reply: self.reply_target(),
            text: None,
            chunks: Vec::new(),
            conversation: self.request.conversation.as_ref().map(|id| id.as_str().into()),
            depth: Some(self.request.depth),
            outcome: RunOutcome::Complete,
        })
    }

    async fn complete(&self, chunks: Vec<Chunk>) -> Result<(), HubGone> {
        let texts = chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Text);
        let text: String = texts.map(|chunk| &*chunk.content).collect();
        self.send(&GatewayMessage::Complete {
            reply: self.reply_target(),
            text: Some(text.into()),
            chunks,
            conversation: self.request.conversation.as_ref().map(|id| id.as_str().into()),
            depth: Some(self.request.depth),
            outcome: RunOutcome::Complete,
        })
        .await
    }

    fn reply_target(&self) -> ReplyTarget {
        ReplyTarget {
            agent: self.request.agent.clone(),
            context: Some(self.request.context.clone()),
            message: Some(self.reply.clone()),
            run: self.request.run.clone(),
            target_agent: None,
        }
    }

    async fn send(&self, message: &GatewayMessage) -> Result<(), HubGone> {
        self.outgoing.send(egress::write(message)).await.map_err(|_| HubGone)
    }
}

/// Splits a text into small parts, each ending after a space.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let cut = rest.char_indices().find(|(at, c)| *at >= MIN_CHUNK_BYTES && c.is_whitespace());
        let (part, left) = rest.split_at(cut.map_or(rest.len(), |(at, c)| at + c.len_utf8()));
        rest = left;
        Some(part)
    })
}
