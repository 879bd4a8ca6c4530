//! Queries of the tools of agents. The owner of the agent and programs of the agent may use them.

use crate::query::SearchMessages;
use crate::{AgentId, Mailbox};
use serde::{Deserialize, Serialize};

/// Checks whether the caller may list and call the tools of an agent, in a session if there is one. Returns the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayUseTools {
    /// The agent, with the session of the call.
    pub mailbox: Mailbox,
}

/// The path that a recipient, as written by an agent, stands for:
/// 1. a path that begins with `agent/`, `room/`, `slack/`, `email/`, `webhook/`, `ably/` or `custom/` is itself;
/// 2. the id of an agent that the agent can reach is that agent;
/// 3. any other text with a `/` is a path, and any other text the id of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveRecipient {
    pub agent: AgentId,
    pub to: Box<str>,
}

/// Searches messages in the rooms of which an agent is a member now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchAsAgent {
    pub agent: AgentId,
    pub search: SearchMessages,
}

/// Agents that an agent can reach: those of its owner, those shared with its owner, and those in rooms of its owner,
/// by id and without the agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReachableAgents {
    pub agent: AgentId,
}
