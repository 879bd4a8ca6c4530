//! Agents and what they listen to.

use crate::{AgentId, Pattern, SessionId, Time, UserId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: AgentId,
    pub owner: UserId,
    pub name: Box<str>,
    pub description: Box<str>,
    pub created_at: Time,
}

/// A pattern an agent, or one of its sessions, listens to besides its own address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub agent: AgentId,
    pub session: Option<SessionId>,
    pub pattern: Pattern,
    pub added_at: Time,
}
