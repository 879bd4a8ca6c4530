//! Who has nothing to do.

use super::Scheduler;
use parlor_model::{AgentId, AgentStatus};

impl Scheduler {
    /// Whether an agent is there, does nothing, and nothing waits for it.
    pub fn is_idle(&self, agent: &AgentId) -> bool {
        let free = self.seats.get(agent).is_some_and(|seat| seat.status == AgentStatus::Online);
        free && !self.runs_of.contains_key(agent) && !self.queued.contains_key(agent)
    }
}
