//! Agents and gateways, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::AgentChange;
use parlor_engine::ports::ReadAgents;
use parlor_model::{Agent, AgentId, Gateway, GatewayId, Mailbox, MemberId, RoomId, UserId};

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
            AgentChange::ReplaceAgent { old, new } => self.replace_agent(old, new),
            AgentChange::PutGateway(gateway) => {
                self.gateways.insert(gateway.id.clone(), gateway.as_ref().clone());
            }
            AgentChange::RemoveGateway(gateway) => {
                self.gateways.remove(gateway);
            }
        }
    }

    fn replace_agent(&mut self, old: &AgentId, new: &AgentId) {
        if !self.sessions.rows().any(|session| session.agent == *new) {
            self.move_sessions(old, new);
        }
        for mut run in self.runs.rows().filter(|run| run.agent == *old).cloned().collect::<Vec<_>>() {
            run.agent = new.clone();
            self.runs.put(run.id.clone(), run);
        }
        let decisions = self.turns.iter_mut().filter(|turn| turn.decision.agent == *old);
        decisions.for_each(|turn| turn.decision.agent = new.clone());
        let approvals = self.approvals.rows().filter(|approval| approval.agent == *old);
        for mut approval in approvals.cloned().collect::<Vec<_>>() {
            approval.agent = new.clone();
            self.approvals.put(approval.id.clone(), approval);
        }
        let plans = self.plans.values().filter(|plan| plan.agent == *old);
        for mut plan in plans.cloned().collect::<Vec<_>>() {
            plan.agent = new.clone();
            self.plans.entry((plan.room.clone(), new.clone())).or_insert(plan);
        }
        for mission in self.missions.values_mut() {
            if !mission.agents.iter().any(|entry| entry.agent == *new) {
                let entries = mission.agents.iter_mut().filter(|entry| entry.agent == *old);
                entries.for_each(|entry| entry.agent = new.clone());
                mission.agents.sort_by(|one, other| one.agent.cmp(&other.agent));
            }
        }
        let idle = self.idle.iter().filter(|((_, agent), _)| agent == old);
        for ((mission_scope, _), idle) in
            idle.map(|(key, idle)| (key.clone(), idle.clone())).collect::<Vec<_>>()
        {
            self.idle.entry((mission_scope, new.clone())).or_insert(idle);
        }
        self.remove_agent(old);
    }

    fn move_sessions(&mut self, old: &AgentId, new: &AgentId) {
        for mut session in self.sessions.rows().filter(|row| row.agent == *old).cloned().collect::<Vec<_>>() {
            session.agent = new.clone();
            self.sessions.put((new.clone(), session.id.clone()), session);
        }
        let subscriptions = self.subscriptions.rows().filter(|row| row.agent == *old);
        for mut row in subscriptions.cloned().collect::<Vec<_>>() {
            row.agent = new.clone();
            self.subscriptions.put((new.clone(), row.session.clone(), row.pattern.clone()), row);
        }
        for mut row in
            self.deliveries.rows().filter(|row| row.mailbox.agent == *old).cloned().collect::<Vec<_>>()
        {
            row.mailbox.agent = new.clone();
            self.deliveries.put((row.message.clone(), row.mailbox.clone()), row);
        }
        let entries = self.conversation_entries.iter().filter(|((agent, _, _), _)| agent == old);
        for ((_, session, number), mut entry) in
            entries.map(|(key, entry)| (key.clone(), entry.clone())).collect::<Vec<_>>()
        {
            entry.agent = new.clone();
            self.conversation_entries.insert((new.clone(), session, number), entry);
        }
        let is_from_old = |mailbox: &Option<Mailbox>| mailbox.as_ref().is_some_and(|of| of.agent == *old);
        let letters = self.dead_letters.rows().filter(|(_, mailbox, _)| is_from_old(mailbox));
        for (message, mailbox, reason) in letters.cloned().collect::<Vec<_>>() {
            let mailbox = mailbox.map(|mailbox| Mailbox { agent: new.clone(), ..mailbox });
            self.dead_letters.put((message.clone(), mailbox.clone()), (message, mailbox, reason));
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
        self.turns.retain(|turn| turn.decision.agent != *agent);
    }
}
