//! Rewinds of rooms for offline agents: they are sent when the agent comes online, so that it drops the
//! deleted messages from its context.

use super::Scheduler;
use parlor_model::{AgentId, MessageId, RoomId};

/// Maximum number of pending rewinds per agent; further ones are dropped.
const MAX_PENDING_REWINDS: usize = 64;

impl Scheduler {
    /// Queues a rewind for an offline agent.
    pub fn queue_rewind(&mut self, agent: &AgentId, room: &RoomId, message: &MessageId) {
        let rewinds = self.pending_rewinds.entry(agent.clone()).or_default();
        // When full, later rewinds are dropped: the first one goes back furthest in the agent's context.
        if rewinds.len() < MAX_PENDING_REWINDS {
            rewinds.push((room.clone(), message.clone()));
        }
    }

    /// Takes the pending rewinds of an agent that came online, oldest first.
    pub fn take_pending_rewinds(&mut self, agent: &AgentId) -> Vec<(RoomId, MessageId)> {
        self.pending_rewinds.remove(agent).unwrap_or_default()
    }

    /// Drops the pending rewinds of a room: the room was deleted, or `agent` is no longer a member of it.
    pub(super) fn drop_pending_rewinds(&mut self, room: &RoomId, agent: Option<&AgentId>) {
        self.pending_rewinds.retain(|other, rewinds| {
            if agent.is_none_or(|agent| agent == other) {
                rewinds.retain(|(at, _)| at != room);
            }
            !rewinds.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent, room, scheduler_with};
    use super::*;

    #[test]
    fn rewinds_for_an_offline_agent_are_returned_in_order_and_once() {
        let (mut scheduler, _) = scheduler_with(None, &[]);
        for (at, message) in [("a", "1"), ("b", "2"), ("a", "3")] {
            scheduler.queue_rewind(&agent(), &room(at), &MessageId::stored(message));
        }
        scheduler.drop_pending_rewinds(&room("b"), Some(&agent()));
        let rewound: Vec<String> = scheduler
            .take_pending_rewinds(&agent())
            .into_iter()
            .map(|(_, message)| message.to_string())
            .collect();
        assert_eq!(rewound, ["1", "3"]);
        assert_eq!(scheduler.take_pending_rewinds(&agent()), []);
    }
}
