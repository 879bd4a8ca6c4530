//! Agent cards: agents with their owner's name and, for the owner, their gateway.

use crate::Fault;
use crate::ports::Snapshot;
use parlor_model::query::AgentCard;
use parlor_model::{Agent, UserId};

/// The card of an agent as `viewer` sees it.
pub fn card(agent: Agent, viewer: &UserId, store: &mut dyn Snapshot) -> Result<AgentCard, Fault> {
    let owner_name = store.user(&agent.owner)?.map(|owner| owner.display_name).unwrap_or_default();
    if agent.owner != *viewer {
        return Ok(AgentCard { agent: agent.seen_by_others(), owner_name, gateway: None });
    }
    let gateway = match &agent.host.gateway {
        Some(gateway) => store.gateway(gateway)?,
        None => None,
    };
    Ok(AgentCard { gateway, agent, owner_name })
}
