//! The outbox: send queue of one connection, bounded in bytes and buffers, used by every kind of socket.
//!
//! When the subscriber is too slow, signals are dropped first. At the limit the queue is discarded, a last
//! frame gives the reason, and the connection is closed; the client reconnects and resumes from its position.
//!
//! A streaming reply is queued as a cursor into the shared text, which does not count towards the limits: see
//! `replies`.

use super::Egress;
use super::reply_buffer::ReplyOffset;
use super::reply_text::StreamingReply;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use parlor_model::{Ordinal, SignalStamp};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Maximum bytes of streaming replies taken by one `take`.
const REPLY_BYTES_PER_DRAIN: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct OutboxLimits {
    pub bytes: usize,
    pub buffers: usize,
}

pub struct Outbox {
    waiting: Mutex<OutboxQueue>,
    /// Wakes the connection's writer.
    filled: Notify,
    /// Wakes tasks that wait for free space or for the end of the connection.
    changed: Notify,
    limits: OutboxLimits,
    /// Last frame for a slow consumer, encoded for its protocol.
    too_slow: Bytes,
}

#[derive(Default)]
struct OutboxQueue {
    queue: VecDeque<Item>,
    bytes: usize,
    closed: bool,
    /// Number of events discarded because the subscriber was too slow.
    dropped_events: u64,
}

enum Item {
    Frame {
        bytes: Bytes,
        /// Number of events in the buffer.
        events: u64,
    },
    /// The unsent part of a reply; it grows until another frame is queued behind it.
    ReplyUpdate(ReplyCursor),
}

/// Cursor into a streaming reply: the part that was published and is not sent yet. Weak, so that a stalled
/// connection does not keep the text in memory.
struct ReplyCursor {
    reply: Weak<StreamingReply>,
    egress: Arc<dyn Egress>,
    from: ReplyOffset,
    /// End of the published part: a subscriber that is removed from the room receives no later chunks.
    to: ReplyOffset,
    /// Ordinals reserved for these chunks; merged chunks get the ordinal of the last one.
    next: Ordinal,
    last: SignalStamp,
}

/// Whether `take` returned the last bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Drained {
    More,
    /// These are the last bytes; close the connection after them.
    Last,
}

impl Outbox {
    pub fn new(limits: OutboxLimits, too_slow: Bytes) -> Self {
        Self { waiting: Mutex::default(), filled: Notify::new(), changed: Notify::new(), limits, too_slow }
    }

    /// Queues a frame that must arrive. Returns `false` if the connection is closing, which discards the
    /// frame.
    pub fn push(&self, bytes: Bytes) -> bool {
        self.push_events(bytes, 1)
    }

    /// Like `push`, for several events in one buffer.
    pub fn push_events(&self, bytes: Bytes, events: u64) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return false;
        }
        // Compares only the queued bytes, which the subscriber's slowness caused, not the size of the next
        // buffer: that may be a whole batch of messages, whose bytes are shared with other subscribers.
        let over = waiting.bytes >= self.limits.bytes || waiting.queue.len() >= self.limits.buffers;
        if over {
            waiting.dropped_events = events + waiting.queue.iter().map(Item::events).sum::<u64>();
            waiting.queue.clear();
            waiting.bytes = self.too_slow.len();
            waiting.queue.push_back(Item::Frame { bytes: self.too_slow.clone(), events: 0 });
            waiting.closed = true;
        } else {
            waiting.bytes += bytes.len();
            waiting.queue.push_back(Item::Frame { bytes, events });
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

    /// Queues a frame that may be dropped, if at most half of the capacity is used.
    pub fn push_signal(&self, bytes: Bytes) {
        let has_space = {
            let waiting = self.waiting.lock();
            waiting.bytes + bytes.len() <= self.limits.bytes / 2
                && waiting.queue.len() < self.limits.buffers / 2
        };
        if has_space {
            self.push(bytes);
        }
    }

    /// Queues an appended part of a reply whose earlier parts have been queued before. `first` and `last` are
    /// its ordinals.
    pub fn push_reply_update(
        &self,
        reply: &Arc<StreamingReply>,
        egress: &Arc<dyn Egress>,
        (from, to): (ReplyOffset, ReplyOffset),
        (first, last): (Ordinal, SignalStamp),
    ) {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return;
        }
        // A part is never sent before a frame queued ahead of it. Among trailing reply updates it moves to
        // the end.
        let behind = waiting.queue.iter().rposition(|item| matches!(item, Item::Frame { .. }));
        let open = behind.map_or(0, |place| place + 1);
        let existing = (open..waiting.queue.len()).find(|place| waiting.queue[*place].is_by(reply, egress));
        let reply_cursor = match existing.and_then(|place| waiting.queue.remove(place)) {
            Some(Item::ReplyUpdate(reply_cursor)) => ReplyCursor { to, last, ..reply_cursor },
            _ => {
                let (reply, egress) = (Arc::downgrade(reply), egress.clone());
                ReplyCursor { reply, egress, from, to, next: first, last }
            }
        };
        waiting.queue.push_back(Item::ReplyUpdate(reply_cursor));
        drop(waiting);
        self.filled.notify_one();
    }

    /// Queues a reply from its beginning, even if parts of it have been sent before.
    pub fn push_reply_from_start(
        &self,
        reply: &Arc<StreamingReply>,
        egress: &Arc<dyn Egress>,
        numbers: (Ordinal, SignalStamp),
    ) {
        self.waiting.lock().queue.retain(|item| !item.is_by(reply, egress));
        let marks = (ReplyOffset::default(), reply.end());
        if marks.0 < marks.1 {
            self.push_reply_update(reply, egress, marks, numbers);
        }
    }

    /// Ends a reply: turns its unsent part into ordinary frames, or drops it if that would exceed half of the
    /// capacity, because the complete reply follows as a message.
    pub fn finish_reply(&self, reply: &Arc<StreamingReply>) {
        let waiting = &mut *self.waiting.lock();
        let length = |item: &Item| match item {
            Item::ReplyUpdate(reply_cursor) if item.is_of(reply) => {
                reply.length(reply_cursor.from, reply_cursor.to)
            }
            _ => 0,
        };
        let fits = waiting.bytes + waiting.queue.iter().map(length).sum::<usize>() <= self.limits.bytes / 2;
        let mut added = 0;
        waiting.queue.retain_mut(|item| {
            let Item::ReplyUpdate(reply_cursor) = item else { return true };
            if !reply_cursor.is_of(reply) {
                return true;
            }
            let (mut bytes, mut events) = (BytesMut::new(), 0);
            while let Some(frame) = fits.then(|| reply_cursor.read()).flatten() {
                bytes.extend_from_slice(&frame.unwrap_or_default());
                events += 1;
            }
            added += bytes.len();
            let some = !bytes.is_empty();
            *item = Item::Frame { bytes: bytes.freeze(), events };
            some
        });
        waiting.bytes += added;
    }

    /// Closes the connection after the queued frames and this last one.
    pub fn close(&self, last: Bytes) {
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            waiting.closed = true;
            waiting.bytes += last.len();
            waiting.queue.push_back(Item::Frame { bytes: last, events: 0 });
        }
        drop(waiting);
        self.filled.notify_one();
        self.changed.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.waiting.lock().closed
    }

    /// Waits for queued bytes and moves up to `limit` buffers to `out`. A reply update yields one buffer for
    /// each part that cannot be merged with the previous one.
    pub async fn take(&self, out: &mut Vec<Bytes>, limit: usize) -> Drained {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.queue.is_empty() || waiting.closed {
                    waiting.drain(out, limit);
                    let empty = waiting.queue.is_empty();
                    if empty {
                        // Releases the queue's memory, so that an idle connection holds none.
                        waiting.queue = VecDeque::new();
                    }
                    let last = waiting.closed && empty;
                    drop(waiting);
                    self.changed.notify_waiters();
                    match last {
                        true => return Drained::Last,
                        false if !out.is_empty() => return Drained::More,
                        // Only updates of replies that no longer exist were queued.
                        false => {}
                    }
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until the queue is empty, or at most half full with this frame, and queues the frame. Used for
    /// long replays, so that they proceed only as fast as the subscriber reads. Returns `false` if the outbox
    /// is closed.
    pub async fn push_when_half_empty(&self, bytes: Bytes) -> bool {
        self.until(|waiting| {
            let has_space = waiting.bytes + bytes.len() <= self.limits.bytes / 2
                && waiting.queue.len() < self.limits.buffers / 2;
            has_space || waiting.queue.is_empty() || waiting.closed
        })
        .await;
        self.push(bytes)
    }

    /// Whether all of these buffers could be pushed now.
    pub fn fits(&self, buffers: &[Bytes]) -> bool {
        let waiting = self.waiting.lock();
        let bytes: usize = buffers.iter().map(Bytes::len).sum();
        waiting.bytes + bytes <= self.limits.bytes
            && waiting.queue.len() + buffers.len() <= self.limits.buffers
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
    fn drain(&mut self, out: &mut Vec<Bytes>, limit: usize) {
        let mut reply_bytes = 0;
        while out.len() < limit {
            match self.queue.pop_front() {
                None => break,
                Some(Item::Frame { bytes, .. }) => {
                    self.bytes -= bytes.len();
                    out.push(bytes);
                }
                Some(Item::ReplyUpdate(mut reply_cursor)) => {
                    if !reply_cursor.read_into(out, limit, &mut reply_bytes) {
                        self.queue.push_front(Item::ReplyUpdate(reply_cursor));
                        break;
                    }
                }
            }
        }
    }
}

impl ReplyCursor {
    /// Moves frames of the reply to `out`. Returns whether no part of it is left.
    fn read_into(&mut self, out: &mut Vec<Bytes>, limit: usize, reply_bytes: &mut usize) -> bool {
        while self.from < self.to {
            if out.len() == limit || *reply_bytes >= REPLY_BYTES_PER_DRAIN {
                return false;
            }
            let Some(frame) = self.read() else { break };
            *reply_bytes += frame.as_ref().map_or(0, Bytes::len);
            out.extend(frame);
        }
        true
    }

    /// The next frame, `Some(None)` if the protocol has none for it; `None` at the end.
    fn read(&mut self) -> Option<Option<Bytes>> {
        let reply = self.reply.upgrade()?;
        let (frame, reached) = reply.next(&self.egress, (self.from, self.to), (self.next, self.last))?;
        (self.from, self.next) = (reached, self.next.plus(1).min(self.last.ordinal));
        Some(frame)
    }

    fn is_of(&self, reply: &Arc<StreamingReply>) -> bool {
        Weak::as_ptr(&self.reply) == Arc::as_ptr(reply)
    }
}

impl Item {
    /// A connection may follow the same reply through two protocols.
    fn is_by(&self, reply: &Arc<StreamingReply>, egress: &Arc<dyn Egress>) -> bool {
        matches!(self, Self::ReplyUpdate(reply_cursor) if reply_cursor.is_of(reply) && Arc::ptr_eq(&reply_cursor.egress, egress))
    }

    fn is_of(&self, reply: &Arc<StreamingReply>) -> bool {
        matches!(self, Self::ReplyUpdate(reply_cursor) if reply_cursor.is_of(reply))
    }

    fn events(&self) -> u64 {
        match self {
            Self::Frame { events, .. } => *events,
            Self::ReplyUpdate(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox {
        Outbox::new(OutboxLimits { bytes: 100, buffers: 8 }, Bytes::from_static(b"slow"))
    }

    async fn everything(outbox: &Outbox) -> (Vec<Bytes>, Drained) {
        let mut out = Vec::new();
        let taken = outbox.take(&mut out, usize::MAX).await;
        (out, taken)
    }

    #[tokio::test]
    async fn a_slow_consumer_gets_a_last_frame_and_is_closed() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 60]);
        assert!(outbox.push(buffer.clone()));
        assert!(outbox.push(buffer.clone()), "the queue is below the limit");
        assert!(!outbox.push(buffer.clone()), "the queue is over the limit");
        assert!(!outbox.push(buffer), "a closed outbox discards frames");
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out, taken), (vec![Bytes::from_static(b"slow")], Drained::Last));
    }

    #[tokio::test]
    async fn signals_are_dropped_while_events_still_fit() {
        let outbox = outbox();
        outbox.push(Bytes::from(vec![b'x'; 60]));
        outbox.push_signal(Bytes::from_static(b"typing"));
        assert!(outbox.push(Bytes::from_static(b"message")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out.len(), taken), (2, Drained::More));
    }

    #[tokio::test]
    async fn a_replay_proceeds_at_the_rate_of_the_subscriber() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 45]);
        assert!(outbox.push_when_half_empty(buffer.clone()).await);
        assert!(!outbox.fits(&[buffer.clone(), buffer.clone()]));
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
        assert_eq!((out, taken), (vec![Bytes::from_static(b"a"), Bytes::from_static(b"bye")], Drained::Last));
    }
}
