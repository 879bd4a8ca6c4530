//! Stores and publishes changes of existing agents.

use crate::Fault;
use crate::HUB;
use crate::changes::AgentChange;
use crate::commands::rooms::names::{OwnNames, RoomNames};
use crate::effects::EffectsBuilder;
use crate::read_view::ReadView;
use parlor_model::{Agent, Event, EventAudience, MemberId, RoomId};
use std::sync::Arc;

/// An agent before its change.
pub struct ExistingAgent {
    pub agent: Arc<Agent>,
    /// Rooms of the agent, in which its change is published.
    pub rooms: Vec<RoomId>,
    /// Its names in these rooms after the change.
    pub names: RoomNames,
}

impl ExistingAgent {
    /// `new_name` is the name of the agent after the change, if the change names it.
    pub fn load(agent: Arc<Agent>, new_name: Option<&str>, view: &mut ReadView<'_>) -> Result<Self, Fault> {
        let memberships = view.store.memberships(&MemberId::Agent(agent.id.clone()))?;
        let names = match new_name {
            Some(name) => {
                let names = OwnNames { name: name.into(), ..OwnNames::load_agent(&agent, view)? };
                RoomNames::load(&names, &agent.name, &memberships, view)?
            }
            None => RoomNames::default(),
        };
        Ok(Self { rooms: memberships.into_iter().map(|member| member.room).collect(), names, agent })
    }

    /// Stores and publishes the new state of the agent.
    pub fn replace(self, new: Agent, effects: &mut EffectsBuilder<'_>) -> Arc<Agent> {
        let new = Arc::new(new);
        effects.change(AgentChange::PutAgent(new.clone()));
        publish_agent(&new, Some(&self.agent), &self.rooms, effects);
        self.names.apply(effects);
        new
    }
}

/// Whether the hub itself hosts the agent.
pub fn is_hosted_by_hub(agent: &Agent) -> bool {
    agent.host.gateway.as_ref().is_some_and(|gateway| gateway.as_str() == HUB)
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
