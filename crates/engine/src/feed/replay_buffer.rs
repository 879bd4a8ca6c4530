//! Replay buffer: the newest events visible to users, for reconnecting clients.

use super::Egress;
use super::batching::EncodedByProtocol;
use crate::Limits;
use bytes::Bytes;
use parlor_model::{Epoch, Event, LoggedEvent, MessageId, Reaction, Seq};
use std::collections::VecDeque;
use std::sync::Arc;

pub struct ReplayBuffer {
    /// In log order. Events that only concern mailboxes are excluded.
    events: VecDeque<ReplayEvent>,
    /// Low-water mark: oldest `Seq` from which the buffer is complete.
    floor: Seq,
    /// Bytes of text in the buffer.
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
}

impl ReplayBuffer {
    pub fn new(published_through: Seq, limits: &Limits) -> Self {
        Self {
            events: VecDeque::new(),
            floor: published_through.next(),
            bytes: 0,
            max_events: limits.recent_events,
            max_bytes: limits.recent_bytes,
        }
    }

    /// Whether the buffer has all events after `since`.
    pub fn reaches(&self, since: Seq) -> bool {
        since.next() >= self.floor
    }

    /// The events after `since`.
    pub fn after(&mut self, since: Seq) -> impl Iterator<Item = &mut ReplayEvent> {
        let first = self.events.partition_point(|kept| kept.logged_event.seq <= since);
        self.events.range_mut(first..)
    }

    /// Adds a published event. The content of a deleted message is removed from earlier events.
    pub fn apply_event(&mut self, logged_event: &LoggedEvent) {
        if let Event::MessageDeleted { message, .. } = &logged_event.event {
            self.replace_with_tombstone(message);
        }
        if logged_event.event.room().is_some() || logged_event.event.audience().is_some() {
            self.bytes += length(&logged_event.event);
            self.events.push_back(ReplayEvent::new(logged_event.clone()));
        }
    }

    /// Drops the oldest events beyond the limits.
    pub fn truncate(&mut self) {
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= length(&oldest.logged_event.event);
            self.floor = oldest.logged_event.seq.next();
        }
    }

    /// Replaces a deleted message in the replay buffer by a tombstone, so that a resume does not replay it.
    fn replace_with_tombstone(&mut self, deleted: &MessageId) {
        let mut removed_bytes = 0;
        for kept in &mut self.events {
            let about = match &kept.logged_event.event {
                Event::MessagePosted { message, .. } | Event::MessageEdited(message) => &message.id,
                Event::ReactionsChanged { message, .. } => message,
                _ => continue,
            };
            if about == deleted {
                removed_bytes += length(&kept.logged_event.event);
                kept.replace_with_tombstone();
            }
        }
        self.bytes -= removed_bytes;
    }

    #[cfg(test)]
    pub fn contents(&self) -> (Vec<u64>, usize, Seq) {
        (self.events.iter().map(|kept| kept.logged_event.seq.0).collect(), self.bytes, self.floor)
    }
}

/// Bytes that the content of an event occupies in the replay buffer.
fn length(event: &Event) -> usize {
    match event {
        Event::MessagePosted { message, .. } | Event::MessageEdited(message) => message.length(),
        Event::ReactionsChanged { reactions, .. } => reactions.iter().map(Reaction::length).sum(),
        Event::ApprovalAsked(approval) | Event::ApprovalDecided(approval) => approval.length(),
        Event::PlanChanged(plan) => plan.length(),
        // Counted twice: the changed agent contains the user ids of its audience again.
        event => event.audience().map_or(0, |audience| 2 * audience.length()),
    }
}

/// An event in the replay buffer, with its encoded frames: many clients may reconnect at once, all under the
/// lock of the fan-out.
pub struct ReplayEvent {
    pub logged_event: LoggedEvent,
    encoded: EncodedByProtocol,
}

impl ReplayEvent {
    pub fn new(logged_event: LoggedEvent) -> Self {
        Self { logged_event, encoded: EncodedByProtocol::default() }
    }

    pub fn by(&mut self, egress: &Arc<dyn Egress>, epoch: Epoch) -> Option<Bytes> {
        if !egress.is_shared() {
            return egress.event(&self.logged_event, epoch);
        }
        self.encoded.by(egress, |egress| egress.event(&self.logged_event, epoch))
    }

    /// Removes the content and its encoded frames.
    pub fn replace_with_tombstone(&mut self) {
        (self.logged_event.event, self.encoded) = (Event::Tombstone, EncodedByProtocol::default());
    }
}
