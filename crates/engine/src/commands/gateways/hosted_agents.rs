//! Agents that a gateway hosts.

use crate::Fault;
use crate::read_view::ReadView;
use parlor_model::{Agent, Gateway};

pub fn hosted_agents(gateway: &Gateway, view: &mut ReadView<'_>) -> Result<Vec<Agent>, Fault> {
    let mut agents = view.store.agents_of(&gateway.owner)?;
    agents.retain(|agent| agent.host.gateway.as_ref() == Some(&gateway.id));
    Ok(agents)
}
