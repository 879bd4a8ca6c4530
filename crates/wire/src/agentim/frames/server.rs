//! Frames that the hub sends on `/ws/client`. No frame contains `null`, except for relayed tool inputs.

use super::{ChunkFrame, MemberFrame, MessageFrame, ReactionFrame, RoomFrame};
use crate::agentim::rest::{False, NotificationPref, Task, TaskStatus, True};
use crate::words::{AgentState, PermissionResult};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
#[cfg(test)]
use ts_rs::TS;

/// A frame to a user's client. Answers of gateways that the hub relays with another `type` are not listed: their
/// fields are free-form.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(rename = "HubFrame"))]
#[serde(tag = "type")]
#[allow(clippy::large_enum_variant, reason = "a frame is encoded where it is built")]
pub enum ServerFrame<'a> {
    #[serde(rename = "server:auth_result")]
    AuthResult(AuthResult<'a>),
    #[serde(rename = "server:new_message")]
    NewMessage(AboutMessage<'a>),
    /// Completes a streaming reply.
    #[serde(rename = "server:message_complete")]
    MessageComplete(AboutMessage<'a>),
    #[serde(rename = "server:message_edited")]
    MessageEdited(AboutMessage<'a>),
    #[serde(rename = "server:message_deleted")]
    MessageDeleted(MessageMarked<'a>),
    #[serde(rename = "server:message_pinned")]
    MessagePinned(MessagePinned<'a>),
    #[serde(rename = "server:message_unpinned")]
    MessageUnpinned(MessageMarked<'a>),
    #[serde(rename = "server:message_ack")]
    MessageAck(MessageAck<'a>),
    #[serde(rename = "server:reaction_update")]
    ReactionUpdate(ReactionUpdate<'a>),
    #[serde(rename = "server:bookmark_update")]
    BookmarkUpdate(BookmarkUpdate<'a>),
    #[serde(rename = "server:room_update")]
    RoomUpdate(RoomUpdate<'a>),
    #[serde(rename = "server:room_removed")]
    RoomRemoved(RoomRemoved<'a>),
    #[serde(rename = "server:room_joined")]
    RoomJoined(RoomPosition<'a>),
    /// All rooms of the user are open, and the missed frames were sent before.
    #[serde(rename = "server:following")]
    Following(Following),
    #[serde(rename = "server:resync")]
    Resync(RoomPosition<'a>),
    #[serde(rename = "server:room_state")]
    RoomState(RoomState<'a>),
    #[serde(rename = "server:room_cleared")]
    RoomCleared(RoomCleared<'a>),
    #[serde(rename = "server:room_rewound")]
    RoomRewound(RoomRewound<'a>),
    #[serde(rename = "server:read_receipt")]
    ReadReceipt(ReadReceipt<'a>),
    #[serde(rename = "server:task_update")]
    TaskUpdate(TaskUpdate<'a>),
    #[serde(rename = "server:typing")]
    Typing(Typing<'a>),
    #[serde(rename = "server:presence")]
    Presence(Presence<'a>),
    #[serde(rename = "server:message_chunk")]
    MessageChunk(MessageChunk<'a>),
    #[serde(rename = "server:terminal_data")]
    TerminalData(TerminalData<'a>),
    #[serde(rename = "server:agent_status")]
    AgentStatus(AgentStatus<'a>),
    #[serde(rename = "server:agent_info")]
    AgentInfo(AgentInfo),
    #[serde(rename = "server:permission_request")]
    PermissionRequest(PermissionRequest<'a>),
    #[serde(rename = "server:permission_request_expired")]
    PermissionRequestExpired(PermissionRequestExpired<'a>),
    #[serde(rename = "server:permission_resolved")]
    PermissionResolved(PermissionResolved<'a>),
    #[serde(rename = "server:pong")]
    Pong(Pong<'a>),
    #[serde(rename = "server:error")]
    Error(ErrorFrame<'a>),
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum AuthResult<'a> {
    Accepted { ok: True, user_id: &'a str },
    Rejected { ok: False, error: &'a str },
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AboutMessage<'a> {
    pub message: MessageFrame<'a>,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct MessageMarked<'a> {
    pub room_id: &'a str,
    pub message_id: &'a str,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct MessagePinned<'a> {
    pub room_id: &'a str,
    pub message_id: &'a str,
    pub pinned_by_id: &'a str,
    pub pinned_at: String,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct MessageAck<'a> {
    pub client_message_id: &'a str,
    pub message_id: &'a str,
    pub seq: u64,
    pub epoch: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ReactionUpdate<'a> {
    pub room_id: &'a str,
    pub message_id: &'a str,
    pub reactions: Vec<ReactionFrame<'a>>,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct BookmarkUpdate<'a> {
    pub room_id: &'a str,
    pub message_id: &'a str,
    pub bookmarked: bool,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct RoomUpdate<'a> {
    pub room: RoomFrame<'a>,
    /// All members, if they changed and are not too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<MemberFrame<'a>>>,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RoomRemoved<'a> {
    pub room_id: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RoomPosition<'a> {
    pub room_id: &'a str,
    pub position: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Following {
    pub position: String,
}

/// Preferences of the user for a room.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomState<'a> {
    pub room_id: &'a str,
    pub pinned: bool,
    pub archived: bool,
    pub notification_pref: NotificationPref,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RoomCleared<'a> {
    pub room_id: &'a str,
    pub cleared_at: String,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RoomRewound<'a> {
    pub room_id: &'a str,
    pub message_id: &'a str,
    pub removed_message_ids: Vec<&'a str>,
    /// Text of the message, so that the user can post an edited version.
    pub message_content: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ReadReceipt<'a> {
    pub room_id: &'a str,
    pub user_id: &'a str,
    pub username: &'a str,
    pub last_read_at: String,
    pub position: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged, rename_all_fields = "camelCase")]
#[allow(clippy::large_enum_variant, reason = "a frame is encoded where it is built")]
pub enum TaskUpdate<'a> {
    Changed { room_id: &'a str, task: Task<'a>, position: &'a str },
    Removed { room_id: &'a str, task: RemovedTask<'a>, removed: True, position: &'a str },
}

/// A deleted task. Clients require these fields.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RemovedTask<'a> {
    pub id: &'a str,
    pub room_id: &'a str,
    pub title: &'a str,
    pub status: TaskStatus,
    pub created_by_id: &'a str,
    pub created_at: String,
    pub updated_at: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Typing<'a> {
    pub room_id: &'a str,
    pub user_id: &'a str,
    pub username: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Presence<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
    pub online: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MessageChunk<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<&'a str>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    pub agent_id: &'a str,
    pub agent_name: &'a str,
    pub message_id: &'a str,
    pub chunk: ChunkFrame<'a>,
    /// The chunk starts at the beginning of the reply. A client that already has part of the reply discards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<True>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct TerminalData<'a> {
    pub agent_id: &'a str,
    pub agent_name: &'a str,
    pub room_id: &'a str,
    pub data: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AgentStatus<'a> {
    pub agent: AgentFrame<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentFrame<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// `claude-code`, `codex`, `gemini` or `generic`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    pub status: AgentState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    pub queue_depth: u32,
}

/// The gateway's description of an agent, with the hub's values for `id`, `name`, `type` and `status`.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AgentInfo {
    #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
    pub agent: Map<String, Value>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest<'a> {
    pub request_id: &'a str,
    pub agent_id: &'a str,
    pub agent_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<&'a str>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    pub tool_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub tool_input: Option<Box<RawValue>>,
    pub input_digest: String,
    pub expires_at: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequestExpired<'a> {
    pub request_id: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PermissionResolved<'a> {
    pub request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<&'a str>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    pub decision: PermissionResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Pong<'a> {
    #[cfg_attr(test, ts(type = "number"))]
    pub ts: &'a Number,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ErrorFrame<'a> {
    pub code: &'a str,
    pub message: &'a str,
    /// Id of the refused message, if the frame answers one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<&'a str>,
}
