//! Models that answer as agents from within the hub, without a gateway.

use crate::{AgentId, ModelAccess, Time};

/// What there is to say of such an agent besides what there is to say of every agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub agent: AgentId,
    /// Whether it answers; one that does not keeps its place in its rooms.
    pub active: bool,
    pub model: ModelAccess,
    /// Another model of the same server, asked when the first does not answer.
    pub fallback: Option<Box<str>>,
    /// What it is to be, in the words of an admin.
    pub instructions: Option<Box<str>>,
    /// Of one answer.
    pub most_tokens: Option<u32>,
    pub updated_at: Time,
}
