//! Agents that were away while something was taken back: they are to forget it when they come.

use super::Scheduler;
use parlor_model::{AgentId, MessageId, RoomId};

/// What is kept for one agent; one that was away for more than these had better begin anew.
const MOST: usize = 64;

impl Scheduler {
    /// An agent that is not there is to forget this when it is.
    pub fn forgets_later(&mut self, agent: &AgentId, room: &RoomId, message: &MessageId) {
        let to_forget = self.pending_rewinds.entry(agent.clone()).or_default();
        // The first goes furthest back of what it can know.
        if to_forget.len() < MOST {
            to_forget.push((room.clone(), message.clone()));
        }
    }

    /// What an agent that comes is to forget, in order; it is given once.
    pub fn take_unforgotten(&mut self, agent: &AgentId) -> Vec<(RoomId, MessageId)> {
        self.pending_rewinds.remove(agent).unwrap_or_default()
    }

    /// The room is gone, or is no longer this agent's.
    pub(super) fn has_nothing_to_forget(&mut self, room: &RoomId, agent: Option<&AgentId>) {
        self.pending_rewinds.retain(|other, to_forget| {
            if agent.is_none_or(|agent| agent == other) {
                to_forget.retain(|(at, _)| at != room);
            }
            !to_forget.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent, desk, room};
    use super::*;

    #[test]
    fn what_was_taken_back_meanwhile_is_told_in_order_and_once() {
        let (mut scheduler, _) = desk(None, &[]);
        for (at, message) in [("a", "1"), ("b", "2"), ("a", "3")] {
            scheduler.forgets_later(&agent(), &room(at), &MessageId::stored(message));
        }
        scheduler.has_nothing_to_forget(&room("b"), Some(&agent()));
        let told: Vec<String> = scheduler
            .take_unforgotten(&agent())
            .into_iter()
            .map(|(_, message)| message.to_string())
            .collect();
        assert_eq!(told, ["1", "3"]);
        assert_eq!(scheduler.take_unforgotten(&agent()), []);
    }
}
