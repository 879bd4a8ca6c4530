//! Connections of gateways, and the agents that are online through them.

use super::super::handle::send_commands;
use super::super::host::{Host, HostCommand};
use super::super::scheduler::{GatewayAbilities, GatewayConnection, GatewayConnectionId};
use super::Hosting;
use super::injection::INJECT_CAPABILITY;
use crate::HUB;
use parlor_model::{
    Agent, AgentId, AgentStatus, GatewayId, MemberId, Message, MessageId, Position, Refusal, RoomId, RunId,
    Sender, Signal, UserId, mention,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of gateways that one user may have connected.
const MAX_GATEWAYS_PER_USER: usize = 20;

impl Hosting {
    /// Registers a gateway connection of a user. Refused if the user already has the maximum number of
    /// gateways connected.
    pub fn gateway_connected(
        &self,
        owner: &UserId,
        gateway: GatewayId,
        abilities: GatewayAbilities,
        host: Arc<dyn Host>,
    ) -> Result<GatewayConnectionId, Refusal> {
        let mut scheduler = self.hub.scheduler().lock();
        let connected = scheduler.gateways_of(owner);
        if connected.len() >= MAX_GATEWAYS_PER_USER && !connected.contains(&gateway) {
            return Err(Refusal::TooManyConnections);
        }
        Ok(scheduler.connect_gateway(GatewayConnection { gateway, owner: owner.clone(), abilities, host }))
    }

    /// Returns an agent of the owner by its name, ignoring case, that the hub itself does not host.
    pub async fn agent_named(&self, owner: &UserId, name: &str) -> Result<Option<Agent>, Refusal> {
        let (owner, name) = (owner.clone(), Box::<str>::from(name));
        let agents = self.hub.read_snapshot(move |_, store| store.agents_of(&owner)).await?;
        let hosted_here = |agent: &Agent| agent.host.gateway.as_ref().is_some_and(|id| id.as_str() == HUB);
        Ok(agents.into_iter().find(|agent| mention::same_name(&agent.name, &name) && !hosted_here(agent)))
    }

    /// Returns the message with the reply of a run; `None` if it has none.
    pub async fn reply_of(&self, run: &RunId) -> Result<Option<Arc<Message>>, Refusal> {
        let run = run.clone();
        let found = self.hub.read_snapshot(move |_, store| {
            let reply = store.run(&run)?.and_then(|run| run.reply);
            reply.map(|reply| store.message(&reply)).transpose()
        });
        Ok(found.await?.flatten())
    }

    /// Position of a stored message.
    pub fn position_of(&self, message: &Message) -> Position {
        Position { epoch: self.hub.epoch(), seq: message.seq }
    }

    /// Returns the names of agents in a room; `None` for each agent that is not a member.
    pub async fn names_in_room(
        &self,
        room: &RoomId,
        agents: &[AgentId],
    ) -> Result<Vec<Option<Box<str>>>, Refusal> {
        let (room, agents) = (room.clone(), agents.to_vec());
        let found = self.hub.read_snapshot(move |_, store| {
            let name = |agent: &AgentId| {
                let member = store.member(&room, &MemberId::Agent(agent.clone()))?;
                Ok(member.map(|member| member.name))
            };
            agents.iter().map(name).collect()
        });
        found.await
    }

    pub async fn is_member(&self, room: &RoomId, member: &MemberId) -> Result<bool, Refusal> {
        let (room, member) = (room.clone(), member.clone());
        self.hub.read_snapshot(move |_, store| Ok(store.member(&room, &member)?.is_some())).await
    }

    /// Returns the agent's message with this id, for a client that publishes it again.
    pub async fn message_of(&self, agent: &AgentId, id: &MessageId) -> Result<Option<Arc<Message>>, Refusal> {
        let id = id.clone();
        let found = self.hub.read_snapshot(move |_, store| store.message(&id)).await?;
        Ok(found.filter(|message| message.sender == Sender::Agent(agent.clone())))
    }

    /// Returns the agent if it exists and this gateway hosts it.
    pub async fn hosted_agent(&self, id: &AgentId, gateway: &GatewayId) -> Result<Option<Agent>, Refusal> {
        let (id, gateway) = (id.clone(), gateway.clone());
        let found = self.hub.read_snapshot(move |_, store| store.agent(&id)).await?;
        Ok(found.filter(|agent| agent.host.gateway.as_ref() == Some(&gateway)))
    }

    /// Removes a gateway connection. Its agents go offline, except those that are online through a newer
    /// connection.
    pub async fn gateway_disconnected(&self, connection: GatewayConnectionId) {
        let agents = self.hub.scheduler().lock().disconnect_gateway(connection, Instant::now());
        self.hub.scheduler().wake_driver.notify_one();
        for agent in &agents {
            self.hub.fanout().agent_went_offline(agent);
        }
        for agent in agents {
            self.publish_agent_status(&agent).await;
        }
    }

    pub fn is_connected(&self, gateway: &GatewayId) -> bool {
        self.hub.scheduler().lock().is_gateway_connected(gateway)
    }

    /// Marks a registered agent as online through a gateway connection, and sends it its room contexts, its
    /// pending rewinds and its lost runs. If another gateway hosted the agent before, that
    /// gateway is sent a command to remove it.
    pub async fn agent_online(&self, connection: GatewayConnectionId, agent: &Agent) -> Result<(), Refusal> {
        let taken_over = {
            let mut scheduler = self.hub.scheduler().lock();
            let before = scheduler.agent_online(&agent.id, connection, &agent.name, Instant::now());
            let injectable =
                agent.host.capabilities.iter().any(|capability| &**capability == INJECT_CAPABILITY);
            scheduler.set_injectable(&agent.id, injectable);
            send_commands(&mut scheduler);
            before.and_then(|before| scheduler.host(before))
        };
        self.hub.fanout().agent_came_online(&agent.owner);
        if let Some(host) = taken_over {
            tracing::warn!(agent = %agent.id, "the agent moved to another gateway");
            host.send(HostCommand::Remove { agent: agent.id.clone() });
        }
        let id = agent.id.clone();
        let rooms =
            self.hub.read_snapshot(move |_, store| store.memberships(&MemberId::Agent(id.clone()))).await?;
        for membership in rooms {
            self.send_room_context(&membership.room, Some(&agent.id)).await?;
        }
        self.send_pending_rewinds(connection, &agent.id);
        self.redispatch_runs(&agent.id).await;
        self.publish_agent_status(&agent.id).await;
        self.hub.scheduler().wake_driver.notify_one();
        self.hub.scheduler().idle.notify_one();
        self.hub.shared_turns().agent_online(&agent.id);
        Ok(())
    }

    /// Sends a gateway the command to remove an agent that no longer exists.
    pub fn dismiss(&self, connection: GatewayConnectionId, agent: &AgentId) {
        let host = self.hub.scheduler().lock().host(connection);
        if let Some(host) = host {
            host.send(HostCommand::Remove { agent: agent.clone() });
        }
    }

    pub async fn agent_offline(&self, connection: GatewayConnectionId, agent: &AgentId) {
        if self.hub.scheduler().lock().agent_offline(agent, connection, Instant::now()) {
            self.hub.fanout().agent_went_offline(agent);
            self.publish_agent_status(agent).await;
        }
        self.hub.scheduler().wake_driver.notify_one();
    }

    /// Returns the current status of an agent; `Offline` without a gateway connection.
    pub fn agent_status(&self, agent: &AgentId) -> AgentStatus {
        self.hub.scheduler().lock().online_agent(agent).map_or(AgentStatus::Offline, |online| online.status)
    }

    pub async fn report_status(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        status: AgentStatus,
        queue_depth: u32,
    ) {
        let changed = {
            let mut scheduler = self.hub.scheduler().lock();
            if scheduler.agent_on_connection(agent, connection).is_none() {
                return;
            }
            if status == AgentStatus::Busy {
                scheduler.mark_alive(agent, None);
            } else if queue_depth == 0 {
                scheduler.idle(agent);
                scheduler.stopped(agent, None);
            }
            scheduler.set_status(agent, status, queue_depth)
        };
        self.hub.scheduler().wake_driver.notify_one();
        if changed {
            self.publish_agent_status(agent).await;
        }
    }

    /// Publishes the status of an agent to its owner and to all users who share a room with it.
    pub(in crate::runs) async fn publish_agent_status(&self, agent: &AgentId) {
        let id = agent.clone();
        let found = self.hub.read_snapshot(move |_, store| {
            let Some(agent) = store.agent(&id)? else { return Ok(None) };
            let mut people = BTreeSet::from([agent.owner.clone()]);
            for membership in store.memberships(&MemberId::Agent(id.clone()))? {
                let members = store.members(&membership.room, usize::MAX, 0)?;
                people.extend(members.iter().filter_map(|member| member.member.user().cloned()));
            }
            Ok(Some((agent, people)))
        });
        // If the read fails, only this signal is lost.
        let Ok(Some((agent, people))) = found.await else { return };
        let (status, queue_depth) = {
            let scheduler = self.hub.scheduler().lock();
            let online = scheduler.online_agent(&agent.id);
            online.map_or((AgentStatus::Offline, 0), |online| (online.status, online.queue_depth))
        };
        let Agent { id: agent, name, host, .. } = agent;
        let signal =
            Signal::AgentStatus { agent, name, kind: host.kind, model: host.model, status, queue_depth };
        self.hub.fanout().signal_people(&people, &signal);
    }
}
