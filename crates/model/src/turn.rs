//! Decisions about automatic turns: why messages of a session's mailbox started a run, or did not.

use crate::{AgentId, MessageId, RunId, SessionId, Time};
use serde::{Deserialize, Serialize};

/// A stored decision about a batch of messages in the mailbox of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDecision {
    /// Number of the decision; later decisions have higher numbers.
    pub number: u64,
    pub decision: NewTurnDecision,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTurnDecision {
    pub at: Time,
    pub agent: AgentId,
    pub session: SessionId,
    pub kind: TurnDecisionKind,
    /// Reason in plain English, such as the failure of a run.
    pub reason: Option<Box<str>>,
    pub run: Option<RunId>,
    /// Number of runs that these messages have had, including `run`; 0 before the first one.
    pub attempt: u32,
    /// Oldest first. Messages that were deleted since stay in the list.
    pub messages: Vec<MessageId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TurnDecisionKind {
    /// No message arrived within the debounce time, or the batch was full.
    Debounced,
    /// Triage decided that the batch starts a run, or it failed within the budget.
    TriagedYes,
    /// Triage decided that the batch starts no run. Its messages are acknowledged.
    TriagedNo,
    /// Triage failed and the budget is used up. The messages stay pending.
    Held,
    /// A user started a turn without triage.
    Triggered,
    /// A run was queued and holds the messages.
    Run,
    /// The run completed; its messages are acknowledged.
    Completed,
    /// A user stopped the run; its messages are acknowledged.
    Cancelled,
    /// The run failed or was interrupted; its messages are pending again after a delay.
    Retried,
    /// The messages became dead letters.
    DeadLettered,
    /// Another run of the agent answers the messages, so they are acknowledged.
    Answered,
}

impl TurnDecisionKind {
    pub const ALL: [Self; 11] = [
        Self::Debounced,
        Self::TriagedYes,
        Self::TriagedNo,
        Self::Held,
        Self::Triggered,
        Self::Run,
        Self::Completed,
        Self::Cancelled,
        Self::Retried,
        Self::DeadLettered,
        Self::Answered,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debounced => "debounced",
            Self::TriagedYes => "triaged_yes",
            Self::TriagedNo => "triaged_no",
            Self::Held => "held",
            Self::Triggered => "triggered",
            Self::Run => "run",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Retried => "retried",
            Self::DeadLettered => "dead_lettered",
            Self::Answered => "answered",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Selects decisions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPage {
    pub limit: usize,
    /// Only decisions with a lower number.
    pub before: Option<u64>,
    pub session: Option<SessionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_each_kind_is_parsed_back() {
        for kind in TurnDecisionKind::ALL {
            assert_eq!(TurnDecisionKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(TurnDecisionKind::parse("other"), None);
    }
}
