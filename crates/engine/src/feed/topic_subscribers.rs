//! Index from topics (rooms, paths or mailboxes) to the subscribed connections, and back for disconnects.

use super::{Codec, Kinds, Order, Outbox, Subscriber, SubscriberId};
use parlor_model::UserId;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// A connection's entry in the list of a topic: everything that is needed to queue an item.
pub struct TopicSubscriber {
    pub id: SubscriberId,
    pub user: UserId,
    pub outbox: Arc<Outbox>,
    pub codec: Codec,
    pub kinds: Kinds,
    pub order: Order,
}

impl TopicSubscriber {
    /// Entry of a subscriber with its own kinds.
    pub fn of(subscriber: &Subscriber) -> Self {
        Self {
            id: subscriber.id,
            user: subscriber.user.clone(),
            outbox: subscriber.outbox.clone(),
            codec: subscriber.codec,
            kinds: subscriber.kinds,
            order: subscriber.order,
        }
    }
}

pub struct TopicSubscribers<Topic> {
    /// A list, because publishing is far more frequent than subscribing and unsubscribing.
    by_topic: HashMap<Topic, Vec<TopicSubscriber>>,
    topics: HashMap<SubscriberId, HashSet<Topic>>,
    /// Number of entries in the lists with [`Order::Log`].
    in_log_order: usize,
}

impl<Topic> Default for TopicSubscribers<Topic> {
    fn default() -> Self {
        Self { by_topic: HashMap::new(), topics: HashMap::new(), in_log_order: 0 }
    }
}

impl<Topic: Clone + Eq + Hash> TopicSubscribers<Topic> {
    /// Adds a subscriber, or replaces the kinds with which it is subscribed.
    pub fn add(&mut self, topic: Topic, subscriber: TopicSubscriber) {
        if self.contains(&topic, subscriber.id) {
            let subscribers = self.by_topic.get_mut(&topic).map(Vec::as_mut_slice).unwrap_or_default();
            if let Some(known) = subscribers.iter_mut().find(|known| known.id == subscriber.id) {
                known.kinds = subscriber.kinds;
            }
            return;
        }
        if self.topics.entry(subscriber.id).or_default().insert(topic.clone()) {
            self.in_log_order += usize::from(subscriber.order == Order::Log);
            self.by_topic.entry(topic).or_default().push(subscriber);
        }
    }

    pub fn contains(&self, topic: &Topic, id: SubscriberId) -> bool {
        self.topics.get(&id).is_some_and(|topics| topics.contains(topic))
    }

    pub fn has_subscribers(&self, topic: &Topic) -> bool {
        self.by_topic.contains_key(topic)
    }

    /// Whether any subscriber receives the events of all its topics in the order of the log.
    pub fn has_log_order(&self) -> bool {
        self.in_log_order > 0
    }

    pub fn each(&self, topic: &Topic, mut publish: impl FnMut(&TopicSubscriber)) {
        for subscriber in self.by_topic.get(topic).map(Vec::as_slice).unwrap_or_default() {
            publish(subscriber);
        }
    }

    pub fn any(&self, topic: &Topic, matches: impl Fn(&TopicSubscriber) -> bool) -> bool {
        self.by_topic.get(topic).is_some_and(|subscribers| subscribers.iter().any(matches))
    }

    pub fn remove(&mut self, topic: &Topic, id: SubscriberId) {
        if let Some(topics) = self.topics.get_mut(&id) {
            topics.remove(topic);
            if topics.is_empty() {
                self.topics.remove(&id);
            }
        }
        self.remove_from_topic(topic, id);
    }

    pub fn remove_everywhere(&mut self, id: SubscriberId) {
        for topic in self.topics.remove(&id).unwrap_or_default() {
            self.remove_from_topic(&topic, id);
        }
    }

    /// Removes all subscribers of a topic and returns their ids.
    pub fn clear(&mut self, topic: &Topic) -> HashSet<SubscriberId> {
        let subscribers = self.by_topic.remove(topic).unwrap_or_default();
        let ids: HashSet<SubscriberId> = subscribers.iter().map(|subscriber| subscriber.id).collect();
        self.in_log_order -= subscribers.iter().filter(|subscriber| subscriber.order == Order::Log).count();
        for id in &ids {
            self.remove(topic, *id);
        }
        ids
    }

    pub fn clear_where(&mut self, matches: impl Fn(&Topic) -> bool) {
        let topics: Vec<Topic> = self.by_topic.keys().filter(|topic| matches(topic)).cloned().collect();
        for topic in topics {
            self.clear(&topic);
        }
    }

    fn remove_from_topic(&mut self, topic: &Topic, id: SubscriberId) {
        if let Some(subscribers) = self.by_topic.get_mut(topic) {
            if let Some(index) = subscribers.iter().position(|subscriber| subscriber.id == id) {
                let removed = subscribers.swap_remove(index);
                self.in_log_order -= usize::from(removed.order == Order::Log);
            }
            if subscribers.is_empty() {
                self.by_topic.remove(topic);
            }
        }
    }
}
