//! Mailboxes: what was put in front of an agent, or one of its sessions.

use crate::{AgentId, MessageId, SessionId};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mailbox {
    pub agent: AgentId,
    /// `None` is the agent's own mailbox.
    pub session: Option<SessionId>,
}

impl Mailbox {
    pub fn of(agent: AgentId) -> Self {
        Self { agent, session: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionRef {
    pub agent: AgentId,
    pub session: SessionId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    Pending,
    Delivered,
}

impl DeliveryState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub message: MessageId,
    pub mailbox: Mailbox,
    pub state: DeliveryState,
    /// The sessions that took the message; only an agent's own copy names them.
    pub handled_by: Vec<SessionRef>,
}
