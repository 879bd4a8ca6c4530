//! Bodies for the conversation logs of sessions.

use crate::time::iso;
use parlor_model::ConversationEntry;
use serde::Serialize;
use serde_json::value::RawValue;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ConversationPage<'a> {
    /// Entries, newest first.
    pub items: Vec<LogEntry<'a>>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl<'a> ConversationPage<'a> {
    /// `found` is in the order of the log, and may have one entry more than the page.
    pub fn new(found: &'a [ConversationEntry], limit: usize) -> Self {
        let has_more = found.len() > limit;
        let page = &found[found.len().saturating_sub(limit)..];
        let next_cursor = page.first().filter(|_| has_more).map(|oldest| oldest.number.to_string());
        Self { items: page.iter().rev().map(LogEntry::from).collect(), has_more, next_cursor }
    }
}

/// Entry of the conversation log of a session. An entry never changes.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct LogEntry<'a> {
    /// Position in the log of the session; the first entry has 1.
    pub id: String,
    #[schema(format = DateTime)]
    pub at: String,
    /// `prompt`, `result` or `error` of a run that a user requested, `auto-turn`, `auto-turn-result` or
    /// `auto-turn-error` of a run for messages, or `ask-user.response.late`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `user`, `assistant` or `system`.
    pub role: &'static str,
    pub text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_id: Option<&'a str>,
    /// Further fields, a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = serde_json::Value, required = false)]
    #[cfg_attr(test, ts(type = "unknown", optional))]
    pub details: Option<&'a RawValue>,
}

impl<'a> From<&'a ConversationEntry> for LogEntry<'a> {
    fn from(entry: &'a ConversationEntry) -> Self {
        let details = entry.details.as_ref();
        Self {
            id: entry.number.to_string(),
            at: iso(entry.at),
            kind: entry.kind.as_str(),
            role: entry.kind.role(),
            text: &entry.text,
            run_id: entry.run.as_ref().map(|run| run.as_str()),
            details: details.and_then(|details| serde_json::from_str(&details.0).ok()),
        }
    }
}
