//! How the agent of a service is hosted: by the hub itself.

use crate::HUB;
use parlor_model::{AgentHost, GatewayId, Time};

/// The agent kind, with the same name as in gateways.
const KIND: &str = "model";

/// Host of a service's agent that answers with this model.
pub fn hosted_by_hub(model: &str, now: Time) -> AgentHost {
    AgentHost {
        gateway: Some(GatewayId::stored(HUB)),
        kind: KIND.into(),
        capabilities: vec!["rewind".into()],
        model: Some(model.into()),
        seen_at: Some(now),
        ..AgentHost::default()
    }
}
