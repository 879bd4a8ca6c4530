//! The guide: the agent that comes with every hub. It needs no model and no key, answers when it is
//! mentioned, and demonstrates on request everything that an agent can do.
//!
//! Owns: one reply per message, in any number of rooms concurrently; a stop ends a reply at once. Its only
//! state are the active replies, and the same request always gets the same reply.

mod player;
mod request;
mod script;

use crate::FrameChannel;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parlor_model::{AgentId, AnswerKind, MessageId, Payload, RoomId, RunContext};
use parlor_wire::agentim::gateway::frames::AnswerFrame;
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{Instruction, RunRequest, SenderType, read};
use parlor_wire::agentim::gateway::ingress::{AgentForm, GatewayMessage, RelayedAnswer, Status};
use parlor_wire::frames::encode;
use player::{ScriptPlayer, UserResponse};
use script::ScriptContext;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::mpsc;

/// Id, name and kind of the guide.
pub const NAME: &str = "guide";

/// Runs the guide until the hub drops its end of the channel or removes the agent.
pub async fn guide(channel: FrameChannel) {
    let FrameChannel { mut incoming, outgoing } = channel;
    if outgoing.send(egress::write(&GatewayMessage::Register(form()))).await.is_err() {
        return;
    }
    let mut active =
        ActiveReplies { replies: HashMap::new(), tasks: FuturesUnordered::new(), outgoing: outgoing.clone() };
    let mut sent_busy = false;
    loop {
        let busy = !active.replies.is_empty();
        // Incoming frames are read even while the outgoing side is full. Otherwise the hub and the guide
        // could wait for each other forever.
        tokio::select! {
            biased;
            frame = incoming.recv() => {
                let Some(frame) = frame else { return };
                // Invalid frames and unknown types are ignored.
                if let Ok(Some(instruction)) = read(&frame)
                    && active.handle(instruction).is_break()
                {
                    return;
                }
            }
            permit = outgoing.reserve(), if busy != sent_busy => {
                let Ok(permit) = permit else { return };
                permit.send(egress::write(&status(busy)));
                sent_busy = busy;
            }
            Some(ended) = active.tasks.next(), if !active.tasks.is_empty() => {
                if let Some(reply) = ended {
                    active.replies.remove(&reply);
                }
            }
        }
    }
}

/// Future of a reply, which returns the reply's id, or of another answer, which returns `None`.
type Task = Pin<Box<dyn Future<Output = Option<MessageId>> + Send>>;

/// The active replies. The guide's own future drives all of them, so a stopped reply sends nothing after
/// the stop was read.
struct ActiveReplies {
    /// Active replies by message id. The hub limits them to one run per context.
    replies: HashMap<MessageId, ActiveReply>,
    tasks: FuturesUnordered<Task>,
    outgoing: mpsc::Sender<String>,
}

struct ActiveReply {
    context: RunContext,
    stop: AbortHandle,
    answers: mpsc::Sender<(Box<str>, UserResponse)>,
}

/// Capacity of the queue of user responses of a reply. A reply asks at most twice; further responses are
/// dropped.
const RESPONSE_QUEUE_CAPACITY: usize = 4;

impl ActiveReplies {
    fn handle(&mut self, instruction: Instruction) -> std::ops::ControlFlow<()> {
        match instruction {
            Instruction::Answer(request) => self.start_reply(request),
            Instruction::Stop { context, .. } => self.stop(context.as_ref()),
            Instruction::Decided { request, verdict, .. } => {
                self.deliver(request, UserResponse::Verdict(verdict))
            }
            Instruction::Answered { question, answers, .. } => {
                self.deliver(question, UserResponse::Answers(answers))
            }
            Instruction::Remove { .. } => return std::ops::ControlFlow::Break(()),
            Instruction::Command { agent, room, command, .. } => {
                let body = encode(&AnswerFrame::AgentCommandResult {
                    agent_id: agent.as_str(),
                    room_id: room.as_str(),
                    command: &command,
                    success: false,
                    message: "I have no commands. Mention me, and I will show you around.",
                });
                self.answer(AnswerKind::AgentCommand, agent, Some(room), body);
            }
            Instruction::DescribeAgent { agent, room } => {
                let body = encode(&AnswerFrame::AgentInfo {
                    agent_id: agent.as_str(),
                    slash_commands: Vec::<Value>::new().into(),
                    mcp_servers: [],
                    permission_level: "interactive",
                    model: None,
                    room_id: room.as_ref().map(RoomId::as_str),
                });
                self.answer(AnswerKind::AgentInfo, agent, room, body);
            }
            Instruction::ShowWorkspace { agent, room, request, .. } => {
                let response = json!({ "kind": "error", "message": "I have no working directory." });
                let (agent_id, request_id) = (agent.as_str(), &*request);
                let body = encode(&AnswerFrame::WorkspaceResponse { agent_id, request_id, response });
                self.answer(AnswerKind::Workspace, agent, Some(room), body);
            }
            // The guide has no credentials and no sessions, accepts no injections, and its in-process
            // channel never reconnects.
            Instruction::Welcome
            | Instruction::Add(_)
            | Instruction::Ended { .. }
            | Instruction::Resumed { .. }
            | Instruction::AuthFailed { .. }
            | Instruction::Look { .. }
            | Instruction::Rewind { .. }
            | Instruction::Spawn { .. }
            | Instruction::Relay { .. }
            | Instruction::Refused { .. }
            | Instruction::Pong { .. } => {}
        }
        std::ops::ControlFlow::Continue(())
    }

    fn start_reply(&mut self, request: RunRequest) {
        let reply = reply_id(&request);
        if self.replies.contains_key(&reply) {
            return;
        }
        let context = ScriptContext {
            asked_by: &request.sender_name,
            sender: request.sender,
            by_policy: request.by_policy,
            reply: reply.as_str(),
        };
        // A message of the hub itself announces a new member, who is greeted.
        let guide_request = match request.sender {
            SenderType::System => request::GuideRequest::Greeting,
            SenderType::User | SenderType::Agent => request::parse(&request.content),
        };
        let steps = script::steps(&guide_request, &context);
        let (answers, responses) = mpsc::channel(RESPONSE_QUEUE_CAPACITY);
        let context = request.context.clone();
        let outgoing = self.outgoing.clone();
        let script_player = ScriptPlayer { request, reply: reply.clone(), outgoing, responses };
        let (stopped_frame, outgoing) = (script_player.stopped_frame(), self.outgoing.clone());
        let (playing, stop) = abortable(script_player.play(steps));
        self.replies.insert(reply.clone(), ActiveReply { context, stop, answers });
        self.tasks.push(Box::pin(async move {
            // A stopped reply is completed, so that the hub knows that nothing follows.
            if playing.await.is_err() {
                let _ = outgoing.send(stopped_frame).await;
            }
            Some(reply)
        }));
    }

    fn stop(&mut self, context: Option<&RunContext>) {
        let matches = |reply: &&ActiveReply| context.is_none_or(|context| reply.context == *context);
        for reply in self.replies.values().filter(matches) {
            reply.stop.abort();
        }
    }

    /// Delivers a user response to its reply: the id of a question starts with the id of its reply. The
    /// reply itself checks whether it waits for this question.
    fn deliver(&self, question: Box<str>, response: UserResponse) {
        for (_, reply) in self.replies.iter().filter(|(id, _)| question.starts_with(id.as_str())) {
            let _ = reply.answers.try_send((question.clone(), response.clone()));
        }
    }

    fn answer(&mut self, kind: AnswerKind, agent: AgentId, room: Option<RoomId>, body: String) {
        let body = Payload(body.into());
        let message =
            GatewayMessage::Answer(RelayedAnswer { kind, agent: Some(agent), room, request: None, body });
        let outgoing = self.outgoing.clone();
        self.tasks.push(Box::pin(async move {
            let _ = outgoing.send(egress::write(&message)).await;
            None
        }));
    }
}

fn form() -> AgentForm {
    AgentForm {
        id: AgentId::stored(NAME),
        name: NAME.into(),
        kind: NAME.into(),
        working_directory: None,
        capabilities: Vec::new(),
        model: None,
        slash_commands: None,
        mcp_servers: None,
    }
}

fn status(busy: bool) -> GatewayMessage {
    let status = if busy { Status::Busy } else { Status::Online };
    GatewayMessage::Status { agent: AgentId::stored(NAME), status, queue_depth: 0 }
}

/// Message id of the reply, derived from the run: unique, and the same if the hub sends the same run twice.
fn reply_id(request: &RunRequest) -> MessageId {
    let origin = request.run.as_ref().map_or(request.message.as_str(), |run| run.as_str());
    // An id has at most 64 characters, and its end is its most distinctive part.
    let origin = &origin[origin.len().saturating_sub(56)..];
    MessageId::stored(format!("{NAME}-{origin}"))
}
