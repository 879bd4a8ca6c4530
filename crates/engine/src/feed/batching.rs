//! Batches and caches of encoded frames, so that a frame for many subscribers is encoded once.

use super::fanout::FanoutState;
use super::topic_subscribers::TopicSubscriber;
use super::{Egress, Outbox, SubscriberId};
use bytes::{Bytes, BytesMut};
use parlor_model::{Epoch, LoggedEvent, RoomId};
use std::collections::HashMap;
use std::sync::Arc;

/// Consecutive messages of a batch: those of one room go to each subscriber as one buffer.
#[derive(Default)]
pub struct RoomBatches {
    by_room: HashMap<RoomId, Vec<LoggedEvent>>,
    /// The same messages for subscribers with a total order across rooms: only adjacent messages of one room
    /// are joined.
    in_order: Vec<(RoomId, Vec<LoggedEvent>)>,
}

impl RoomBatches {
    pub fn add(&mut self, logged_event: LoggedEvent, also_in_order: bool) {
        let Some(room) = logged_event.event.room() else { return };
        if also_in_order {
            match self.in_order.last_mut().filter(|(last, _)| last == room) {
                Some((_, events)) => events.push(logged_event.clone()),
                None => self.in_order.push((room.clone(), vec![logged_event.clone()])),
            }
        }
        self.by_room.entry(room.clone()).or_default().push(logged_event);
    }

    pub fn flush(&mut self, state: &FanoutState, epoch: Epoch) {
        for (room, events) in self.by_room.drain() {
            publish(state, epoch, &room, &events, false);
        }
        for (room, events) in self.in_order.drain(..) {
            publish(state, epoch, &room, &events, true);
        }
    }
}

fn publish(state: &FanoutState, epoch: Epoch, room: &RoomId, events: &[LoggedEvent], in_order: bool) {
    let mut encoded = EncodedByProtocol::default();
    let is_skipped = |subscriber: &TopicSubscriber| subscriber.is_totally_ordered != in_order;
    state.rooms.each(room, |subscriber| {
        if is_skipped(subscriber) {
            return;
        }
        let bytes = encoded.by(&subscriber.egress, |egress| {
            let mut frames = events.iter().filter_map(|logged_event| egress.event(logged_event, epoch));
            let first = frames.next()?;
            let Some(second) = frames.next() else { return Some(first) };
            let mut joined = BytesMut::from(&first[..]);
            joined.extend_from_slice(&second);
            frames.for_each(|frame| joined.extend_from_slice(&frame));
            Some(joined.freeze())
        });
        if let Some(bytes) = bytes {
            subscriber.outbox.push_events(bytes, events.len() as u64);
        }
    });
}

/// New mail of a batch: each subscribed connection gets it as one buffer, or as several if it is long.
#[derive(Default)]
pub struct MailBatch(foldhash::HashMap<SubscriberId, (Arc<Outbox>, BytesMut)>);

/// Size in bytes from which a mail buffer is sent before the batch ends.
const MAIL_BATCH_BYTES: usize = 64 * 1024;

impl MailBatch {
    pub fn add(&mut self, subscriber: &TopicSubscriber, frame: Bytes) {
        let (outbox, frames) =
            self.0.entry(subscriber.id).or_insert_with(|| (subscriber.outbox.clone(), BytesMut::new()));
        frames.extend_from_slice(&frame);
        if frames.len() >= MAIL_BATCH_BYTES {
            outbox.push(frames.split().freeze());
        }
    }

    pub fn flush(&mut self) {
        for (_, (outbox, frames)) in self.0.drain() {
            if !frames.is_empty() {
                outbox.push(frames.freeze());
            }
        }
    }
}

/// One event's or signal's frame per protocol, each encoded once. There are few protocols, so a list is the
/// fastest map.
#[derive(Default)]
pub struct EncodedByProtocol(Vec<(Arc<dyn Egress>, Option<Bytes>)>);

impl EncodedByProtocol {
    pub fn by(
        &mut self,
        egress: &Arc<dyn Egress>,
        encode: impl FnOnce(&dyn Egress) -> Option<Bytes>,
    ) -> Option<Bytes> {
        if let Some((_, bytes)) = self.0.iter().find(|(cached, _)| Arc::ptr_eq(cached, egress)) {
            return bytes.clone();
        }
        let bytes = encode(&**egress);
        self.0.push((egress.clone(), bytes.clone()));
        bytes
    }
}
