//! Decodes `client:*` frames with requests to agents and gateways.

use super::FrameError;
use crate::agentim::frames::ClientFrame;
use crate::agentim::frames::client::{
    OfGateway, PermissionResponse, Verdict, WorkspaceRequest as WorkspaceForm, WorkspaceRequestKind,
};
use parlor_model::{
    AgentId, ApprovalId, CredentialAction, GatewayId, InputDigest, Inquiry, MessageId, Payload, RoomId,
    WorkspaceRequest,
};

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

/// Converts a frame with a request to an agent or a gateway. `text` is the whole frame.
pub(super) fn read(frame: ClientFrame<'_>, text: &str) -> Result<AgentAction, FrameError> {
    let credential = |form: OfGateway<'_>, errand| AgentAction::Credential {
        gateway: GatewayId::parse(&form.gateway_id).ok(),
        errand,
        body: Payload(text.into()),
    };
    Ok(match frame {
        ClientFrame::StopGeneration(form) => {
            AgentAction::Stop { room: room(&form.room_id), agent: agent(&form.agent_id) }
        }
        ClientFrame::PermissionResponse(form) => decision(form)?,
        ClientFrame::AgentCommand(form) => AgentAction::Inquire {
            agent: agent(&form.agent_id),
            room: Some(room(&form.room_id)),
            inquiry: Inquiry::Command { command: form.command, args: form.args.unwrap_or_default() },
        },
        ClientFrame::QueryAgentInfo(form) => AgentAction::Inquire {
            agent: agent(&form.agent_id),
            room: form.room_id.map(|id| room(&id)),
            inquiry: Inquiry::Info,
        },
        ClientFrame::RequestWorkspace(form) => AgentAction::Inquire {
            agent: agent(&form.agent_id),
            room: Some(room(&form.room_id)),
            inquiry: Inquiry::Workspace(workspace(form.request)?),
        },
        ClientFrame::RewindRoom(form) => AgentAction::Rewind {
            room: room(&form.room_id),
            message: MessageId::parse(&form.message_id).ok(),
        },
        ClientFrame::ListGatewayCredentials(form) => credential(form, CredentialAction::List),
        ClientFrame::AddGatewayCredential(form) => credential(form, CredentialAction::Add),
        ClientFrame::ManageGatewayCredential(form) => credential(form, CredentialAction::Manage),
        ClientFrame::StartGatewayOauth(form) => credential(form, CredentialAction::StartOauth),
        ClientFrame::CompleteGatewayOauth(form) => credential(form, CredentialAction::CompleteOauth),
        ClientFrame::Auth(_)
        | ClientFrame::JoinRoom(_)
        | ClientFrame::LeaveRoom(_)
        | ClientFrame::SubscribeEvents(_)
        | ClientFrame::Follow(_)
        | ClientFrame::SendMessage(_)
        | ClientFrame::Typing(_)
        | ClientFrame::Ping(_) => return Err(FrameError::Unknown),
    })
}

fn decision(form: PermissionResponse<'_>) -> Result<AgentAction, FrameError> {
    let digest = form.input_digest.map(|text| InputDigest::parse(&text).ok_or(FrameError::Unknown));
    Ok(AgentAction::Decide {
        request: ApprovalId::parse(&form.request_id).ok(),
        allow: form.decision == Verdict::Allow,
        always: form.allow_always.unwrap_or(false),
        reason: form.deny_reason,
        digest: digest.transpose()?,
    })
}

fn workspace(form: WorkspaceForm) -> Result<WorkspaceRequest, FrameError> {
    Ok(match form.kind {
        WorkspaceRequestKind::Status => WorkspaceRequest::Status,
        WorkspaceRequestKind::Tree => WorkspaceRequest::Tree { path: form.path },
        WorkspaceRequestKind::File => WorkspaceRequest::File { path: form.path.ok_or(FrameError::Unknown)? },
    })
}

fn room(text: &str) -> Option<RoomId> {
    RoomId::parse(text).ok()
}

fn agent(text: &str) -> Option<AgentId> {
    AgentId::parse(text).ok()
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
