//! Decodes `server:*` frames that the hub sends to a gateway. Never panics. Unknown frame types are ignored,
//! so that a newer hub may send them.

use super::super::super::ingress::{FrameError, FrameLimits, check_frame, parse};
use crate::json::JsonLimits;
use parlor_model::{AgentId, ConversationId, MessageId, Payload, RoomId, RunId, UserId};
use serde::Deserialize;
use serde_json::value::RawValue;

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
    /// Stop an agent in one room or, if `room` is `None`, in all rooms.
    Stop {
        agent: AgentId,
        room: Option<RoomId>,
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
    pub room: RoomId,
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
    pub room: RoomId,
    /// The active run.
    pub run: RunId,
    /// The queued run of the message, which would follow otherwise.
    pub added: RunId,
    pub content: Box<str>,
}

/// Message of the room before the trigger of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierMessage {
    pub sender_id: Box<str>,
    pub sender_name: Box<str>,
    #[serde(rename = "senderType")]
    pub sender: SenderType,
    pub content: Box<str>,
    pub created_at: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SenderType {
    User,
    Agent,
    System,
}

/// Description of a room for an agent.
#[derive(Debug, PartialEq)]
pub struct RoomView {
    pub room: RoomId,
    pub name: Box<str>,
    pub system_prompt: Option<Box<str>>,
    pub members: Vec<MemberView>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    pub id: Box<str>,
    pub name: Box<str>,
    #[serde(rename = "type")]
    pub kind: SenderType,
    pub role: Option<Box<str>>,
    pub role_description: Option<Box<str>>,
    pub status: Option<Box<str>>,
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
    Ok(Some(match &*kind {
        "server:gateway_auth_result" => {
            let AuthResult { ok, error } = parse(text)?;
            if ok {
                Instruction::Welcome
            } else {
                Instruction::AuthFailed { error: error.unwrap_or_default() }
            }
        }
        "server:send_to_agent" => {
            let form: SendForm = parse(text)?;
            Instruction::Answer(RunRequest {
                agent: agent(&form.agent_id)?,
                room: room(&form.room_id)?,
                message: MessageId::parse(&form.message_id).map_err(|_| FrameError::Unknown)?,
                run: form.run_id.and_then(|id| RunId::parse(&id).ok()),
                content: form.content,
                sender_name: form.sender_name,
                sender: form.sender_type,
                by_policy: form.routing_mode.as_deref() == Some("broadcast"),
                conversation: form.conversation_id.and_then(|id| ConversationId::parse(&id).ok()),
                depth: form.depth.unwrap_or(0),
                earlier: form.context,
            })
        }
        "server:add_to_run" => {
            let form: AdditionForm = parse(text)?;
            Instruction::Add(InjectedMessage {
                agent: agent(&form.agent_id)?,
                room: room(&form.room_id)?,
                run: run(&form.run_id)?,
                added: run(&form.added_run_id)?,
                content: form.content,
            })
        }
        "server:room_context" => {
            let ContextForm { agent_id, context } = parse(text)?;
            let room = RoomView {
                room: room(&context.room_id)?,
                name: context.room_name,
                system_prompt: context.system_prompt,
                members: context.members,
            };
            Instruction::Look { agent: agent(&agent_id)?, room }
        }
        "server:stop_agent" => {
            let AgentRoomForm { agent_id, room_id } = parse(text)?;
            // An invalid room id is an error: it must not be read as `None`, which stops the agent in all
            // rooms.
            Instruction::Stop { agent: agent(&agent_id)?, room: room_id.as_deref().map(room).transpose()? }
        }
        "server:run_ended" => {
            let EndedForm { run_id, outcome } = parse(text)?;
            Instruction::Ended { run: run(&run_id)?, interrupted: &*outcome == "interrupted" }
        }
        "server:run_resumed" => {
            let ResumedForm { run_id, parts, bytes } = parse(text)?;
            Instruction::Resumed { run: run(&run_id)?, parts, bytes }
        }
        "server:permission_response" => {
            let form: DecisionForm = parse(text)?;
            let verdict = match &*form.decision {
                "allow" => PermissionOutcome::Allowed,
                "timeout" => PermissionOutcome::Expired,
                // Default deny: an unknown decision counts as denied.
                _ => PermissionOutcome::Denied { reason: form.deny_reason },
            };
            Instruction::Decided { agent: agent(&form.agent_id)?, request: form.request_id, verdict }
        }
        "server:question_response" => {
            let form: ResponseForm = parse(text)?;
            let answers = form.answers.unwrap_or_default();
            Instruction::Answered { agent: agent(&form.agent_id)?, question: form.question_id, answers }
        }
        "server:remove_agent" => {
            let AgentRoomForm { agent_id, .. } = parse(text)?;
            Instruction::Remove { agent: agent(&agent_id)? }
        }
        "server:agent_command" => {
            let form: CommandForm = parse(text)?;
            Instruction::Command {
                agent: agent(&form.agent_id)?,
                room: room(&form.room_id)?,
                command: form.command,
                args: form.args.unwrap_or_default(),
                user: form.user_id.and_then(|id| UserId::parse(&id).ok()),
            }
        }
        "server:query_agent_info" => {
            let AgentRoomForm { agent_id, room_id } = parse(text)?;
            let room = room_id.as_deref().map(room).transpose()?;
            Instruction::DescribeAgent { agent: agent(&agent_id)?, room }
        }
        "server:request_workspace" => {
            let form: WorkspaceForm = parse(text)?;
            Instruction::ShowWorkspace {
                agent: agent(&form.agent_id)?,
                room: room(&form.room_id)?,
                request: form.request_id,
                wanted: Payload(form.request.get().into()),
            }
        }
        "server:rewind_agent" => {
            let form: RewindForm = parse(text)?;
            Instruction::Rewind {
                agent: agent(&form.agent_id)?,
                room: room(&form.room_id)?,
                message: form.message_id.and_then(|id| MessageId::parse(&id).ok()),
            }
        }
        "server:spawn_agent" => {
            let form: SpawnForm = parse(text)?;
            Instruction::Spawn {
                request: form.request_id,
                kind: form.agent_type,
                name: form.name,
                working_directory: form.working_directory,
            }
        }
        "server:error" => {
            let ErrorForm { code, message } = parse(text)?;
            Instruction::Refused { code: code.unwrap_or_default(), message: message.unwrap_or_default() }
        }
        "server:pong" => {
            let Pong { ts } = parse(text)?;
            Instruction::Pong { ts }
        }
        other => {
            let Some(kind) = RelayKind::of(other) else { return Ok(None) };
            let RequestIdForm { request_id } = parse(text)?;
            Instruction::Relay { kind, request: request_id, body: Payload(text.into()) }
        }
    }))
}

impl RelayKind {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "server:list_credentials" => Self::ListCredentials,
            "server:add_credential" => Self::AddCredential,
            "server:manage_credential" => Self::ManageCredential,
            "server:start_oauth" => Self::StartOauth,
            "server:complete_oauth" => Self::CompleteOauth,
            _ => return None,
        })
    }
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

#[derive(Deserialize)]
struct AuthResult {
    ok: bool,
    error: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendForm {
    agent_id: Box<str>,
    room_id: Box<str>,
    message_id: Box<str>,
    run_id: Option<Box<str>>,
    content: Box<str>,
    sender_name: Box<str>,
    sender_type: SenderType,
    routing_mode: Option<Box<str>>,
    conversation_id: Option<Box<str>>,
    depth: Option<u32>,
    #[serde(default)]
    context: Vec<EarlierMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdditionForm {
    agent_id: Box<str>,
    room_id: Box<str>,
    run_id: Box<str>,
    added_run_id: Box<str>,
    content: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextForm {
    agent_id: Box<str>,
    context: Context,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    room_id: Box<str>,
    room_name: Box<str>,
    system_prompt: Option<Box<str>>,
    members: Vec<MemberView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentRoomForm {
    agent_id: Box<str>,
    room_id: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndedForm {
    run_id: Box<str>,
    outcome: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResumedForm {
    run_id: Box<str>,
    parts: usize,
    bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecisionForm {
    request_id: Box<str>,
    agent_id: Box<str>,
    decision: Box<str>,
    deny_reason: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseForm {
    question_id: Box<str>,
    agent_id: Box<str>,
    answers: Option<Vec<QuestionReply>>,
}

/// Answer of a user to one question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionReply {
    pub question_index: usize,
    /// Labels of the selected options.
    pub selected: Vec<Box<str>>,
    /// Free-text answer.
    pub custom_text: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommandForm {
    agent_id: Box<str>,
    room_id: Box<str>,
    command: Box<str>,
    args: Option<Box<str>>,
    user_id: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkspaceForm<'a> {
    agent_id: Box<str>,
    room_id: Box<str>,
    request_id: Box<str>,
    #[serde(borrow)]
    request: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RewindForm {
    agent_id: Box<str>,
    room_id: Box<str>,
    message_id: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpawnForm {
    request_id: Box<str>,
    agent_type: Box<str>,
    name: Box<str>,
    working_directory: Option<Box<str>>,
}

#[derive(Deserialize)]
struct ErrorForm {
    code: Option<Box<str>>,
    message: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestIdForm {
    request_id: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Pong {
    ts: serde_json::Number,
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
    fn a_stop_with_an_invalid_room_is_rejected_and_does_not_stop_all_rooms() {
        let agent = AgentId::stored("a");
        let room = RoomId::stored("r");
        let stop = Instruction::Stop { agent: agent.clone(), room: None };
        assert_eq!(decoded(&egress::stop_agent(&agent, None)), stop);
        let stop = Instruction::Stop { agent: agent.clone(), room: Some(room.clone()) };
        assert_eq!(decoded(&egress::stop_agent(&agent, Some(&room))), stop);
        let odd = r#"{"type":"server:stop_agent","agentId":"a","roomId":"no room"}"#;
        assert_eq!(read(odd), Err(FrameError::Unknown));
    }

    #[test]
    fn a_parlor_gateway_decodes_resumed_and_ended_runs() {
        let (agent, room, run) = (AgentId::stored("a"), RoomId::stored("r"), RunId::stored("t"));
        let resumed = Instruction::Resumed { run: run.clone(), parts: 2, bytes: 17 };
        assert_eq!(decoded(&egress::run_resumed(&agent, &room, &run, (2, 17))), resumed);
        for (outcome, interrupted) in [(RunOutcome::Interrupted, true), (RunOutcome::Cancelled, false)] {
            let ended = Instruction::Ended { run: run.clone(), interrupted };
            assert_eq!(decoded(&egress::run_ended(&agent, &room, &run, &outcome)), ended);
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
