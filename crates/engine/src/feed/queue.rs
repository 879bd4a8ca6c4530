//! The outbox: send queue of one connection, bounded in weight and items, used by every kind of connection.
//!
//! When the subscriber is too slow, signals are dropped first. At the limit the queue is discarded and the connection
//! is closed with the reason; the client reconnects and resumes from its position. The weight of an item is an
//! estimate of its encoded bytes that is known without encoding it.
//!
//! A streaming reply is queued as a cursor into the shared text, which does not count towards the limits: see
//! `reply_text`.

use super::item::{Entry, Item};
use super::reply_buffer::ReplyOffset;
use super::reply_text::{ReplyPiece, StreamingReply};
use super::{Codec, DisconnectReason};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use parlor_model::{Ordinal, SignalStamp};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Maximum bytes of streaming replies taken by one `take`.
const REPLY_BYTES_PER_DRAIN: usize = 64 * 1024;
/// Frames of the connection itself are encoded already; their codec is never used.
const ENCODED: Codec = Codec::PRIVATE;

#[derive(Debug, Clone, Copy)]
pub struct OutboxLimits {
    /// Maximum weight of the queued items.
    pub bytes: usize,
    /// Maximum number of queued items.
    pub buffers: usize,
}

pub struct Outbox {
    waiting: Mutex<OutboxQueue>,
    /// Wakes the connection's writer.
    filled: Notify,
    /// Wakes tasks that wait for free space or for the end of the connection.
    changed: Notify,
    limits: OutboxLimits,
}

#[derive(Default)]
struct OutboxQueue {
    queue: VecDeque<Queued>,
    weight: usize,
    closed: bool,
    /// Why the hub closed the connection; `None` if the connection closed itself.
    reason: Option<DisconnectReason>,
    /// Number of events discarded because the subscriber was too slow.
    dropped_events: u64,
}

enum Queued {
    Entry(Entry),
    /// The unsent part of a reply; it grows until another item is queued behind it.
    ReplyUpdate(ReplyCursor),
}

/// Cursor into a streaming reply: the part that was published and is not sent yet. Weak, so that a stalled
/// connection does not keep the text in memory.
struct ReplyCursor {
    reply: Weak<StreamingReply>,
    /// Set when the reply has ended: its unsent part is delivered like events, and counts towards the limits.
    ended: Option<Arc<StreamingReply>>,
    codec: Codec,
    from: ReplyOffset,
    /// End of the published part: a subscriber that is removed from the room receives no later chunks.
    to: ReplyOffset,
    /// Ordinals reserved for these chunks; merged chunks get the ordinal of the last one.
    next: Ordinal,
    last: SignalStamp,
}

/// Whether `take` returned the last items.
#[derive(Debug, PartialEq, Eq)]
pub enum Drained {
    More,
    /// These are the last items; close the connection after them, and after the frame for the reason.
    Last(Option<DisconnectReason>),
}

impl Outbox {
    pub fn new(limits: OutboxLimits) -> Self {
        Self { waiting: Mutex::default(), filled: Notify::new(), changed: Notify::new(), limits }
    }

    /// Queues frames of the connection itself. Returns `false` if the connection is closing, which discards them.
    pub fn push(&self, frames: Bytes) -> bool {
        self.push_item(ENCODED, Item::Frames(frames))
    }

    /// Queues an item that must arrive. Returns `false` if the connection is closing, which discards the item.
    pub fn push_item(&self, codec: Codec, item: Item) -> bool {
        self.push_to(self.waiting.lock(), codec, item)
    }

    fn push_to(&self, mut waiting: MutexGuard<'_, OutboxQueue>, codec: Codec, item: Item) -> bool {
        if waiting.closed {
            return false;
        }
        // Compares only the queued weight, which the subscriber's slowness caused, not the weight of the next
        // item: that may be a whole batch of messages, which is shared with other subscribers.
        let over = waiting.weight >= self.limits.bytes || waiting.queue.len() >= self.limits.buffers;
        if over {
            waiting.dropped_events = item.events() + waiting.queue.iter().map(Queued::events).sum::<u64>();
            waiting.queue.clear();
            waiting.weight = 0;
            waiting.closed = true;
            waiting.reason = Some(DisconnectReason::TooSlow);
        } else {
            waiting.weight += item.weight();
            waiting.queue.push_back(Queued::Entry(Entry { codec, item }));
        }
        let open = !waiting.closed;
        drop(waiting);
        self.filled.notify_one();
        if !open {
            self.changed.notify_waiters();
        }
        open
    }

    /// Number of events discarded because the subscriber was too slow.
    pub fn lost(&self) -> u64 {
        self.waiting.lock().dropped_events
    }

    /// Queues an item that may be dropped, if at most half of the capacity is used.
    pub fn push_signal(&self, codec: Codec, item: Item) {
        let waiting = self.waiting.lock();
        let has_space = waiting.weight + item.weight() <= self.limits.bytes / 2
            && waiting.queue.len() < self.limits.buffers / 2;
        if has_space {
            self.push_to(waiting, codec, item);
        }
    }

    /// Queues an appended part of a reply whose earlier parts have been queued before. `first` and `last` are
    /// its ordinals.
    pub fn push_reply_update(
        &self,
        reply: &Arc<StreamingReply>,
        codec: Codec,
        (from, to): (ReplyOffset, ReplyOffset),
        (first, last): (Ordinal, SignalStamp),
    ) {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return;
        }
        // A part is never sent before an item queued ahead of it. Among trailing reply updates it moves to
        // the end.
        let behind = waiting.queue.iter().rposition(|queued| matches!(queued, Queued::Entry(_)));
        let open = behind.map_or(0, |place| place + 1);
        let existing = (open..waiting.queue.len()).find(|place| waiting.queue[*place].is_by(reply, codec));
        let reply_cursor = match existing.and_then(|place| waiting.queue.remove(place)) {
            Some(Queued::ReplyUpdate(reply_cursor)) => ReplyCursor { to, last, ..reply_cursor },
            _ => {
                let reply = Arc::downgrade(reply);
                ReplyCursor { reply, ended: None, codec, from, to, next: first, last }
            }
        };
        waiting.queue.push_back(Queued::ReplyUpdate(reply_cursor));
        drop(waiting);
        self.filled.notify_one();
    }

    /// Queues a reply from its beginning, even if parts of it have been sent before.
    pub fn push_reply_from_start(
        &self,
        reply: &Arc<StreamingReply>,
        codec: Codec,
        numbers: (Ordinal, SignalStamp),
    ) {
        self.waiting.lock().queue.retain(|queued| !queued.is_by(reply, codec));
        let marks = (ReplyOffset::default(), reply.end());
        if marks.0 < marks.1 {
            self.push_reply_update(reply, codec, marks, numbers);
        }
    }

    /// Ends a reply: keeps the text of its unsent part, or drops the part if that would exceed half of the
    /// capacity, because the complete reply follows as a message. A session with several encodings calls it
    /// once for each; only the first call has an effect.
    pub fn finish_reply(&self, reply: &Arc<StreamingReply>) {
        let waiting = &mut *self.waiting.lock();
        let unsent = |queued: &Queued| match queued {
            Queued::ReplyUpdate(reply_cursor) if reply_cursor.is_open_of(reply) => {
                reply.length(reply_cursor.from, reply_cursor.to)
            }
            _ => 0,
        };
        let added = waiting.queue.iter().map(unsent).sum::<usize>();
        let fits = waiting.weight + added <= self.limits.bytes / 2;
        waiting.queue.retain_mut(|queued| {
            let Queued::ReplyUpdate(reply_cursor) = queued else { return true };
            if !reply_cursor.is_open_of(reply) {
                return true;
            }
            reply_cursor.ended = Some(reply.clone());
            fits
        });
        if fits {
            waiting.weight += added;
        }
    }

    /// Closes the connection after the queued items and these last frames.
    pub fn close(&self, last: Bytes) {
        self.end(last, None);
    }

    /// Closes the connection after the queued items. Its writer appends the frames for the reason.
    pub fn disconnect(&self, reason: DisconnectReason) {
        self.end(Bytes::new(), Some(reason));
    }

    fn end(&self, last: Bytes, reason: Option<DisconnectReason>) {
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            (waiting.closed, waiting.reason) = (true, reason);
            if !last.is_empty() {
                waiting.weight += last.len();
                let item = Item::Frames(last);
                waiting.queue.push_back(Queued::Entry(Entry { codec: ENCODED, item }));
            }
        }
        drop(waiting);
        self.filled.notify_one();
        self.changed.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.waiting.lock().closed
    }

    /// Waits for queued items and moves up to `limit` of them to `out`. A reply update yields one item for each
    /// part that cannot be merged with the previous one.
    pub async fn take(&self, out: &mut Vec<Entry>, limit: usize) -> Drained {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.queue.is_empty() || waiting.closed {
                    waiting.drain(out, limit);
                    let empty = waiting.queue.is_empty();
                    if empty {
                        debug_assert_eq!(waiting.weight, 0, "every queued weight is taken back");
                        // Releases the queue's memory, so that an idle connection holds none.
                        waiting.queue = VecDeque::new();
                    }
                    let (last, reason) = (waiting.closed && empty, waiting.reason);
                    drop(waiting);
                    self.changed.notify_waiters();
                    match last {
                        true => return Drained::Last(reason),
                        false if !out.is_empty() => return Drained::More,
                        // Only updates of replies that no longer exist were queued.
                        false => {}
                    }
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until the queue is empty, or at most half full with this item, and queues the item. Used for
    /// long replays, so that they proceed only as fast as the subscriber reads. Returns `false` if the outbox
    /// is closed.
    pub async fn push_item_when_half_empty(&self, codec: Codec, item: Item) -> bool {
        self.until(|waiting| {
            let has_space = waiting.weight + item.weight() <= self.limits.bytes / 2
                && waiting.queue.len() < self.limits.buffers / 2;
            has_space || waiting.queue.is_empty() || waiting.closed
        })
        .await;
        self.push_item(codec, item)
    }

    /// Like `push_item_when_half_empty`, for frames of the connection itself.
    pub async fn push_when_half_empty(&self, frames: Bytes) -> bool {
        self.push_item_when_half_empty(ENCODED, Item::Frames(frames)).await
    }

    /// Whether all of these items could be pushed now.
    pub fn fits(&self, items: &[Item]) -> bool {
        let waiting = self.waiting.lock();
        let weight: usize = items.iter().map(Item::weight).sum();
        waiting.weight + weight <= self.limits.bytes
            && waiting.queue.len() + items.len() <= self.limits.buffers
    }

    /// Waits until the connection is closing.
    pub async fn closed(&self) {
        self.until(|waiting| waiting.closed).await;
    }

    async fn until(&self, reached: impl Fn(&OutboxQueue) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registers before checking, so that a change in between is not missed.
            changed.as_mut().enable();
            if reached(&self.waiting.lock()) {
                return;
            }
            changed.await;
        }
    }
}

impl OutboxQueue {
    fn drain(&mut self, out: &mut Vec<Entry>, limit: usize) {
        let mut reply_bytes = 0;
        while out.len() < limit {
            match self.queue.pop_front() {
                None => break,
                Some(Queued::Entry(entry)) => {
                    self.weight -= entry.item.weight();
                    out.push(entry);
                }
                Some(Queued::ReplyUpdate(mut reply_cursor)) => {
                    let before = reply_bytes;
                    let is_complete = reply_cursor.read_into(out, limit, &mut reply_bytes);
                    if reply_cursor.ended.is_some() {
                        self.weight -= reply_bytes - before;
                    }
                    if !is_complete {
                        self.queue.push_front(Queued::ReplyUpdate(reply_cursor));
                        break;
                    }
                }
            }
        }
    }
}

impl ReplyCursor {
    /// Moves parts of the reply to `out`, and adds their bytes to `reply_bytes`. Returns whether no part is left.
    fn read_into(&mut self, out: &mut Vec<Entry>, limit: usize, reply_bytes: &mut usize) -> bool {
        while self.from < self.to {
            if out.len() == limit || *reply_bytes >= REPLY_BYTES_PER_DRAIN {
                return false;
            }
            let Some(reply) = self.ended.clone().or_else(|| self.reply.upgrade()) else { break };
            let Some(reached) = reply.next_offset(self.from, self.to) else { break };
            let ordinal = if reached < self.to { self.next } else { self.last.ordinal };
            *reply_bytes += reply.length(self.from, reached);
            let stamp = SignalStamp { ordinal, ..self.last };
            let piece = ReplyPiece { reply, from: self.from, to: reached, stamp };
            out.push(Entry { codec: self.codec, item: Item::ReplyText(piece) });
            (self.from, self.next) = (reached, self.next.plus(1).min(self.last.ordinal));
        }
        true
    }

    /// Whether it is the cursor of this reply, and the reply has not ended for it.
    fn is_open_of(&self, reply: &Arc<StreamingReply>) -> bool {
        self.is_of(reply) && self.ended.is_none()
    }

    fn is_of(&self, reply: &Arc<StreamingReply>) -> bool {
        Weak::as_ptr(&self.reply) == Arc::as_ptr(reply)
    }
}

impl Queued {
    /// A connection may follow the same reply in two encodings.
    fn is_by(&self, reply: &Arc<StreamingReply>, codec: Codec) -> bool {
        matches!(self, Self::ReplyUpdate(reply_cursor) if reply_cursor.is_of(reply) && reply_cursor.codec == codec)
    }

    fn events(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.item.events(),
            Self::ReplyUpdate(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox {
        Outbox::new(OutboxLimits { bytes: 100, buffers: 8 })
    }

    async fn everything(outbox: &Outbox) -> (Vec<Bytes>, Drained) {
        let mut out = Vec::new();
        let taken = outbox.take(&mut out, usize::MAX).await;
        let frames = out.into_iter().map(|entry| match entry.item {
            Item::Frames(frames) => frames,
            _ => panic!("only frames were queued"),
        });
        (frames.collect(), taken)
    }

    #[tokio::test]
    async fn a_slow_consumer_loses_its_queue_and_is_closed_with_the_reason() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 60]);
        assert!(outbox.push(buffer.clone()));
        assert!(outbox.push(buffer.clone()), "the queue is below the limit");
        assert!(!outbox.push(buffer.clone()), "the queue is over the limit");
        assert!(!outbox.push(buffer), "a closed outbox discards frames");
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out, taken), (vec![], Drained::Last(Some(DisconnectReason::TooSlow))));
    }

    #[tokio::test]
    async fn signals_are_dropped_while_events_still_fit() {
        let outbox = outbox();
        outbox.push(Bytes::from(vec![b'x'; 60]));
        outbox.push_signal(ENCODED, Item::Frames(Bytes::from_static(b"typing")));
        assert!(outbox.push(Bytes::from_static(b"message")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out.len(), taken), (2, Drained::More));
    }

    #[tokio::test]
    async fn a_replay_proceeds_at_the_rate_of_the_subscriber() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 45]);
        assert!(outbox.push_when_half_empty(buffer.clone()).await);
        let item = Item::Frames(buffer.clone());
        assert!(!outbox.fits(&[item.clone(), item]));
        let (second, (read, _)) =
            tokio::join!(outbox.push_when_half_empty(buffer.clone()), everything(&outbox));
        assert_eq!((second, read.len()), (true, 1), "the second waited until the first was read");
        outbox.close(Bytes::new());
        assert!(!outbox.push_when_half_empty(buffer).await, "a closed outbox does not wait");
    }

    #[tokio::test]
    async fn the_last_frame_follows_the_queued_frames() {
        let outbox = outbox();
        outbox.push(Bytes::from_static(b"a"));
        outbox.close(Bytes::from_static(b"bye"));
        assert!(!outbox.push(Bytes::from_static(b"late")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!(
            (out, taken),
            (vec![Bytes::from_static(b"a"), Bytes::from_static(b"bye")], Drained::Last(None))
        );
    }
}
