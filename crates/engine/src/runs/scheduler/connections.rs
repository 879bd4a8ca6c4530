//! Gateway connections, and the agents that are online through them.
//!
//! Owns: an old gateway connection never takes an agent offline that a newer one has registered.

use super::super::host::Host;
use super::Scheduler;
use parlor_model::{AgentId, AgentStatus, GatewayId, UserId};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// Id of a gateway connection; newer connections have higher ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayConnectionId(pub u64);

/// Optional abilities that a gateway declares when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayAbilities {
    /// Whether the gateway runs an agent in several rooms in parallel and can stop it in a single room.
    /// Parlor gateways do; they also address runs by id.
    pub by_room: bool,
    /// Whether the gateway executes runs in sessions.
    pub in_sessions: bool,
}

impl GatewayAbilities {
    /// The abilities of a Parlor gateway.
    pub const ALL: Self = Self { by_room: true, in_sessions: true };
    /// The abilities of a third-party gateway.
    pub const NONE: Self = Self { by_room: false, in_sessions: false };
}

/// A live connection of a gateway.
pub struct GatewayConnection {
    pub gateway: GatewayId,
    pub owner: UserId,
    pub abilities: GatewayAbilities,
    pub host: Arc<dyn Host>,
}

/// An agent that is online through a gateway connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineAgent {
    pub connection: GatewayConnectionId,
    pub name: Box<str>,
    pub status: AgentStatus,
    pub queue_depth: u32,
}

impl Scheduler {
    pub fn connect_gateway(&mut self, connection: GatewayConnection) -> GatewayConnectionId {
        self.next_link += 1;
        let id = GatewayConnectionId(self.next_link);
        self.links.insert(id, connection);
        id
    }

    /// Connected gateways of a user, without duplicates.
    pub fn gateways_of(&self, owner: &UserId) -> HashSet<&GatewayId> {
        self.links
            .values()
            .filter(|connection| connection.owner == *owner)
            .map(|connection| &connection.gateway)
            .collect()
    }

    pub fn is_gateway_connected(&self, gateway: &GatewayId) -> bool {
        self.links.values().any(|connection| connection.gateway == *gateway)
    }

    pub fn gateway(&self, connection: GatewayConnectionId) -> Option<&GatewayId> {
        self.links.get(&connection).map(|connection| &connection.gateway)
    }

    pub fn host(&self, connection: GatewayConnectionId) -> Option<Arc<dyn Host>> {
        self.links.get(&connection).map(|connection| connection.host.clone())
    }

    /// User who owns the gateway of a connection.
    pub fn owner(&self, connection: GatewayConnectionId) -> Option<&UserId> {
        self.links.get(&connection).map(|connection| &connection.owner)
    }

    /// Host of the newest connection of a gateway.
    pub fn host_of_gateway(&self, gateway: &GatewayId) -> Option<Arc<dyn Host>> {
        let links = self.links.iter().filter(|(_, connection)| connection.gateway == *gateway);
        links.max_by_key(|(id, _)| **id).map(|(_, connection)| connection.host.clone())
    }

    /// Registers an agent as online through `link`. Returns its previous connection if that belonged to a
    /// different gateway. If the connection changed, the agent's active runs are interrupted after the grace
    /// period unless the agent proves that it is still working on them.
    pub fn agent_online(
        &mut self,
        agent: &AgentId,
        connection: GatewayConnectionId,
        name: &str,
        now: Instant,
    ) -> Option<GatewayConnectionId> {
        // A gateway that registers the agent again on the same connection does not change its status.
        let (status, queue_depth) = self
            .agent_on_connection(agent, connection)
            .map_or((AgentStatus::Online, 0), |online| (online.status, online.queue_depth));
        let online = OnlineAgent { connection, name: name.into(), status, queue_depth };
        let before = self.online_agents.insert(agent.clone(), online);
        self.queues.touch(agent);
        self.queue_decisions();
        let before = before?.connection;
        if before != connection {
            // The new connection may not know the active runs, and the hub may never notice that the old one
            // closed.
            self.mark_lost(agent, now);
        }
        let gateway = |connection: GatewayConnectionId| {
            self.links.get(&connection).map(|connection| &connection.gateway)
        };
        (before != connection && gateway(before) != gateway(connection)).then_some(before)
    }

    /// Whether the agent is online through a Parlor gateway.
    pub fn is_on_parlor_gateway(&self, agent: &AgentId) -> bool {
        self.abilities(agent).by_room
    }

    /// Whether the agent is online through a gateway that executes runs in sessions.
    pub fn runs_sessions(&self, agent: &AgentId) -> bool {
        self.abilities(agent).in_sessions
    }

    fn abilities(&self, agent: &AgentId) -> GatewayAbilities {
        let connection = self.online_agents.get(agent).and_then(|online| self.links.get(&online.connection));
        connection.map_or(GatewayAbilities::NONE, |connection| connection.abilities)
    }

    pub fn online_agents(&self) -> HashSet<AgentId> {
        self.online_agents.keys().cloned().collect()
    }

    pub fn online_agent(&self, agent: &AgentId) -> Option<&OnlineAgent> {
        self.online_agents.get(agent)
    }

    /// Returns the agent if it is online through exactly this connection.
    pub fn agent_on_connection(
        &self,
        agent: &AgentId,
        connection: GatewayConnectionId,
    ) -> Option<&OnlineAgent> {
        self.online_agents.get(agent).filter(|online| online.connection == connection)
    }

    /// Returns whether the status or the queue depth changed.
    pub fn set_status(&mut self, agent: &AgentId, status: AgentStatus, queue_depth: u32) -> bool {
        let Some(online) = self.online_agents.get_mut(agent) else { return false };
        let changed = (online.status, online.queue_depth) != (status, queue_depth);
        (online.status, online.queue_depth) = (status, queue_depth);
        changed
    }

    pub(super) fn change_status(&mut self, agent: &AgentId, status: AgentStatus) {
        if self.online_agents.get(agent).is_some_and(|online| online.status != status) {
            self.set_status(agent, status, 0);
            self.changed.insert(agent.clone());
        }
    }

    /// Takes an agent offline. Returns `false` and does nothing if it is online through another connection.
    pub fn agent_offline(&mut self, agent: &AgentId, connection: GatewayConnectionId, now: Instant) -> bool {
        if self.agent_on_connection(agent, connection).is_none() {
            return false;
        }
        self.online_agents.remove(agent);
        self.queues.touch(agent);
        self.mark_lost(agent, now);
        true
    }

    /// Starts the grace period of the agent's active runs.
    pub(super) fn mark_lost(&mut self, agent: &AgentId, now: Instant) {
        self.stopped.retain(|(stopped, _), _| stopped != agent);
        for run in self.runs_of.get(agent).into_iter().flatten() {
            if let Some(live) = self.running.get_mut(run) {
                live.lost_since.get_or_insert(now);
                live.stopping_until = None;
            }
        }
    }

    /// Removes a gateway connection and returns the agents that went offline with it.
    pub fn disconnect_gateway(&mut self, connection: GatewayConnectionId, now: Instant) -> Vec<AgentId> {
        let agents = self.online_agents.iter().filter(|(_, online)| online.connection == connection);
        let agents: Vec<AgentId> = agents.map(|(agent, _)| agent.clone()).collect();
        for agent in &agents {
            self.agent_offline(agent, connection, now);
        }
        self.links.remove(&connection);
        agents
    }
}
