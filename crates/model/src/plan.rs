//! Current plan of an agent in a room, which users approve, reject or edit.

use crate::run_event::PlanState;
use crate::{AgentId, Payload, RoomId, RunId, Time};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentPlan {
    pub room: RoomId,
    pub agent: AgentId,
    /// Run in which the agent published the plan.
    pub run: RunId,
    /// JSON of the plan as sent by the agent.
    pub plan: Payload,
    pub state: PlanState,
    /// Text of the plan after an edit by a user; `None` if it was not edited.
    pub text: Option<Box<str>>,
    /// Revision: number of updates, edits and decisions within the run.
    pub rev: u64,
    pub at: Time,
}
