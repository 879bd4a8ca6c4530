//! Answers and pushes of the hub.

use crate::files::FileFrame;
use crate::frames::given;
use crate::relayed::RelayedFrame;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Failure<'a> {
    /// Session of a refused `session.start` or `session.continue`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// Sentence for people. The protocol has no error codes.
    #[serde(borrow)]
    pub error: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Listening<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Mail<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub messages: Vec<MailMessage<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TriggeredTurn<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Cow<'a, str>>,
    /// Number of messages that the run holds.
    pub messages: usize,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Acknowledged<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Cow<'a, str>>,
    /// Number of messages.
    pub acknowledged: usize,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Subscriptions<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub subscriptions: Vec<SubscriptionEntry<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionEntry<'a> {
    #[serde(borrow)]
    pub pattern: Cow<'a, str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub added_at: i64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetters<'a> {
    #[serde(borrow)]
    pub messages: Vec<MailMessage<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Cleared<'a> {
    pub cleared: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MailPush<'a> {
    #[serde(borrow)]
    pub message: MailMessage<'a>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionMailPush<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub message: MailMessage<'a>,
}

/// The copy of a message in one mailbox, or a dead letter.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MailMessage<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    #[serde(borrow)]
    pub command: Cow<'a, str>,
    #[serde(borrow)]
    pub payload: Payload<'a>,
    /// Absent in a dead letter.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp: i64,
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub external_id: Option<Cow<'a, str>>,
    /// Why the message is a dead letter.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Mailbox of the copy: `agent` or `agent:session`.
    #[serde(borrow, rename = "_deliveredTo", skip_serializing_if = "Option::is_none")]
    pub delivered_to: Option<Cow<'a, str>>,
    /// Whether a session received the message. Only in the copy of the agent's own mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled: Option<bool>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub handled_by: Option<Vec<HandledBy<'a>>>,
    /// Number of leases so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct HandledBy<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
}

/// A message that was routed. A repeated request has only the id of the first message.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Posted<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub from: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub command: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(type = "string | null", optional))]
    pub external_id: Option<Option<Cow<'a, str>>>,
    pub delivered: bool,
    #[serde(borrow)]
    pub delivered_to: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub delivered_to_sessions: Vec<HandledBy<'a>>,
    #[serde(borrow)]
    pub message_ids: Vec<Cow<'a, str>>,
    pub unmatched: bool,
    #[serde(borrow)]
    pub position: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Sent<'a> {
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    #[serde(borrow)]
    pub message: Posted<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct StoredAgent<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    pub agent: AgentDetails,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RemovedAgent<'a> {
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Agents<'a> {
    #[serde(borrow)]
    pub agents: Vec<AgentSummary<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct FoundAgent<'a> {
    #[serde(borrow)]
    pub agent: AgentView<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// An agent as other users see it. Users other than its owner see neither its instructions nor its sessions.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub description: Cow<'a, str>,
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub work_dirs: Value,
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub default_model: Value,
    pub has_claude_md: bool,
    pub has_tools: bool,
    /// Whether a run in a session of the agent has not ended.
    pub is_working: bool,
    pub active_count: usize,
    #[serde(borrow)]
    pub active_sessions: Vec<Cow<'a, str>>,
    /// `true` if the folder of the agent has disappeared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub title: Cow<'a, str>,
    pub is_default: bool,
    #[serde(borrow)]
    pub subscriptions: Vec<SubscriptionEntry<'a>>,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
    /// Start of the latest turn, or the creation. Milliseconds since 1970-01-01 UTC.
    pub last_used_at: i64,
    /// Automatic turns, if the session has a setting of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub auto_run: Option<Value>,
    /// Room in which the replies of the session are posted.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub room: Option<Cow<'a, str>>,
}

/// An agent with the settings of its owner, which have any form.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(transparent)]
pub struct AgentDetails(#[cfg_attr(test, ts(as = "crate::typescript::AnyObject"))] pub Map<String, Value>);

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged)]
pub enum AgentView<'a> {
    OfAnother(AgentSummary<'a>),
    Own(AgentDetails),
}

/// A reader treats both views as details, because an agent's owner chooses the names of settings.
impl<'de> Deserialize<'de> for AgentView<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AgentDetails::deserialize(deserializer).map(Self::Own)
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged)]
pub enum Payload<'a> {
    /// The payload as the sender wrote it, with every digit of its numbers.
    Routed(#[cfg_attr(test, ts(as = "crate::typescript::AnyObject"))] &'a RawValue),
    /// A message of a room.
    Room(Box<RoomPayload<'a>>),
}

/// A reader decodes the payload itself.
impl<'de: 'a, 'a> Deserialize<'de> for Payload<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(Self::Routed)
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomPayload<'a> {
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub sender_id: Cow<'a, str>,
    #[serde(borrow)]
    pub sender_type: Cow<'a, str>,
    #[serde(borrow)]
    pub sender_name: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<FileFrame<'a>>>"))]
    pub attachments: Vec<FileFrame<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedFrame<'a>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomListening<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    /// The hub pushes every message after this position.
    #[serde(borrow)]
    pub position: Cow<'a, str>,
    #[serde(borrow)]
    pub members: Vec<RoomMember<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomMembers<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub members: Vec<RoomMember<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomHistory<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    /// Oldest first.
    #[serde(borrow)]
    pub messages: Vec<RoomMessage<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomPush<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub message: RoomMessage<'a>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomNotice<'a> {
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
}

/// A message as the members of its room see it.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomMessage<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub position: Cow<'a, str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp: i64,
    #[serde(borrow)]
    pub sender_id: Cow<'a, str>,
    #[serde(borrow)]
    pub sender_type: Cow<'a, str>,
    #[serde(borrow)]
    pub sender_name: Cow<'a, str>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// In the order of the text.
    #[serde(borrow, default)]
    pub mentions: Vec<RoomMember<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<FileFrame<'a>>>"))]
    pub attachments: Vec<FileFrame<'a>>,
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub external_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedFrame<'a>>,
}

/// A member that a message mentions, or a member of a room with its handle.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomMember<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(rename = "type")]
    pub kind: MemberKind,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// User name. Absent in mentions.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    User,
    Agent,
}
