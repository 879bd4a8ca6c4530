//! Queries about missions and idle prompts.

use crate::{AgentId, RoomSelection};
use serde::{Deserialize, Serialize};

/// Missions of the mission scope of the selected rooms, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMissions {
    pub rooms: RoomSelection,
    pub limit: usize,
}

/// Idle prompt of an agent in the mission scope of the selected room, or globally if no room is selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetIdlePrompt {
    pub agent: AgentId,
    pub rooms: RoomSelection,
}
