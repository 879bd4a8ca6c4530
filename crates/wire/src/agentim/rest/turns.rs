//! Bodies of the REST API about turns: decisions about automatic turns, and the start of a turn.

use crate::time::iso;
use parlor_model::command::BatchReceipt;
use parlor_model::query::TurnList;
use parlor_model::{TurnDecision, TurnDecisionKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Starts a turn without triage: for pending messages of the session, or for a prompt.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "agentId": "coder", "sessionId": "main", "prompt": "Summarize the new messages" }))]
pub struct NewTurn {
    pub agent_id: String,
    /// Default `main`.
    pub session_id: Option<String>,
    /// Ids of pending messages of the session, maximum 100. Not together with `prompt`. Without messages and prompt, the oldest pending ones.
    pub message_ids: Option<Vec<String>>,
    /// Text that is not stored as a message. Not together with `messageIds`.
    pub prompt: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct StartedTurn {
    pub run_id: String,
    /// Number of messages that the run holds.
    pub messages: usize,
}

impl From<&BatchReceipt> for StartedTurn {
    fn from(receipt: &BatchReceipt) -> Self {
        let run_id = receipt.run.as_ref().map(ToString::to_string).unwrap_or_default();
        Self { run_id, messages: receipt.messages }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TurnPage<'a> {
    /// Decisions, newest first.
    pub items: Vec<TurnEntry<'a>>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
    /// Number of stored decisions of each kind; kinds without one are omitted.
    pub statistics: BTreeMap<&'static str, u64>,
}

impl<'a> TurnPage<'a> {
    /// `list` may have one decision more than the page.
    pub fn new(list: &'a TurnList, limit: usize) -> Self {
        let page = &list.decisions[..list.decisions.len().min(limit)];
        let has_more = list.decisions.len() > limit;
        let next_cursor = page.last().filter(|_| has_more).map(|last| last.number.to_string());
        let count = |(kind, count): &(TurnDecisionKind, u64)| (kind.as_str(), *count);
        let statistics = list.counts.iter().map(count).collect();
        Self { items: page.iter().map(TurnEntry::from).collect(), has_more, next_cursor, statistics }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TurnEntry<'a> {
    pub id: String,
    #[schema(format = DateTime)]
    pub at: String,
    pub agent_id: &'a str,
    pub session_id: &'a str,
    /// `debounced`, `triaged_yes`, `triaged_no`, `held`, `triggered`, `run`, `completed`, `cancelled`, `retried`,
    /// `dead_lettered` or `answered`.
    pub decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_id: Option<&'a str>,
    /// Number of runs that the messages have had; 0 before the first one.
    pub attempt: u32,
    pub message_ids: Vec<&'a str>,
}

impl<'a> From<&'a TurnDecision> for TurnEntry<'a> {
    fn from(turn: &'a TurnDecision) -> Self {
        let decision = &turn.decision;
        Self {
            id: turn.number.to_string(),
            at: iso(decision.at),
            agent_id: decision.agent.as_str(),
            session_id: decision.session.as_str(),
            decision: decision.kind.as_str(),
            reason: decision.reason.as_deref(),
            run_id: decision.run.as_ref().map(|run| run.as_str()),
            attempt: decision.attempt,
            message_ids: decision.messages.iter().map(|message| message.as_str()).collect(),
        }
    }
}
