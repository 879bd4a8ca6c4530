//! Decodes `server:*` frames that the hub sends to a gateway. Never panics. Unknown frame types are ignored,
//! so that a newer hub may send them.

use super::super::super::ingress::{FrameError, FrameLimits, check_frame};
use super::super::frames::HubFrame;
pub use super::super::frames::hub::{EarlierMessage, MemberView, QuestionReply, SenderType};
use super::super::frames::hub::{Relayed, SendToAgent};
use crate::json::JsonLimits;
use parlor_model::{
    AgentId, ConversationId, MessageId, Payload, RoomId, RunContext, RunId, SessionId, UserId,
};
use std::borrow::Cow;

/// Limits for frames of the hub. Large enough for a room context with all members of a large room.
pub const LIMITS: FrameLimits =
    FrameLimits { bytes: 16 * 1024 * 1024, json: JsonLimits { depth: 32, items: 100_000 } };

/// Decoded frame of the hub.
#[derive(Debug, PartialEq)]
pub enum Instruction {
    /// Authentication succeeded.
    Welcome,
    /// Authentication failed.
    AuthFailed {
        error: Box<str>,
    },
    /// Start a run.
    Answer(RunRequest),
    /// Inject a message into an active run.
    Add(InjectedMessage),
    /// Name, system prompt and members of a room in which the agent is.
    Look {
        agent: AgentId,
        room: RoomView,
    },
    /// Stop an agent in one context or, if `context` is `None`, in all.
    Stop {
        agent: AgentId,
        context: Option<RunContext>,
    },
    /// The hub stored the end of a run. `interrupted` if the gateway was offline for longer than the grace
    /// period.
    Ended {
        run: RunId,
        interrupted: bool,
    },
    /// A run is resumed. The hub already has `parts` complete parts of its reply and `bytes` bytes of the
    /// next.
    Resumed {
        run: RunId,
        parts: usize,
        bytes: usize,
    },
    /// Decision on a permission request.
    Decided {
        agent: AgentId,
        request: Box<str>,
        verdict: PermissionOutcome,
    },
    /// Answers to a question set; empty if no user answered in time.
    Answered {
        agent: AgentId,
        question: Box<str>,
        answers: Vec<QuestionReply>,
    },
    /// The agent was removed.
    Remove {
        agent: AgentId,
    },
    Command {
        agent: AgentId,
        room: RoomId,
        command: Box<str>,
        args: Box<str>,
        user: Option<UserId>,
    },
    DescribeAgent {
        agent: AgentId,
        room: Option<RoomId>,
    },
    ShowWorkspace {
        agent: AgentId,
        room: RoomId,
        request: Box<str>,
        wanted: Payload,
    },
    Rewind {
        agent: AgentId,
        room: RoomId,
        message: Option<MessageId>,
    },
    Spawn {
        request: Box<str>,
        kind: Box<str>,
        name: Box<str>,
        working_directory: Option<Box<str>>,
    },
    /// Request for credentials or OAuth, with the whole frame as `body`.
    Relay {
        kind: RelayKind,
        request: Option<Box<str>>,
        body: Payload,
    },
    /// Error frame of the hub.
    Refused {
        code: Box<str>,
        message: Box<str>,
    },
    Pong {
        ts: serde_json::Number,
    },
}

/// Trigger and context of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    pub agent: AgentId,
    pub context: RunContext,
    pub message: MessageId,
    /// Set by Parlor hubs only.
    pub run: Option<RunId>,
    pub content: Box<str>,
    pub sender_name: Box<str>,
    pub sender: SenderType,
    /// Whether the answer policy of the room selected the agent, not a mention.
    pub by_policy: bool,
    pub conversation: Option<ConversationId>,
    pub depth: u32,
    /// Earlier messages of the room, oldest first. Sent by Parlor hubs only.
    pub earlier: Vec<EarlierMessage>,
}

/// Message that is delivered into an active run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedMessage {
    pub agent: AgentId,
    pub context: RunContext,
    /// The active run.
    pub run: RunId,
    /// The queued run of the message, which would follow otherwise.
    pub added: RunId,
    pub content: Box<str>,
}

/// Description of a room for an agent.
#[derive(Debug, PartialEq)]
pub struct RoomView {
    pub room: RoomId,
    pub name: Box<str>,
    pub system_prompt: Option<Box<str>>,
    pub members: Vec<MemberView>,
}

/// Result of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionOutcome {
    Allowed,
    Denied { reason: Option<Box<str>> },
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayKind {
    ListCredentials,
    AddCredential,
    ManageCredential,
    StartOauth,
    CompleteOauth,
}

/// Decodes a frame. `None` for an unknown type, which a newer hub may send.
pub fn read(text: &str) -> Result<Option<Instruction>, FrameError> {
    let kind = check_frame(text, &LIMITS)?;
    let frame = HubFrame::parse(&kind, text).map_err(|_| FrameError::Unknown)?;
    frame.map(|frame| instruction(frame, text)).transpose()
}

fn instruction(frame: HubFrame<'_>, text: &str) -> Result<Instruction, FrameError> {
    let relay = |kind, Relayed { request_id }: Relayed<'_>| Instruction::Relay {
        kind,
        request: owned(request_id),
        body: Payload(text.into()),
    };
    Ok(match frame {
        HubFrame::AuthResult(form) if form.ok => Instruction::Welcome,
        HubFrame::AuthResult(form) => {
            Instruction::AuthFailed { error: form.error.unwrap_or_default().into() }
        }
        HubFrame::SendToAgent(form) => Instruction::Answer(run_request(form)?),
        HubFrame::AddToRun(form) => Instruction::Add(InjectedMessage {
            agent: agent(&form.agent_id)?,
            context: required_context(form.room_id, form.session_id)?,
            run: run(&form.run_id)?,
            added: run(&form.added_run_id)?,
            content: form.content.into(),
        }),
        HubFrame::RoomContext(form) => {
            let room = RoomView {
                room: room(&form.context.room_id)?,
                name: form.context.room_name.into(),
                system_prompt: owned(form.context.system_prompt),
                members: form.context.members,
            };
            Instruction::Look { agent: agent(&form.agent_id)?, room }
        }
        HubFrame::StopAgent(form) => Instruction::Stop {
            agent: agent(&form.agent_id)?,
            context: context(form.room_id, form.session_id)?,
        },
        HubFrame::RunEnded(form) => {
            Instruction::Ended { run: run(&form.run_id)?, interrupted: form.outcome == "interrupted" }
        }
        HubFrame::RunResumed(form) => {
            Instruction::Resumed { run: run(&form.run_id)?, parts: form.parts, bytes: form.bytes }
        }
        HubFrame::PermissionResponse(form) => {
            let verdict = match &*form.decision {
                "allow" => PermissionOutcome::Allowed,
                "timeout" => PermissionOutcome::Expired,
                // Default deny: an unknown decision counts as denied.
                _ => PermissionOutcome::Denied { reason: owned(form.deny_reason) },
            };
            Instruction::Decided { agent: agent(&form.agent_id)?, request: form.request_id.into(), verdict }
        }
        HubFrame::QuestionResponse(form) => Instruction::Answered {
            agent: agent(&form.agent_id)?,
            question: form.question_id.into(),
            answers: form.answers.unwrap_or_default(),
        },
        HubFrame::RemoveAgent(form) => Instruction::Remove { agent: agent(&form.agent_id)? },
        HubFrame::AgentCommand(form) => Instruction::Command {
            agent: agent(&form.agent_id)?,
            room: required_room(form.room_id)?,
            command: form.command.into(),
            args: form.args.unwrap_or_default().into(),
            user: form.user_id.and_then(|id| UserId::parse(&id).ok()),
        },
        HubFrame::QueryAgentInfo(form) => Instruction::DescribeAgent {
            agent: agent(&form.agent_id)?,
            room: form.room_id.as_deref().map(room).transpose()?,
        },
        HubFrame::RequestWorkspace(form) => Instruction::ShowWorkspace {
            agent: agent(&form.agent_id)?,
            room: required_room(form.room_id)?,
            request: form.request_id.into(),
            wanted: Payload(form.request.get().into()),
        },
        HubFrame::RewindAgent(form) => Instruction::Rewind {
            agent: agent(&form.agent_id)?,
            room: room(&form.room_id)?,
            message: form.message_id.and_then(|id| MessageId::parse(&id).ok()),
        },
        HubFrame::SpawnAgent(form) => Instruction::Spawn {
            request: form.request_id.into(),
            kind: form.agent_type.into(),
            name: form.name.into(),
            working_directory: owned(form.working_directory),
        },
        HubFrame::Error(form) => Instruction::Refused {
            code: form.code.unwrap_or_default().into(),
            message: form.message.unwrap_or_default().into(),
        },
        HubFrame::Pong(form) => Instruction::Pong { ts: form.ts },
        HubFrame::ListCredentials(form) => relay(RelayKind::ListCredentials, form),
        HubFrame::AddCredential(form) => relay(RelayKind::AddCredential, form),
        HubFrame::ManageCredential(form) => relay(RelayKind::ManageCredential, form),
        HubFrame::StartOauth(form) => relay(RelayKind::StartOauth, form),
        HubFrame::CompleteOauth(form) => relay(RelayKind::CompleteOauth, form),
    })
}

fn run_request(form: SendToAgent<'_>) -> Result<RunRequest, FrameError> {
    Ok(RunRequest {
        agent: agent(&form.agent_id)?,
        context: required_context(form.room_id, form.session_id)?,
        message: MessageId::parse(&form.message_id).map_err(|_| FrameError::Unknown)?,
        run: form.run_id.and_then(|id| RunId::parse(&id).ok()),
        content: form.content.into(),
        sender_name: form.sender_name.into(),
        sender: form.sender_type,
        by_policy: form.routing_mode.as_deref() == Some("broadcast"),
        conversation: form.conversation_id.and_then(|id| ConversationId::parse(&id).ok()),
        depth: form.depth.unwrap_or(0),
        earlier: form.context,
    })
}

fn agent(text: &str) -> Result<AgentId, FrameError> {
    AgentId::parse(text).map_err(|_| FrameError::Unknown)
}

fn run(text: &str) -> Result<RunId, FrameError> {
    RunId::parse(text).map_err(|_| FrameError::Unknown)
}

fn room(text: &str) -> Result<RoomId, FrameError> {
    RoomId::parse(text).map_err(|_| FrameError::Unknown)
}

/// The context that a frame names, if any. An invalid id is an error: it must not be read as `None`, with which a stop
/// affects all contexts.
fn context(
    room_id: Option<Cow<'_, str>>,
    session_id: Option<Cow<'_, str>>,
) -> Result<Option<RunContext>, FrameError> {
    let session = |text: &str| SessionId::parse(text).map_err(|_| FrameError::Unknown);
    match (room_id, session_id) {
        (Some(id), _) => room(&id).map(|room| Some(RunContext::Room(room))),
        (None, Some(id)) => session(&id).map(|session| Some(RunContext::Session(session))),
        (None, None) => Ok(None),
    }
}

fn required_context(
    room_id: Option<Cow<'_, str>>,
    session_id: Option<Cow<'_, str>>,
) -> Result<RunContext, FrameError> {
    context(room_id, session_id)?.ok_or(FrameError::Unknown)
}

fn required_room(text: Option<Cow<'_, str>>) -> Result<RoomId, FrameError> {
    room(&text.ok_or(FrameError::Unknown)?)
}

fn owned(text: Option<Cow<'_, str>>) -> Option<Box<str>> {
    text.map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::super::super::egress;
    use super::*;
    use parlor_model::RunOutcome;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Instruction {
        match read(text) {
            Ok(Some(instruction)) => instruction,
            other => panic!("{other:?}: {text}"),
        }
    }

    #[test]
    fn every_recorded_frame_of_the_original_hub_is_decoded() {
        let recorded = include_str!("../../../../tests/fixtures/server-frames.jsonl");
        let mut kinds = std::collections::BTreeSet::new();
        for line in recorded.lines() {
            decoded(line);
            let frame: serde_json::Value = serde_json::from_str(line).unwrap();
            kinds.insert(frame["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(kinds.len(), 11, "{kinds:?}");
    }

    #[test]
    fn an_unknown_frame_type_is_ignored() {
        assert_eq!(read(r#"{"type":"server:hologram","x":1}"#), Ok(None));
        assert_eq!(read("[]"), Err(FrameError::Unknown));
        assert_eq!(read("{"), Err(FrameError::NotJson));
    }

    #[test]
    fn only_the_exact_decision_allow_permits_the_tool() {
        let verdict = |decision: &str| {
            let frame = format!(
                r#"{{"type":"server:permission_response","requestId":"p","agentId":"a","decision":"{decision}","denyReason":"no"}}"#
            );
            let Instruction::Decided { verdict, .. } = decoded(&frame) else { panic!("not a decision") };
            verdict
        };
        let denied = PermissionOutcome::Denied { reason: Some("no".into()) };
        assert_eq!(verdict("allow"), PermissionOutcome::Allowed);
        assert_eq!(verdict("timeout"), PermissionOutcome::Expired);
        for other in ["deny", "Allow", "allow ", ""] {
            assert_eq!(verdict(other), denied, "{other:?}");
        }
    }

    #[test]
    fn a_stop_with_an_invalid_place_is_rejected_and_does_not_stop_all() {
        let agent = AgentId::stored("a");
        let room = RunContext::Room(RoomId::stored("r"));
        let session = RunContext::Session(SessionId::stored("s"));
        for context in [None, Some(room), Some(session)] {
            let stop = Instruction::Stop { agent: agent.clone(), context: context.clone() };
            assert_eq!(decoded(&egress::stop_agent(&agent, context.as_ref())), stop);
        }
        for odd in [r#""roomId":"no room""#, r#""sessionId":"no session""#] {
            let odd = format!(r#"{{"type":"server:stop_agent","agentId":"a",{odd}}}"#);
            assert_eq!(read(&odd), Err(FrameError::Unknown));
        }
    }

    #[test]
    fn a_parlor_gateway_decodes_resumed_and_ended_runs() {
        let (agent, run) = (AgentId::stored("a"), RunId::stored("t"));
        let context = RunContext::Room(RoomId::stored("r"));
        let resumed = Instruction::Resumed { run: run.clone(), parts: 2, bytes: 17 };
        assert_eq!(decoded(&egress::run_resumed(&agent, &context, &run, (2, 17))), resumed);
        for (outcome, interrupted) in [(RunOutcome::Interrupted, true), (RunOutcome::Cancelled, false)] {
            let ended = Instruction::Ended { run: run.clone(), interrupted };
            assert_eq!(decoded(&egress::run_ended(&agent, &context, &run, &outcome)), ended);
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,200}|\\{\"type\":\"server:[a-z_]{0,20}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text);
        }
    }
}
