//! Frames that the hub sends to a gateway. No frame contains `null`.
//!
//! A field that only Parlor hubs send, or that a gateway does not need, is optional: gateways of Parlor also
//! connect to AgentIM's hub.

use crate::frames::frames;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

frames! {
    /// A frame of the hub. Requests for credentials are relayed as a whole.
    #[cfg_attr(test, derive(TS))]
    pub enum HubFrame<'a> {
        AuthResult(AuthResult<'a>) = "server:gateway_auth_result",
        /// Starts a run.
        SendToAgent(SendToAgent<'a>) = "server:send_to_agent",
        /// Injects a message into an active run.
        AddToRun(AddToRun<'a>) = "server:add_to_run",
        RoomContext(RoomContext<'a>) = "server:room_context",
        /// Stops an agent in one room or session or, without either, in all.
        StopAgent(StopAgent<'a>) = "server:stop_agent",
        RunEnded(RunEnded<'a>) = "server:run_ended",
        RunResumed(RunResumed<'a>) = "server:run_resumed",
        PermissionResponse(PermissionResponse<'a>) = "server:permission_response",
        QuestionResponse(QuestionResponse<'a>) = "server:question_response",
        RemoveAgent(AgentInRoom<'a>) = "server:remove_agent",
        AgentCommand(AgentCommand<'a>) = "server:agent_command",
        QueryAgentInfo(AgentInRoom<'a>) = "server:query_agent_info",
        RequestWorkspace(RequestWorkspace<'a>) = "server:request_workspace",
        RewindAgent(RewindAgent<'a>) = "server:rewind_agent",
        SpawnAgent(SpawnAgent<'a>) = "server:spawn_agent",
        ListCredentials(Relayed<'a>) = "server:list_credentials",
        AddCredential(Relayed<'a>) = "server:add_credential",
        ManageCredential(Relayed<'a>) = "server:manage_credential",
        StartOauth(Relayed<'a>) = "server:start_oauth",
        CompleteOauth(Relayed<'a>) = "server:complete_oauth",
        Error(ErrorFrame<'a>) = "server:error",
        Pong(Pong) = "server:pong",
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct AuthResult<'a> {
    pub ok: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SendToAgent<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(borrow)]
    pub sender_name: Cow<'a, str>,
    pub sender_type: SenderType,
    /// `direct` or `broadcast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_mode: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<EarlierMessage>,
}

/// Message of the room before the trigger of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct EarlierMessage {
    pub sender_id: Box<str>,
    pub sender_name: Box<str>,
    #[serde(rename = "senderType")]
    pub sender: SenderType,
    pub content: Box<str>,
    pub created_at: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum SenderType {
    User,
    Agent,
    System,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AddToRun<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    #[serde(borrow)]
    pub added_run_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_type: Option<SenderType>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomContext<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub context: Context<'a>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Context<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub room_name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<Cow<'a, str>>,
    pub members: Vec<MemberView>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    pub id: Box<str>,
    pub name: Box<str>,
    #[serde(rename = "type")]
    pub kind: SenderType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_description: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Box<str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentInRoom<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct StopAgent<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RunEnded<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    #[serde(borrow)]
    pub outcome: Cow<'a, str>,
}

/// A run is resumed. The hub already has `parts` complete parts of its reply and `bytes` bytes of the next.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RunResumed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    pub parts: usize,
    pub bytes: usize,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PermissionResponse<'a> {
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// `allow`, `deny` or `timeout`. Any other word counts as `deny`.
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_reason: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct QuestionResponse<'a> {
    #[serde(borrow)]
    pub question_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<QuestionReply>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Cow<'a, str>>,
}

/// Answer of a user to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct QuestionReply {
    pub question_index: usize,
    /// Labels of the selected options.
    pub selected: Vec<Box<str>>,
    /// Free-text answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_text: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand<'a> {
    #[serde(borrow)]
    pub command: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// A gateway rejects a command without a room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RequestWorkspace<'a> {
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub request: &'a RawValue,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// A gateway rejects a request without a room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RewindAgent<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SpawnAgent<'a> {
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_type: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<Cow<'a, str>>,
}

/// Request of the owner for credentials, with fields that the hub does not know.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Relayed<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct ErrorFrame<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Pong {
    #[cfg_attr(test, ts(type = "number"))]
    pub ts: Number,
}
