//! Encodes `server:*` frames that the hub sends to a gateway. No frame contains `null`.

use super::super::egress::{
    self as common,
    agents::{kind as known_kind, without_nulls},
};
use crate::frames::encode;
use crate::time::iso;
use crate::words::{PermissionResult, QuestionStatus};
use parlor_model::run_event::QuestionAnswer;
use parlor_model::{
    AddressedBy, Agent, AgentId, CredentialAction, Decision, GatewayRequest, Inquiry, MemberId, Message,
    MessageId, Refusal, Room, RoomId, RunId, RunOutcome, RunTrigger, Sender, Spawn, StartedRun, UserId,
    WorkspaceRequest,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

pub fn authenticated() -> String {
    json!({ "type": "server:gateway_auth_result", "ok": true }).to_string()
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
    json!({ "type": "server:gateway_auth_result", "ok": false, "error": error }).to_string()
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
            (task.id.as_str(), &*prompt, "task", "system")
        }
        RunTrigger::Arrival { name } => {
            prompt = format!("{name} has joined the room.");
            (run.id.as_str(), &*prompt, &**name, "system")
        }
    };
    encode(&SendToAgent {
        kind: "server:send_to_agent",
        agent_id: run.agent.as_str(),
        room_id: run.room.as_str(),
        message_id,
        run_id: run.id.as_str(),
        content,
        sender_name,
        sender_type,
        routing_mode: match run.addressed {
            AddressedBy::Directly | AddressedBy::Unasked => "direct",
            AddressedBy::ByPolicy => "broadcast",
        },
        conversation_id: run.lineage.conversation.as_str(),
        depth: run.lineage.depth,
        context: earlier.iter().map(|message| HistoryEntry::of(message)).collect(),
    })
}

fn sender_type(sender: &Sender) -> &'static str {
    match sender {
        Sender::User(_) => "user",
        Sender::Agent(_) => "agent",
        Sender::Source(_) => "system",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SendToAgent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    room_id: &'a str,
    message_id: &'a str,
    /// Used by Parlor gateways; other gateways ignore it.
    run_id: &'a str,
    content: &'a str,
    sender_name: &'a str,
    sender_type: &'a str,
    routing_mode: &'a str,
    conversation_id: &'a str,
    depth: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    context: Vec<HistoryEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HistoryEntry<'a> {
    sender_id: &'a str,
    sender_name: &'a str,
    sender_type: &'a str,
    content: Cow<'a, str>,
    created_at: String,
}

impl<'a> HistoryEntry<'a> {
    fn of(message: &'a Message) -> Self {
        let end = message.text.floor_char_boundary(MAX_HISTORY_ENTRY_BYTES);
        let (shown, rest) = message.text.split_at(end);
        Self {
            sender_id: message.sender.id(),
            sender_name: &message.sender_name,
            sender_type: sender_type(&message.sender),
            content: if rest.is_empty() { shown.into() } else { format!("{shown}…").into() },
            created_at: iso(message.at),
        }
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
    let members = members.iter().map(|peer| ContextMember {
        id: peer.member.as_str(),
        name: peer.name,
        kind: match peer.member {
            MemberId::User(_) => "user",
            MemberId::Agent(_) => "agent",
        },
        role: peer.role,
        role_description: peer.role_description,
        agent_type: peer.agent.map(|(agent, _)| known_kind(&agent.host.kind)),
        capabilities: peer
            .agent
            .map(|(agent, _)| agent.host.capabilities.iter().map(AsRef::as_ref).collect()),
        status: peer.agent.map(|(_, status)| status),
    });
    encode(&RoomContext {
        kind: "server:room_context",
        agent_id: agent.as_str(),
        context: Context {
            room_id: room.id.as_str(),
            room_name: &room.name,
            system_prompt: room.system_prompt.as_deref(),
            members: members.collect(),
        },
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoomContext<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    context: Context<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    room_id: &'a str,
    room_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<&'a str>,
    members: Vec<ContextMember<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextMember<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role_description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
}

/// Injects a message into the active run `run`. `added` is the queued run of the message. For Parlor gateways
/// only.
pub fn add_to_run(agent: &AgentId, room: &RoomId, run: &RunId, added: &RunId, message: &Message) -> String {
    json!({
        "type": "server:add_to_run",
        "agentId": agent.as_str(),
        "roomId": room.as_str(),
        "runId": run.as_str(),
        "addedRunId": added.as_str(),
        "messageId": message.id.as_str(),
        "content": &*message.text,
        "senderName": message.sender_name,
        "senderType": sender_type(&message.sender),
    })
    .to_string()
}

/// Stops an agent in one room or, if `room` is `None`, in all rooms. Only Parlor gateways support a single
/// room.
pub fn stop_agent(agent: &AgentId, room: Option<&RoomId>) -> String {
    let mut frame = json!({ "type": "server:stop_agent", "agentId": agent.as_str() });
    if let Some(room) = room {
        frame["roomId"] = room.as_str().into();
    }
    frame.to_string()
}

/// Confirms that the end of a run is stored, whatever its outcome. For Parlor gateways only.
pub fn run_ended(agent: &AgentId, room: &RoomId, run: &RunId, outcome: &RunOutcome) -> String {
    let (agent, room, run) = (agent.as_str(), room.as_str(), run.as_str());
    json!({ "type": "server:run_ended", "agentId": agent, "roomId": room, "runId": run, "outcome": outcome.as_str() })
        .to_string()
}

/// Confirms that a run is resumed. `received` is the part of its reply that the hub already has: number of
/// complete parts, and bytes of the next part. For Parlor gateways only.
pub fn run_resumed(agent: &AgentId, room: &RoomId, run: &RunId, received: (usize, usize)) -> String {
    let (agent, room, run) = (agent.as_str(), room.as_str(), run.as_str());
    let (parts, bytes) = received;
    json!({ "type": "server:run_resumed", "agentId": agent, "roomId": room, "runId": run, "parts": parts, "bytes": bytes })
        .to_string()
}

pub fn remove_agent(agent: &AgentId) -> String {
    json!({ "type": "server:remove_agent", "agentId": agent.as_str() }).to_string()
}

/// Relays the inquiry of the user `by` to an agent.
pub fn inquiry(
    agent: &AgentId,
    room: Option<&RoomId>,
    by: &UserId,
    request: &str,
    inquiry: &Inquiry,
) -> String {
    let mut frame = match inquiry {
        Inquiry::Command { command, args } => json!({
            "type": "server:agent_command",
            "command": command,
            "args": args,
            "userId": by.as_str(),
        }),
        Inquiry::Info => json!({ "type": "server:query_agent_info" }),
        Inquiry::Workspace(workspace_request) => {
            let kind = match workspace_request {
                WorkspaceRequest::Status => "status",
                WorkspaceRequest::Tree { .. } => "tree",
                WorkspaceRequest::File { .. } => "file",
            };
            let mut body = json!({ "kind": kind });
            if let Some(path) = workspace_request.path() {
                body["path"] = path.into();
            }
            json!({ "type": "server:request_workspace", "requestId": request, "request": body })
        }
    };
    frame["agentId"] = agent.as_str().into();
    if let Some(room) = room {
        frame["roomId"] = room.as_str().into();
    }
    frame.to_string()
}

/// Requests that an agent discards `message` and all later messages of a room from its conversation.
pub fn rewind_agent(agent: &AgentId, room: &RoomId, message: &MessageId) -> String {
    let (agent, room, message) = (agent.as_str(), room.as_str(), message.as_str());
    json!({ "type": "server:rewind_agent", "agentId": agent, "roomId": room, "messageId": message })
        .to_string()
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
    let mut frame = json!({
        "type": "server:spawn_agent",
        "requestId": request,
        "agentType": spawn.kind,
        "name": spawn.name,
    });
    if let Some(folder) = &spawn.working_directory {
        frame["workingDirectory"] = (&**folder).into();
    }
    if let Some(credential) = &spawn.credential {
        frame["credentialId"] = (&**credential).into();
    }
    frame.to_string()
}

/// Sends the result of a question set to its gateway: the answers, or the status without answers.
pub fn question_response(agent: &AgentId, question: &str, decision: &Decision) -> String {
    let mut frame = json!({
        "type": "server:question_response",
        "questionId": question,
        "agentId": agent.as_str(),
        "status": QuestionStatus::of(Some(decision)),
    });
    if let Decision::Answered { by, answers } = decision {
        let encode = |answer: &QuestionAnswer| {
            let mut encoded = json!({ "questionIndex": answer.question, "selected": answer.selected });
            if let Some(text) = &answer.text {
                encoded["customText"] = (&**text).into();
            }
            encoded
        };
        frame["answers"] = answers.iter().map(encode).collect();
        frame["answeredBy"] = (*by.name).into();
    }
    frame.to_string()
}

/// Sends the decision of a permission request to its gateway. `request` is the id chosen by the gateway.
pub fn permission_response(agent: &AgentId, request: &str, decision: &Decision) -> String {
    let mut frame = json!({
        "type": "server:permission_response",
        "requestId": request,
        "agentId": agent.as_str(),
        "decision": PermissionResult::of(Some(decision)),
    });
    if let Decision::Denied { reason: Some(reason), .. } = decision {
        frame["denyReason"] = (&**reason).into();
    }
    frame.to_string()
}
