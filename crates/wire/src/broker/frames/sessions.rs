//! Sessions of agents: requests, answers and pushes of `session.*`, `status.active`, `conversation.history` and
//! `logs.*`.

use super::hub::SessionEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

/// Starts a run in a session. The session is created if it does not exist.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct StartSession<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    /// Session id. Absent for a new session with an id of the hub.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// Required. Optional here, because `null` counts as absent.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// Required, as `agent`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Cow<'a, str>>,
    /// Accepted and ignored: the agent's configuration determines model, tools and permissions.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::AnyObject>"))]
    pub options: Option<&'a RawValue>,
}

/// Starts a run in an existing session.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ContinueSession<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    /// Required, as in `session.start`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// Required.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// Required.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Cow<'a, str>>,
    /// Accepted and ignored, as in `session.start`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::AnyObject>"))]
    pub options: Option<&'a RawValue>,
}

/// Stops the run of a session.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AbortSession<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    /// Agent of the session. Required only if several agents of the account have an active session with this id.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
}

/// Sessions of one agent.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionsOf<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
}

/// Active sessions of one agent, or of all agents of the account.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ActiveOf<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
}

/// The conversation log of a session.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ConversationOf<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SearchLogs<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub options: Option<LogOptions<'a>>,
}

#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct LogOptions<'a> {
    /// Required. A regular expression, or the text itself if it is none.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub query: Option<Cow<'a, str>>,
    /// Beginning of the agent ids.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_prefix: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
    /// Type of the entries.
    #[serde(borrow, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'a, str>>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_time: Option<i64>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ConversationsOf<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    /// Beginning of the agent ids.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_prefix: Option<Cow<'a, str>>,
}

/// The answer of a request that concerns one session.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct OfSession<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Sessions<'a> {
    #[serde(borrow)]
    pub sessions: Vec<ListedSession<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// A session with the state of its run.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ListedSession<'a> {
    #[serde(flatten, borrow)]
    pub session: SessionEntry<'a>,
    pub is_active: bool,
    /// Start of the active run. Milliseconds since 1970-01-01 UTC.
    pub active_since: Option<i64>,
    /// Milliseconds since the start of the active run.
    pub active_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ActiveSessions<'a> {
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub sessions: Vec<ActiveSession<'a>>,
    #[serde(borrow)]
    pub agents: Vec<AgentActivity<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// A session with a run that has not ended.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ActiveSession<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    pub status: SessionState,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_at: i64,
    pub elapsed_ms: u64,
    #[serde(borrow)]
    pub prompt_preview: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// The run waits until the agent is online.
    Queued,
    Running,
    Stopped,
}

/// Whether an agent works in sessions.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentActivity<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    pub is_working: bool,
    pub active_count: usize,
    #[serde(borrow)]
    pub active_sessions: Vec<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Conversation<'a> {
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// Oldest first.
    #[serde(borrow)]
    pub entries: Vec<LogEntry<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct LogMatches<'a> {
    #[serde(borrow)]
    pub results: Vec<LogMatch<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// An entry of a conversation log that matches a search.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct LogMatch<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// Number of the entry in its log, from 1.
    pub line_number: u64,
    #[serde(borrow)]
    pub entry: LogEntry<'a>,
}

/// An entry of a conversation log.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct LogEntry<'a> {
    /// `user`, `assistant` or `system`.
    #[serde(borrow)]
    pub role: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp: i64,
    /// Further fields, such as `durationMs`.
    #[serde(flatten)]
    #[cfg_attr(test, ts(skip))]
    pub details: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Conversations<'a> {
    #[serde(borrow)]
    pub conversations: Vec<SessionOfAgent<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// A session with its ids as in the other answers of `logs.*`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct SessionOfAgent<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(flatten, borrow)]
    pub session: SessionEntry<'a>,
}

/// Beginning of a session's run, with the title of the session.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionTitle<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub title: Cow<'a, str>,
}

/// Text of a session's run: a part of its thinking or of its reply, or the complete reply.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionText<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionToolUse<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub tool_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub name: Option<Cow<'a, str>>,
    /// JSON as the agent reported it; a string if it is no JSON.
    #[serde(borrow)]
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub input: RawText<'a>,
}

/// JSON as an agent wrote it, or a text that is no JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged)]
pub enum RawText<'a> {
    Json(#[cfg_attr(test, ts(as = "crate::typescript::Unknown"))] &'a RawValue),
    Text(Cow<'a, str>),
}

/// A reader decodes the value itself.
impl<'de: 'a, 'a> Deserialize<'de> for RawText<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(Self::Json)
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionToolResult<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub tool_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    pub is_error: bool,
}

/// A report of the agent about its run, such as a plan or its usage.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionEvent<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The fields of the report in the gateway protocol.
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub data: Value,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionDone<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    pub duration_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionFailed<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub error: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// The start or the end of a session's run.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    pub status: SessionState,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_at: i64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ended: Option<SessionEnd<'a>>,
    /// Beginning of the prompt. Only with the status `running`.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub prompt_preview: Option<Cow<'a, str>>,
}

/// Fields of a session's status after its run has ended.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd<'a> {
    /// Milliseconds since 1970-01-01 UTC.
    pub ended_at: i64,
    pub duration_ms: u64,
    /// `done`, `error`, `aborted_by_user` or `interrupted`.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub error: Option<Cow<'a, str>>,
}
