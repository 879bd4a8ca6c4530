//! Runs and agents' plans, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::RunChange;
use parlor_engine::ports::{BudgetUsage, RECENT_RUNS_SEARCHED, ReadRuns};
use parlor_model::{
    AgentId, ConversationId, CurrentPlan, EventScope, MessageId, RoomId, Run, RunContext, RunId, RunOutcome,
    RunState, SessionId, Time, UserId,
};
use std::cmp::Reverse;

impl ReadRuns for TablesView {
    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault> {
        Ok(self.tables.runs.get(id).cloned())
    }

    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault> {
        Ok(self.tables.runs.rows().filter(|run| run.message() == Some(message)).cloned().collect())
    }

    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault> {
        let mut ended: Vec<&Run> =
            self.tables.runs.rows().filter(|run| run.agent == *agent && run.has_ended()).collect();
        ended.sort_by_key(|run| run.ended_at);
        let mut recent = ended.into_iter().rev().take(RECENT_RUNS_SEARCHED);
        Ok(recent.find(|run| run.lineage.conversation == *conversation).cloned())
    }

    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault> {
        let open = self.tables.runs.rows().filter(|run| run.room() == Some(room) && !run.has_ended());
        Ok(open.cloned().collect())
    }

    fn open_runs_of_session(&mut self, agent: &AgentId, session: &SessionId) -> Result<Vec<Run>, Fault> {
        let open = self.tables.runs.rows().filter(|run| run.agent == *agent && !run.has_ended());
        Ok(open.filter(|run| run.session() == Some(session)).cloned().collect())
    }

    fn open_runs_of_owner(&mut self, owner: &UserId) -> Result<Vec<Run>, Fault> {
        let open = self.tables.runs.rows().filter(|run| !run.has_ended());
        Ok(open.filter(|run| run.place.scope() == EventScope::Owner(owner)).cloned().collect())
    }

    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault> {
        Ok(self.tables.runs.rows().any(|run| run.agent == *agent && !run.has_ended()))
    }

    fn spent(&mut self, context: &RunContext, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault> {
        let mut spent = BudgetUsage::default();
        let is_here = |run: &Run| match context {
            RunContext::Room(room) => run.room() == Some(room),
            RunContext::Session(session) => run.session() == Some(session),
        };
        for run in self.tables.runs.rows().filter(|run| is_here(run) && run.agent == *agent) {
            let refused = matches!(run.state, RunState::Ended(RunOutcome::Refused(_)));
            if !refused && run.queued_at >= since {
                spent.turns += 1;
                spent.tokens += run.usage.input_tokens + run.usage.output_tokens;
            }
        }
        Ok(spent)
    }

    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let runs = self.tables.runs.rows().filter(|run| run.room() == Some(room) && run.agent == *agent);
        let runs = runs.filter(|run| run.asked_by.as_ref() == Some(by) && run.queued_at >= since);
        let refused = |run: &&Run| matches!(run.state, RunState::Ended(RunOutcome::Refused(_)));
        Ok(runs.filter(|run| !refused(run)).count() as u64)
    }

    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let ended = |run: &&Run| run.ended_at.is_some_and(|at| at >= since) && run.reply.is_some();
        Ok(self.tables.runs.rows().filter(|run| run.agent == *agent).filter(ended).count() as u64)
    }

    fn open_runs(&mut self) -> Result<Vec<Run>, Fault> {
        Ok(self.tables.runs.rows().filter(|run| !run.has_ended()).cloned().collect())
    }

    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault> {
        let here: Vec<&Run> = self.tables.runs.rows().filter(|run| run.room() == Some(room)).collect();
        Ok(here.into_iter().rev().take(limit).cloned().collect())
    }

    fn runs_of_owner(&mut self, owner: &UserId, limit: usize) -> Result<Vec<Run>, Fault> {
        let own = self.tables.runs.rows().rev().filter(|run| run.place.scope() == EventScope::Owner(owner));
        Ok(own.take(limit).cloned().collect())
    }

    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault> {
        Ok(self.tables.runs.rows().filter(|below| below.parent.as_ref() == Some(run)).cloned().collect())
    }

    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault> {
        let mut runs: Vec<&Run> = self.tables.runs.rows().filter(|run| run.agent == *agent).rev().collect();
        runs.sort_by_key(|run| (run.ended_at.is_some(), Reverse(run.ended_at)));
        Ok(runs.into_iter().take(limit).cloned().collect())
    }

    fn plan(&mut self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault> {
        Ok(self.tables.plans.get(&(room.clone(), agent.clone())).cloned())
    }

    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault> {
        Ok(self.tables.plans.values().filter(|plan| plan.room == *room).cloned().collect())
    }
}

impl Tables {
    pub fn apply_runs(&mut self, change: &RunChange) {
        match change {
            RunChange::PutRun(run) => self.runs.put(run.id.clone(), run.as_ref().clone()),
            RunChange::PutPlan(plan) => {
                let key = (plan.room.clone(), plan.agent.clone());
                self.plans.insert(key, plan.as_ref().clone());
            }
        }
    }

    pub fn remove_runs(&mut self, matches: impl Fn(&Run) -> bool) {
        let runs = self.runs.rows().filter(|run| matches(run));
        for run in runs.map(|run| run.id.clone()).collect::<Vec<_>>() {
            self.runs.remove(&run);
        }
    }
}
