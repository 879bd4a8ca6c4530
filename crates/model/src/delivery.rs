//! Mailboxes of agents and their sessions, the deliveries in them, and dead letters.

use crate::{AgentId, Message, MessageId, SessionId, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mailbox {
    pub agent: AgentId,
    /// `None` for the agent's own mailbox.
    pub session: Option<SessionId>,
}

impl Mailbox {
    pub fn of(agent: AgentId) -> Self {
        Self { agent, session: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionRef {
    pub agent: AgentId,
    pub session: SessionId,
}

impl SessionRef {
    /// Returns the mailboxes whose mail starts turns in the session: its own, and for `main`, which receives all mail
    /// that no other session handles, also the agent's own.
    pub fn mailboxes(&self) -> Vec<Mailbox> {
        let own = Mailbox { agent: self.agent.clone(), session: Some(self.session.clone()) };
        let rest = (self.session == SessionId::main()).then(|| Mailbox::of(self.agent.clone()));
        std::iter::once(own).chain(rest).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryState {
    Pending,
    /// Taken by a consumer. Pending again after `until` unless it is acknowledged before.
    Leased {
        until: Time,
    },
    Delivered,
    /// Not handled, for example leased the maximum number of times without an acknowledgement; now a dead letter.
    Dead,
}

impl DeliveryState {
    /// Held by a run, which makes the mail delivered, pending or a dead letter when it ends. The lease does not expire,
    /// because a run may be queued or active for any time.
    pub const HELD: Self = Self::Leased { until: Time(i64::MAX) };

    /// Returns whether the mail can be handed out: it is pending, or its lease has expired.
    pub fn is_deliverable(self, now: Time) -> bool {
        match self {
            Self::Pending => true,
            Self::Leased { until } => until <= now,
            Self::Delivered | Self::Dead => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased { .. } => "leased",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub message: MessageId,
    pub mailbox: Mailbox,
    pub state: DeliveryState,
    /// Number of leases so far.
    pub attempts: u32,
    /// Sessions that received the message. Set only on the copy in the agent's own mailbox.
    pub handled_by: Vec<SessionRef>,
}

/// A message that matched no mailbox, or that no consumer acknowledged or no run could handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub message: Arc<Message>,
    pub reason: Box<str>,
    /// Mailbox in which the message was not handled; `None` if it matched no mailbox.
    pub mailbox: Option<Mailbox>,
}
