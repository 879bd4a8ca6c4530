//! Queries about mailboxes, routes and subscriptions.

use crate::{AgentId, AutoRun, Mailbox, MessageId, Seq, Session, Subscription, Time};
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
    /// Number of newer entries to skip.
    pub offset: usize,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

/// Mailboxes of an agent and its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMailboxes {
    pub agent: AgentId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMailboxes {
    /// Automatic turns of sessions without a setting of their own.
    pub auto_run: Option<AutoRun>,
    /// The agent's own mailbox, then those of its sessions in order of creation.
    pub mailboxes: Vec<MailboxCard>,
}

/// A mailbox with its subscriptions and the numbers of its open messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxCard {
    /// `None` for the agent's own mailbox.
    pub session: Option<Session>,
    pub subscriptions: Vec<Subscription>,
    pub counts: MailCounts,
}

/// Numbers of messages in a mailbox that are not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MailCounts {
    /// Deliverable messages: never leased, or with an expired lease.
    pub pending: usize,
    pub leased: usize,
}

/// Checks whether the caller may subscribe to a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayListenToMailbox {
    pub mailbox: Mailbox,
}
