//! Rewinds of rooms for offline agents: they are sent when the agent comes online, so that it drops the
//! deleted messages from its context.

use super::super::host::HostCommand;
use super::Scheduler;
use parlor_model::{AgentId, MessageId, RoomId};

/// Maximum number of pending rewinds per agent; further ones are dropped.
const MAX_PENDING_REWINDS: usize = 64;

impl Scheduler {
    /// Makes an agent drop the messages of a room from `message` on: now, or when it comes online.
    pub fn rewind(&mut self, agent: &AgentId, room: &RoomId, message: &MessageId) {
        if let Some(online) = self.online_agents.get(agent) {
            let (agent, room, message) = (agent.clone(), room.clone(), message.clone());
            self.commands.push((online.connection, HostCommand::Rewind { agent, room, message }));
            return;
        }
        let rewinds = self.pending_rewinds.entry(agent.clone()).or_default();
        // When full, later rewinds are dropped: the first one goes back furthest in the agent's context.
        if rewinds.len() < MAX_PENDING_REWINDS {
            rewinds.push((room.clone(), message.clone()));
        }
    }

    /// Sends the pending rewinds of an agent that came online, oldest first.
    pub fn resend_rewinds(&mut self, agent: &AgentId) {
        for (room, message) in self.pending_rewinds.remove(agent).unwrap_or_default() {
            self.rewind(agent, &room, &message);
        }
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
    use std::time::Instant;

    #[test]
    fn rewinds_for_an_offline_agent_are_sent_in_order_and_once() {
        let (mut scheduler, connection) = scheduler_with(None, &[]);
        for (at, message) in [("a", "1"), ("b", "2"), ("a", "3")] {
            scheduler.rewind(&agent(), &room(at), &MessageId::stored(message));
        }
        scheduler.drop_pending_rewinds(&room("b"), Some(&agent()));
        scheduler.agent_online(&agent(), connection, "Coder", Instant::now());
        let mut resent = || -> Vec<String> {
            scheduler.resend_rewinds(&agent());
            let message = |(_, command)| match command {
                HostCommand::Rewind { message, .. } => message.to_string(),
                _ => panic!("not a rewind"),
            };
            scheduler.take_commands().into_iter().map(message).collect()
        };
        assert_eq!(resent(), ["1", "3"]);
        assert_eq!(resent(), [""; 0]);
    }
}
