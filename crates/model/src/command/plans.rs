//! Commands on agents' plans.

use super::Post;
use crate::run_event::Plan;
use crate::{AgentId, RoomId, RunId};
use serde::{Deserialize, Serialize};

/// Replaces the plan of a run by the agent's latest version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePlan {
    pub run: RunId,
    pub plan: Plan,
}

/// Approves, rejects or edits a plan that is not decided yet. Returns the message to the agent, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidePlan {
    pub room: RoomId,
    pub agent: AgentId,
    /// Revision of the plan that the caller saw. A different current revision is a conflict.
    pub rev: u64,
    pub verdict: PlanDecision,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanDecision {
    /// Approves the plan and posts a message to the agent, which starts a run.
    Approve(Post),
    Reject,
    /// Replaces the text of the plan. The plan stays undecided.
    Edit(Box<str>),
}
