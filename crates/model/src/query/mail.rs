//! Queries about mailboxes, routes and subscriptions.

use crate::{AgentId, Mailbox, MessageId, Seq, Time};
use serde::{Deserialize, Serialize};

/// Subscriptions of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSubscriptions {
    pub mailbox: Mailbox,
}

/// Mail of a mailbox in any state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMail {
    pub mailbox: Mailbox,
    pub page: MailPage,
}

/// Mail of a mailbox that is newer than a position, oldest first, and the named messages with their current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListNewMail {
    pub mailbox: Mailbox,
    /// Exclusive lower bound.
    pub after: Seq,
    /// Maximum number of newer messages.
    pub limit: usize,
    /// Messages to read in addition, whatever their position. They come first.
    pub also: Vec<MessageId>,
}

/// Messages of the hub that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDeadLetters {
    pub page: MailPage,
}

/// Page of mail between two times (inclusive), newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailPage {
    pub limit: usize,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

/// Checks whether the caller may subscribe to an agent's mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayListenToMailbox {
    pub agent: AgentId,
}
