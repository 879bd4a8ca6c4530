//! Agents, their sessions, and what they listen to.

use crate::{AgentId, GatewayId, Pattern, Payload, SessionId, Time, UserId};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: AgentId,
    pub owner: UserId,
    pub name: Box<str>,
    pub description: Box<str>,
    /// What its owner keeps with it and the hub only passes on, such as a default model.
    pub settings: BTreeMap<Box<str>, Payload>,
    pub host: AgentHost,
    pub visibility: Visibility,
    pub created_at: Time,
}

impl Agent {
    /// Whether a gateway has ever brought it: only then somebody gives it its turns.
    pub fn is_hosted(&self) -> bool {
        self.host.gateway.is_some()
    }

    /// As people who do not own it see it: where it runs, and who else knows of it, is its owner's business.
    pub fn seen_by_others(&self) -> Self {
        let AgentHost { kind, capabilities, model, slash_commands, seen_at, .. } = self.host.clone();
        let host = AgentHost { kind, capabilities, model, slash_commands, seen_at, ..AgentHost::default() };
        let visibility = match &self.visibility {
            Visibility::List(_) => Visibility::List(Vec::new()),
            other => other.clone(),
        };
        Self { settings: BTreeMap::new(), host, visibility, ..self.clone() }
    }

    /// Whether its owner lets this person know of it and bring it into rooms.
    pub fn is_shared_with(&self, user: &UserId) -> bool {
        match &self.visibility {
            Visibility::Private => false,
            Visibility::All => true,
            Visibility::List(people) => people.contains(user),
        }
    }
}

/// What runs an agent, as its gateway presented it last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHost {
    /// Absent where the agent never came through one.
    pub gateway: Option<GatewayId>,
    /// Whatever the gateway calls it.
    pub kind: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub capabilities: Vec<Box<str>>,
    pub model: Option<Box<str>>,
    /// Lists that pass through as they came.
    pub slash_commands: Option<Payload>,
    pub mcp_servers: Option<Payload>,
    /// When it registered last, or its gateway went.
    pub seen_at: Option<Time>,
}

impl Default for AgentHost {
    fn default() -> Self {
        Self {
            gateway: None,
            kind: "generic".into(),
            working_directory: None,
            capabilities: Vec::new(),
            model: None,
            slash_commands: None,
            mcp_servers: None,
            seen_at: None,
        }
    }
}

/// Who besides its owner may know of an agent without sharing a room with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Visibility {
    #[default]
    Private,
    All,
    List(Vec<UserId>),
}

/// A program that hosts agents on some machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    pub id: GatewayId,
    pub owner: UserId,
    pub device: Device,
    /// It lives as long as its connection and is forgotten with it.
    pub ephemeral: bool,
    pub connected_at: Time,
    pub disconnected_at: Option<Time>,
    /// Agents that were removed while it was away: it learns so when it presents them, each once.
    pub pending_removals: Vec<AgentId>,
}

/// The machine a gateway runs on, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device {
    pub hostname: Box<str>,
    pub platform: Box<str>,
    pub arch: Box<str>,
    pub runtime: Box<str>,
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
