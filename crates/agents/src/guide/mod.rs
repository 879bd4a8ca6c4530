//! The guide: the first agent of a hub. It needs no model and no key, answers who mentions it, and shows on request
//! everything that an agent can do.
//!
//! Owns: one reply for each message it is given, in as many rooms at once as the hub lets it; a stop ends a reply at
//! once. It remembers nothing but what runs, and says the same every time.

mod player;
mod request;
mod script;

use crate::FrameChannel;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parlor_model::{AgentId, AnswerKind, MessageId, Payload, RoomId};
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{Instruction, RunRequest, SenderType, read};
use parlor_wire::agentim::gateway::ingress::{AgentForm, GatewayMessage, RelayedAnswer, Status};
use player::{ScriptPlayer, UserResponse};
use script::ScriptContext;
use serde_json::json;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::mpsc;

/// Its id, its name and its kind.
pub const NAME: &str = "guide";

/// Lives until the hub drops its end of the link, or removes the agent.
pub async fn guide(link: FrameChannel) {
    let FrameChannel { mut incoming, outgoing } = link;
    if outgoing.send(egress::write(&GatewayMessage::Register(form()))).await.is_err() {
        return;
    }
    let mut stage =
        ActiveReplies { parts: HashMap::new(), acting: FuturesUnordered::new(), outgoing: outgoing.clone() };
    let mut told_busy = false;
    loop {
        let busy = !stage.parts.is_empty();
        // What comes in is heard whatever happens to what goes out: a hub that waits for the guide to listen, and a
        // guide that waits for the hub to, would wait for ever.
        tokio::select! {
            biased;
            frame = incoming.recv() => {
                let Some(frame) = frame else { return };
                // What cannot be understood was not meant for the guide.
                if let Ok(Some(instruction)) = read(&frame)
                    && stage.follow(instruction).is_break()
                {
                    return;
                }
            }
            permit = outgoing.reserve(), if busy != told_busy => {
                let Ok(permit) = permit else { return };
                permit.send(egress::write(&status(busy)));
                told_busy = busy;
            }
            Some(ended) = stage.acting.next(), if !stage.acting.is_empty() => {
                if let Some(reply) = ended {
                    stage.parts.remove(&reply);
                }
            }
        }
    }
}

/// Gives the reply that is over, if it was one.
type Acting = Pin<Box<dyn Future<Output = Option<MessageId>> + Send>>;

/// What runs. All of it is driven by the one future of the guide, so what is stopped has said its last word when
/// the stop was read.
struct ActiveReplies {
    /// By the id of the reply; as many as the hub has runs of the guide, which is one for each room.
    parts: HashMap<MessageId, ActiveReply>,
    acting: FuturesUnordered<Acting>,
    outgoing: mpsc::Sender<String>,
}

struct ActiveReply {
    room: RoomId,
    stop: AbortHandle,
    answers: mpsc::Sender<(Box<str>, UserResponse)>,
}

/// A reply asks twice; what comes beyond that was not asked for.
const ANSWERS: usize = 4;

impl ActiveReplies {
    fn follow(&mut self, instruction: Instruction) -> std::ops::ControlFlow<()> {
        match instruction {
            Instruction::Answer(request) => self.begin(request),
            Instruction::Stop { room, .. } => self.stop(room.as_ref()),
            Instruction::Decided { request, verdict, .. } => {
                self.heard(request, UserResponse::Verdict(verdict))
            }
            Instruction::Answered { question, answers, .. } => {
                self.heard(question, UserResponse::Answers(answers))
            }
            Instruction::Remove { .. } => return std::ops::ControlFlow::Break(()),
            Instruction::Command { agent, room, command, .. } => {
                let words = "I know no commands. Mention me, and I show you around.";
                let body = json!({ "type": "gateway:agent_command_result", "agentId": agent.as_str(),
                    "roomId": room.as_str(), "command": command, "success": false, "message": words });
                self.answer(AnswerKind::AgentCommand, agent, Some(room), body);
            }
            Instruction::DescribeAgent { agent, room } => {
                let mut body = json!({ "type": "gateway:agent_info", "agentId": agent.as_str(),
                    "slashCommands": [], "mcpServers": [], "permissionLevel": "interactive" });
                if let Some(room) = &room {
                    body["roomId"] = room.as_str().into();
                }
                self.answer(AnswerKind::AgentInfo, agent, room, body);
            }
            Instruction::ShowWorkspace { agent, room, request, .. } => {
                let response = json!({ "kind": "error", "message": "I have no folder to work in." });
                let body = json!({ "type": "gateway:workspace_response", "agentId": agent.as_str(),
                    "requestId": request, "response": response });
                self.answer(AnswerKind::Workspace, agent, Some(room), body);
            }
            // It has no credentials and nothing to rewind, takes nothing while it speaks, and its connection is never cut.
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

    fn begin(&mut self, request: RunRequest) {
        let reply = reply_to(&request);
        if self.parts.contains_key(&reply) {
            return;
        }
        let scene = ScriptContext {
            asked_by: &request.sender_name,
            sender: request.sender,
            by_policy: request.by_policy,
            reply: reply.as_str(),
        };
        // The hub itself says who came.
        let wish = match request.sender {
            SenderType::System => request::GuideRequest::Greeting,
            SenderType::User | SenderType::Agent => request::wish(&request.content),
        };
        let steps = script::steps(&wish, &scene);
        let (answers, heard) = mpsc::channel(ANSWERS);
        let room = request.room.clone();
        let outgoing = self.outgoing.clone();
        let script_player = ScriptPlayer { request, reply: reply.clone(), outgoing, answers: heard };
        let (farewell, outgoing) = (script_player.stopped_frame(), self.outgoing.clone());
        let (acting, stop) = abortable(script_player.perform(steps));
        self.parts.insert(reply.clone(), ActiveReply { room, stop, answers });
        self.acting.push(Box::pin(async move {
            // Who said stop is told that nothing more comes.
            if acting.await.is_err() {
                let _ = outgoing.send(farewell).await;
            }
            Some(reply)
        }));
    }

    fn stop(&mut self, room: Option<&RoomId>) {
        for part in self.parts.values().filter(|part| room.is_none_or(|room| part.room == *room)) {
            part.stop.abort();
        }
    }

    /// The name of a question begins with that of its reply; the reply itself knows which one it waits for.
    fn heard(&self, question: Box<str>, heard: UserResponse) {
        for (_, part) in self.parts.iter().filter(|(reply, _)| question.starts_with(reply.as_str())) {
            let _ = part.answers.try_send((question.clone(), heard.clone()));
        }
    }

    fn answer(&mut self, kind: AnswerKind, agent: AgentId, room: Option<RoomId>, body: serde_json::Value) {
        let body = Payload(body.to_string().into());
        let told =
            GatewayMessage::Answer(RelayedAnswer { kind, agent: Some(agent), room, request: None, body });
        let outgoing = self.outgoing.clone();
        self.acting.push(Box::pin(async move {
            let _ = outgoing.send(egress::write(&told)).await;
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

/// Made from what it answers: unique without chance, and the same if the same turn is given twice.
fn reply_to(request: &RunRequest) -> MessageId {
    let origin = request.run.as_ref().map_or(request.message.as_str(), |run| run.as_str());
    // The end of an id is what tells it from others; an id has at most 64 characters.
    let origin = &origin[origin.len().saturating_sub(56)..];
    MessageId::stored(format!("{NAME}-{origin}"))
}
