//! Conversation logs of sessions, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::ConversationChange;
use parlor_engine::ports::ReadConversations;
use parlor_model::query::EntryPage;
use parlor_model::{AgentId, ConversationEntry, SessionId, Time};

impl ReadConversations for TablesView {
    fn conversation(
        &mut self,
        agent: &AgentId,
        session: &SessionId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<ConversationEntry>, Fault> {
        let entries = self.tables.entries_of(agent, session).cloned();
        Ok(match page {
            EntryPage::After(after) => entries.filter(|entry| entry.number > after).take(limit).collect(),
            EntryPage::Before(before) => {
                let older = |entry: &ConversationEntry| before.is_none_or(|before| entry.number < before);
                let older: Vec<_> = entries.filter(older).collect();
                older[older.len().saturating_sub(limit)..].to_vec()
            }
        })
    }
}

impl Tables {
    fn entries_of<'a>(
        &'a self,
        agent: &'a AgentId,
        session: &'a SessionId,
    ) -> impl Iterator<Item = &'a ConversationEntry> {
        self.conversation_entries
            .values()
            .filter(move |entry| entry.agent == *agent && entry.session == *session)
    }

    pub fn apply_conversations(&mut self, change: &ConversationChange) {
        let ConversationChange::AppendEntry(entry) = change;
        let (agent, session) = (entry.agent.clone(), entry.session.clone());
        let last = self.entries_of(&agent, &session).map(|entry| entry.number).max();
        let entry = ConversationEntry { number: last.unwrap_or_default() + 1, ..entry.as_ref().clone() };
        self.conversation_entries.insert((agent, session, entry.number), entry);
    }

    /// Deletes entries before `oldest`, except the last one of each session, so that no number is used twice.
    pub fn trim_conversations(&mut self, oldest: Time) {
        let last: Vec<_> = {
            let mut keys: Vec<_> = self.conversation_entries.keys().cloned().collect();
            keys.reverse();
            keys.dedup_by(|key, kept| key.0 == kept.0 && key.1 == kept.1);
            keys
        };
        self.conversation_entries.retain(|key, entry| entry.at >= oldest || last.contains(key));
    }
}
