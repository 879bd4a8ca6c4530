//! Current plan of an agent in a room, which users approve, reject or edit.

use crate::run_event::Plan;
use crate::{AgentId, RoomId, RunId, Time};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentPlan {
    pub room: RoomId,
    pub agent: AgentId,
    /// Run in which the agent published the plan.
    pub run: RunId,
    /// The plan as published by the agent, except that a decision of a user changes its state.
    pub plan: Plan,
    /// Text of the plan after an edit by a user; `None` if it was not edited.
    pub text: Option<Box<str>>,
    /// Revision: number of updates, edits and decisions within the run.
    pub rev: u64,
    pub at: Time,
}

impl CurrentPlan {
    /// Returns the bytes of all texts of the plan.
    pub fn length(&self) -> usize {
        self.plan.length() + self.text.as_ref().map_or(0, |text| text.len())
    }
}
