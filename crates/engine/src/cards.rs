//! Agent cards: agents with their owner's name and, for the owner, their gateway; and an agent's rooms as
//! visible to one user.

use crate::Fault;
use crate::ports::Snapshot;
use parlor_model::query::{AgentCard, AgentCards};
use parlor_model::{Agent, AgentId, Member, MemberId, Room, UserId};

pub fn cards(
    which: &AgentCards,
    viewer: &UserId,
    found: Option<&Agent>,
    snapshot: &mut dyn Snapshot,
) -> Result<Vec<AgentCard>, Fault> {
    let agents = match which {
        AgentCards::Own => snapshot.agents_of(viewer)?,
        AgentCards::Shared { limit, offset } => snapshot.agents_shared(viewer, *limit, *offset)?,
        AgentCards::One(_) => found.cloned().into_iter().collect(),
    };
    agents.into_iter().map(|agent| card(agent, viewer, snapshot)).collect()
}

fn card(agent: Agent, viewer: &UserId, snapshot: &mut dyn Snapshot) -> Result<AgentCard, Fault> {
    let owner_name = snapshot.user(&agent.owner)?.map(|owner| owner.display_name).unwrap_or_default();
    if agent.owner != *viewer {
        return Ok(AgentCard { agent: agent.seen_by_others(), owner_name, gateway: None });
    }
    let gateway = match &agent.host.gateway {
        Some(gateway) => snapshot.gateway(gateway)?,
        None => None,
    };
    Ok(AgentCard { gateway, agent, owner_name })
}

pub fn rooms_with(
    agent: &AgentId,
    viewer: &UserId,
    snapshot: &mut dyn Snapshot,
) -> Result<Vec<(Room, Member)>, Fault> {
    let agent = MemberId::Agent(agent.clone());
    let mut rooms = Vec::new();
    for member in snapshot.memberships(&MemberId::User(viewer.clone()))? {
        if snapshot.member(&member.room, &agent)?.is_none() {
            continue;
        }
        if let Some(room) = snapshot.room(&member.room)? {
            rooms.push((room, member));
        }
    }
    Ok(rooms)
}
