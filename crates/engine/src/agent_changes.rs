//! Agents whose configuration or mail was changed, for a reader inside the process that mirrors them.
//!
//! Sessions, subscriptions and the state of mail change without events. The writer records here which agents and mailboxes a
//! commit has changed, and the reader reads their state from the store. A reader that starts reads everything first.

use crate::changes::{AgentChange, Change, ConversationChange, MailChange};
use parking_lot::Mutex;
use parlor_model::{AgentId, Mailbox, MessageId, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::Notify;

/// Maximum number of recorded ids. Beyond it the record only states that everything may have changed.
const MAX_IDS: usize = 50_000;

/// Changes since the reader took the last ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentChanges {
    /// Too many changes to list: every agent and every mailbox may have changed.
    pub everything: bool,
    /// Agents that were created, changed or removed, or whose sessions or subscriptions were changed.
    pub agents: BTreeSet<AgentId>,
    /// Mailboxes with new mail.
    pub mail: BTreeSet<Mailbox>,
    /// Sessions with new entries in their conversation log.
    pub conversations: BTreeSet<(AgentId, SessionId)>,
    /// Whether a message became a dead letter because no mailbox received it.
    pub unmatched: bool,
    /// Messages that were handed out for good, or became dead letters, by mailbox.
    pub settled: BTreeMap<Mailbox, BTreeSet<MessageId>>,
}

impl AgentChanges {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn record(&mut self, change: &Change) {
        match change {
            Change::Agent(AgentChange::PutAgent(agent)) => {
                self.agents.insert(agent.id.clone());
            }
            Change::Agent(AgentChange::RemoveAgent(agent)) => {
                self.agents.insert(agent.clone());
            }
            Change::Conversation(ConversationChange::AppendEntry(entry)) => {
                self.conversations.insert((entry.agent.clone(), entry.session.clone()));
            }
            Change::Mail(MailChange::PutSession(session)) => {
                self.agents.insert(session.agent.clone());
            }
            Change::Mail(MailChange::PutSubscription(subscription)) => {
                self.agents.insert(subscription.agent.clone());
            }
            Change::Mail(MailChange::RemoveSubscription(mailbox, _)) => {
                self.agents.insert(mailbox.agent.clone());
            }
            Change::Mail(MailChange::PutDelivery { delivery, .. }) => {
                self.mail.insert(delivery.mailbox.clone());
            }
            Change::Mail(MailChange::MoveMail { to, .. }) => {
                self.mail.insert(to.clone());
            }
            Change::Mail(MailChange::MarkDelivered { mailbox, messages }) => {
                self.settled.entry(mailbox.clone()).or_default().extend(messages.iter().cloned());
            }
            Change::Mail(MailChange::DeadLetter { .. }) => self.unmatched = true,
            Change::Mail(MailChange::DeadLetterDelivery { mailbox, message, .. }) => {
                self.settled.entry(mailbox.clone()).or_default().insert(message.id.clone());
            }
            _ => {}
        }
    }

    fn ids(&self) -> usize {
        let settled: usize = self.settled.values().map(BTreeSet::len).sum();
        self.agents.len() + self.mail.len() + self.conversations.len() + settled
    }

    fn add(&mut self, other: Self) {
        self.everything |= other.everything;
        self.unmatched |= other.unmatched;
        self.agents.extend(other.agents);
        self.mail.extend(other.mail);
        self.conversations.extend(other.conversations);
        for (mailbox, messages) in other.settled {
            self.settled.entry(mailbox).or_default().extend(messages);
        }
        if self.everything || self.ids() > MAX_IDS {
            *self = Self { everything: true, ..Self::default() };
        }
    }
}

/// Changes that the reader has not taken yet. Without a reader nothing is recorded.
#[derive(Debug, Default)]
pub struct AgentChangeLog {
    changes: Mutex<Option<AgentChanges>>,
    changed: Notify,
}

impl AgentChangeLog {
    /// Begins to record changes. Supports a single reader.
    pub fn follow(&self) {
        self.changes.lock().get_or_insert_default();
    }

    /// Waits for changes and takes them. Cancel-safe.
    pub async fn next(&self) -> AgentChanges {
        loop {
            let changed = self.changed.notified();
            if let Some(changes) = self.changes.lock().as_mut().filter(|changes| !changes.is_empty()) {
                return std::mem::take(changes);
            }
            changed.await;
        }
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.changes.lock().is_some()
    }

    /// Adds the changes of a committed batch.
    pub(crate) fn add(&self, committed: AgentChanges) {
        if committed.is_empty() {
            return;
        }
        if let Some(changes) = self.changes.lock().as_mut() {
            changes.add(committed);
        }
        self.changed.notify_one();
    }
}

/// Records the changes of one command.
pub(crate) fn record(changes: &[Change], into: &mut AgentChanges) {
    changes.iter().for_each(|change| into.record(change));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::{agent, mailbox};

    fn settled(of: &str, message: usize) -> Change {
        let messages = vec![MessageId::stored(format!("m{message}"))];
        MailChange::MarkDelivered { mailbox: mailbox(of), messages }.into()
    }

    #[tokio::test]
    async fn changes_are_merged_until_the_reader_takes_them() {
        let log = AgentChangeLog::default();
        let mut first = AgentChanges::default();
        record(&[AgentChange::PutAgent(agent("coder").into()).into(), settled("coder", 1)], &mut first);
        log.add(first.clone());
        assert!(!log.is_followed());
        log.follow();
        log.add(first);
        let mut second = AgentChanges::default();
        record(&[settled("coder", 2)], &mut second);
        log.add(second);
        let taken = log.next().await;
        assert_eq!(taken.agents.len(), 1);
        assert_eq!(taken.settled[&mailbox("coder")].len(), 2);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, log.next()).await.is_err(), "taken once");
    }

    #[tokio::test]
    async fn too_many_changes_become_one() {
        let log = AgentChangeLog::default();
        log.follow();
        let mut many = AgentChanges::default();
        record(&(0..=MAX_IDS).map(|message| settled("coder", message)).collect::<Vec<_>>(), &mut many);
        log.add(many);
        assert_eq!(log.next().await, AgentChanges { everything: true, ..AgentChanges::default() });
    }
}
