//! Commands on services, which are models that answer as agents inside the hub.

use super::ModelChanges;
use crate::{Agent, AgentId, Edit, ModelAccess, Service};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Creates a service together with its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateService {
    pub name: Box<str>,
    pub description: Box<str>,
    pub active: bool,
    pub model: ModelAccess,
    pub fallback: Option<Box<str>>,
    pub instructions: Option<Box<str>>,
    pub most_tokens: Option<u32>,
}

/// A created or changed service with its agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceWithAgent {
    pub agent: Arc<Agent>,
    pub service: Arc<Service>,
}

/// Changes a service and the name or description of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeService {
    pub agent: AgentId,
    pub changes: ServiceChanges,
}

/// Changes to a service. Each field is kept, cleared or set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceChanges {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub active: Option<bool>,
    pub model: ModelChanges,
    pub fallback: Edit<Box<str>>,
    pub instructions: Edit<Box<str>>,
    pub most_tokens: Edit<u32>,
}

/// Removes a service together with its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveService {
    pub agent: AgentId,
}
