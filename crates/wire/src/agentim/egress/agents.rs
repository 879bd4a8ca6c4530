//! Encodes frames about agents for clients: reply chunks, status, approvals and relayed answers.

use crate::agentim::frames::server::{
    AgentFrame, AgentInfo, AgentStatus as StatusFrame, MessageChunk, PermissionRequest,
    PermissionRequestExpired, PermissionResolved, RoomRewound,
};
use crate::agentim::frames::{ChunkFrame, ServerFrame};
use crate::agentim::rest::True;
use crate::frames::{encode, encode_about};
use crate::time::iso;
use crate::words::PermissionResult;
use parlor_model::{
    AgentId, AgentStatus, AnswerKind, Answerer, Approval, ApprovalSubject, Chunk, Decision, InquiryAnswer,
    MessageId, Payload, RoomId, RunPlace, SessionId,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Kinds of agents that AgentIM's clients know. They discard a frame with any other kind.
const KINDS: [&str; 4] = ["claude-code", "codex", "gemini", "generic"];

/// Maps the kind reported by a gateway to a kind that AgentIM's clients know.
pub fn kind(given: &str) -> &'static str {
    match given {
        "claude" | "acp:claude" => "claude-code",
        "acp:codex" => "codex",
        "acp:gemini" => "gemini",
        given => KINDS.into_iter().find(|known| *known == given).unwrap_or("generic"),
    }
}

pub(super) fn chunk(
    place: &RunPlace,
    agent: &AgentId,
    agent_name: &str,
    message: &MessageId,
    chunk: &Chunk,
    first: bool,
) -> String {
    let frame = ServerFrame::MessageChunk(MessageChunk {
        room_id: place.room().map(RoomId::as_str),
        session_id: place.session().map(SessionId::as_str),
        agent_id: agent.as_str(),
        agent_name,
        message_id: message.as_str(),
        chunk: ChunkFrame::from(chunk),
        first: first.then_some(True),
    });
    encode_about(&frame, chunk.content.len() + 320)
}

pub(super) fn status<'a>(
    agent: &'a AgentId,
    name: &'a str,
    given_kind: &str,
    model: Option<&'a str>,
    status: AgentStatus,
    queue_depth: u32,
) -> ServerFrame<'a> {
    let kind = kind(given_kind);
    let agent = AgentFrame { id: agent.as_str(), name, kind, status: status.into(), model, queue_depth };
    ServerFrame::AgentStatus(StatusFrame { agent })
}

/// Encodes a permission request. The tool input is sent unchanged, even if it contains `null`: users must see
/// exactly the input that the agent would run.
pub fn permission_request(approval: &Approval) -> String {
    encode(&ServerFrame::PermissionRequest(PermissionRequest {
        request_id: approval.id.as_str(),
        agent_id: approval.agent.as_str(),
        agent_name: &approval.agent_name,
        room_id: approval.place.room().map(RoomId::as_str),
        session_id: approval.place.session().map(SessionId::as_str),
        tool_name: &approval.tool,
        tool_input: match &approval.subject {
            ApprovalSubject::Tool(input) => raw(input),
            ApprovalSubject::Questions(_) => None,
        },
        input_digest: approval.digest.to_string(),
        expires_at: iso(approval.expires_at),
    }))
}

pub fn permission_request_expired(approval: &Approval) -> String {
    let expired = PermissionRequestExpired { request_id: approval.id.as_str() };
    encode(&ServerFrame::PermissionRequestExpired(expired))
}

/// Encodes the decision of an approval, with the user that decided it, if any.
pub fn permission_resolved(approval: &Approval) -> String {
    let (decider, reason) = match &approval.decision {
        Some(Decision::Allowed { by }) => (Some(by), None),
        Some(Decision::Denied { by, reason }) => (Some(by), reason.as_deref()),
        Some(Decision::Answered { by, .. }) => (Some(by), None),
        Some(Decision::AllowedByRule | Decision::Expired | Decision::Withdrawn) | None => (None, None),
    };
    encode(&ServerFrame::PermissionResolved(PermissionResolved {
        request_id: approval.id.as_str(),
        room_id: approval.place.room().map(RoomId::as_str),
        session_id: approval.place.session().map(SessionId::as_str),
        decision: PermissionResult::of(approval.decision.as_ref()),
        decided_by: decider.map(|decider| decider.user.as_str()),
        decided_by_name: decider.map(|decider| &*decider.name),
        reason,
    }))
}

/// Encodes the answer to an inquiry: the gateway's object with another `type`. `None` for rewind results,
/// which clients receive as `server:room_rewound`.
pub(super) fn answered(answered: &InquiryAnswer) -> Option<String> {
    let InquiryAnswer { kind, by, body } = answered;
    let name = match kind {
        AnswerKind::AgentInfo => return agent_info(by, body),
        AnswerKind::AgentCommand => "server:agent_command_result",
        AnswerKind::Spawn => "server:spawn_result",
        AnswerKind::CredentialList => "server:gateway_credential_list",
        AnswerKind::Credential => "server:gateway_credential_result",
        AnswerKind::OauthUrl => "server:gateway_oauth_url",
        AnswerKind::Oauth => "server:gateway_oauth_result",
        AnswerKind::Workspace => "server:workspace_response",
        AnswerKind::Rewind => return None,
    };
    let mut frame: Value = serde_json::from_str(&body.0).ok()?;
    // AgentIM's clients require `null` in this field only: a folder without version control has no status.
    let no_status =
        frame.pointer("/response/data").is_some_and(Value::is_null) && frame["response"]["kind"] == "status";
    remove_nulls(&mut frame);
    if no_status {
        frame["response"]["data"] = Value::Null;
    }
    let fields = frame.as_object_mut()?;
    fields.insert("type".into(), name.into());
    let (field, id) = match by {
        Answerer::Agent { agent, .. } => ("agentId", agent.as_str()),
        Answerer::Gateway(gateway) => ("gatewayId", gateway.as_str()),
    };
    fields.insert(field.into(), id.into());
    Some(frame.to_string())
}

/// Encodes `server:agent_info`: the gateway's answer, with identity and status overwritten by the hub's
/// values.
fn agent_info(by: &Answerer, answer: &Payload) -> Option<String> {
    let Answerer::Agent { agent, name, kind: given_kind, status } = by else { return None };
    let mut info = match without_nulls(answer) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    for envelope_field in ["type", "agentId", "roomId", "requestId"] {
        info.remove(envelope_field);
    }
    info.insert("id".into(), agent.as_str().into());
    info.insert("name".into(), (&**name).into());
    info.insert("type".into(), kind(given_kind).into());
    info.insert("status".into(), status.as_str().into());
    Some(encode(&ServerFrame::AgentInfo(AgentInfo { agent: info })))
}

pub(super) fn room_rewound<'a>(
    room: &'a RoomId,
    message: &'a MessageId,
    removed: &'a [MessageId],
    content: &'a str,
) -> ServerFrame<'a> {
    ServerFrame::RoomRewound(RoomRewound {
        room_id: room.as_str(),
        message_id: message.as_str(),
        removed_message_ids: removed.iter().map(MessageId::as_str).collect(),
        message_content: content,
    })
}

fn raw(payload: &Payload) -> Option<Box<RawValue>> {
    serde_json::from_str(&payload.0).ok()
}

/// Returns the payload without `null` values, or `None` if it is not an object. Clients discard a frame that
/// contains `null` or whose metadata is not an object.
pub fn object_without_nulls(payload: &Payload) -> Option<Box<RawValue>> {
    if !payload.0.contains("null") {
        return raw(payload).filter(|raw| raw.get().starts_with('{'));
    }
    let value = without_nulls(payload).filter(Value::is_object)?;
    serde_json::value::to_raw_value(&value).ok()
}

/// Parses a relayed payload and removes all `null` values.
pub fn without_nulls(payload: &Payload) -> Option<Value> {
    let mut value = serde_json::from_str(&payload.0).ok()?;
    remove_nulls(&mut value);
    Some(value)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(remove_nulls);
        }
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{
        Activity, ApprovalId, ChunkKind, Decider, GatewayId, InputDigest, RunEvent, RunId, Signal, Time,
        UserId,
    };

    fn chunk_frame(metadata: Option<&str>, first: bool) -> String {
        let metadata = metadata.map(|text| Payload(text.into()));
        let signal = Signal::Chunk {
            place: RunPlace::Room(RoomId::stored("r")),
            agent: AgentId::stored("a"),
            agent_name: "Coder".into(),
            message: MessageId::stored("m"),
            chunk: Chunk { kind: ChunkKind::Text, content: "hi \"you\"".into(), metadata },
            first,
        };
        super::super::signal(&signal).unwrap()
    }

    #[test]
    fn a_chunk_is_encoded_with_its_metadata_and_position_in_the_reply() {
        let head = r#"{"type":"server:message_chunk","roomId":"r","agentId":"a","agentName":"Coder","messageId":"m","chunk":{"type":"text","content":"hi \"you\"""#;
        assert_eq!(chunk_frame(None, false), format!("{head}}}}}"));
        assert_eq!(chunk_frame(Some("[1]"), false), format!("{head}}}}}"), "only an object can be metadata");
        assert_eq!(chunk_frame(None, true), format!(r#"{head}}},"first":true}}"#));
        assert_eq!(
            chunk_frame(Some(r#"{"a":{"b":null,"c":[null,1]},"d":null}"#), true),
            format!(r#"{head},"metadata":{{"a":{{"c":[1]}}}}}},"first":true}}"#)
        );
    }

    #[test]
    fn an_agent_status_has_a_kind_that_clients_know_and_no_absent_fields() {
        let encoded = |kind: &str, model: Option<&str>| {
            encode(&status(&AgentId::stored("a"), "Coder", kind, model, AgentStatus::Busy, 2))
        };
        assert_eq!(
            encoded("codex", None),
            r#"{"type":"server:agent_status","agent":{"id":"a","name":"Coder","type":"codex","status":"busy","queueDepth":2}}"#
        );
        assert_eq!(
            encoded("my-own", Some("opus")),
            r#"{"type":"server:agent_status","agent":{"id":"a","name":"Coder","type":"generic","status":"busy","model":"opus","queueDepth":2}}"#
        );
    }

    #[test]
    fn terminal_data_has_a_frame_and_run_events_have_none() {
        let (room, agent) = (RoomId::stored("r"), AgentId::stored("a"));
        let signal = Signal::Terminal {
            room: room.clone(),
            agent: agent.clone(),
            agent_name: "Coder".into(),
            data: "$ ls\n".into(),
        };
        assert_eq!(
            super::super::signal(&signal).unwrap(),
            r#"{"type":"server:terminal_data","agentId":"a","agentName":"Coder","roomId":"r","data":"$ ls\n"}"#
        );
        let status = RunEvent::Status { activity: Activity::Thinking, detail: None, subagent: None };
        let event = std::sync::Arc::new(status);
        let signal =
            Signal::RunEvent { run: RunId::stored("1"), place: RunPlace::Room(room), agent, event, rev: 1 };
        assert_eq!(super::super::signal(&signal), None);
    }

    fn approval(decision: Option<Decision>) -> Approval {
        Approval {
            id: ApprovalId::stored("p"),
            run: RunId::stored("1"),
            place: RunPlace::Room(RoomId::stored("r")),
            agent: AgentId::stored("a"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: "theirs".into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload(r#"{"b":1.0, "a":null}"#.into())),
            digest: InputDigest([0; 32]),
            asked_at: Time(0),
            expires_at: Time(60_000_000),
            decision,
            decided_at: None,
        }
    }

    #[test]
    fn a_permission_request_has_the_unchanged_input_and_the_id_of_the_hub() {
        let digest = "0".repeat(64);
        assert_eq!(
            permission_request(&approval(None)),
            format!(
                r#"{{"type":"server:permission_request","requestId":"p","agentId":"a","agentName":"Coder","roomId":"r","toolName":"Bash","toolInput":{{"b":1.0, "a":null}},"inputDigest":"{digest}","expiresAt":"1970-01-01T00:01:00.000000Z"}}"#
            )
        );
        assert_eq!(
            permission_request_expired(&approval(None)),
            r#"{"type":"server:permission_request_expired","requestId":"p"}"#
        );
    }

    #[test]
    fn a_resolved_permission_names_the_user_only_if_a_user_decided() {
        let by = || Decider { user: UserId::stored("u"), name: "ann".into() };
        let head = r#"{"type":"server:permission_resolved","requestId":"p","roomId":"r","decision":"#;
        for (decision, rest) in [
            (None, r#""deny"}"#),
            (Some(Decision::Withdrawn), r#""deny"}"#),
            (Some(Decision::Expired), r#""timeout"}"#),
            (Some(Decision::AllowedByRule), r#""allow"}"#),
            (Some(Decision::Allowed { by: by() }), r#""allow","decidedBy":"u","decidedByName":"ann"}"#),
            (
                Some(Decision::Denied { by: by(), reason: Some("no".into()) }),
                r#""deny","decidedBy":"u","decidedByName":"ann","reason":"no"}"#,
            ),
        ] {
            assert_eq!(permission_resolved(&approval(decision)), format!("{head}{rest}"));
        }
    }

    #[test]
    fn an_answer_is_relayed_with_another_type_and_without_nulls() {
        let by = Answerer::Gateway(GatewayId::stored("g"));
        let encoded = |kind, body: &str| {
            let answer = InquiryAnswer { kind, by: by.clone(), body: Payload(body.into()) };
            super::super::signal(&Signal::Answered(Box::new(answer)))
        };
        let body = r#"{"type":"gateway:spawn_result","requestId":"1","success":true,"error":null,"l":[null,{"x":null}]}"#;
        assert_eq!(
            encoded(AnswerKind::Spawn, body).as_deref(),
            Some(r#"{"type":"server:spawn_result","requestId":"1","success":true,"l":[{}],"gatewayId":"g"}"#)
        );
        let body = r#"{"type":"gateway:workspace_response","requestId":"1","response":{"kind":"status","data":null,"x":null}}"#;
        assert_eq!(
            encoded(AnswerKind::Workspace, body).as_deref(),
            Some(
                r#"{"type":"server:workspace_response","requestId":"1","response":{"kind":"status","data":null},"gatewayId":"g"}"#
            )
        );
        assert_eq!(encoded(AnswerKind::Rewind, "{}"), None);
        assert_eq!(encoded(AnswerKind::Spawn, "[]"), None);
    }

    #[test]
    fn a_gateway_cannot_override_the_identity_of_an_agent() {
        let body = Payload(
            r#"{"type":"gateway:agent_info","agentId":"b","id":"b","name":"Admin","status":"x","model":null,"slashCommands":[]}"#.into(),
        );
        let (agent, status) = (AgentId::stored("a"), AgentStatus::Online);
        let by = Answerer::Agent { agent, name: "Coder".into(), kind: "my-own".into(), status };
        let answer = |kind| {
            let answer = answered(&InquiryAnswer { kind, by: by.clone(), body: body.clone() }).unwrap();
            serde_json::from_str::<Value>(&answer).unwrap()
        };
        assert_eq!(answer(AnswerKind::AgentCommand)["agentId"], "a");
        let expected = r#"{"id":"a","name":"Coder","type":"generic","status":"online","slashCommands":[]}"#;
        assert_eq!(answer(AnswerKind::AgentInfo)["agent"], serde_json::from_str::<Value>(expected).unwrap());
    }

    #[test]
    fn a_rewound_room_lists_the_removed_messages() {
        let (room, message) = (RoomId::stored("r"), MessageId::stored("m"));
        assert_eq!(
            encode(&room_rewound(&room, &message, &[message.clone(), MessageId::stored("n")], "hi")),
            r#"{"type":"server:room_rewound","roomId":"r","messageId":"m","removedMessageIds":["m","n"],"messageContent":"hi"}"#
        );
    }
}
