//! Queries about the conversation logs of sessions, and their answers. Only the owner of an agent may read them.

use crate::{AgentId, ConversationEntry, EntryKind, SessionId, Time};
use serde::{Deserialize, Serialize};

/// Entries of a session's conversation log, oldest first: those after a position, or the newest ones before one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListConversation {
    pub agent: AgentId,
    pub session: SessionId,
    pub page: EntryPage,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryPage {
    /// Entries with a higher number, beginning with the lowest.
    After(u64),
    /// Entries with a lower number, or all entries, beginning with the highest. The answer is still oldest first.
    Before(Option<u64>),
}

/// Entries of the conversation logs of the caller's agents whose text matches, oldest first in each session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchConversations {
    /// Regular expression that ignores case. An invalid expression is searched for as it is.
    pub pattern: Box<str>,
    pub filter: EntryFilter,
    pub limit: usize,
}

/// Condition on entries. A field that is `None` admits all entries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EntryFilter {
    /// One agent.
    pub agent: Option<AgentId>,
    /// Beginning of the ids of agents.
    pub agent_prefix: Option<Box<str>>,
    pub session: Option<SessionId>,
    /// `user`, `assistant` or `system`.
    pub role: Option<Box<str>>,
    pub kind: Option<EntryKind>,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

impl EntryFilter {
    pub fn admits(&self, entry: &ConversationEntry) -> bool {
        let Self { agent, agent_prefix, session, role, kind, from, to } = self;
        agent.as_ref().is_none_or(|agent| *agent == entry.agent)
            && agent_prefix.as_ref().is_none_or(|prefix| entry.agent.as_str().starts_with(&**prefix))
            && session.as_ref().is_none_or(|session| *session == entry.session)
            && role.as_ref().is_none_or(|role| **role == *entry.kind.role())
            && kind.is_none_or(|kind| kind == entry.kind)
            && from.is_none_or(|from| entry.at >= from)
            && to.is_none_or(|to| entry.at <= to)
    }
}
