//! Encodes `server:*` frames that the hub sends to a gateway. No frame contains `null`.

use super::super::egress::{
    self as common,
    agents::{kind as known_kind, without_nulls},
};
use super::super::frames::client::{WorkspaceRequest as WorkspaceForm, WorkspaceRequestKind};
use super::frames::HubFrame;
use super::frames::hub::{
    AddToRun, AgentCommand, AgentInRoom, AuthResult, Context, EarlierMessage, MemberView, PermissionResponse,
    QuestionReply, QuestionResponse, RequestWorkspace, RewindAgent, RoomContext, RunEnded, RunResumed,
    SendToAgent, SenderType, SpawnAgent, StopAgent,
};
use crate::frames::encode;
use crate::time::iso;
use crate::words::{PermissionResult, QuestionStatus};
use parlor_model::run_event::QuestionAnswer;
use parlor_model::{
    AddressedBy, Agent, AgentId, CredentialAction, Decision, GatewayRequest, Inquiry, MemberId, Message,
    MessageId, Refusal, Room, RoomId, RunCause, RunContext, RunId, RunOutcome, RunTrigger, Sender, SessionId,
    Spawn, StartedRun, UserId, WorkspaceRequest,
};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

pub fn authenticated() -> String {
    encode(&HubFrame::AuthResult(AuthResult { ok: true, error: None }))
}

pub fn refusal(refusal: &Refusal) -> String {
    match refusal {
        // Gateways send a `messageId`, not a `clientMessageId`.
        Refusal::Conflict { .. } => {
            common::error("INVALID_MESSAGE", "This messageId belongs to another message")
        }
        other => common::refusal(other, None),
    }
}

pub fn not_authenticated(error: &str) -> String {
    encode(&HubFrame::AuthResult(AuthResult { ok: false, error: Some(error.into()) }))
}

/// Maximum bytes of each earlier message in the context of a run. Longer texts are cut; a reply may have 10
/// MiB.
const MAX_HISTORY_ENTRY_BYTES: usize = 8 * 1024;

/// Starts a run: sends its trigger to the agent. `earlier` (messages before the trigger) is sent to Parlor
/// gateways only.
pub fn send_to_agent(started: &StartedRun, earlier: &[Arc<Message>]) -> String {
    let run = &started.run;
    let prompt;
    let (message_id, content, sender_name, sender_type) = match &started.prompt {
        RunTrigger::Message(message) => {
            (message.id.as_str(), &*message.text, &*message.sender_name, sender_type(&message.sender))
        }
        RunTrigger::Task(task) => {
            prompt = match &task.description {
                Some(description) => format!("{}\n\n{description}", task.title),
                None => task.title.to_string(),
            };
            (task.id.as_str(), &*prompt, "task", SenderType::System)
        }
        RunTrigger::Arrival { name } => {
            prompt = format!("{name} has joined the room.");
            (run.id.as_str(), &*prompt, &**name, SenderType::System)
        }
        RunTrigger::Prompt(text) => {
            let (name, kind) = match &run.cause {
                RunCause::Explicit { .. } => ("owner", SenderType::User),
                _ => ("mailbox", SenderType::System),
            };
            (run.id.as_str(), &**text, name, kind)
        }
    };
    let context = run.place.context();
    encode(&HubFrame::SendToAgent(SendToAgent {
        agent_id: run.agent.as_str().into(),
        room_id: room(&context),
        session_id: session(&context),
        message_id: message_id.into(),
        run_id: Some(run.id.as_str().into()),
        content: content.into(),
        sender_name: sender_name.into(),
        sender_type,
        routing_mode: Some(match run.addressed {
            AddressedBy::Directly | AddressedBy::Unasked => "direct".into(),
            AddressedBy::ByPolicy => "broadcast".into(),
        }),
        conversation_id: Some(run.lineage.conversation.as_str().into()),
        depth: Some(run.lineage.depth),
        context: earlier.iter().map(|message| earlier_message(message)).collect(),
    }))
}

fn sender_type(sender: &Sender) -> SenderType {
    match sender {
        Sender::User(_) => SenderType::User,
        Sender::Agent(_) => SenderType::Agent,
        Sender::Source(_) => SenderType::System,
    }
}

fn earlier_message(message: &Message) -> EarlierMessage {
    let end = message.text.floor_char_boundary(MAX_HISTORY_ENTRY_BYTES);
    let (shown, rest) = message.text.split_at(end);
    EarlierMessage {
        sender_id: message.sender.id().into(),
        sender_name: message.sender_name.clone(),
        sender: sender_type(&message.sender),
        content: if rest.is_empty() { shown.into() } else { format!("{shown}…").into() },
        created_at: iso(message.at).into(),
    }
}

/// A member of a room, as described to an agent.
pub struct ContextPeer<'a> {
    pub member: &'a MemberId,
    pub name: &'a str,
    pub role: &'a str,
    pub role_description: Option<&'a str>,
    /// The agent and its status, if the member is an agent that the hub knows.
    pub agent: Option<(&'a Agent, &'a str)>,
}

/// Describes a room to an agent: name, system prompt and members.
pub fn room_context(agent: &AgentId, room: &Room, members: &[ContextPeer]) -> String {
    let members = members.iter().map(|peer| MemberView {
        id: peer.member.as_str().into(),
        name: peer.name.into(),
        kind: match peer.member {
            MemberId::User(_) => SenderType::User,
            MemberId::Agent(_) => SenderType::Agent,
        },
        role: Some(peer.role.into()),
        role_description: peer.role_description.map(Into::into),
        agent_type: peer.agent.map(|(agent, _)| known_kind(&agent.host.kind).into()),
        capabilities: peer.agent.map(|(agent, _)| agent.host.capabilities.clone()),
        status: peer.agent.map(|(_, status)| status.into()),
    });
    encode(&HubFrame::RoomContext(RoomContext {
        agent_id: agent.as_str().into(),
        context: Context {
            room_id: room.id.as_str().into(),
            room_name: (&*room.name).into(),
            system_prompt: optional(room.system_prompt.as_deref()),
            members: members.collect(),
        },
    }))
}

/// Injects a message into the active run `run`. `added` is the queued run of the message. For Parlor gateways
/// only.
pub fn add_to_run(
    agent: &AgentId,
    context: &RunContext,
    run: &RunId,
    added: &RunId,
    message: &Message,
) -> String {
    encode(&HubFrame::AddToRun(AddToRun {
        agent_id: agent.as_str().into(),
        room_id: room(context),
        session_id: session(context),
        run_id: run.as_str().into(),
        added_run_id: added.as_str().into(),
        message_id: Some(message.id.as_str().into()),
        content: (&*message.text).into(),
        sender_name: Some((&*message.sender_name).into()),
        sender_type: Some(sender_type(&message.sender)),
    }))
}

/// Stops an agent in one context or, if `context` is `None`, in all. Only Parlor gateways support a single
/// context.
pub fn stop_agent(agent: &AgentId, context: Option<&RunContext>) -> String {
    encode(&HubFrame::StopAgent(StopAgent {
        agent_id: agent.as_str().into(),
        room_id: context.and_then(room),
        session_id: context.and_then(session),
    }))
}

/// Confirms that the end of a run is stored, whatever its outcome. For Parlor gateways only.
pub fn run_ended(agent: &AgentId, context: &RunContext, run: &RunId, outcome: &RunOutcome) -> String {
    encode(&HubFrame::RunEnded(RunEnded {
        agent_id: Some(agent.as_str().into()),
        room_id: room(context),
        session_id: session(context),
        run_id: run.as_str().into(),
        outcome: outcome.as_str().into(),
    }))
}

/// Confirms that a run is resumed. `received` is the part of its reply that the hub already has: number of
/// complete parts, and bytes of the next part. For Parlor gateways only.
pub fn run_resumed(agent: &AgentId, context: &RunContext, run: &RunId, received: (usize, usize)) -> String {
    let (parts, bytes) = received;
    encode(&HubFrame::RunResumed(RunResumed {
        agent_id: Some(agent.as_str().into()),
        room_id: room(context),
        session_id: session(context),
        run_id: run.as_str().into(),
        parts,
        bytes,
    }))
}

pub fn remove_agent(agent: &AgentId) -> String {
    encode(&HubFrame::RemoveAgent(in_room(agent, None)))
}

fn in_room<'a>(agent: &'a AgentId, room: Option<&'a RoomId>) -> AgentInRoom<'a> {
    AgentInRoom { agent_id: agent.as_str().into(), room_id: optional(room.map(RoomId::as_str)) }
}

fn room(context: &RunContext) -> Option<Cow<'_, str>> {
    optional(context.room().map(RoomId::as_str))
}

fn session(context: &RunContext) -> Option<Cow<'_, str>> {
    optional(context.session().map(SessionId::as_str))
}

fn optional(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(Into::into)
}

/// Relays the inquiry of the user `by` to an agent.
pub fn inquiry(
    agent: &AgentId,
    room: Option<&RoomId>,
    by: &UserId,
    request: &str,
    inquiry: &Inquiry,
) -> String {
    let AgentInRoom { agent_id, room_id } = in_room(agent, room);
    let workspace_request;
    encode(&match inquiry {
        Inquiry::Command { command, args } => HubFrame::AgentCommand(AgentCommand {
            command: (&**command).into(),
            args: Some((&**args).into()),
            user_id: Some(by.as_str().into()),
            agent_id,
            room_id,
        }),
        Inquiry::Info => HubFrame::QueryAgentInfo(AgentInRoom { agent_id, room_id }),
        Inquiry::Workspace(wanted) => {
            let kind = match wanted {
                WorkspaceRequest::Status => WorkspaceRequestKind::Status,
                WorkspaceRequest::Tree { .. } => WorkspaceRequestKind::Tree,
                WorkspaceRequest::File { .. } => WorkspaceRequestKind::File,
            };
            let form = WorkspaceForm { kind, path: wanted.path().map(Into::into) };
            workspace_request = to_raw_value(&form).expect("a request consists of texts");
            let (request_id, request) = (request, &*workspace_request);
            HubFrame::RequestWorkspace(RequestWorkspace {
                request_id: request_id.into(),
                request,
                agent_id,
                room_id,
            })
        }
    })
}

/// Requests that an agent discards `message` and all later messages of a room from its conversation.
pub fn rewind_agent(agent: &AgentId, room: &RoomId, message: &MessageId) -> String {
    encode(&HubFrame::RewindAgent(RewindAgent {
        agent_id: agent.as_str().into(),
        room_id: room.as_str().into(),
        message_id: Some(message.as_str().into()),
    }))
}

/// Relays a request of the owner to a gateway. The body of a credential request is relayed unchanged, and
/// keeps its own `requestId` if it has one, since it may continue an earlier request with that id.
pub fn gateway_request(request: &str, gateway_request: &GatewayRequest) -> String {
    let (what, body) = match gateway_request {
        GatewayRequest::Spawn(spawn) => return spawn_agent(request, spawn),
        GatewayRequest::Credential { what, body } => (what, body),
    };
    let kind = match what {
        CredentialAction::List => "server:list_credentials",
        CredentialAction::Add => "server:add_credential",
        CredentialAction::Manage => "server:manage_credential",
        CredentialAction::StartOauth => "server:start_oauth",
        CredentialAction::CompleteOauth => "server:complete_oauth",
    };
    let mut frame = match without_nulls(body) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    frame.remove("gatewayId");
    frame.insert("type".into(), kind.into());
    if !frame.get("requestId").is_some_and(Value::is_string) {
        frame.insert("requestId".into(), request.into());
    }
    Value::Object(frame).to_string()
}

fn spawn_agent(request: &str, spawn: &Spawn) -> String {
    encode(&HubFrame::SpawnAgent(SpawnAgent {
        request_id: request.into(),
        agent_type: (&*spawn.kind).into(),
        name: (&*spawn.name).into(),
        working_directory: optional(spawn.working_directory.as_deref()),
        credential_id: optional(spawn.credential.as_deref()),
    }))
}

/// Sends the result of a question set to its gateway: the answers, or the status without answers.
pub fn question_response(agent: &AgentId, question: &str, decision: &Decision) -> String {
    let reply = |answer: &QuestionAnswer| QuestionReply {
        question_index: answer.question,
        selected: answer.selected.clone(),
        custom_text: answer.text.clone(),
    };
    let (answers, by) = match decision {
        Decision::Answered { by, answers } => (Some(answers.iter().map(reply).collect()), Some(&*by.name)),
        _ => (None, None),
    };
    encode(&HubFrame::QuestionResponse(QuestionResponse {
        question_id: question.into(),
        agent_id: agent.as_str().into(),
        status: Some(QuestionStatus::of(Some(decision)).as_str().into()),
        answers,
        answered_by: optional(by),
    }))
}

/// Sends the decision of a permission request to its gateway. `request` is the id chosen by the gateway.
pub fn permission_response(agent: &AgentId, request: &str, decision: &Decision) -> String {
    let reason = match decision {
        Decision::Denied { reason, .. } => reason.as_deref(),
        _ => None,
    };
    encode(&HubFrame::PermissionResponse(PermissionResponse {
        request_id: request.into(),
        agent_id: agent.as_str().into(),
        decision: PermissionResult::of(Some(decision)).as_str().into(),
        deny_reason: optional(reason),
    }))
}
