//! Instructions and tools of agents, and questions to users: requests, answers and pushes of `agent.claudemd.*`,
//! `agent.tools.*`, `agent.tool.*` and `ask-user`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SetInstructions<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
}

/// The agent's own `CLAUDE.md`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Instructions<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct StoredInstructions<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

/// Tools of one agent.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ToolsOf<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
}

/// Reads the tools of one agent, or of all agents, again.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RefreshTools<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ExecuteTool<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// Session in which the agent uses the tool.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// Object of any form.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::AnyObject>"))]
    pub input: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Tools<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub tools: Vec<Tool<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Tool<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub description: Cow<'a, str>,
    /// Maximum time of an execution. Absent if it is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// JSON schema of the input.
    #[serde(borrow)]
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub schema: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    #[serde(borrow)]
    pub result: Execution<'a>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Execution<'a> {
    pub is_error: bool,
    #[serde(borrow)]
    pub output: ToolOutput<'a>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput<'a> {
    pub ok: bool,
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// Milliseconds since 1970-01-01 UTC.
    pub timestamp: i64,
    /// Result of a tool that succeeded.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub data: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError<'a>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ToolError<'a> {
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    pub retryable: bool,
    /// Further text, such as the last lines of a program's standard error.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub details: Option<Cow<'a, str>>,
}

/// A question of an agent to its owner.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AskUser<'a> {
    #[serde(borrow)]
    pub question_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The text of the question. Several questions are joined by line breaks.
    #[serde(borrow)]
    pub question: Cow<'a, str>,
    /// Labels of the options. `null` for a free answer, and if there are several questions.
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "Array<string> | null"))]
    pub options: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub context: Option<Cow<'a, str>>,
    /// The questions, if there are several.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<UserQuestion<'a>>>"))]
    pub questions: Vec<UserQuestion<'a>>,
}

/// One of several questions.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion<'a> {
    #[serde(borrow)]
    pub question: Cow<'a, str>,
    #[serde(borrow)]
    pub options: Vec<Cow<'a, str>>,
    pub multi_select: bool,
}

/// The answer of a user: `answer` for one question, `answers` for several.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AnswerUser<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub question_id: Cow<'a, str>,
    /// Label of an option, or free text.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Cow<'a, str>>,
    /// One answer to each question of a set, in its order. Each is the label of an option, or free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<Cow<'a, str>>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AnsweredUser<'a> {
    #[serde(borrow)]
    pub question_id: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}
