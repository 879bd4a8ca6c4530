//! Queries about turns, and their answers.

use crate::{AgentId, TurnDecision, TurnDecisionKind, TurnPage};
use serde::{Deserialize, Serialize};

/// Decisions about automatic turns of one agent or of all agents of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTurns {
    pub agent: Option<AgentId>,
    pub page: TurnPage,
}

/// Answer of [`ListTurns`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnList {
    /// Newest first.
    pub decisions: Vec<TurnDecision>,
    /// Number of stored decisions of each kind, for the same agents and sessions.
    pub counts: Vec<(TurnDecisionKind, u64)>,
}
