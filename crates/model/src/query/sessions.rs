//! Queries about the sessions of the caller's own agents.

use crate::AgentId;
use serde::{Deserialize, Serialize};

/// Sessions of the caller's agents whose ids begin with a text, latest used first, each with the subscriptions of its
/// mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSessions {
    pub agent_prefix: Box<str>,
    pub limit: usize,
}

/// Queued and active runs in sessions of one of the caller's agents, or of all of them, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListActiveSessions {
    pub agent: Option<AgentId>,
}

/// Checks whether the caller may follow the runs in the sessions of its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayFollowSessions;

/// Checks whether the caller may read and replace the instructions of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayInstructAgent {
    pub agent: AgentId,
}
