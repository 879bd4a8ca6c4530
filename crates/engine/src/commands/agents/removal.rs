//! Removes agents, with their memberships and their open approvals.

use crate::Fault;
use crate::changes::AgentChange;
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::commands::rooms::leave_all::Membership;
use crate::commands::rooms::leave_all::leave_all;
use crate::effects::EffectsBuilder;
use crate::ports::OpenApprovalsOf;
use crate::read_view::ReadView;
use crate::routing_index::RouteChange;
use parlor_model::{Agent, Approval, Event, EventAudience, MemberId, Room};

/// Memberships and open approvals that end when users or agents are removed.
#[derive(Debug, Clone, Default)]
pub struct Departure {
    pub memberships: Vec<Membership>,
    pub open_approvals: Vec<Approval>,
}

impl Departure {
    pub fn of_agents(agents: &[Agent], view: &mut ReadView<'_>) -> Result<Self, Fault> {
        let mut departure = Self::default();
        for agent in agents {
            departure.add_agent(agent, view)?;
        }
        Ok(departure)
    }

    /// Adds the memberships and the open approvals of an agent.
    pub fn add_agent(&mut self, agent: &Agent, view: &mut ReadView<'_>) -> Result<(), Fault> {
        self.open_approvals.extend(view.store.open_approvals(OpenApprovalsOf::Agent(&agent.id))?);
        self.add_member(&MemberId::Agent(agent.id.clone()), view)
    }

    /// Adds the memberships of a user or agent.
    pub fn add_member(&mut self, member: &MemberId, view: &mut ReadView<'_>) -> Result<(), Fault> {
        for member in view.store.memberships(member)? {
            let Some(room) = view.room(&member.room)? else { continue };
            // A user's agents are often in the same rooms: the members of a room are loaded once.
            let same = self.memberships.iter().find(|other| other.room.id == room.id);
            let everyone = match same {
                Some(other) => other.everyone.clone(),
                None => view.store.members(&room.id, usize::MAX, 0)?.into(),
            };
            self.memberships.push(Membership { room: Room::clone(&room), member, everyone });
        }
        Ok(())
    }
}

/// Removes agents. Ends with the audit entries of their withdrawn approvals.
pub fn remove_agents(agents: &[Agent], departure: &Departure, effects: &mut EffectsBuilder<'_>) {
    let withdrawn = withdraw(&departure.open_approvals, effects);
    leave_all(&departure.memberships, effects);
    for agent in agents {
        remove_agent(agent, effects);
    }
    audit_withdrawn(&withdrawn, effects);
}

/// Removes an agent that has left its rooms.
pub fn remove_agent(agent: &Agent, effects: &mut EffectsBuilder<'_>) {
    effects.change(AgentChange::RemoveAgent(agent.id.clone()));
    effects.routes.push(RouteChange::RemoveAgent(agent.id.clone()));
    publish_removal(agent, effects);
}

/// Publishes the removal of an agent. Its rooms are notified by the removal of the member.
pub fn publish_removal(agent: &Agent, effects: &mut EffectsBuilder<'_>) {
    let audience = EventAudience::of(agent, []).into();
    effects.publish(Event::AgentRemoved { agent: agent.id.clone(), audience });
}
