//! Automatic turns, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::TurnChange;
use parlor_engine::ports::ReadTurns;
use parlor_model::{
    Agent, AgentId, NewTurnDecision, Session, SessionId, TurnDecision, TurnDecisionKind, TurnPage,
};
use std::collections::BTreeMap;

impl ReadTurns for TablesView {
    fn automatic_agents(&mut self) -> Result<Vec<Agent>, Fault> {
        let is_automatic = |agent: &&Agent| {
            agent.settings.contains_key("autoRun") || agent.settings.contains_key("heartbeat")
        };
        Ok(sorted(self.tables.agents.rows().filter(is_automatic).cloned(), |agent| agent.id.clone()))
    }

    fn automatic_sessions(&mut self) -> Result<Vec<Session>, Fault> {
        let sessions = self.tables.sessions.rows().filter(|session| session.auto_run.is_some());
        Ok(sorted(sessions.cloned(), |session| (session.agent.clone(), session.id.clone())))
    }

    fn turn_decisions(&mut self, agents: &[AgentId], page: &TurnPage) -> Result<Vec<TurnDecision>, Fault> {
        let turns = self.tables.turns_of(agents, page.session.as_ref()).rev();
        let turns = turns.filter(|turn| page.before.is_none_or(|before| turn.number < before));
        Ok(turns.take(page.limit).cloned().collect())
    }

    fn turn_counts(
        &mut self,
        agents: &[AgentId],
        session: Option<&SessionId>,
    ) -> Result<Vec<(TurnDecisionKind, u64)>, Fault> {
        let mut counts = BTreeMap::new();
        for turn in self.tables.turns_of(agents, session) {
            *counts.entry(turn.decision.kind).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }
}

impl Tables {
    fn turns_of(
        &self,
        agents: &[AgentId],
        session: Option<&SessionId>,
    ) -> impl DoubleEndedIterator<Item = &TurnDecision> {
        self.turns.iter().filter(move |turn| {
            agents.contains(&turn.decision.agent)
                && session.is_none_or(|session| turn.decision.session == *session)
        })
    }

    pub fn apply_turns(&mut self, change: &TurnChange) {
        match change {
            TurnChange::AppendDecision(decision) => {
                self.last_turn += 1;
                let decision = NewTurnDecision::clone(decision);
                self.turns.push(TurnDecision { number: self.last_turn, decision });
            }
        }
    }
}
