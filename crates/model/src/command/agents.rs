//! Commands on agents, and their receipts.

use crate::{
    Agent, AgentId, AutoRun, Edit, GatewayId, Pattern, Payload, RoomId, SessionId, Subscription, Time,
    UserId, Visibility,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateAgent {
    pub id: AgentId,
    pub profile: AgentProfile,
    pub subscriptions: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeAgent {
    pub id: AgentId,
    pub profile: AgentProfile,
}

/// An agent with the subscriptions of its mailbox, without the automatic one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentWithSubscriptions {
    pub agent: Arc<Agent>,
    pub subscriptions: Vec<Subscription>,
}

/// Removes an agent and every agent whose id lies below its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveAgent {
    pub id: AgentId,
}

/// Creates a session of an agent, or changes an existing one. Returns the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSession {
    pub agent: AgentId,
    pub session: SessionId,
    pub changes: SessionChanges,
}

/// Changes to a session. `None` leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionChanges {
    /// A new session without a title gets its id as the title.
    pub title: Option<Box<str>>,
    /// Without the setting, the agent's setting applies.
    pub auto_run: Edit<AutoRun>,
    pub room: Edit<RoomId>,
    pub is_default: Option<bool>,
    /// Sets the time of the last use to the time of the command.
    pub is_used: bool,
    pub settings: Vec<(Box<str>, Payload)>,
}

/// Creates an agent, or updates the gateway and the properties of an existing agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterAgent {
    pub registration: AgentRegistration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Registered {
    Agent(Arc<Agent>),
    /// The agent was removed while its gateway was offline, and the gateway must not register it again.
    Dismissed(AgentId),
}

/// Creates or updates an agent that is hosted by the hub itself. Returns the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAgent {
    pub owner: UserId,
    pub registration: AgentRegistration,
}

/// Creates an agent from its folder on the hub's machine, or replaces its configuration: fields, settings and
/// subscriptions that the command does not name are removed. Sessions that it does not name stay as they are. Returns the
/// agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigureAgent {
    pub owner: UserId,
    /// Whether the agent is created if it does not exist. Otherwise an agent that was removed in the meantime would be
    /// created again.
    pub creates: bool,
    /// Registration at the hub itself.
    pub registration: AgentRegistration,
    pub description: Box<str>,
    pub settings: Vec<(Box<str>, Payload)>,
    /// Subscriptions of the agent's own mailbox.
    pub subscriptions: Vec<Pattern>,
    pub sessions: Vec<SessionConfig>,
}

/// Complete configuration of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionConfig {
    pub id: SessionId,
    /// `None` for the title that the session has, or for its id.
    pub title: Option<Box<str>>,
    pub is_default: bool,
    pub auto_run: Option<AutoRun>,
    pub room: Option<RoomId>,
    pub subscriptions: Vec<Pattern>,
    pub settings: Vec<(Box<str>, Payload)>,
    /// Used if the session is created.
    pub created_at: Option<Time>,
    /// Used if the session has no later time.
    pub last_used_at: Option<Time>,
}

/// Moves the mail, the sessions and the memberships of an agent to another one of the same owner, and removes the first
/// agent. Both are hosted by the hub itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveAgent {
    pub from: AgentId,
    pub to: AgentId,
}

/// Changes to an agent. `None` leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentProfile {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub settings: Vec<(Box<str>, Payload)>,
    pub visibility: Option<Visibility>,
    /// Kind of the agent; overwritten when a gateway registers it.
    pub kind: Option<Box<str>>,
}

/// Properties of an agent as sent by its gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRegistration {
    pub gateway: GatewayId,
    pub id: AgentId,
    pub name: Box<str>,
    pub kind: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub capabilities: Vec<Box<str>>,
    pub model: Option<Box<str>>,
    pub slash_commands: Option<Payload>,
    pub mcp_servers: Option<Payload>,
    /// Whether the gateway registers the agent under the same id after a restart.
    pub has_lasting_id: bool,
}
