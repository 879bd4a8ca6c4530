//! Commands on missions, which are goals that agents pursue on their own, and on the prompts for idle agents.

use crate::{AgentId, IdlePrompt, MissionId, RoomSelection};
use serde::{Deserialize, Serialize};

/// Starts a mission in the mission scope of the selected room. It replaces the active mission of that scope. Returns the
/// mission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMission {
    pub rooms: RoomSelection,
    pub text: Box<str>,
    pub agents: Vec<(AgentId, IdlePrompt)>,
}

/// Ends the active mission in the mission scope of the selected room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndMission {
    pub rooms: RoomSelection,
}

/// Sets the idle prompt of an agent in the mission scope of the selected room, or globally if no room is
/// selected. `idle: None` removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetIdlePrompt {
    pub agent: AgentId,
    pub rooms: RoomSelection,
    pub idle: Option<IdlePrompt>,
}

/// Prompts an idle agent for its mission. Submitted by the hub after the idle interval. Returns the posted
/// prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptIdle {
    pub mission: MissionId,
    pub agent: AgentId,
}
