//! Conversation log of a session: prompts, results and errors of its runs, in order.

use crate::{AgentId, Payload, RunId, SessionId, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An entry of a conversation log. An entry never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationEntry {
    pub agent: AgentId,
    pub session: SessionId,
    /// Position in the log of the session; the first entry has 1.
    pub number: u64,
    pub at: Time,
    pub kind: EntryKind,
    pub text: Arc<str>,
    /// Run that the entry belongs to.
    pub run: Option<RunId>,
    /// Further fields, a JSON object.
    pub details: Option<Payload>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EntryKind {
    /// Prompt of a run that a user requested.
    Prompt,
    /// Reply of such a run.
    Result,
    /// Reason why such a run has no complete reply.
    Error,
    /// Prompt of a run for messages of the session's mailbox.
    AutoTurn,
    AutoTurnResult,
    AutoTurnError,
    /// Answer of a user to a question, given after the run that asked had stopped waiting for it.
    LateAnswer,
}

impl EntryKind {
    pub const ALL: [Self; 7] = [
        Self::Prompt,
        Self::Result,
        Self::Error,
        Self::AutoTurn,
        Self::AutoTurnResult,
        Self::AutoTurnError,
        Self::LateAnswer,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Result => "result",
            Self::Error => "error",
            Self::AutoTurn => "auto-turn",
            Self::AutoTurnResult => "auto-turn-result",
            Self::AutoTurnError => "auto-turn-error",
            Self::LateAnswer => "ask-user.response.late",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whose words the text of the entry is.
    pub fn role(self) -> &'static str {
        match self {
            Self::Prompt | Self::AutoTurn | Self::LateAnswer => "user",
            Self::Result | Self::AutoTurnResult => "assistant",
            Self::Error | Self::AutoTurnError => "system",
        }
    }
}
