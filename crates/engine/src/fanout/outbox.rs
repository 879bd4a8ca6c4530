//! What waits to be written to one connection: bounded in bytes and count, shared by every kind of socket.
//!
//! Full means the reader is too slow: signals are dropped first, and when the cap is reached what waits
//! is thrown away, the reader is told, and the connection ends. It comes back and resumes by position.
//!
//! A reply that is being spoken waits as a place in it, which has no weight: see `replies`.

use super::Egress;
use super::replies::StreamingReply;
use crate::runs::reply_buffer::ReplyOffset;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use parlor_model::{Ordinal, SignalStamp};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// How much of replies one turn of the writer gets.
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
    /// Wakes whoever waits to put more in without overflowing, or for the end.
    changed: Notify,
    caps: OutboxLimits,
    /// What a reader that is too slow is told last, encoded for its door.
    too_slow: Bytes,
}

#[derive(Default)]
struct OutboxQueue {
    queue: VecDeque<Item>,
    bytes: usize,
    closed: bool,
    /// How many events were thrown away because the reader was too slow.
    dropped_events: u64,
}

enum Item {
    Frame {
        bytes: Bytes,
        /// How many events are in it.
        events: u64,
    },
    /// What is new in a reply; it goes on growing until something else comes behind it.
    ReplyUpdate(ReplyCursor),
}

/// What was told of a reply and is still to be read. Weak: a connection that no longer reads keeps no text.
struct ReplyCursor {
    reply: Weak<StreamingReply>,
    egress: Arc<dyn Egress>,
    from: ReplyOffset,
    /// Up to here and no further: who is put out of the room hears nothing of what follows.
    to: ReplyOffset,
    /// The numbers that these pieces were given; what is told together has that of its last piece.
    next: Ordinal,
    last: SignalStamp,
}

/// What one turn of the writer gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Drained {
    More,
    /// These are the last bytes; close after them.
    Last,
}

impl Outbox {
    pub fn new(caps: OutboxLimits, too_slow: Bytes) -> Self {
        Self { waiting: Mutex::default(), filled: Notify::new(), changed: Notify::new(), caps, too_slow }
    }

    /// Adds what must arrive. `false` when the connection is ending and nothing more goes out.
    pub fn push(&self, bytes: Bytes) -> bool {
        self.push_events(bytes, 1)
    }

    /// The same with several events in one buffer.
    pub fn push_events(&self, bytes: Bytes, events: u64) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return false;
        }
        // What waits already is the reader's doing; how large the next buffer is, a whole group of messages at
        // times, is not, and its bytes are shared with the other readers.
        let over = waiting.bytes >= self.caps.bytes || waiting.queue.len() >= self.caps.buffers;
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

    /// How many events were thrown away because the reader was too slow.
    pub fn lost(&self) -> u64 {
        self.waiting.lock().dropped_events
    }

    /// Adds what may be lost, while there is plenty of room.
    pub fn push_signal(&self, bytes: Bytes) {
        let plenty = {
            let waiting = self.waiting.lock();
            waiting.bytes + bytes.len() <= self.caps.bytes / 2 && waiting.queue.len() < self.caps.buffers / 2
        };
        if plenty {
            self.push(bytes);
        }
    }

    /// Something was added to a reply of which this connection has been told everything before; `first` and `last`
    /// are the numbers it was given.
    pub fn tell(
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
        // Nothing overtakes what came before it, but for other replies, behind which it gets in line again.
        let behind = waiting.queue.iter().rposition(|item| matches!(item, Item::Frame { .. }));
        let open = behind.map_or(0, |place| place + 1);
        let grows = (open..waiting.queue.len()).find(|place| waiting.queue[*place].is_by(reply, egress));
        let reply_cursor = match grows.and_then(|place| waiting.queue.remove(place)) {
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

    /// A reply as it stands, from its beginning: also for who has read some of it before.
    pub fn push_reply_from_start(
        &self,
        reply: &Arc<StreamingReply>,
        egress: &Arc<dyn Egress>,
        numbers: (Ordinal, SignalStamp),
    ) {
        self.waiting.lock().queue.retain(|item| !item.is_by(reply, egress));
        let marks = (ReplyOffset::default(), reply.end());
        if marks.0 < marks.1 {
            self.tell(reply, egress, marks, numbers);
        }
    }

    /// The reply is over: what is unread of it becomes frames like any other. If that is too much it is left out,
    /// since the whole of it follows as a message.
    pub fn finish_reply(&self, reply: &Arc<StreamingReply>) {
        let waiting = &mut *self.waiting.lock();
        let length = |item: &Item| match item {
            Item::ReplyUpdate(reply_cursor) if item.is_of(reply) => {
                reply.length(reply_cursor.from, reply_cursor.to)
            }
            _ => 0,
        };
        let fits = waiting.bytes + waiting.queue.iter().map(length).sum::<usize>() <= self.caps.bytes / 2;
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

    /// Ends the connection after what already waits and these last words.
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

    /// Waits for bytes and moves up to `most` buffers to `out`. What is new in a reply is one buffer for each
    /// piece that does not flow together with the one before.
    pub async fn take(&self, out: &mut Vec<Bytes>, most: usize) -> Drained {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.queue.is_empty() || waiting.closed {
                    waiting.drain(out, most);
                    let empty = waiting.queue.is_empty();
                    if empty {
                        // An idle connection holds no memory for what it once had to say.
                        waiting.queue = VecDeque::new();
                    }
                    let last = waiting.closed && empty;
                    drop(waiting);
                    self.changed.notify_waiters();
                    match last {
                        true => return Drained::Last,
                        false if !out.is_empty() => return Drained::More,
                        // What waited was of a reply that is over for this reader.
                        false => {}
                    }
                }
            }
            self.filled.notified().await;
        }
    }

    /// Adds what must arrive once half the room is still free afterwards, or nothing else waits. For what
    /// is long and can wait, such as a replay: it goes as fast as it is read. `false` as with `push`.
    pub async fn push_when_half_empty(&self, bytes: Bytes) -> bool {
        self.until(|waiting| {
            let plenty = waiting.bytes + bytes.len() <= self.caps.bytes / 2
                && waiting.queue.len() < self.caps.buffers / 2;
            plenty || waiting.queue.is_empty() || waiting.closed
        })
        .await;
        self.push(bytes)
    }

    /// Whether all of these could be pushed now.
    pub fn fits(&self, buffers: &[Bytes]) -> bool {
        let waiting = self.waiting.lock();
        let bytes: usize = buffers.iter().map(Bytes::len).sum();
        waiting.bytes + bytes <= self.caps.bytes && waiting.queue.len() + buffers.len() <= self.caps.buffers
    }

    /// Waits until the connection is ending.
    pub async fn closed(&self) {
        self.until(|waiting| waiting.closed).await;
    }

    async fn until(&self, reached: impl Fn(&OutboxQueue) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that no change in between is missed.
            changed.as_mut().enable();
            if reached(&self.waiting.lock()) {
                return;
            }
            changed.await;
        }
    }
}

impl OutboxQueue {
    fn drain(&mut self, out: &mut Vec<Bytes>, most: usize) {
        let mut spoken = 0;
        while out.len() < most {
            match self.queue.pop_front() {
                None => break,
                Some(Item::Frame { bytes, .. }) => {
                    self.bytes -= bytes.len();
                    out.push(bytes);
                }
                Some(Item::ReplyUpdate(mut reply_cursor)) => {
                    if !reply_cursor.read_into(out, most, &mut spoken) {
                        self.queue.push_front(Item::ReplyUpdate(reply_cursor));
                        break;
                    }
                }
            }
        }
    }
}

impl ReplyCursor {
    /// Reads on in a reply; says whether nothing of it is left.
    fn read_into(&mut self, out: &mut Vec<Bytes>, most: usize, spoken: &mut usize) -> bool {
        while self.from < self.to {
            if out.len() == most || *spoken >= REPLY_BYTES_PER_DRAIN {
                return false;
            }
            let Some(frame) = self.read() else { break };
            *spoken += frame.as_ref().map_or(0, Bytes::len);
            out.extend(frame);
        }
        true
    }

    /// The frame of the next piece, if the door has one for it; `None` when there is no more.
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
    /// One connection may hear the same through two doors.
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
    async fn a_reader_that_is_too_slow_is_told_and_ended() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 60]);
        assert!(outbox.push(buffer.clone()));
        assert!(outbox.push(buffer.clone()), "what waits is below the cap");
        assert!(!outbox.push(buffer.clone()), "what waits is over the cap");
        assert!(!outbox.push(buffer), "nothing goes out afterwards");
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out, taken), (vec![Bytes::from_static(b"slow")], Drained::Last));
    }

    #[tokio::test]
    async fn signals_are_dropped_while_what_must_arrive_still_fits() {
        let outbox = outbox();
        outbox.push(Bytes::from(vec![b'x'; 60]));
        outbox.push_signal(Bytes::from_static(b"typing"));
        assert!(outbox.push(Bytes::from_static(b"message")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out.len(), taken), (2, Drained::More));
    }

    #[tokio::test]
    async fn what_can_wait_goes_as_fast_as_it_is_read() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 45]);
        assert!(outbox.push_when_half_empty(buffer.clone()).await);
        assert!(!outbox.fits(&[buffer.clone(), buffer.clone()]));
        let (second, (read, _)) =
            tokio::join!(outbox.push_when_half_empty(buffer.clone()), everything(&outbox));
        assert_eq!((second, read.len()), (true, 1), "the second waited until the first was read");
        outbox.close(Bytes::new());
        assert!(!outbox.push_when_half_empty(buffer).await, "the end is not waited for");
    }

    #[tokio::test]
    async fn last_words_come_after_what_waits() {
        let outbox = outbox();
        outbox.push(Bytes::from_static(b"a"));
        outbox.close(Bytes::from_static(b"bye"));
        assert!(!outbox.push(Bytes::from_static(b"late")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out, taken), (vec![Bytes::from_static(b"a"), Bytes::from_static(b"bye")], Drained::Last));
    }
}
