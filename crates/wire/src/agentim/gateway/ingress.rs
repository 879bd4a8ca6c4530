//! Decodes `gateway:*` frames that a gateway sends to the hub. Never panics, whatever the input.

use super::super::ingress::{FrameError, FrameLimits, check_frame, parse};
use super::run_event::RunEventBody;
use parlor_model::{
    AgentId, AnswerKind, Chunk, ChunkKind, GatewayId, MessageId, Payload, RoomId, RunEvent, RunId,
    RunOutcome, TaskId,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Maximum number of chunks of one reply. A longer reply is rejected, not cut off.
pub const MAX_CHUNKS: usize = 5000;
/// Maximum characters of the reason of a failed run. A longer reason is cut off.
const MAX_REASON_CHARS: usize = 500;
/// Maximum bytes of one reply. A longer reply is rejected, not cut off.
pub const MAX_REPLY_BYTES: usize = 10 * 1024 * 1024;

/// Decoded frame of a gateway.
#[derive(Debug, PartialEq)]
pub enum GatewayMessage {
    Auth(Auth),
    Register(AgentForm),
    Unregister {
        agent: AgentId,
    },
    Chunk {
        reply: ReplyTarget,
        chunk: Chunk,
    },
    Complete {
        reply: ReplyTarget,
        text: Option<Box<str>>,
        chunks: Vec<Chunk>,
        conversation: Option<Box<str>>,
        depth: Option<u32>,
        /// Always `Complete` unless a Parlor gateway reports another outcome.
        outcome: RunOutcome,
    },
    /// A Parlor gateway reconnected and resumes a run. It asks which part of the reply the hub already has.
    Resume {
        agent: AgentId,
        room: RoomId,
        run: RunId,
    },
    /// A Parlor gateway injected a message into `run`. The queued run `added` of that message is done.
    Added {
        agent: AgentId,
        room: RoomId,
        run: RunId,
        added: RunId,
    },
    Status {
        agent: AgentId,
        status: Status,
        queue_depth: u32,
    },
    Terminal {
        agent: AgentId,
        /// Set by gateways that run an agent in several rooms at the same time.
        room: Option<RoomId>,
        data: Box<str>,
    },
    TaskUpdate {
        task: Option<TaskId>,
        status: Box<str>,
        result: Option<Box<str>>,
    },
    Permission(PermissionForm),
    /// Answer to an inquiry or request of a user.
    Answer(RelayedAnswer),
    /// Plans, question sets, usage and other reports. Sent by Parlor gateways only.
    RunEvent {
        agent: AgentId,
        room: Option<RoomId>,
        message: Option<MessageId>,
        event: RunEvent,
    },
    Ping {
        ts: serde_json::Number,
    },
}

#[derive(Debug, PartialEq)]
pub struct Auth {
    pub token: Box<str>,
    pub gateway: Option<GatewayId>,
    pub version: Option<Box<str>>,
    pub device: Device,
    pub ephemeral: bool,
    /// Whether it is a Parlor gateway, which can run an agent in several rooms at the same time and stop it
    /// in one.
    pub by_room: bool,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    pub hostname: Box<str>,
    pub platform: Box<str>,
    pub arch: Box<str>,
    pub node_version: Box<str>,
}

/// Registration of an agent by its gateway.
#[derive(Debug, PartialEq)]
pub struct AgentForm {
    pub id: AgentId,
    pub name: Box<str>,
    /// Kind of the agent as named by the gateway; free text.
    pub kind: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub capabilities: Vec<Box<str>>,
    pub model: Option<Box<str>>,
    /// JSON list, relayed unchanged.
    pub slash_commands: Option<Payload>,
    /// JSON list, relayed unchanged.
    pub mcp_servers: Option<Payload>,
}

/// Identifies the reply that a chunk or a completion belongs to.
#[derive(Debug, PartialEq)]
pub struct ReplyTarget {
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub message: Option<MessageId>,
    /// Run of the reply. Set by Parlor gateways only.
    pub run: Option<RunId>,
    pub target_agent: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Online,
    Offline,
    Busy,
    Error,
}

#[derive(Debug, PartialEq)]
pub struct PermissionForm {
    pub request: Box<str>,
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub tool: Box<str>,
    pub input: Payload,
    pub timeout_ms: Option<u64>,
}

/// Prefix of the tools with which an agent calls the hub itself: those of the MCP server `agentim`, with which
/// AgentIM's gateways connect the agent to the hub.
const OWN_TOOLS: &str = "mcp__agentim__";

impl PermissionForm {
    /// Whether the tool calls the hub itself.
    pub fn is_own_tool(&self) -> bool {
        self.tool.starts_with(OWN_TOOLS)
    }
}

/// Answer that the hub relays to the user that sent the request.
#[derive(Debug, PartialEq)]
pub struct RelayedAnswer {
    pub kind: AnswerKind,
    pub agent: Option<AgentId>,
    pub room: Option<RoomId>,
    pub request: Option<Box<str>>,
    /// The whole frame, a JSON object.
    pub body: Payload,
}

pub fn read(text: &str, limits: &FrameLimits) -> Result<GatewayMessage, FrameError> {
    let kind = check_frame(text, limits)?;
    Ok(match &*kind {
        "gateway:auth" => {
            let form: AuthForm = parse(text)?;
            GatewayMessage::Auth(Auth {
                token: form.token,
                gateway: GatewayId::parse(&form.gateway_id).ok(),
                version: form.protocol_version,
                device: form.device_info.unwrap_or_default(),
                ephemeral: form.ephemeral.unwrap_or(false),
                by_room: form.parlor.unwrap_or(false),
            })
        }
        "gateway:register_agent" => {
            let Registration { agent } = parse(text)?;
            GatewayMessage::Register(agent.read()?)
        }
        "gateway:unregister_agent" => {
            let AgentOnly { agent_id } = parse(text)?;
            GatewayMessage::Unregister { agent: agent(&agent_id)? }
        }
        "gateway:message_chunk" => {
            let form: ChunkFrame = parse(text)?;
            GatewayMessage::Chunk {
                reply: ReplyTarget {
                    run: form.run_id.and_then(|id| RunId::parse(&id).ok()),
                    ..reply(&form.agent_id, &form.room_id, &form.message_id, form.target_agent_name)?
                },
                chunk: form.chunk.read().ok_or(FrameError::Unknown)?,
            }
        }
        "gateway:message_complete" => {
            let form: CompleteFrame = parse(text)?;
            GatewayMessage::Complete {
                reply: ReplyTarget {
                    run: form.run_id.and_then(|id| RunId::parse(&id).ok()),
                    ..reply(&form.agent_id, &form.room_id, &form.message_id, form.target_agent_name)?
                },
                text: form.full_content,
                chunks: form.chunks.unwrap_or_default().into_iter().filter_map(ChunkForm::read).collect(),
                conversation: form.conversation_id,
                depth: form.depth,
                outcome: match form.outcome.as_deref() {
                    Some("failed") => RunOutcome::Failed(
                        form.reason.unwrap_or_default().chars().take(MAX_REASON_CHARS).collect(),
                    ),
                    Some("interrupted") => RunOutcome::Interrupted,
                    _ => RunOutcome::Complete,
                },
            }
        }
        "gateway:resume_run" => {
            let form: ResumeFrame = parse(text)?;
            GatewayMessage::Resume {
                agent: agent(&form.agent_id)?,
                room: RoomId::parse(&form.room_id).map_err(|_| FrameError::Unknown)?,
                run: RunId::parse(&form.run_id).map_err(|_| FrameError::Unknown)?,
            }
        }
        "gateway:run_added" => {
            let form: AddedFrame = parse(text)?;
            let run = |id: &str| RunId::parse(id).map_err(|_| FrameError::Unknown);
            GatewayMessage::Added {
                agent: agent(&form.agent_id)?,
                room: RoomId::parse(&form.room_id).map_err(|_| FrameError::Unknown)?,
                run: run(&form.run_id)?,
                added: run(&form.added_run_id)?,
            }
        }
        "gateway:agent_status" => {
            let form: StatusFrame = parse(text)?;
            GatewayMessage::Status {
                agent: agent(&form.agent_id)?,
                status: form.status,
                queue_depth: form.queue_depth.unwrap_or(0),
            }
        }
        "gateway:terminal_data" => {
            let form: TerminalFrame = parse(text)?;
            GatewayMessage::Terminal {
                agent: agent(&form.agent_id)?,
                room: form.room_id.and_then(|id| RoomId::parse(&id).ok()),
                data: form.data,
            }
        }
        "gateway:task_update" => {
            let form: TaskFrame = parse(text)?;
            GatewayMessage::TaskUpdate {
                task: TaskId::parse(&form.task_id).ok(),
                status: form.status,
                result: form.result,
            }
        }
        "gateway:permission_request" => {
            let form: PermissionFrame = parse(text)?;
            GatewayMessage::Permission(PermissionForm {
                request: form.request_id,
                agent: agent(&form.agent_id)?,
                room: RoomId::parse(&form.room_id).ok(),
                tool: form.tool_name,
                input: object(form.tool_input)?,
                timeout_ms: form.timeout_ms,
            })
        }
        "gateway:run_event" => {
            let form: RunEventFrame = parse(text)?;
            GatewayMessage::RunEvent {
                agent: agent(&form.agent_id)?,
                room: form.room_id.and_then(|id| RoomId::parse(&id).ok()),
                message: form.message_id.and_then(|id| MessageId::parse(&id).ok()),
                event: form.event.read()?,
            }
        }
        "gateway:ping" => {
            let Ping { ts } = parse(text)?;
            GatewayMessage::Ping { ts }
        }
        other => {
            let kind = answer_kind(other).ok_or(FrameError::Unknown)?;
            let form: AnswerFrame = parse(text)?;
            GatewayMessage::Answer(RelayedAnswer {
                kind,
                agent: form.agent_id.and_then(|id| AgentId::parse(&id).ok()),
                room: form.room_id.and_then(|id| RoomId::parse(&id).ok()),
                request: form.request_id,
                body: Payload(text.into()),
            })
        }
    })
}

fn answer_kind(kind: &str) -> Option<AnswerKind> {
    Some(match kind {
        "gateway:agent_command_result" => AnswerKind::AgentCommand,
        "gateway:agent_info" => AnswerKind::AgentInfo,
        "gateway:spawn_result" => AnswerKind::Spawn,
        "gateway:credential_list" => AnswerKind::CredentialList,
        "gateway:credential_result" => AnswerKind::Credential,
        "gateway:oauth_url" => AnswerKind::OauthUrl,
        "gateway:oauth_result" => AnswerKind::Oauth,
        "gateway:workspace_response" => AnswerKind::Workspace,
        "gateway:rewind_result" => AnswerKind::Rewind,
        _ => return None,
    })
}

fn agent(text: &str) -> Result<AgentId, FrameError> {
    AgentId::parse(text).map_err(|_| FrameError::Unknown)
}

fn reply(
    agent_id: &str,
    room: &str,
    message: &str,
    target_agent: Option<Box<str>>,
) -> Result<ReplyTarget, FrameError> {
    Ok(ReplyTarget {
        agent: agent(agent_id)?,
        room: RoomId::parse(room).ok(),
        message: MessageId::parse(message).ok(),
        run: None,
        target_agent,
    })
}

fn object(raw: &RawValue) -> Result<Payload, FrameError> {
    if raw.get().starts_with('{') { Ok(Payload(raw.get().into())) } else { Err(FrameError::Unknown) }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthForm {
    token: Box<str>,
    gateway_id: Box<str>,
    protocol_version: Option<Box<str>>,
    device_info: Option<Device>,
    ephemeral: Option<bool>,
    parlor: Option<bool>,
}

#[derive(Deserialize)]
struct Registration<'a> {
    #[serde(borrow)]
    agent: RegisteredAgent<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegisteredAgent<'a> {
    id: Box<str>,
    name: Box<str>,
    #[serde(rename = "type")]
    kind: Box<str>,
    working_directory: Option<Box<str>>,
    capabilities: Option<Vec<Box<str>>>,
    model: Option<Box<str>>,
    #[serde(borrow)]
    slash_commands: Option<&'a RawValue>,
    #[serde(borrow)]
    mcp_servers: Option<&'a RawValue>,
}

impl RegisteredAgent<'_> {
    fn read(self) -> Result<AgentForm, FrameError> {
        let list = |raw: Option<&RawValue>| raw.map(|raw| Payload(raw.get().into()));
        Ok(AgentForm {
            id: agent(&self.id)?,
            name: self.name,
            kind: self.kind,
            working_directory: self.working_directory,
            capabilities: self.capabilities.unwrap_or_default(),
            model: self.model,
            slash_commands: list(self.slash_commands),
            mcp_servers: list(self.mcp_servers),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentOnly<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ChunkForm<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

impl ChunkForm<'_> {
    /// `None` if the kind of the chunk is unknown.
    fn read(self) -> Option<Chunk> {
        Some(Chunk {
            kind: ChunkKind::parse(&self.kind)?,
            content: self.content.into(),
            metadata: self.metadata.map(|raw| Payload(raw.get().into())),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkFrame<'a> {
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow)]
    message_id: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Option<Cow<'a, str>>,
    target_agent_name: Option<Box<str>>,
    #[serde(borrow)]
    chunk: ChunkForm<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompleteFrame<'a> {
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow)]
    message_id: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Option<Cow<'a, str>>,
    target_agent_name: Option<Box<str>>,
    full_content: Option<Box<str>>,
    #[serde(borrow)]
    chunks: Option<Vec<ChunkForm<'a>>>,
    conversation_id: Option<Box<str>>,
    depth: Option<u32>,
    #[serde(borrow)]
    outcome: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumeFrame<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AddedFrame<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    #[serde(borrow)]
    added_run_id: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusFrame<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    status: Status,
    queue_depth: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminalFrame<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow)]
    room_id: Option<Cow<'a, str>>,
    data: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskFrame {
    task_id: Box<str>,
    status: Box<str>,
    result: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionFrame<'a> {
    request_id: Box<str>,
    agent_id: Box<str>,
    room_id: Box<str>,
    tool_name: Box<str>,
    #[serde(borrow)]
    tool_input: &'a RawValue,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunEventFrame {
    agent_id: Box<str>,
    room_id: Option<Box<str>>,
    message_id: Option<Box<str>>,
    event: RunEventBody,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerFrame {
    agent_id: Option<Box<str>>,
    room_id: Option<Box<str>>,
    request_id: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Ping {
    ts: serde_json::Number,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonLimits;
    use proptest::prelude::*;

    const LIMITS: FrameLimits =
        FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MAX_CHUNKS } };

    fn decoded(text: &str) -> GatewayMessage {
        read(text, &LIMITS).unwrap_or_else(|frame_error| panic!("{frame_error:?}: {text}"))
    }

    #[track_caller]
    fn expect_error(text: &str) {
        assert_eq!(read(text, &LIMITS), Err(FrameError::Unknown), "{text}");
    }

    #[test]
    fn every_recorded_frame_of_the_original_gateway_is_decoded() {
        let recorded = include_str!("../../../tests/fixtures/gateway-frames.jsonl");
        let mut kinds = std::collections::BTreeSet::new();
        for line in recorded.lines() {
            decoded(line);
            let frame: serde_json::Value = serde_json::from_str(line).unwrap();
            kinds.insert(frame["type"].as_str().unwrap().to_owned());
        }
        assert!(kinds.len() >= 12, "{kinds:?}");
    }

    #[test]
    fn an_agent_may_be_of_any_kind() {
        let text = r#"{"type":"gateway:register_agent","agent":{"id":"a","name":"A","type":"my-own"}}"#;
        let GatewayMessage::Register(form) = decoded(text) else { panic!("not a registration") };
        assert_eq!((&*form.kind, form.capabilities.len(), form.slash_commands), ("my-own", 0, None));
    }

    #[test]
    fn a_chunk_of_unknown_kind_is_rejected_alone_and_skipped_in_a_complete_reply() {
        let ids = r#""roomId":"r","agentId":"a","messageId":"m""#;
        let odd = r#"{"type":"hologram","content":"x"}"#;
        expect_error(&format!(r#"{{"type":"gateway:message_chunk",{ids},"chunk":{odd}}}"#));
        let whole = format!(
            r#"{{"type":"gateway:message_complete",{ids},"fullContent":"hi","chunks":[{odd},{{"type":"text","content":"hi"}}]}}"#
        );
        let GatewayMessage::Complete { text, chunks, .. } = decoded(&whole) else {
            panic!("not a completion")
        };
        assert_eq!((text.as_deref(), chunks.len()), (Some("hi"), 1));
    }

    #[test]
    fn the_tool_input_of_a_permission_request_is_kept_unchanged() {
        let text = r#"{"type":"gateway:permission_request","requestId":"p","agentId":"a","roomId":"r","toolName":"Bash","toolInput":{"b":1.0, "a":"x"}}"#;
        let GatewayMessage::Permission(form) = decoded(text) else { panic!("not a permission request") };
        assert_eq!((&*form.input.0, form.timeout_ms), (r#"{"b":1.0, "a":"x"}"#, None));
        assert!(!form.is_own_tool());
        expect_error(&text.replace(r#"{"b":1.0, "a":"x"}"#, "[]"));
    }

    #[test]
    fn a_reply_may_have_five_thousand_chunks() {
        let piece = r#"{"type":"text","content":"x"}"#;
        let whole = |count: usize| {
            let pieces = vec![piece; count].join(",");
            format!(
                r#"{{"type":"gateway:message_complete","roomId":"r","agentId":"a","messageId":"m","chunks":[{pieces}]}}"#
            )
        };
        let GatewayMessage::Complete { chunks, .. } = decoded(&whole(MAX_CHUNKS)) else {
            panic!("not a completion")
        };
        assert_eq!(chunks.len(), MAX_CHUNKS);
        assert_eq!(read(&whole(MAX_CHUNKS + 1), &LIMITS), Err(FrameError::TooMany));
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,200}|\\{\"type\":\"gateway:[a-z_]{0,20}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text, &LIMITS);
        }
    }
}
