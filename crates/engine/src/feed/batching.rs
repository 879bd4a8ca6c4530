//! Groups of a batch: the messages of a room or path, and the mail of a mailbox, are one item for all their
//! subscribers.

use super::Order;
use super::fanout::FanoutState;
use super::interest::Kinds;
use super::item::{Events, Item, Mail, MailGroup};
use super::topic_subscribers::TopicSubscriber;
use parlor_model::{Delivery, Destination, LoggedEvent, Mailbox, Message};
use std::collections::HashMap;
use std::sync::Arc;

/// Messages of a batch: the fan-out sends those of one room or path to each subscriber as one item.
#[derive(Default)]
pub struct MessageBatches {
    by_destination: HashMap<Destination, Vec<LoggedEvent>>,
    /// The same messages for subscribers with a total order across rooms and paths: only adjacent messages of one room
    /// or path are joined.
    in_order: Vec<(Destination, Vec<LoggedEvent>)>,
}

impl MessageBatches {
    pub fn add(&mut self, state: &FanoutState, destination: &Destination, logged_event: &LoggedEvent) {
        let in_order = match destination {
            // Most paths are addresses of mail, and only few of them have subscribers.
            Destination::Path(path) if !state.paths.has_subscribers(path) => return,
            _ => state.rooms.has_log_order() || state.paths.has_log_order(),
        };
        if in_order {
            match self.in_order.last_mut().filter(|(last, _)| last == destination) {
                Some((_, events)) => events.push(logged_event.clone()),
                None => self.in_order.push((destination.clone(), vec![logged_event.clone()])),
            }
        }
        self.by_destination.entry(destination.clone()).or_default().push(logged_event.clone());
    }

    pub fn flush(&mut self, state: &FanoutState) {
        for (destination, events) in self.by_destination.drain() {
            publish(state, &destination, events, Order::PerRoom);
        }
        for (destination, events) in self.in_order.drain(..) {
            publish(state, &destination, events, Order::Log);
        }
    }
}

fn publish(state: &FanoutState, destination: &Destination, events: Vec<LoggedEvent>, order: Order) {
    let (mut events, mut group) = (Some(events), None);
    let push = |subscriber: &TopicSubscriber| {
        if subscriber.order != order || !subscriber.kinds.includes(Kinds::MESSAGES) {
            return;
        }
        let group: &Arc<Events> = group.get_or_insert_with(|| {
            let root = destination.room().and_then(|room| state.roots.of(room));
            Events::of(events.take().unwrap_or_default().into(), root)
        });
        subscriber.outbox.push_item(subscriber.codec, Item::Events(group.clone()));
    };
    match destination {
        Destination::Room(room) => state.rooms.each(room, push),
        Destination::Path(path) => state.paths.each(path, push),
    }
}

/// New mail of a batch: each mailbox with subscribers gets it as one item, or as several if it is long.
#[derive(Default)]
pub struct MailBatch {
    groups: Vec<(Mailbox, Vec<Mail>, usize)>,
    index: HashMap<Mailbox, usize>,
}

/// Weight from which a group of mail is published before the batch ends.
const MAIL_BATCH_BYTES: usize = 64 * 1024;

impl MailBatch {
    pub fn add(&mut self, state: &FanoutState, message: &Arc<Message>, deliveries: &Arc<[Delivery]>) {
        for (number, delivery) in deliveries.iter().enumerate() {
            if !state.mailboxes.has_subscribers(&delivery.mailbox) {
                continue;
            }
            let place = match self.index.get(&delivery.mailbox) {
                Some(place) => *place,
                None => {
                    self.index.insert(delivery.mailbox.clone(), self.groups.len());
                    self.groups.push((delivery.mailbox.clone(), Vec::new(), 0));
                    self.groups.len() - 1
                }
            };
            let (mailbox, mail, weight) = &mut self.groups[place];
            let copy = Mail::new(message, deliveries, number);
            *weight += copy.weight();
            mail.push(copy);
            if *weight >= MAIL_BATCH_BYTES {
                *weight = 0;
                publish_mail(state, mailbox, std::mem::take(mail));
            }
        }
    }

    pub fn flush(&mut self, state: &FanoutState) {
        self.index.clear();
        for (mailbox, mail, _) in self.groups.drain(..) {
            publish_mail(state, &mailbox, mail);
        }
    }
}

fn publish_mail(state: &FanoutState, mailbox: &Mailbox, mail: Vec<Mail>) {
    if mail.is_empty() {
        return;
    }
    let group = MailGroup::of(mail.into());
    state.mailboxes.each(mailbox, |subscriber| {
        subscriber.outbox.push_item(subscriber.codec, Item::Mail(group.clone()));
    });
}
