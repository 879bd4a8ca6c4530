//! Who listens to what: from a room or a mailbox to connections, and back when one goes.

use super::{Egress, Outbox, Subscriber, SubscriberId};
use parlor_model::UserId;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// A connection's place in an audience: all that telling it something needs.
pub struct TopicSubscriber {
    pub viewer: SubscriberId,
    pub user: UserId,
    pub egress: Arc<dyn Egress>,
    pub outbox: Arc<Outbox>,
    pub keeps_one_order: bool,
}

impl TopicSubscriber {
    pub fn of(subscriber: &Subscriber) -> Self {
        Self {
            viewer: subscriber.id,
            user: subscriber.user.clone(),
            egress: subscriber.egress.clone(),
            outbox: subscriber.outbox.clone(),
            keeps_one_order: subscriber.egress.is_totally_ordered(),
        }
    }
}

pub struct TopicSubscribers<Topic> {
    /// A list, because telling everyone happens far more often than coming and going.
    seats: HashMap<Topic, Vec<TopicSubscriber>>,
    topics: HashMap<SubscriberId, HashSet<Topic>>,
}

impl<Topic> Default for TopicSubscribers<Topic> {
    fn default() -> Self {
        Self { seats: HashMap::new(), topics: HashMap::new() }
    }
}

impl<Topic: Clone + Eq + Hash> TopicSubscribers<Topic> {
    pub fn add(&mut self, topic: Topic, seat: TopicSubscriber) {
        if self.topics.entry(seat.viewer).or_default().insert(topic.clone()) {
            self.seats.entry(topic).or_default().push(seat);
        }
    }

    pub fn contains(&self, topic: &Topic, viewer: SubscriberId) -> bool {
        self.topics.get(&viewer).is_some_and(|topics| topics.contains(topic))
    }

    pub fn each(&self, topic: &Topic, mut tell: impl FnMut(&TopicSubscriber)) {
        for seat in self.seats.get(topic).map(Vec::as_slice).unwrap_or_default() {
            tell(seat);
        }
    }

    pub fn remove(&mut self, topic: &Topic, viewer: SubscriberId) {
        if let Some(topics) = self.topics.get_mut(&viewer) {
            topics.remove(topic);
            if topics.is_empty() {
                self.topics.remove(&viewer);
            }
        }
        self.stand_up(topic, viewer);
    }

    pub fn remove_everywhere(&mut self, viewer: SubscriberId) {
        for topic in self.topics.remove(&viewer).unwrap_or_default() {
            self.stand_up(&topic, viewer);
        }
    }

    /// Empties a topic and says who was there.
    pub fn clear(&mut self, topic: &Topic) -> HashSet<SubscriberId> {
        let seats = self.seats.remove(topic).unwrap_or_default();
        let viewers: HashSet<SubscriberId> = seats.iter().map(|seat| seat.viewer).collect();
        for viewer in &viewers {
            self.remove(topic, *viewer);
        }
        viewers
    }

    pub fn clear_where(&mut self, meant: impl Fn(&Topic) -> bool) {
        let topics: Vec<Topic> = self.seats.keys().filter(|topic| meant(topic)).cloned().collect();
        for topic in topics {
            self.clear(&topic);
        }
    }

    fn stand_up(&mut self, topic: &Topic, viewer: SubscriberId) {
        if let Some(seats) = self.seats.get_mut(topic) {
            if let Some(index) = seats.iter().position(|seat| seat.viewer == viewer) {
                seats.swap_remove(index);
            }
            if seats.is_empty() {
                self.seats.remove(topic);
            }
        }
    }
}
