//! Decodes `client:*` frames with requests to agents and gateways.

use super::{FrameError, parse};
use parlor_model::{
    AgentId, ApprovalId, CredentialAction, GatewayId, InputDigest, Inquiry, MessageId, Payload, RoomId,
    WorkspaceRequest,
};
use serde::Deserialize;
use std::borrow::Cow;

/// Request of a user to an agent or a gateway. An id that is `None` was not valid; it is refused like an
/// unknown id.
#[derive(Debug, PartialEq)]
pub enum AgentAction {
    Stop {
        room: Option<RoomId>,
        agent: Option<AgentId>,
    },
    Decide {
        request: Option<ApprovalId>,
        allow: bool,
        /// Also create a rule that allows every later request of this agent for this tool in this room.
        always: bool,
        reason: Option<Box<str>>,
        /// Digest of the input that the user saw.
        digest: Option<InputDigest>,
    },
    Inquire {
        agent: Option<AgentId>,
        /// `None` if the frame names no room, `Some(None)` if its room id is not valid.
        room: Option<Option<RoomId>>,
        inquiry: Inquiry,
    },
    /// Deletes a message and all later messages of the room.
    Rewind {
        room: Option<RoomId>,
        message: Option<MessageId>,
    },
    /// Operation on a gateway's credentials, allowed for its owner only. The hub relays it.
    Credential {
        gateway: Option<GatewayId>,
        errand: CredentialAction,
        /// The whole frame, a JSON object. It may contain a secret.
        body: Payload,
    },
}

/// Decodes a frame; `None` if its type is not a request to an agent or a gateway.
pub(super) fn read(kind: &str, text: &str) -> Option<Result<AgentAction, FrameError>> {
    Some(match kind {
        "client:stop_generation" => parse(text).map(|AgentInRoom { room_id, agent_id }| AgentAction::Stop {
            room: room(&room_id),
            agent: agent(&agent_id),
        }),
        "client:permission_response" => parse(text).and_then(|form: DecisionForm| {
            let digest = form.input_digest.map(|text| InputDigest::parse(&text).ok_or(FrameError::Unknown));
            Ok(AgentAction::Decide {
                request: ApprovalId::parse(&form.request_id).ok(),
                allow: matches!(form.decision, DecisionWord::Allow),
                always: form.allow_always.unwrap_or(false),
                reason: form.deny_reason,
                digest: digest.transpose()?,
            })
        }),
        "client:agent_command" => parse(text).map(|form: CommandForm| AgentAction::Inquire {
            agent: agent(&form.agent_id),
            room: Some(room(&form.room_id)),
            inquiry: Inquiry::Command { command: form.command, args: form.args.unwrap_or_default() },
        }),
        "client:query_agent_info" => parse(text).map(|form: InfoForm| AgentAction::Inquire {
            agent: agent(&form.agent_id),
            room: form.room_id.map(|id| room(&id)),
            inquiry: Inquiry::Info,
        }),
        "client:request_workspace" => parse(text).and_then(|form: WorkspaceForm| {
            Ok(AgentAction::Inquire {
                agent: agent(&form.agent_id),
                room: Some(room(&form.room_id)),
                inquiry: Inquiry::Workspace(form.request.read()?),
            })
        }),
        "client:rewind_room" => parse(text).map(|form: RewindForm| AgentAction::Rewind {
            room: room(&form.room_id),
            message: MessageId::parse(&form.message_id).ok(),
        }),
        other => {
            let errand = match other {
                "client:list_gateway_credentials" => CredentialAction::List,
                "client:add_gateway_credential" => CredentialAction::Add,
                "client:manage_gateway_credential" => CredentialAction::Manage,
                "client:start_gateway_oauth" => CredentialAction::StartOauth,
                "client:complete_gateway_oauth" => CredentialAction::CompleteOauth,
                _ => return None,
            };
            parse(text).map(|form: GatewayForm| AgentAction::Credential {
                gateway: GatewayId::parse(&form.gateway_id).ok(),
                errand,
                body: Payload(text.into()),
            })
        }
    })
}

fn room(text: &str) -> Option<RoomId> {
    RoomId::parse(text).ok()
}

fn agent(text: &str) -> Option<AgentId> {
    AgentId::parse(text).ok()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentInRoom<'a> {
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecisionForm<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    decision: DecisionWord,
    allow_always: Option<bool>,
    deny_reason: Option<Box<str>>,
    #[serde(borrow)]
    input_digest: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DecisionWord {
    Allow,
    Deny,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommandForm<'a> {
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    command: Box<str>,
    args: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InfoForm<'a> {
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow)]
    room_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkspaceForm<'a> {
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    request: WorkspaceRequestForm,
}

#[derive(Deserialize)]
struct WorkspaceRequestForm {
    kind: WorkspaceRequestKind,
    path: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WorkspaceRequestKind {
    Status,
    Tree,
    File,
}

impl WorkspaceRequestForm {
    fn read(self) -> Result<WorkspaceRequest, FrameError> {
        Ok(match self.kind {
            WorkspaceRequestKind::Status => WorkspaceRequest::Status,
            WorkspaceRequestKind::Tree => WorkspaceRequest::Tree { path: self.path },
            WorkspaceRequestKind::File => {
                WorkspaceRequest::File { path: self.path.ok_or(FrameError::Unknown)? }
            }
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RewindForm<'a> {
    #[serde(borrow)]
    room_id: Cow<'a, str>,
    #[serde(borrow)]
    message_id: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayForm<'a> {
    #[serde(borrow)]
    gateway_id: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::super::{ClientRequest, FrameLimits, read};
    use super::*;
    use crate::json::JsonLimits;

    const LIMITS: FrameLimits = FrameLimits { bytes: 65_536, json: JsonLimits { depth: 15, items: 1000 } };

    #[track_caller]
    fn check(text: &str, expected: AgentAction) {
        assert_eq!(read(text, &LIMITS), Ok(ClientRequest::OfAgents(expected)), "{text}");
    }

    #[track_caller]
    fn expect_error(text: &str) {
        assert_eq!(read(text, &LIMITS), Err(FrameError::Unknown), "{text}");
    }

    fn here() -> (Option<RoomId>, Option<AgentId>) {
        (Some(RoomId::stored("r")), Some(AgentId::stored("a/b")))
    }

    #[test]
    fn stop_command_info_and_rewind_frames_are_decoded() {
        let ((room, agent), place) = (here(), r#""roomId":"r","agentId":"a/b""#);
        check(
            &format!(r#"{{"type":"client:stop_generation",{place}}}"#),
            AgentAction::Stop { room: room.clone(), agent: agent.clone() },
        );
        check(
            r#"{"type":"client:stop_generation","roomId":"../x","agentId":""}"#,
            AgentAction::Stop { room: None, agent: None },
        );
        check(
            &format!(r#"{{"type":"client:agent_command",{place},"command":"clear","args":"all"}}"#),
            AgentAction::Inquire {
                room: Some(room.clone()),
                agent: agent.clone(),
                inquiry: Inquiry::Command { command: "clear".into(), args: "all".into() },
            },
        );
        check(
            r#"{"type":"client:query_agent_info","agentId":"a/b"}"#,
            AgentAction::Inquire { agent: agent.clone(), room: None, inquiry: Inquiry::Info },
        );
        check(
            &format!(r#"{{"type":"client:query_agent_info",{place}}}"#),
            AgentAction::Inquire { agent, room: Some(room.clone()), inquiry: Inquiry::Info },
        );
        check(
            r#"{"type":"client:rewind_room","roomId":"r","messageId":"m"}"#,
            AgentAction::Rewind { room, message: Some(MessageId::stored("m")) },
        );
    }

    #[test]
    fn a_decision_is_allow_or_deny() {
        let text = r#"{"type":"client:permission_response","requestId":"p","decision":"allow"}"#;
        let request = Some(ApprovalId::stored("p"));
        let (always, reason, digest) = (false, None, None);
        check(text, AgentAction::Decide { request: request.clone(), allow: true, always, reason, digest });
        check(
            &text.replace("allow", "deny").replace('}', r#","denyReason":"no","allowAlways":true}"#),
            AgentAction::Decide {
                request,
                allow: false,
                always: true,
                reason: Some("no".into()),
                digest: None,
            },
        );
        let seen = |digest: &str| text.replace('}', &format!(r#","inputDigest":"{digest}"}}"#));
        let read = read(&seen(&"0a".repeat(32)), &LIMITS);
        let expected = Some(InputDigest([10; 32]));
        assert!(
            matches!(read, Ok(ClientRequest::OfAgents(AgentAction::Decide { digest, .. })) if digest == expected)
        );
        expect_error(&seen("0a"));
        for word in ["Allow", "timeout", "yes", ""] {
            expect_error(&text.replace("allow", word));
        }
        expect_error(&text.replace(r#""allow""#, "true"));
    }

    #[test]
    fn a_workspace_request_is_for_the_status_the_tree_or_a_file() {
        let look = |request: &str, expected: WorkspaceRequest| {
            let (room, agent) = here();
            check(
                &format!(
                    r#"{{"type":"client:request_workspace","roomId":"r","agentId":"a/b","request":{request}}}"#
                ),
                AgentAction::Inquire { room: Some(room), agent, inquiry: Inquiry::Workspace(expected) },
            );
        };
        look(r#"{"kind":"status"}"#, WorkspaceRequest::Status);
        look(r#"{"kind":"tree"}"#, WorkspaceRequest::Tree { path: None });
        look(r#"{"kind":"tree","path":"src"}"#, WorkspaceRequest::Tree { path: Some("src".into()) });
        look(r#"{"kind":"file","path":"a"}"#, WorkspaceRequest::File { path: "a".into() });
        for request in [r#"{"kind":"file"}"#, r#"{"kind":"shell","path":"ls"}"#, "{}", "null", r#""status""#]
        {
            expect_error(&format!(
                r#"{{"type":"client:request_workspace","roomId":"r","agentId":"a","request":{request}}}"#
            ));
        }
    }

    #[test]
    fn a_credential_request_keeps_the_whole_frame() {
        use CredentialAction::*;
        for (kind, errand) in [
            ("list_gateway_credentials", List),
            ("add_gateway_credential", Add),
            ("manage_gateway_credential", Manage),
            ("start_gateway_oauth", StartOauth),
            ("complete_gateway_oauth", CompleteOauth),
        ] {
            let text = format!(r#"{{"type":"client:{kind}","gatewayId":"g","agentType":"codex", "x":1.0}}"#);
            let gateway = Some(GatewayId::stored("g"));
            check(&text, AgentAction::Credential { gateway, errand, body: Payload(text.as_str().into()) });
            expect_error(&format!(r#"{{"type":"client:{kind}"}}"#));
        }
    }
}
