//! Commands on agents' plans.

use crate::run_event::Plan;
use crate::{AgentId, RoomSelection, RunId};
use serde::{Deserialize, Serialize};

/// Replaces the plan of a run by the agent's latest version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePlan {
    pub run: RunId,
    pub plan: Plan,
}

/// Approves, rejects or edits the only undecided plan of an agent in the selected rooms, or in all rooms of the
/// caller. Returns the message to the agent, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidePlan {
    pub agent: AgentId,
    pub rooms: RoomSelection,
    pub verdict: PlanDecision,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanDecision {
    /// Approves the plan and posts a message to the agent, which starts a run.
    Approve,
    Reject,
    /// Replaces the text of the plan. The plan stays undecided.
    Edit(Box<str>),
}
