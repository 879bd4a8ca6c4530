//! Replay buffer: the newest events visible to users, for reconnecting clients.

use super::item::{Events, Item};
use crate::Limits;
use parlor_model::{Event, LoggedEvent, MessageId, Seq};
use std::collections::VecDeque;
use std::sync::Arc;

pub struct ReplayBuffer {
    /// In log order. Events that only concern mailboxes are excluded, as no feed replays them.
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
        let event = &logged_event.event;
        if event.room().is_some() || event.path().is_some() || event.audience().is_some() {
            self.bytes += logged_event.event.length();
            self.events.push_back(ReplayEvent::new(logged_event.clone()));
        }
    }

    /// Drops the oldest events beyond the limits.
    pub fn truncate(&mut self) {
        while self.events.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.logged_event.event.length();
            self.floor = oldest.logged_event.seq.next();
        }
    }

    /// Replaces a deleted message in the replay buffer by a tombstone, so that a resume does not replay it.
    fn replace_with_tombstone(&mut self, deleted: &MessageId) {
        let mut removed_bytes = 0;
        for kept in &mut self.events {
            let about = match &kept.logged_event.event {
                Event::MessagePosted { message, .. }
                | Event::MailResent { message, .. }
                | Event::MessageEdited(message) => &message.id,
                Event::ReactionsChanged { message, .. } => message,
                _ => continue,
            };
            if about == deleted {
                removed_bytes += kept.logged_event.event.length();
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

/// An event in the replay buffer. The first client that resumes over it creates the item that later ones share: many
/// clients may reconnect at once. It is not the item of the live subscribers, whose encodings would stay in memory.
pub struct ReplayEvent {
    pub logged_event: LoggedEvent,
    shared: Option<Arc<Events>>,
}

impl ReplayEvent {
    fn new(logged_event: LoggedEvent) -> Self {
        Self { logged_event, shared: None }
    }

    /// The event as an item, with the current project root of its room.
    pub fn item(&mut self, root: Option<Arc<str>>) -> Item {
        let is_current = |shared: &Arc<Events>| shared.root == root;
        let shared = match self.shared.take().filter(is_current) {
            Some(shared) => shared,
            None => Events::of([self.logged_event.clone()].into(), root),
        };
        Item::Events(self.shared.insert(shared).clone())
    }

    /// Removes the content and its encodings.
    fn replace_with_tombstone(&mut self) {
        (self.logged_event.event, self.shared) = (Event::Tombstone, None);
    }
}
