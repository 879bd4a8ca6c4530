//! From `gateway:*` frames to what they tell and ask. Never panics, whatever comes.

use super::super::ingress::{FrameError, FrameLimits, check_frame, parse};
use super::run_event::RunEventBody;
use parlor_model::{
    AgentId, AnswerKind, Chunk, ChunkKind, GatewayId, MessageId, Payload, RoomId, RunEvent, RunId,
    RunOutcome, TaskId,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How many pieces one reply may come in, and how much of it: what is beyond is refused, not cut off.
pub const MOST_CHUNKS: usize = 5000;
/// Characters of why a turn failed: a sentence or two.
const MAX_REASON_CHARS: usize = 500;
pub const LONGEST_REPLY: usize = 10 * 1024 * 1024;

/// What a gateway tells or asks for.
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
        /// Only hosts of ours say anything but complete.
        outcome: RunOutcome,
    },
    /// A host of ours is back and goes on with a turn: it asks how far it was heard.
    Resume {
        agent: AgentId,
        room: RoomId,
        run: RunId,
    },
    /// An agent of a host of ours has what was said to it while it was at work: `added` waits no longer.
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
        /// Said by hosts that run an agent in several rooms at once.
        room: Option<RoomId>,
        data: Box<str>,
    },
    TaskUpdate {
        task: Option<TaskId>,
        status: Box<str>,
        result: Option<Box<str>>,
    },
    Permission(PermissionForm),
    /// An answer to what a person asked through the hub.
    Answer(RelayedAnswer),
    /// What only Parlor's own gateway tells: plans, questions, usage and the like.
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
    /// Whether it is one of ours: it can run an agent in several rooms at once, and stop it in one of them.
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

/// An agent as its gateway presents it.
#[derive(Debug, PartialEq)]
pub struct AgentForm {
    pub id: AgentId,
    pub name: Box<str>,
    /// Whatever the gateway calls it.
    pub kind: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub capabilities: Vec<Box<str>>,
    pub model: Option<Box<str>>,
    /// Lists that pass through as they came.
    pub slash_commands: Option<Payload>,
    pub mcp_servers: Option<Payload>,
}

/// Where a piece of a reply belongs.
#[derive(Debug, PartialEq)]
pub struct ReplyTarget {
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub message: Option<MessageId>,
    /// In which turn, where the host is ours and says so.
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

/// An answer that the hub only hands on to whoever asked.
#[derive(Debug, PartialEq)]
pub struct RelayedAnswer {
    pub kind: AnswerKind,
    pub agent: Option<AgentId>,
    pub room: Option<RoomId>,
    pub request: Option<Box<str>>,
    /// The whole frame, an object.
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
    /// `None` for a kind nobody here knows how to show.
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
        FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MOST_CHUNKS } };

    fn told(text: &str) -> GatewayMessage {
        read(text, &LIMITS).unwrap_or_else(|frame_error| panic!("{frame_error:?}: {text}"))
    }

    #[track_caller]
    fn misread(text: &str) {
        assert_eq!(read(text, &LIMITS), Err(FrameError::Unknown), "{text}");
    }

    #[test]
    fn every_frame_the_real_gateway_sent_is_understood() {
        let recorded = include_str!("../../../tests/fixtures/gateway-frames.jsonl");
        let mut kinds = std::collections::BTreeSet::new();
        for line in recorded.lines() {
            told(line);
            let frame: serde_json::Value = serde_json::from_str(line).unwrap();
            kinds.insert(frame["type"].as_str().unwrap().to_owned());
        }
        assert!(kinds.len() >= 12, "{kinds:?}");
    }

    #[test]
    fn an_agent_may_be_of_any_kind() {
        let text = r#"{"type":"gateway:register_agent","agent":{"id":"a","name":"A","type":"my-own"}}"#;
        let GatewayMessage::Register(form) = told(text) else { panic!("not a registration") };
        assert_eq!((&*form.kind, form.capabilities.len(), form.slash_commands), ("my-own", 0, None));
    }

    #[test]
    fn a_piece_of_a_kind_nobody_knows_is_refused_but_does_not_spoil_the_whole() {
        let ids = r#""roomId":"r","agentId":"a","messageId":"m""#;
        let odd = r#"{"type":"hologram","content":"x"}"#;
        misread(&format!(r#"{{"type":"gateway:message_chunk",{ids},"chunk":{odd}}}"#));
        let whole = format!(
            r#"{{"type":"gateway:message_complete",{ids},"fullContent":"hi","chunks":[{odd},{{"type":"text","content":"hi"}}]}}"#
        );
        let GatewayMessage::Complete { text, chunks, .. } = told(&whole) else { panic!("not a completion") };
        assert_eq!((text.as_deref(), chunks.len()), (Some("hi"), 1));
    }

    #[test]
    fn what_is_to_be_approved_is_kept_to_the_letter() {
        let text = r#"{"type":"gateway:permission_request","requestId":"p","agentId":"a","roomId":"r","toolName":"Bash","toolInput":{"b":1.0, "a":"x"}}"#;
        let GatewayMessage::Permission(form) = told(text) else { panic!("not a question") };
        assert_eq!((&*form.input.0, form.timeout_ms), (r#"{"b":1.0, "a":"x"}"#, None));
        misread(&text.replace(r#"{"b":1.0, "a":"x"}"#, "[]"));
    }

    #[test]
    fn a_reply_may_come_in_five_thousand_pieces() {
        let piece = r#"{"type":"text","content":"x"}"#;
        let whole = |count: usize| {
            let pieces = vec![piece; count].join(",");
            format!(
                r#"{{"type":"gateway:message_complete","roomId":"r","agentId":"a","messageId":"m","chunks":[{pieces}]}}"#
            )
        };
        let GatewayMessage::Complete { chunks, .. } = told(&whole(MOST_CHUNKS)) else {
            panic!("not a completion")
        };
        assert_eq!(chunks.len(), MOST_CHUNKS);
        assert_eq!(read(&whole(MOST_CHUNKS + 1), &LIMITS), Err(FrameError::TooMany));
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_text_whatever_makes_it_panic(text in "\\PC{0,200}|\\{\"type\":\"gateway:[a-z_]{0,20}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text, &LIMITS);
        }
    }
}
