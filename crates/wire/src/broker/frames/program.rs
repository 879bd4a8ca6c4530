//! Requests of programs. Unknown fields are ignored.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
#[cfg(test)]
use ts_rs::TS;

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Auth<'a> {
    /// Any JSON value of the program, repeated in the answer. Not repeated if it is `0`, `""`, `false` or `null`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub token: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct OfAgent<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ConfiguredAgent<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Name, description, subscriptions, and settings of any form.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::AnyObject>"))]
    pub config: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
}

/// A message to a path, to an agent or to all agents.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Routed<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    /// Required by `msg.route`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    /// Agent that `msg.send` addresses.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub to: Option<Cow<'a, str>>,
    /// Required. Optional here, because `null` counts as absent.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub from: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub command: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<Cow<'a, str>>,
    /// Object of any form.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::AnyObject>"))]
    pub payload: Option<&'a RawValue>,
}

/// A message to post in a room for an author outside the hub.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Relay<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    #[serde(borrow)]
    pub author: Cow<'a, str>,
    /// Name of the addressed member. Absent if the message addresses the whole room.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observers: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// Id of the message that the author answers.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'a, str>>,
    /// Idempotency key together with the source and the content.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct OfRoom<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomPage<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub room_id: Cow<'a, str>,
    /// Position; absent for the first message.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub after: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Page<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<PageOptions>,
}

#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PageOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<i64>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_time: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Acknowledge<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub message_ids: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
}

/// A turn to start without triage.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TurnTrigger<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// Ids of pending messages, messages with an `id`, or new messages of any form. Absent or empty for the pending ones.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<Vec<crate::typescript::Unknown>>"))]
    pub messages: Option<Vec<&'a RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct OfMailbox<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Receive<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MailboxPage<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<PageOptions>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Subscribe<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub pattern: Cow<'a, str>,
}
