//! Services: models that answer as agents inside the hub, without a gateway.

use crate::{AgentId, ModelAccess, Time};
use serde::{Deserialize, Serialize};

/// Properties of a service agent, in addition to its [`Agent`](crate::Agent).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub agent: AgentId,
    /// Whether the agent answers. An inactive service stays a member of its rooms.
    pub active: bool,
    pub model: ModelAccess,
    /// Name of another model of the same provider, used when the first model does not answer.
    pub fallback: Option<Box<str>>,
    /// System prompt written by an admin.
    pub instructions: Option<Box<str>>,
    /// Maximum tokens of one reply.
    pub most_tokens: Option<u32>,
    pub updated_at: Time,
}
