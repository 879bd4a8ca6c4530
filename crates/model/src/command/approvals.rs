//! Commands on approvals and approval rules. All but the revocation of a rule return the approval.

use crate::run_event::QuestionAnswer;
use crate::{AgentId, ApprovalId, ApprovalSubject, GatewayId, InputDigest, RoomId, RunId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Submits the permission request or question set that an agent sends during a run. The hub itself submits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskApproval {
    pub run: RunId,
    pub gateway: GatewayId,
    pub request: Box<str>,
    pub tool: Box<str>,
    pub subject: ApprovalSubject,
    pub digest: InputDigest,
    pub timeout: Duration,
}

/// Decides a tool approval. Submit it through `Hub::decide_approval`, which first expires an overdue
/// approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideApproval {
    pub approval: ApprovalId,
    pub allow: bool,
    /// Also create a rule that allows every later request of this agent for this tool in this room. Refused
    /// without a room.
    pub always: bool,
    pub reason: Option<Box<str>>,
    /// Digest of the input that the user saw. If present, it must match the approval.
    pub digest: Option<InputDigest>,
}

/// Answers a question set. Submit it through `Hub::answer_questions`, which first expires an overdue
/// approval. Refused as existing if the set is answered, and as ended if it is closed without answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerQuestions {
    pub approval: ApprovalId,
    pub answers: Vec<QuestionAnswer>,
}

/// Expires an approval, unless it has been decided. The hub itself submits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpireApproval {
    pub approval: ApprovalId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeApprovalRule {
    pub room: RoomId,
    pub agent: AgentId,
    pub tool: Box<str>,
}
