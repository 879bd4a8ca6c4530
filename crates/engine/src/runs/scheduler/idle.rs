//! Idle check of an agent, used for idle prompts.

use super::Scheduler;
use parlor_model::{AgentId, AgentStatus};

impl Scheduler {
    /// Whether an agent is online and has neither an active nor a queued run.
    pub fn is_idle(&self, agent: &AgentId) -> bool {
        let free = self.online_agents.get(agent).is_some_and(|online| online.status == AgentStatus::Online);
        free && !self.runs_of.contains_key(agent) && !self.queued.contains_key(agent)
    }
}
