//! Queries about missions and idle prompts.

use crate::{AgentId, RoomId};
use serde::{Deserialize, Serialize};

/// Missions of the room's mission scope, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMissions {
    pub room: RoomId,
    pub limit: usize,
}

/// Idle prompt of an agent in the mission scope of `room`, or globally if `room` is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetIdlePrompt {
    pub agent: AgentId,
    pub room: Option<RoomId>,
}
