//! Frames that a client sends on `/ws/client`.
//!
//! Unknown fields are ignored, and `null` counts as absent.

use crate::frames::frames;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

frames! {
    /// A frame of a user's client.
    #[cfg_attr(test, derive(TS))]
    pub enum ClientFrame<'a> {
        Auth(Auth<'a>) = "client:auth",
        JoinRoom(JoinRoom<'a>) = "client:join_room",
        LeaveRoom(InRoom<'a>) = "client:leave_room",
        /// Subscribes to the chat events of all rooms of the user.
        SubscribeEvents(Subscribe<'a>) = "client:subscribe_events",
        /// Opens all rooms of the user, including rooms joined later, with every frame and event once.
        Follow(Subscribe<'a>) = "client:follow",
        SendMessage(SendMessage<'a>) = "client:send_message",
        Typing(InRoom<'a>) = "client:typing",
        StopGeneration(AgentInRoom<'a>) = "client:stop_generation",
        PermissionResponse(PermissionResponse<'a>) = "client:permission_response",
        AgentCommand(AgentCommand<'a>) = "client:agent_command",
        QueryAgentInfo(QueryAgentInfo<'a>) = "client:query_agent_info",
        RequestWorkspace(RequestWorkspace<'a>) = "client:request_workspace",
        /// Deletes a message and all later messages of the room.
        RewindRoom(RewindRoom<'a>) = "client:rewind_room",
        ListGatewayCredentials(OfGateway<'a>) = "client:list_gateway_credentials",
        AddGatewayCredential(OfGateway<'a>) = "client:add_gateway_credential",
        ManageGatewayCredential(OfGateway<'a>) = "client:manage_gateway_credential",
        StartGatewayOauth(OfGateway<'a>) = "client:start_gateway_oauth",
        CompleteGatewayOauth(OfGateway<'a>) = "client:complete_gateway_oauth",
        Ping(Ping) = "client:ping",
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Auth<'a> {
    #[serde(borrow)]
    pub token: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct JoinRoom<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    /// Position from which missed frames are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct InRoom<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Subscribe<'a> {
    /// Position from which missed frames are sent.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub since: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SendMessage<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mentions: Option<Vec<Box<str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_id: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachment_ids: Option<Vec<Box<str>>>,
    /// Idempotency key. The hub acknowledges a message that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct AgentInRoom<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PermissionResponse<'a> {
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    pub decision: Verdict,
    /// Also create a rule that allows every later request of this agent for this tool in this room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_always: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_reason: Option<Box<str>>,
    /// Digest of the input that the user saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allow,
    Deny,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    pub command: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct QueryAgentInfo<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RequestWorkspace<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    pub request: WorkspaceRequest,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct WorkspaceRequest {
    pub kind: WorkspaceRequestKind,
    /// Required for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceRequestKind {
    Status,
    Tree,
    File,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RewindRoom<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
}

/// Operation on a gateway's credentials. The hub relays the whole frame, whose other fields it does not know.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct OfGateway<'a> {
    #[serde(borrow)]
    pub gateway_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
pub struct Ping {
    /// Any number; the pong repeats it.
    #[cfg_attr(test, ts(type = "number"))]
    pub ts: Number,
}
