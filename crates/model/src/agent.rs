//! Agents, the gateways that host them, and their subscriptions.

use crate::{AgentId, AutoRun, GatewayId, InvalidAutoRun, Pattern, Payload, SessionId, Time, UserId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub owner: UserId,
    pub name: Box<str>,
    pub description: Box<str>,
    /// Owner-defined settings that the hub stores without interpreting them, such as a default model.
    pub settings: BTreeMap<Box<str>, Payload>,
    pub host: AgentHost,
    pub visibility: Visibility,
    pub created_at: Time,
}

impl Agent {
    /// Name of the setting for automatic turns.
    pub const AUTO_RUN_SETTING: &str = "autoRun";

    /// Returns the bytes of the description and the settings.
    pub fn length(&self) -> usize {
        let settings = self.settings.iter().map(|(name, value)| name.len() + value.0.len());
        self.description.len() + settings.sum::<usize>()
    }

    /// Automatic turns of the agent's sessions that have no setting of their own.
    pub fn auto_run(&self) -> Result<Option<AutoRun>, InvalidAutoRun> {
        self.settings.get(Self::AUTO_RUN_SETTING).map_or(Ok(None), |json| AutoRun::parse(&json.0))
    }

    /// Cron expression of the agent's heartbeat. `None` if it is absent or no text.
    pub fn heartbeat(&self) -> Option<Box<str>> {
        self.text_setting("heartbeat")
    }

    /// Model that the owner chose for the agent. `None` if it is absent or no text.
    pub fn default_model(&self) -> Option<Box<str>> {
        self.text_setting("defaultModel")
    }

    fn text_setting(&self, name: &str) -> Option<Box<str>> {
        let text: Box<str> = serde_json::from_str(&self.settings.get(name)?.0).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns whether a gateway has ever registered the agent. Only hosted agents get runs.
    pub fn is_hosted(&self) -> bool {
        self.host.gateway.is_some()
    }

    /// Returns a copy for users other than the owner: without settings, gateway, working directory, MCP
    /// servers and the list of users it is shared with.
    pub fn seen_by_others(&self) -> Self {
        let AgentHost { kind, capabilities, model, slash_commands, seen_at, .. } = self.host.clone();
        let host = AgentHost { kind, capabilities, model, slash_commands, seen_at, ..AgentHost::default() };
        let visibility = match &self.visibility {
            Visibility::List(_) => Visibility::List(Vec::new()),
            other => other.clone(),
        };
        Self { settings: BTreeMap::new(), host, visibility, ..self.clone() }
    }

    /// Returns whether the owner allows `user` to see the agent and to add it to rooms.
    pub fn is_shared_with(&self, user: &UserId) -> bool {
        match &self.visibility {
            Visibility::Private => false,
            Visibility::All => true,
            Visibility::List(people) => people.contains(user),
        }
    }
}

/// Where and how an agent runs, from its latest registration by a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHost {
    /// `None` if no gateway has ever registered the agent.
    pub gateway: Option<GatewayId>,
    /// Kind of the agent as named by its gateway; free text.
    pub kind: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub capabilities: Vec<Box<str>>,
    pub model: Option<Box<str>>,
    /// JSON list from the gateway, relayed unchanged.
    pub slash_commands: Option<Payload>,
    /// JSON list from the gateway, relayed unchanged.
    pub mcp_servers: Option<Payload>,
    /// Time of the latest registration, or of the latest disconnect of its gateway.
    pub seen_at: Option<Time>,
    /// Whether the gateway registers the agent under the same id after a restart. An agent without a lasting id is
    /// replaced when its owner's gateway registers a new agent with its name.
    pub has_lasting_id: bool,
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
            has_lasting_id: true,
        }
    }
}

/// Users other than the owner that may see an agent without sharing a room with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Visibility {
    #[default]
    Private,
    All,
    List(Vec<UserId>),
}

/// A program that connects to the hub and hosts agents on its own machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    pub id: GatewayId,
    pub owner: UserId,
    pub device: Device,
    /// Whether the hub deletes the gateway when its connection closes.
    pub ephemeral: bool,
    pub connected_at: Time,
    pub disconnected_at: Option<Time>,
    /// Agents removed while the gateway was offline. When the gateway registers one of them, the hub reports
    /// the removal once instead of creating the agent again.
    pub pending_removals: Vec<AgentId>,
}

/// The machine that a gateway runs on, as reported by the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Device {
    pub hostname: Box<str>,
    pub platform: Box<str>,
    pub arch: Box<str>,
    pub runtime: Box<str>,
}

/// A path pattern whose messages are delivered to an agent or one of its sessions, in addition to messages
/// sent to its own path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    pub agent: AgentId,
    pub session: Option<SessionId>,
    pub pattern: Pattern,
    pub added_at: Time,
}
