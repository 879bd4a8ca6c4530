//! Stores and publishes changes of existing agents.

use crate::Fault;
use crate::HUB;
use crate::changes::AgentChange;
use crate::effects::EffectsBuilder;
use crate::read_view::ReadView;
use parlor_model::{Agent, AgentId, Event, EventAudience, MemberId, RoomId};
use std::sync::Arc;

/// An agent before its change.
pub struct ExistingAgent {
    pub agent: Arc<Agent>,
    /// Rooms of the agent, in which its change is published.
    pub rooms: Vec<RoomId>,
}

impl ExistingAgent {
    pub fn load(agent: Arc<Agent>, view: &mut ReadView<'_>) -> Result<Self, Fault> {
        Ok(Self { rooms: rooms_of(&agent.id, view)?, agent })
    }

    /// Stores and publishes the new state of the agent.
    pub fn replace(&self, new: Agent, effects: &mut EffectsBuilder<'_>) -> Arc<Agent> {
        let new = Arc::new(new);
        effects.change(AgentChange::PutAgent(new.clone()));
        publish_agent(&new, Some(&self.agent), &self.rooms, effects);
        new
    }
}

/// Whether the hub itself hosts the agent.
pub fn is_hosted_by_hub(agent: &Agent) -> bool {
    agent.host.gateway.as_ref().is_some_and(|gateway| gateway.as_str() == HUB)
}

fn rooms_of(id: &AgentId, view: &mut ReadView<'_>) -> Result<Vec<RoomId>, Fault> {
    let memberships = view.store.memberships(&MemberId::Agent(id.clone()))?;
    Ok(memberships.into_iter().map(|member| member.room).collect())
}

/// Publishes a new or changed agent to all users who can see it or could see it before. If only the host's
/// connection time has changed, only the owner is notified: other users get that from presence.
pub fn publish_agent(
    agent: &Arc<Agent>,
    before: Option<&Agent>,
    rooms: &[RoomId],
    effects: &mut EffectsBuilder<'_>,
) {
    let visible_part = |agent: &Agent| {
        let mut visible = agent.seen_by_others();
        (visible.host.seen_at, visible.visibility) = (None, agent.visibility.clone());
        visible
    };
    let audience = match before {
        Some(before) if visible_part(before) == visible_part(agent) => {
            EventAudience::user_and_rooms(&agent.owner, [])
        }
        Some(before) => EventAudience::of(before, rooms.to_vec()).and(EventAudience::of(agent, [])),
        None => EventAudience::of(agent, []),
    };
    effects.publish(Event::AgentChanged { agent: agent.clone(), audience: audience.into() });
}
