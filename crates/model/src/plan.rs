//! The plan of an agent in a room, as it stands: what people approve, reject, or put in other words.

use crate::run_event::PlanState;
use crate::{AgentId, Payload, RoomId, RunId, Time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentPlan {
    pub room: RoomId,
    pub agent: AgentId,
    /// In which turn it was told.
    pub run: RunId,
    /// As the agent told it.
    pub plan: Payload,
    pub state: PlanState,
    /// What somebody made of its text.
    pub text: Option<Box<str>>,
    /// How often it was told or changed in that turn.
    pub rev: u64,
    pub at: Time,
}
