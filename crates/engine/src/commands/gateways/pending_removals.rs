//! Removed agents that a disconnected gateway does not know of yet.

use crate::changes::AgentChange;
use crate::effects::EffectsBuilder;
use parlor_model::{Agent, Gateway};
use std::sync::Arc;

/// Maximum number of removed agents that a disconnected gateway is notified of; beyond that, the oldest
/// entries are dropped.
const MAX_PENDING_REMOVALS: usize = 1000;

/// Notes removed agents at their disconnected gateways, which would otherwise register them again.
pub fn note_removals(agents: &[Agent], gateways: &[Gateway], effects: &mut EffectsBuilder<'_>) {
    for gateway in gateways.iter().filter(|gateway| gateway.disconnected_at.is_some()) {
        let hosted = agents.iter().filter(|agent| agent.host.gateway.as_ref() == Some(&gateway.id));
        let mut pending_removals = gateway.pending_removals.clone();
        pending_removals
            .extend(hosted.map(|agent| agent.id.clone()).filter(|id| !gateway.pending_removals.contains(id)));
        if pending_removals.len() > gateway.pending_removals.len() {
            pending_removals.drain(..pending_removals.len().saturating_sub(MAX_PENDING_REMOVALS));
            let gateway = Gateway { pending_removals, ..gateway.clone() };
            effects.change(AgentChange::PutGateway(Arc::new(gateway)));
        }
    }
}
