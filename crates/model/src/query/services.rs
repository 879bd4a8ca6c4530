//! Queries about services, which are models that answer as agents inside the hub.

use crate::{Agent, AgentId, Service};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListServices;

/// Services with their agents, in the order of their creation.
pub type Services = Vec<(Agent, Service)>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetService {
    pub agent: AgentId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundService {
    pub agent: Arc<Agent>,
    pub service: Service,
}
