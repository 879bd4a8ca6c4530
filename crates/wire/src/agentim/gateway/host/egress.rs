//! Encodes `gateway:*` frames that a gateway sends to the hub; the inverse of the hub's decoder. No frame
//! contains `null`.

use super::super::ingress::{AgentForm, Auth, Device, GatewayMessage, PermissionForm, ReplyTarget, Status};
use super::super::run_event::RunEventBody;
use crate::frames::encode;
use parlor_model::{Chunk, Payload, RunOutcome};
use serde::Serialize;
use serde_json::value::RawValue;

/// Value of a required id field if the id is not known.
const UNKNOWN_ID: &str = "";

pub fn write(message: &GatewayMessage) -> String {
    match message {
        GatewayMessage::Auth(auth) => encode(&auth_frame(auth)),
        GatewayMessage::Register(form) => encode(&registration(form)),
        GatewayMessage::Unregister { agent } => {
            encode(&AgentOnlyFrame { kind: "gateway:unregister_agent", agent_id: agent.as_str() })
        }
        GatewayMessage::Chunk { reply, chunk } => encode(&ChunkFrame {
            kind: "gateway:message_chunk",
            reply: ReplyShape::of(reply),
            chunk: ChunkShape::of(chunk),
        }),
        GatewayMessage::Complete { reply, text, chunks, conversation, depth, outcome } => {
            encode(&CompleteFrame {
                kind: "gateway:message_complete",
                reply: ReplyShape::of(reply),
                full_content: text.as_deref(),
                chunks: chunks.iter().map(ChunkShape::of).collect(),
                conversation_id: conversation.as_deref(),
                depth: *depth,
                outcome: (*outcome != RunOutcome::Complete).then(|| outcome.as_str()),
                reason: outcome.reason().filter(|reason| !reason.is_empty()),
            })
        }
        GatewayMessage::Resume { agent, room, run } => encode(&ResumeFrame {
            kind: "gateway:resume_run",
            agent_id: agent.as_str(),
            room_id: room.as_str(),
            run_id: run.as_str(),
        }),
        GatewayMessage::Added { agent, room, run, added } => encode(&AddedFrame {
            kind: "gateway:run_added",
            agent_id: agent.as_str(),
            room_id: room.as_str(),
            run_id: run.as_str(),
            added_run_id: added.as_str(),
        }),
        GatewayMessage::Status { agent, status, queue_depth } => encode(&StatusFrame {
            kind: "gateway:agent_status",
            agent_id: agent.as_str(),
            status: *status,
            queue_depth: *queue_depth,
        }),
        GatewayMessage::Terminal { agent, room, data } => encode(&TerminalFrame {
            kind: "gateway:terminal_data",
            agent_id: agent.as_str(),
            room_id: room.as_ref().map(|room| room.as_str()),
            data,
        }),
        GatewayMessage::TaskUpdate { task, status, result } => encode(&TaskFrame {
            kind: "gateway:task_update",
            task_id: task.as_ref().map_or(UNKNOWN_ID, |task| task.as_str()),
            status,
            result: result.as_deref(),
        }),
        GatewayMessage::Permission(form) => encode(&permission(form)),
        GatewayMessage::Answer(answer) => answer.body.0.to_string(),
        GatewayMessage::RunEvent { agent, room, message, event } => encode(&RunEventFrame {
            kind: "gateway:run_event",
            agent_id: agent.as_str(),
            room_id: room.as_ref().map(|room| room.as_str()),
            message_id: message.as_ref().map(|message| message.as_str()),
            event: RunEventBody::of(event),
        }),
        GatewayMessage::Ping { ts } => encode(&Ping { kind: "gateway:ping", ts }),
    }
}

fn auth_frame(auth: &Auth) -> AuthFrame<'_> {
    AuthFrame {
        kind: "gateway:auth",
        token: &auth.token,
        gateway_id: auth.gateway.as_ref().map_or(UNKNOWN_ID, |id| id.as_str()),
        protocol_version: auth.version.as_deref(),
        device_info: &auth.device,
        ephemeral: auth.ephemeral,
        parlor: auth.by_room,
    }
}

fn registration(form: &AgentForm) -> Registration<'_> {
    Registration {
        kind: "gateway:register_agent",
        agent: AgentShape {
            id: form.id.as_str(),
            name: &form.name,
            kind: &form.kind,
            working_directory: form.working_directory.as_deref(),
            capabilities: &form.capabilities,
            model: form.model.as_deref(),
            slash_commands: form.slash_commands.as_ref().and_then(raw),
            mcp_servers: form.mcp_servers.as_ref().and_then(raw),
        },
    }
}

fn permission(form: &PermissionForm) -> PermissionFrame<'_> {
    PermissionFrame {
        kind: "gateway:permission_request",
        request_id: &form.request,
        agent_id: form.agent.as_str(),
        room_id: form.room.as_ref().map_or(UNKNOWN_ID, |room| room.as_str()),
        tool_name: &form.tool,
        tool_input: raw(&form.input),
        timeout_ms: form.timeout_ms,
    }
}

/// Returns the payload as raw JSON. `None` if it is not valid JSON; the frame then omits the field.
fn raw(payload: &Payload) -> Option<&RawValue> {
    serde_json::from_str(&payload.0).ok()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    token: &'a str,
    gateway_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'a str>,
    device_info: &'a Device,
    ephemeral: bool,
    parlor: bool,
}

#[derive(Serialize)]
struct Registration<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent: AgentShape<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentShape<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_directory: Option<&'a str>,
    capabilities: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slash_commands: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_servers: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentOnlyFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplyShape<'a> {
    room_id: &'a str,
    agent_id: &'a str,
    message_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_agent_name: Option<&'a str>,
}

impl<'a> ReplyShape<'a> {
    fn of(reply: &'a ReplyTarget) -> Self {
        Self {
            room_id: reply.room.as_ref().map_or(UNKNOWN_ID, |room| room.as_str()),
            agent_id: reply.agent.as_str(),
            message_id: reply.message.as_ref().map_or(UNKNOWN_ID, |message| message.as_str()),
            run_id: reply.run.as_ref().map(|run| run.as_str()),
            target_agent_name: reply.target_agent.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct ChunkShape<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
}

impl<'a> ChunkShape<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        let metadata = chunk.metadata.as_ref().and_then(raw);
        Self { kind: chunk.kind.as_str(), content: &chunk.content, metadata }
    }
}

#[derive(Serialize)]
struct ChunkFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    reply: ReplyShape<'a>,
    chunk: ChunkShape<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompleteFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    reply: ReplyShape<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    full_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chunks: Vec<ChunkShape<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResumeFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    room_id: &'a str,
    run_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AddedFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    room_id: &'a str,
    run_id: &'a str,
    added_run_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    status: Status,
    queue_depth: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TerminalFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    room_id: Option<&'a str>,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    task_id: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    request_id: &'a str,
    agent_id: &'a str,
    room_id: &'a str,
    tool_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunEventFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    room_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    event: RunEventBody,
}

#[derive(Serialize)]
struct Ping<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    ts: &'a serde_json::Number,
}

#[cfg(test)]
mod tests {
    use super::super::super::super::ingress::FrameLimits;
    use super::super::super::ingress::{MAX_CHUNKS, read};
    use super::*;
    use crate::json::JsonLimits;

    const LIMITS: FrameLimits =
        FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MAX_CHUNKS } };

    /// Frames in addition to the recorded ones: extensions of Parlor gateways, and frames that were not
    /// recorded.
    const MORE_FRAMES: &str = r#"
        {"type":"gateway:auth","token":"t","gatewayId":"g","protocolVersion":"1","deviceInfo":{"hostname":"h","platform":"linux","arch":"x64","nodeVersion":"v"},"ephemeral":true,"parlor":true}
        {"type":"gateway:register_agent","agent":{"id":"a","name":"A","type":"acp","workingDirectory":"/w","capabilities":["code"],"model":"m","slashCommands":[{"name":"x"}],"mcpServers":["s"]}}
        {"type":"gateway:message_chunk","roomId":"r","agentId":"a","messageId":"m","targetAgentName":"b","chunk":{"type":"tool_use","content":"x","metadata":{"toolName":"Read"}}}
        {"type":"gateway:message_complete","roomId":"r","agentId":"a","messageId":"m"}
        {"type":"gateway:message_chunk","roomId":"r","agentId":"a","messageId":"m","runId":"t","chunk":{"type":"text","content":"x"}}
        {"type":"gateway:message_complete","roomId":"r","agentId":"a","messageId":"m","runId":"t","outcome":"failed"}
        {"type":"gateway:message_complete","roomId":"r","agentId":"a","messageId":"m","runId":"t","outcome":"failed","reason":"it ended with code 3"}
        {"type":"gateway:message_complete","roomId":"r","agentId":"a","messageId":"m","runId":"t","outcome":"interrupted"}
        {"type":"gateway:resume_run","roomId":"r","agentId":"a","runId":"t"}
        {"type":"gateway:terminal_data","agentId":"a","data":"$ "}
        {"type":"gateway:terminal_data","agentId":"a","roomId":"r","data":"$ "}
        {"type":"gateway:task_update","taskId":"t","status":"completed","result":"done"}
        {"type":"gateway:permission_request","requestId":"p","agentId":"a","roomId":"r","toolName":"Bash","toolInput":{"command":"ls"},"timeoutMs":1000}
        {"type":"gateway:run_event","agentId":"a","roomId":"r","messageId":"m","event":{"kind":"status","status":"idle"}}
        {"type":"gateway:rewind_result","agentId":"a","requestId":"q","success":true}
    "#;

    #[test]
    fn the_hub_decodes_what_a_gateway_encodes() {
        let recorded = include_str!("../../../../tests/fixtures/gateway-frames.jsonl");
        let frames =
            recorded.lines().chain(MORE_FRAMES.lines().map(str::trim).filter(|line| !line.is_empty()));
        for frame in frames {
            let decoded =
                read(frame, &LIMITS).unwrap_or_else(|frame_error| panic!("{frame_error:?}: {frame}"));
            let written = write(&decoded);
            assert_eq!(read(&written, &LIMITS).as_ref(), Ok(&decoded), "{written}");
            let nulls = |text: &str| text.matches("null").count();
            assert!(nulls(&written) <= nulls(frame), "{written}");
        }
    }
}
