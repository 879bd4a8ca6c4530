//! Commands on missions, which are goals that agents pursue on their own, and on the prompts for idle agents.

use crate::{AgentId, IdlePrompt, MissionId, RoomId};
use serde::{Deserialize, Serialize};

/// Starts a mission in the mission scope of `room`. It replaces the active mission of that scope. Returns the
/// mission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMission {
    pub room: RoomId,
    pub text: Box<str>,
    pub agents: Vec<(AgentId, IdlePrompt)>,
}

/// Ends the active mission in the mission scope of `room`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndMission {
    pub room: RoomId,
}

/// Sets the idle prompt of an agent in the mission scope of `room`, or globally if `room` is `None`.
/// `idle: None` removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetIdlePrompt {
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub idle: Option<IdlePrompt>,
}

/// Prompts an idle agent for its mission. Submitted by the hub after the idle interval. Returns the posted
/// prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptIdle {
    pub mission: MissionId,
    pub agent: AgentId,
}
