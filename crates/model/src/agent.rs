//! Agents, their sessions, and what they listen to.

use crate::{AgentId, Pattern, Payload, SessionId, Time, UserId};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: AgentId,
    pub owner: UserId,
    pub name: Box<str>,
    pub description: Box<str>,
    /// What its owner keeps with it and the hub only passes on, such as a default model.
    pub settings: BTreeMap<Box<str>, Payload>,
    pub created_at: Time,
}

impl Agent {
    /// Whether a gateway has ever brought it: only then somebody gives it its turns.
    pub fn is_hosted(&self) -> bool {
        true
    }
}

/// An agent in one conversational context. `main` is there from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub agent: AgentId,
    pub id: SessionId,
    pub title: Box<str>,
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
