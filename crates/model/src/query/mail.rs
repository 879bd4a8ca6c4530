//! Queries about mailboxes, routes and subscriptions.

use crate::{Mailbox, Time};
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

/// Checks whether the caller may subscribe to a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayListenToMailbox {
    pub mailbox: Mailbox,
}
