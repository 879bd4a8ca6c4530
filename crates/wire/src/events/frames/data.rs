//! `data` of the messages of the chat-events stream. A field that is an `Option` is `null` if absent, unless it
//! is skipped.

pub mod runs;

pub use runs::*;

use crate::events::answers::{AskedQuestion, QuestionAnswer};
use crate::events::rest::QueueItem;
use crate::relayed::RelayedFrame;
use crate::words::{AgentState, PermissionResult, QuestionStatus};
use serde::Serialize;
use serde_json::Value;
#[cfg(test)]
use ts_rs::TS;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct MessageData<'a> {
    pub message_id: &'a str,
    /// Id of the agent, `user`, or the name of the source.
    pub from: &'a str,
    /// `user` or `assistant`.
    pub role: &'static str,
    pub name: &'a str,
    pub sender_id: &'a str,
    pub sender_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<&'a str>,
    /// Run of which the message is the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<AttachmentData<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedFrame<'a>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AttachmentData<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub content_type: &'static str,
    pub size: u64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct MarkData<'a> {
    pub message_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RewoundData<'a> {
    pub message_id: &'a str,
    pub removed: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ReactionData<'a> {
    pub message_id: &'a str,
    pub reactions: Vec<ReactionsOfEmoji<'a>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ReactionsOfEmoji<'a> {
    pub emoji: &'a str,
    pub user_ids: Vec<&'a str>,
    pub usernames: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ReceiptData<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
    pub read_at: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RoomData<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub kind: &'static str,
    pub policy: &'static str,
    pub frozen: bool,
    pub project_root: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RoomChangedData<'a> {
    pub room: RoomData<'a>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RoomMembersData<'a> {
    pub room: RoomData<'a>,
    /// `added`, `changed` or `removed`.
    pub change: &'static str,
    pub member: MemberRef<'a>,
    /// All current members, or none if the room has too many.
    pub members: Vec<MemberData<'a>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct MemberRef<'a> {
    pub id: &'a str,
    /// `user` or `agent`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct MemberData<'a> {
    pub id: &'a str,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub name: &'a str,
    pub role: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RoomArrangedData {
    pub pinned: bool,
    pub archived: bool,
    pub notifications: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct TaskData<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub status: &'static str,
    pub created_by: MemberRef<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<MemberRef<'a>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct TaskRemovedData<'a> {
    pub id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct QueueData {
    /// The complete backlog of the agent in the room, in order.
    pub items: Vec<QueueItem>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ApprovalAskedData<'a> {
    pub request_id: &'a str,
    pub run_id: &'a str,
    pub agent_name: &'a str,
    pub tool: &'a str,
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub input: Value,
    pub input_digest: String,
    pub expires_at: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct ApprovalResolvedData<'a> {
    pub request_id: &'a str,
    pub run_id: &'a str,
    pub decision: PermissionResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by_name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct QuestionsAskedData<'a> {
    pub question_id: &'a str,
    pub run_id: &'a str,
    pub agent_name: &'a str,
    pub questions: Vec<AskedQuestion>,
    pub expires_at: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct QuestionsResolvedData<'a> {
    pub question_id: &'a str,
    pub run_id: &'a str,
    pub status: QuestionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<QuestionAnswer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by_name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct TypingData<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct UserPresenceData<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
    pub online: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct AgentPresenceData<'a> {
    pub name: &'a str,
    pub status: AgentState,
    pub queue_depth: u32,
}
