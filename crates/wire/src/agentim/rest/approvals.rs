//! Bodies for approvals and approval rules.

use crate::time::iso;
use parlor_model::ApprovalSubject;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(test)]
use ts_rs::TS;
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewDecision {
    #[schema(value_type = DecisionWord)]
    #[cfg_attr(test, ts(as = "DecisionWord"))]
    pub decision: Box<str>,
    /// Also create a rule that allows every later request of this agent for this tool in this room.
    pub allow_always: Option<bool>,
    pub deny_reason: Option<Box<str>>,
    /// Digest of the input that the user saw. If it does not match the approval, the request is refused.
    #[schema(example = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    pub input_digest: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum DecisionWord {
    Allow,
    Deny,
    Timeout,
}

impl From<&parlor_model::Decision> for DecisionWord {
    fn from(decision: &parlor_model::Decision) -> Self {
        use parlor_model::Decision;
        match decision {
            Decision::Allowed { .. } | Decision::AllowedByRule => Self::Allow,
            // Answers to a question set do not permit a tool.
            Decision::Denied { .. } | Decision::Answered { .. } | Decision::Withdrawn => Self::Deny,
            Decision::Expired => Self::Timeout,
        }
    }
}

/// A permission request that an agent waits for. Clients must display the whole input and make control and
/// bidirectional characters visible, so that users see exactly the input that the agent would run.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Approval<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub room_id: Option<&'a str>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session_id: Option<&'a str>,
    pub run_id: &'a str,
    pub agent_id: &'a str,
    pub agent_name: &'a str,
    pub tool_name: &'a str,
    /// Tool input, unchanged as sent by the gateway.
    #[schema(value_type = Object)]
    #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
    pub tool_input: Option<&'a RawValue>,
    /// SHA-256 of the canonical form of the input, in hexadecimal digits.
    pub input_digest: String,
    #[schema(format = DateTime)]
    pub asked_at: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decision: Option<DecisionWord>,
}

impl<'a> From<&'a parlor_model::Approval> for Approval<'a> {
    fn from(approval: &'a parlor_model::Approval) -> Self {
        Self {
            id: approval.id.as_str(),
            room_id: approval.place.room().map(|room| room.as_str()),
            session_id: approval.place.session().map(|session| session.as_str()),
            run_id: approval.run.as_str(),
            agent_id: approval.agent.as_str(),
            agent_name: &approval.agent_name,
            tool_name: &approval.tool,
            tool_input: match &approval.subject {
                ApprovalSubject::Tool(input) => serde_json::from_str(&input.0).ok(),
                ApprovalSubject::Questions(_) => None,
            },
            input_digest: approval.digest.to_string(),
            asked_at: iso(approval.asked_at),
            expires_at: iso(approval.expires_at),
            decision: approval.decision.as_ref().map(DecisionWord::from),
        }
    }
}

/// A tool that an agent may use in a room without asking.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRule<'a> {
    pub agent_id: &'a str,
    pub tool_name: &'a str,
    pub created_by_id: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl<'a> From<&'a parlor_model::ApprovalRule> for ApprovalRule<'a> {
    fn from(rule: &'a parlor_model::ApprovalRule) -> Self {
        Self {
            agent_id: rule.agent.as_str(),
            tool_name: &rule.tool,
            created_by_id: rule.by.as_str(),
            created_at: iso(rule.at),
        }
    }
}

/// Identifies an approval rule of a room.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct RuleAsked {
    pub agent_id: String,
    pub tool_name: String,
}
