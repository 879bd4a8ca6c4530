//! Mailboxes: what was put in front of an agent, or one of its sessions.

use crate::{AgentId, Message, MessageId, SessionId, Time};
use std::sync::Arc;

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
    /// Handed out; pending again after this time unless it is acknowledged.
    Leased {
        until: Time,
    },
    Delivered,
    /// Handed out again and again and never acknowledged; it lies with the dead letters.
    Dead,
}

impl DeliveryState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased { .. } => "leased",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub message: MessageId,
    pub mailbox: Mailbox,
    pub state: DeliveryState,
    /// How often it was handed out on a lease.
    pub attempts: u32,
    /// The sessions that took the message; only an agent's own copy names them.
    pub handled_by: Vec<SessionRef>,
}

/// A message that reached nobody, or that nobody acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub message: Arc<Message>,
    pub reason: Box<str>,
    /// The mailbox that gave it up, if it had reached one.
    pub mailbox: Option<Mailbox>,
}
