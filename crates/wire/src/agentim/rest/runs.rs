//! Response body for the runs of a message.

use crate::time::iso;
use parlor_model::{AddressedBy, Run, RunOutcome, RunState};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Run of an agent that a message triggered.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "TurnDelivery", optional_fields))]
#[schema(as = TurnDelivery)]
#[serde(rename_all = "camelCase")]
pub struct TurnDelivery<'a> {
    pub run_id: &'a str,
    pub agent_id: &'a str,
    pub agent_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub room_id: Option<&'a str>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session_id: Option<&'a str>,
    /// Message that triggered the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message_id: Option<&'a str>,
    /// `queued`, `delivered` to the gateway, `started`, `answered`, `failed`, `cancelled`, `interrupted` or
    /// `refused`.
    pub status: &'a str,
    /// Reason of a refused or failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<&'a str>,
    /// `direct` if the message named the agent, `broadcast` if the room's answer policy selected it.
    pub routing_mode: &'a str,
    pub conversation_id: &'a str,
    pub depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reply_id: Option<&'a str>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar, if the agent reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cost_micros: Option<u64>,
    #[schema(format = DateTime)]
    pub queued_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub ended_at: Option<String>,
}

impl<'a> TurnDelivery<'a> {
    /// `has_spoken` tells whether the hub has received output of an active run.
    pub fn new(run: &'a Run, agent_name: &'a str, has_spoken: bool) -> Self {
        Self {
            run_id: run.id.as_str(),
            agent_id: run.agent.as_str(),
            agent_name,
            room_id: run.room().map(|room| room.as_str()),
            session_id: run.session().map(|session| session.as_str()),
            message_id: run.message().map(|id| id.as_str()),
            status: match &run.state {
                RunState::Queued => "queued",
                RunState::Running if has_spoken => "started",
                RunState::Running => "delivered",
                RunState::Ended(RunOutcome::Complete) => "answered",
                RunState::Ended(outcome) => outcome.as_str(),
            },
            reason: match &run.state {
                RunState::Ended(outcome) => outcome.reason(),
                RunState::Queued | RunState::Running => None,
            },
            routing_mode: match run.addressed {
                AddressedBy::ByPolicy => "broadcast",
                AddressedBy::Directly | AddressedBy::Unasked => "direct",
            },
            conversation_id: run.lineage.conversation.as_str(),
            depth: run.lineage.depth,
            reply_id: run.reply.as_ref().map(|id| id.as_str()),
            input_tokens: run.usage.input_tokens,
            output_tokens: run.usage.output_tokens,
            cost_micros: run.usage.cost,
            queued_at: iso(run.queued_at),
            started_at: run.started_at.map(iso),
            ended_at: run.ended_at.map(iso),
        }
    }
}
