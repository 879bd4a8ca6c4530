//! Queries about agents, and their answers.

use crate::{Agent, AgentId, Gateway, Session, Subscription};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Agents of the caller, agents shared with the caller, and agents in rooms of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAgents;

/// An agent that the caller may see, as in [`ListAgents`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetAgent {
    pub id: AgentId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FoundAgent {
    Own {
        agent: Arc<Agent>,
        subscriptions: Vec<Subscription>,
        /// Sessions in order of creation, each with the subscriptions of its mailbox.
        sessions: Vec<(Session, Vec<Subscription>)>,
    },
    /// An agent of another user.
    OfAnother(Arc<Agent>),
}

/// Agents of the caller with owner name and gateway, for display to users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAgentCards;

/// Agents of other users that are shared with the caller, sorted by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSharedAgentCards {
    pub limit: usize,
    pub offset: usize,
}

/// One agent that the caller owns, that is shared with the caller, or that is in a room of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetAgentCard {
    pub id: AgentId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCard {
    /// For an agent of another user, only the properties that are visible to others.
    pub agent: Agent,
    pub owner_name: Box<str>,
    /// Gateway of the latest registration; set only for agents of the caller.
    pub gateway: Option<Gateway>,
}
