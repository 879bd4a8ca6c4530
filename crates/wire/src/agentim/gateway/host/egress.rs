//! Encodes `gateway:*` frames that a gateway sends to the hub; the inverse of the hub's decoder. No frame
//! contains `null`.

use super::super::frames::GatewayFrame;
use super::super::frames::gateway::{
    AgentStatus, Auth, Chunk, MessageChunk, MessageComplete, PermissionRequest, Ping, RegisterAgent,
    RegisteredAgent, ResumeRun, RunAdded, RunEventFrame, TaskUpdate, TerminalData, UnregisterAgent, raw,
};
use super::super::ingress::{AgentForm, GatewayMessage, ReplyTarget};
use super::super::run_event::RunEventBody;
use crate::frames::encode;
use parlor_model::{MessageId, RoomId, RunContext, RunId, RunOutcome, SessionId};
use std::borrow::Cow;

/// Value of a required id field if the id is not known.
const UNKNOWN_ID: &str = "";

pub fn write(message: &GatewayMessage) -> String {
    let frame = match message {
        GatewayMessage::Auth(auth) => GatewayFrame::Auth(Auth {
            token: (&*auth.token).into(),
            gateway_id: auth.gateway.as_ref().map_or(UNKNOWN_ID, |id| id.as_str()).into(),
            protocol_version: optional(auth.version.as_deref()),
            device_info: Some(auth.device.clone()),
            ephemeral: Some(auth.ephemeral),
            parlor: Some(auth.by_room),
        }),
        GatewayMessage::Register(form) => GatewayFrame::RegisterAgent(registration(form)),
        GatewayMessage::Unregister { agent } => {
            GatewayFrame::UnregisterAgent(UnregisterAgent { agent_id: agent.as_str().into() })
        }
        GatewayMessage::Chunk { reply, chunk } => {
            let ReplyTarget { agent, context, message, run, target_agent } = reply;
            GatewayFrame::MessageChunk(MessageChunk {
                room_id: room(context.as_ref()),
                session_id: session(context.as_ref()),
                agent_id: agent.as_str().into(),
                message_id: message_or_unknown(message),
                run_id: optional(run.as_ref().map(RunId::as_str)),
                target_agent_name: optional(target_agent.as_deref()),
                chunk: Chunk::of(chunk),
            })
        }
        GatewayMessage::Complete { reply, text, chunks, conversation, depth, outcome } => {
            let ReplyTarget { agent, context, message, run, target_agent } = reply;
            GatewayFrame::MessageComplete(MessageComplete {
                room_id: room(context.as_ref()),
                session_id: session(context.as_ref()),
                agent_id: agent.as_str().into(),
                message_id: message_or_unknown(message),
                run_id: optional(run.as_ref().map(RunId::as_str)),
                target_agent_name: optional(target_agent.as_deref()),
                full_content: optional(text.as_deref()),
                chunks: (!chunks.is_empty()).then(|| chunks.iter().map(Chunk::of).collect()),
                conversation_id: optional(conversation.as_deref()),
                depth: *depth,
                outcome: optional((*outcome != RunOutcome::Complete).then(|| outcome.as_str())),
                reason: optional(outcome.reason().filter(|reason| !reason.is_empty())),
            })
        }
        GatewayMessage::Resume { agent, context, run } => GatewayFrame::ResumeRun(ResumeRun {
            agent_id: agent.as_str().into(),
            room_id: room(Some(context)),
            session_id: session(Some(context)),
            run_id: run.as_str().into(),
        }),
        GatewayMessage::Added { agent, context, run, added } => GatewayFrame::RunAdded(RunAdded {
            agent_id: agent.as_str().into(),
            room_id: room(Some(context)),
            session_id: session(Some(context)),
            run_id: run.as_str().into(),
            added_run_id: added.as_str().into(),
        }),
        GatewayMessage::Status { agent, status, queue_depth } => GatewayFrame::AgentStatus(AgentStatus {
            agent_id: agent.as_str().into(),
            status: *status,
            queue_depth: Some(*queue_depth),
        }),
        GatewayMessage::Terminal { agent, context, data } => GatewayFrame::TerminalData(TerminalData {
            agent_id: agent.as_str().into(),
            room_id: room(context.as_ref()),
            session_id: session(context.as_ref()),
            data: (&**data).into(),
        }),
        GatewayMessage::TaskUpdate { task, status, result } => GatewayFrame::TaskUpdate(TaskUpdate {
            task_id: task.as_ref().map_or(UNKNOWN_ID, |task| task.as_str()).into(),
            status: (&**status).into(),
            result: optional(result.as_deref()),
        }),
        GatewayMessage::Permission(form) => GatewayFrame::PermissionRequest(PermissionRequest {
            request_id: (&*form.request).into(),
            agent_id: form.agent.as_str().into(),
            room_id: room(form.context.as_ref()),
            session_id: session(form.context.as_ref()),
            tool_name: (&*form.tool).into(),
            tool_input: raw(&form.input),
            timeout_ms: form.timeout_ms,
        }),
        GatewayMessage::Answer(answer) => return answer.body.0.to_string(),
        GatewayMessage::RunEvent { agent, context, message, event } => {
            GatewayFrame::RunEvent(RunEventFrame {
                agent_id: agent.as_str().into(),
                room_id: room(context.as_ref()),
                session_id: session(context.as_ref()),
                message_id: optional(message.as_ref().map(MessageId::as_str)),
                event: RunEventBody::of(event),
            })
        }
        GatewayMessage::Ping { ts } => GatewayFrame::Ping(Ping { ts: ts.clone() }),
    };
    encode(&frame)
}

fn registration(form: &AgentForm) -> RegisterAgent<'_> {
    RegisterAgent {
        agent: RegisteredAgent {
            id: form.id.as_str().into(),
            name: (&*form.name).into(),
            kind: (&*form.kind).into(),
            working_directory: optional(form.working_directory.as_deref()),
            capabilities: Some(form.capabilities.iter().map(|name| (&**name).into()).collect()),
            model: optional(form.model.as_deref()),
            slash_commands: form.slash_commands.as_ref().and_then(raw),
            mcp_servers: form.mcp_servers.as_ref().and_then(raw),
        },
    }
}

fn optional(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(Into::into)
}

fn room(context: Option<&RunContext>) -> Option<Cow<'_, str>> {
    optional(context.and_then(RunContext::room).map(RoomId::as_str))
}

fn session(context: Option<&RunContext>) -> Option<Cow<'_, str>> {
    optional(context.and_then(RunContext::session).map(SessionId::as_str))
}

fn message_or_unknown(message: &Option<MessageId>) -> Cow<'_, str> {
    message.as_ref().map_or(UNKNOWN_ID, MessageId::as_str).into()
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
        {"type":"gateway:message_chunk","sessionId":"main","agentId":"a","messageId":"m","runId":"t","chunk":{"type":"text","content":"x"}}
        {"type":"gateway:message_complete","sessionId":"main","agentId":"a","messageId":"m","runId":"t"}
        {"type":"gateway:resume_run","sessionId":"main","agentId":"a","runId":"t"}
        {"type":"gateway:permission_request","requestId":"p","agentId":"a","sessionId":"main","toolName":"Bash","toolInput":{}}
        {"type":"gateway:run_event","agentId":"a","sessionId":"main","event":{"kind":"status","status":"idle"}}
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
