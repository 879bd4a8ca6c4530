//! Decodes `gateway:*` frames that a gateway sends to the hub. Never panics, whatever the input.

use super::super::ingress::{FrameError, FrameLimits, check_frame};
use super::frames::GatewayFrame;
use super::frames::gateway::{self as frames, Answer, Chunk as ChunkForm, payload};
pub use super::frames::gateway::{Device, Status};
use parlor_model::{
    AgentId, AnswerKind, Chunk, GatewayId, MessageId, Payload, RoomId, RunContext, RunEvent, RunId,
    RunOutcome, SessionId, TaskId,
};
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
        context: RunContext,
        run: RunId,
    },
    /// A Parlor gateway injected a message into `run`. The queued run `added` of that message is done.
    Added {
        agent: AgentId,
        context: RunContext,
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
        context: Option<RunContext>,
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
        context: Option<RunContext>,
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
    /// A session only for Parlor gateways.
    pub context: Option<RunContext>,
    pub message: Option<MessageId>,
    /// Run of the reply. Set by Parlor gateways only.
    pub run: Option<RunId>,
    pub target_agent: Option<Box<str>>,
}

#[derive(Debug, PartialEq)]
pub struct PermissionForm {
    pub request: Box<str>,
    pub agent: AgentId,
    pub context: Option<RunContext>,
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
    let frame = GatewayFrame::parse(&kind, text).map_err(|_| FrameError::Unknown)?;
    let answer = |kind, form| answer(kind, form, text);
    Ok(match frame.ok_or(FrameError::Unknown)? {
        GatewayFrame::Auth(form) => GatewayMessage::Auth(Auth {
            token: form.token.into(),
            gateway: GatewayId::parse(&form.gateway_id).ok(),
            version: owned(form.protocol_version),
            device: form.device_info.unwrap_or_default(),
            ephemeral: form.ephemeral.unwrap_or(false),
            by_room: form.parlor.unwrap_or(false),
        }),
        GatewayFrame::RegisterAgent(form) => GatewayMessage::Register(registration(form.agent)?),
        GatewayFrame::UnregisterAgent(form) => GatewayMessage::Unregister { agent: agent(&form.agent_id)? },
        GatewayFrame::MessageChunk(form) => GatewayMessage::Chunk {
            reply: ReplyTarget {
                agent: agent(&form.agent_id)?,
                context: context(&form.room_id, &form.session_id),
                message: MessageId::parse(&form.message_id).ok(),
                run: form.run_id.and_then(|id| RunId::parse(&id).ok()),
                target_agent: owned(form.target_agent_name),
            },
            chunk: form.chunk.read().ok_or(FrameError::Unknown)?,
        },
        GatewayFrame::MessageComplete(form) => completion(form)?,
        GatewayFrame::ResumeRun(form) => GatewayMessage::Resume {
            agent: agent(&form.agent_id)?,
            context: context(&form.room_id, &form.session_id).ok_or(FrameError::Unknown)?,
            run: run(&form.run_id)?,
        },
        GatewayFrame::RunAdded(form) => GatewayMessage::Added {
            agent: agent(&form.agent_id)?,
            context: context(&form.room_id, &form.session_id).ok_or(FrameError::Unknown)?,
            run: run(&form.run_id)?,
            added: run(&form.added_run_id)?,
        },
        GatewayFrame::AgentStatus(form) => GatewayMessage::Status {
            agent: agent(&form.agent_id)?,
            status: form.status,
            queue_depth: form.queue_depth.unwrap_or(0),
        },
        GatewayFrame::TerminalData(form) => GatewayMessage::Terminal {
            agent: agent(&form.agent_id)?,
            context: context(&form.room_id, &form.session_id),
            data: form.data.into(),
        },
        GatewayFrame::TaskUpdate(form) => GatewayMessage::TaskUpdate {
            task: TaskId::parse(&form.task_id).ok(),
            status: form.status.into(),
            result: owned(form.result),
        },
        GatewayFrame::PermissionRequest(form) => GatewayMessage::Permission(PermissionForm {
            request: form.request_id.into(),
            agent: agent(&form.agent_id)?,
            context: context(&form.room_id, &form.session_id),
            tool: form.tool_name.into(),
            input: object(form.tool_input)?,
            timeout_ms: form.timeout_ms,
        }),
        GatewayFrame::RunEvent(form) => GatewayMessage::RunEvent {
            agent: agent(&form.agent_id)?,
            context: context(&form.room_id, &form.session_id),
            message: form.message_id.and_then(|id| MessageId::parse(&id).ok()),
            event: form.event.read()?,
        },
        GatewayFrame::Ping(form) => GatewayMessage::Ping { ts: form.ts },
        GatewayFrame::AgentCommandResult(form) => answer(AnswerKind::AgentCommand, form),
        GatewayFrame::AgentInfo(form) => answer(AnswerKind::AgentInfo, form),
        GatewayFrame::SpawnResult(form) => answer(AnswerKind::Spawn, form),
        GatewayFrame::CredentialList(form) => answer(AnswerKind::CredentialList, form),
        GatewayFrame::CredentialResult(form) => answer(AnswerKind::Credential, form),
        GatewayFrame::OauthUrl(form) => answer(AnswerKind::OauthUrl, form),
        GatewayFrame::OauthResult(form) => answer(AnswerKind::Oauth, form),
        GatewayFrame::WorkspaceResponse(form) => answer(AnswerKind::Workspace, form),
        GatewayFrame::RewindResult(form) => answer(AnswerKind::Rewind, form),
    })
}

fn registration(form: frames::RegisteredAgent<'_>) -> Result<AgentForm, FrameError> {
    Ok(AgentForm {
        id: agent(&form.id)?,
        name: form.name.into(),
        kind: form.kind.into(),
        working_directory: owned(form.working_directory),
        capabilities: form.capabilities.unwrap_or_default().into_iter().map(Into::into).collect(),
        model: owned(form.model),
        slash_commands: form.slash_commands.map(payload),
        mcp_servers: form.mcp_servers.map(payload),
    })
}

fn completion(form: frames::MessageComplete<'_>) -> Result<GatewayMessage, FrameError> {
    Ok(GatewayMessage::Complete {
        reply: ReplyTarget {
            agent: agent(&form.agent_id)?,
            context: context(&form.room_id, &form.session_id),
            message: MessageId::parse(&form.message_id).ok(),
            run: form.run_id.and_then(|id| RunId::parse(&id).ok()),
            target_agent: owned(form.target_agent_name),
        },
        text: owned(form.full_content),
        chunks: form.chunks.unwrap_or_default().into_iter().filter_map(ChunkForm::read).collect(),
        conversation: owned(form.conversation_id),
        depth: form.depth,
        outcome: match form.outcome.as_deref() {
            Some("failed") => {
                RunOutcome::Failed(form.reason.unwrap_or_default().chars().take(MAX_REASON_CHARS).collect())
            }
            Some("interrupted") => RunOutcome::Interrupted,
            _ => RunOutcome::Complete,
        },
    })
}

fn answer(kind: AnswerKind, form: Answer<'_>, text: &str) -> GatewayMessage {
    GatewayMessage::Answer(RelayedAnswer {
        kind,
        agent: form.agent_id.and_then(|id| AgentId::parse(&id).ok()),
        room: form.room_id.and_then(|id| RoomId::parse(&id).ok()),
        request: owned(form.request_id),
        body: Payload(text.into()),
    })
}

fn agent(text: &str) -> Result<AgentId, FrameError> {
    AgentId::parse(text).map_err(|_| FrameError::Unknown)
}

/// The context that a frame names: its room or, in a frame of a Parlor gateway without a room, its session.
fn context(room: &Option<Cow<'_, str>>, session: &Option<Cow<'_, str>>) -> Option<RunContext> {
    match room {
        Some(room) => RoomId::parse(room).ok().map(RunContext::Room),
        None => SessionId::parse(session.as_deref()?).ok().map(RunContext::Session),
    }
}

fn run(text: &str) -> Result<RunId, FrameError> {
    RunId::parse(text).map_err(|_| FrameError::Unknown)
}

fn object(raw: Option<&RawValue>) -> Result<Payload, FrameError> {
    raw.filter(|raw| raw.get().starts_with('{')).map(payload).ok_or(FrameError::Unknown)
}

fn owned(text: Option<Cow<'_, str>>) -> Option<Box<str>> {
    text.map(Into::into)
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
