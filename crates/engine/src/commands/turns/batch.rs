//! Pending mail of a session, sorted into mail for a turn and mail that starts none.

use super::chains::{ChainOfMessage, TalkCounts};
use crate::commands::mail::MAX_DELIVERY_ATTEMPTS;
use crate::ports::Lookup;
use crate::{Fault, Limits};
use parlor_model::{
    Agent, DeliveryState, Destination, Mailbox, Message, MessageId, Run, RunCause, Sender, SessionRef, Time,
};
use std::sync::Arc;

/// Maximum bytes of the messages of one batch. The rest runs next.
const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// A pending copy of a message in one of the mailboxes of a session.
#[derive(Debug, Clone)]
pub struct PendingCopy {
    pub message: Arc<Message>,
    pub mailbox: Mailbox,
    /// Number of earlier attempts.
    pub attempts: u32,
}

/// The pending mail of a batch.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Mail for a turn, oldest first, all with the same number of attempts.
    pub fresh: Vec<PendingCopy>,
    /// Lineages that messages of other agents continue, and the agents that sent messages.
    pub chains: Vec<ChainOfMessage>,
    /// Mail that starts no turn, because another run of the agent answers it or the agent only observes it.
    pub answered: Vec<PendingCopy>,
    /// Mail that a limit excludes, with the reason.
    pub dead: Vec<(PendingCopy, &'static str)>,
}

impl Batch {
    pub fn messages(&self) -> Vec<MessageId> {
        let rest = self.answered.iter().chain(self.dead.iter().map(|(copy, _)| copy));
        self.fresh.iter().chain(rest).map(|copy| copy.message.id.clone()).collect()
    }
}

/// The oldest pending mail of a session, at most `limit` messages.
pub fn oldest_pending(
    session: &SessionRef,
    now: Time,
    limit: usize,
    store: &mut dyn Lookup,
) -> Result<Vec<PendingCopy>, Fault> {
    let mut copies = Vec::new();
    for mailbox in session.mailboxes() {
        let mail = match mailbox.session {
            Some(_) => store.pending(&mailbox, now, limit)?,
            None => store.unhandled(&mailbox, now, limit)?,
        };
        let copy = |(message, delivery): (Arc<Message>, parlor_model::Delivery)| PendingCopy {
            message,
            mailbox: mailbox.clone(),
            attempts: delivery.attempts,
        };
        copies.extend(mail.into_iter().map(copy));
    }
    copies.sort_by_key(|copy| copy.message.seq);
    copies.truncate(limit);
    Ok(copies)
}

/// The named messages that are pending in the mailboxes of a session, in the given order.
pub fn pending_of(
    session: &SessionRef,
    messages: &[MessageId],
    now: Time,
    store: &mut dyn Lookup,
) -> Result<Vec<PendingCopy>, Fault> {
    let mut copies: Vec<PendingCopy> = Vec::new();
    for id in messages {
        for mailbox in session.mailboxes() {
            let Some(delivery) = store.delivery(&mailbox, id)? else { continue };
            let is_own = mailbox.session.is_some() || delivery.handled_by.is_empty();
            if !is_own
                || !delivery.state.is_deliverable(now)
                || copies.iter().any(|copy| copy.message.id == *id)
            {
                continue;
            }
            let Some(message) = store.message(id)? else { continue };
            copies.push(PendingCopy { message, mailbox, attempts: delivery.attempts });
        }
    }
    Ok(copies)
}

/// Sorts pending mail. Mail with another number of attempts than the oldest one is left for the next batch, so that each
/// message has its own attempts.
pub fn sort_mail(
    agent: &Agent,
    copies: Vec<PendingCopy>,
    now: Time,
    limits: &Limits,
    store: &mut dyn Lookup,
) -> Result<Batch, Fault> {
    let (mut batch, mut counts, mut bytes) = (Batch::default(), TalkCounts::default(), 0);
    for copy in copies {
        let same_attempts = batch.fresh.first().is_none_or(|first| first.attempts == copy.attempts);
        if copy.attempts >= MAX_DELIVERY_ATTEMPTS {
            batch.dead.push((copy, "not_acknowledged"));
        } else if is_answered_elsewhere(agent, &copy.message, store)? {
            batch.answered.push(copy);
        } else if same_attempts {
            bytes += copy.message.length();
            if bytes > MAX_BATCH_BYTES && !batch.fresh.is_empty() {
                break;
            }
            match counts.chain_of(agent, &copy.message, now, limits, store)? {
                Ok(chain) => {
                    batch.chains.extend(chain);
                    batch.fresh.push(copy);
                }
                Err(reason) => batch.dead.push((copy, reason)),
            }
        }
    }
    Ok(batch)
}

/// Whether the message starts no turn: a message in a room has caused a run of this agent there, or the agent is only its
/// observer.
fn is_answered_elsewhere(agent: &Agent, message: &Message, store: &mut dyn Lookup) -> Result<bool, Fault> {
    let Destination::Room(_) = &message.destination else { return Ok(false) };
    let is_own = |run: &Run| run.agent == agent.id && matches!(run.cause, RunCause::Message(_));
    if store.runs_of(&message.id)?.iter().any(is_own) {
        return Ok(true);
    }
    let observers = message.relayed.iter().flat_map(|relayed| &relayed.observers);
    Ok(observers.into_iter().any(|observer| *observer == agent.name || **observer == *agent.id.as_str()))
}

/// The agent that sent a message, if an agent did.
pub fn sending_agent(message: &Message) -> Option<&parlor_model::AgentId> {
    match &message.sender {
        Sender::Agent(agent) => Some(agent),
        Sender::User(_) | Sender::Source(_) => None,
    }
}

/// Lease of mail that a run holds.
pub fn held_until() -> Time {
    match DeliveryState::HELD {
        DeliveryState::Leased { until } => until,
        _ => unreachable!("held mail is leased"),
    }
}
