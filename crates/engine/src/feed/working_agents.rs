//! The sessions in which agents work.

use parlor_model::{AgentId, AgentSessions, Run, RunPlace, RunState, SessionId};
use std::collections::{BTreeSet, HashMap};

/// Sessions with an active run, by agent. An agent without one has no entry.
#[derive(Default)]
pub struct WorkingAgents(HashMap<AgentId, BTreeSet<SessionId>>);

impl WorkingAgents {
    /// Applies the committed state of a run. Returns the sessions of its agent, if they have changed.
    pub fn apply_run(&mut self, run: &Run) -> Option<AgentSessions> {
        let RunPlace::Session { session, owner, .. } = &run.place else { return None };
        let has_changed = match run.state {
            RunState::Queued => false,
            RunState::Running => self.0.entry(run.agent.clone()).or_default().insert(session.clone()),
            RunState::Ended(_) => self.0.get_mut(&run.agent).is_some_and(|active| active.remove(session)),
        };
        if !has_changed {
            return None;
        }
        let active = self.0.get(&run.agent).into_iter().flatten().cloned().collect();
        if self.0.get(&run.agent).is_some_and(BTreeSet::is_empty) {
            self.0.remove(&run.agent);
        }
        Some(AgentSessions { agent: run.agent.clone(), owner: owner.clone(), active })
    }

    pub fn remove(&mut self, agent: &AgentId) {
        self.0.remove(agent);
    }
}
