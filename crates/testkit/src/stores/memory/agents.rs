//! Agents and gateways, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::AgentChange;
use parlor_engine::ports::ReadAgents;
use parlor_model::{Agent, AgentId, Gateway, GatewayId, MemberId, RoomId, UserId};

impl ReadAgents for TablesView {
    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault> {
        Ok(self.tables.agents.get(id).cloned())
    }

    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault> {
        let theirs = self.tables.agents.rows().filter(|agent| agent.owner == *owner);
        Ok(sorted(theirs.cloned(), |agent| agent.id.clone()))
    }

    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault> {
        let agents = self.tables.members_of(room).filter_map(|row| row.member.agent().cloned());
        Ok(sorted(agents, AgentId::clone))
    }

    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault> {
        let below = |agent: &&Agent| agent.id.ancestors().any(|ancestor| ancestor == *id);
        Ok(sorted(self.tables.agents.rows().filter(below).cloned(), |agent| agent.id.clone()))
    }

    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault> {
        let own = MemberId::User(user.clone());
        let others = self.tables.agents.rows().filter(|agent| agent.owner != *user);
        let mut near = Vec::new();
        for agent in others {
            let theirs = MemberId::Agent(agent.id.clone());
            let mut rooms = self.tables.rooms.rows();
            let mut in_both = || {
                rooms
                    .any(|room| self.tables.in_room(&room.id, &own) && self.tables.in_room(&room.id, &theirs))
            };
            if agent.is_shared_with(user) || in_both() {
                near.push(agent.clone());
            }
        }
        Ok(sorted(near.into_iter(), |agent| agent.id.clone()))
    }

    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault> {
        let others = self.tables.agents.rows().filter(|agent| agent.owner != *user);
        let shared = others.filter(|agent| agent.is_shared_with(user)).cloned();
        Ok(sorted(shared, |agent| agent.id.clone()).into_iter().skip(offset).take(limit).collect())
    }

    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault> {
        Ok(self.tables.gateways.get(id).cloned())
    }

    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault> {
        let is_owned = |gateway: &&Gateway| owner.is_none_or(|owner| gateway.owner == *owner);
        Ok(self.tables.gateways.values().filter(is_owned).cloned().collect())
    }
}

impl Tables {
    pub fn apply_agents(&mut self, change: &AgentChange) {
        match change {
            AgentChange::PutAgent(agent) => self.agents.put(agent.id.clone(), agent.as_ref().clone()),
            AgentChange::RemoveAgent(agent) => self.remove_agent(agent),
            AgentChange::PutGateway(gateway) => {
                self.gateways.insert(gateway.id.clone(), gateway.as_ref().clone());
            }
            AgentChange::RemoveGateway(gateway) => {
                self.gateways.remove(gateway);
            }
        }
    }

    pub fn remove_agent(&mut self, agent: &AgentId) {
        self.agents.remove(agent);
        self.services.remove(agent);
        self.sessions.retain(|(owner, _)| owner != agent);
        self.subscriptions.retain(|(owner, _, _)| owner != agent);
        self.deliveries.retain(|(_, mailbox)| mailbox.agent != *agent);
        self.dead_letters
            .retain(|(_, mailbox)| mailbox.as_ref().is_none_or(|mailbox| mailbox.agent != *agent));
        self.members.retain(|(_, member)| member.agent() != Some(agent));
        self.remove_runs(|run| run.agent == *agent);
        self.conversation_entries.retain(|(of, _, _), _| of != agent);
        self.remove_approvals(|approval| approval.agent == *agent);
        self.approval_rules.retain(|_, rule| rule.agent != *agent);
        self.plans.retain(|(_, of), _| of != agent);
        self.missions.values_mut().for_each(|mission| mission.agents.retain(|entry| entry.agent != *agent));
        self.idle.retain(|(_, of), _| of != agent);
    }
}
