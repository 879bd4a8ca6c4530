//! Commands on turns: decisions about batches of mail, and heartbeats.

use crate::{AgentId, MessageId, RunId, SessionId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Applies the decision about a batch of pending messages in the mailbox of a session. Messages that are no longer
/// pending are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideBatch {
    pub agent: AgentId,
    pub session: SessionId,
    /// Oldest first.
    pub messages: Vec<MessageId>,
    pub verdict: BatchVerdict,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchVerdict {
    /// The batch starts a run, for this reason.
    Start { reason: Box<str> },
    /// The batch starts no run, for this reason: its messages are acknowledged.
    Decline { reason: Box<str> },
    /// The batch waits, for this reason: its messages stay pending.
    Hold { reason: Box<str> },
}

/// Result of [`DecideBatch`] and [`TriggerTurn`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchReceipt {
    /// The run that was queued.
    pub run: Option<RunId>,
    /// Number of messages that the run holds.
    pub messages: usize,
    /// Whether messages stay pending because the budget is used up.
    pub is_waiting: bool,
}

/// Starts a turn in a session without triage. Creates the session if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerTurn {
    pub agent: AgentId,
    pub session: SessionId,
    pub input: TurnInput,
}

/// Input of an explicit turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnInput {
    /// Pending messages of the session's mailbox; an empty list selects the oldest pending ones.
    Mail(Vec<MessageId>),
    /// Text that is not stored as a message.
    Prompt(Arc<str>),
}

/// Sends a heartbeat to an agent, unless an earlier one is still pending in its mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendHeartbeat {
    pub agent: AgentId,
    /// Cron expression that the schedule was computed from. The heartbeat is refused if the agent's has changed.
    pub cron: Box<str>,
}

/// Makes messages pending again that a run holds although the run no longer exists, such as a run of a removed room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseBatch {
    pub agent: AgentId,
    pub session: SessionId,
}
