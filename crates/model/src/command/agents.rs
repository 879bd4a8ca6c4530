//! Commands on agents, and their receipts.

use crate::{
    Agent, AgentId, AutoRun, Edit, GatewayId, Pattern, Payload, RoomId, SessionId, Subscription, UserId,
    Visibility,
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
