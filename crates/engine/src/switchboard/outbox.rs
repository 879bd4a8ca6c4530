//! What waits to be written to one connection: bounded in bytes and count, shared by every kind of socket.
//!
//! Full means the reader is too slow: signals are dropped first, and when the cap is reached what waits
//! is thrown away, the reader is told, and the connection ends. It comes back and resumes by position.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Notify;

#[derive(Debug, Clone, Copy)]
pub struct Caps {
    pub bytes: usize,
    pub buffers: usize,
}

pub struct Outbox {
    waiting: Mutex<Waiting>,
    /// Wakes the connection's writer.
    filled: Notify,
    /// Wakes whoever waits to put more in without overflowing, or for the end.
    changed: Notify,
    caps: Caps,
    /// What a reader that is too slow is told last, encoded for its door.
    too_slow: Bytes,
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
}

/// What one turn of the writer gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    More,
    /// These are the last bytes; close after them.
    Last,
}

impl Outbox {
    pub fn new(caps: Caps, too_slow: Bytes) -> Self {
        Self { waiting: Mutex::default(), filled: Notify::new(), changed: Notify::new(), caps, too_slow }
    }

    /// Adds what must arrive. `false` when the connection is ending and nothing more goes out.
    pub fn push(&self, bytes: Bytes) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return false;
        }
        // What waits already is the reader's doing; how large the next buffer is, a whole group of messages at
        // times, is not, and its bytes are shared with the other readers.
        let over = waiting.bytes >= self.caps.bytes || waiting.queue.len() >= self.caps.buffers;
        if over {
            waiting.queue.clear();
            waiting.bytes = self.too_slow.len();
            waiting.queue.push_back(self.too_slow.clone());
            waiting.closed = true;
        } else {
            waiting.bytes += bytes.len();
            waiting.queue.push_back(bytes);
        }
        let open = !waiting.closed;
        drop(waiting);
        self.filled.notify_one();
        if !open {
            self.changed.notify_waiters();
        }
        open
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

    /// Ends the connection after what already waits and these last words.
    pub fn close(&self, last: Bytes) {
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            waiting.closed = true;
            waiting.bytes += last.len();
            waiting.queue.push_back(last);
        }
        drop(waiting);
        self.filled.notify_one();
        self.changed.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.waiting.lock().closed
    }

    /// Waits for bytes and moves up to `most` buffers to `out`.
    pub async fn take(&self, out: &mut Vec<Bytes>, most: usize) -> Taken {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if !waiting.queue.is_empty() || waiting.closed {
                    let count = waiting.queue.len().min(most);
                    out.extend(waiting.queue.drain(..count));
                    let taken: usize = out.iter().map(Bytes::len).sum();
                    waiting.bytes = waiting.bytes.saturating_sub(taken);
                    let empty = waiting.queue.is_empty();
                    if empty {
                        // An idle connection holds no memory for what it once had to say.
                        waiting.queue = VecDeque::new();
                    }
                    let last = waiting.closed && empty;
                    drop(waiting);
                    self.changed.notify_waiters();
                    return if last { Taken::Last } else { Taken::More };
                }
            }
            self.filled.notified().await;
        }
    }

    /// Adds what must arrive once half the room is still free afterwards, or nothing else waits. For what
    /// is long and can wait, such as a replay: it goes as fast as it is read. `false` as with `push`.
    pub async fn push_in_time(&self, bytes: Bytes) -> bool {
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

    async fn until(&self, reached: impl Fn(&Waiting) -> bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox {
        Outbox::new(Caps { bytes: 100, buffers: 8 }, Bytes::from_static(b"slow"))
    }

    async fn everything(outbox: &Outbox) -> (Vec<Bytes>, Taken) {
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
        assert_eq!((out, taken), (vec![Bytes::from_static(b"slow")], Taken::Last));
    }

    #[tokio::test]
    async fn signals_are_dropped_while_what_must_arrive_still_fits() {
        let outbox = outbox();
        outbox.push(Bytes::from(vec![b'x'; 60]));
        outbox.push_signal(Bytes::from_static(b"typing"));
        assert!(outbox.push(Bytes::from_static(b"message")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out.len(), taken), (2, Taken::More));
    }

    #[tokio::test]
    async fn what_can_wait_goes_as_fast_as_it_is_read() {
        let outbox = outbox();
        let buffer = Bytes::from(vec![b'x'; 45]);
        assert!(outbox.push_in_time(buffer.clone()).await);
        assert!(!outbox.fits(&[buffer.clone(), buffer.clone()]));
        let (second, (read, _)) = tokio::join!(outbox.push_in_time(buffer.clone()), everything(&outbox));
        assert_eq!((second, read.len()), (true, 1), "the second waited until the first was read");
        outbox.close(Bytes::new());
        assert!(!outbox.push_in_time(buffer).await, "the end is not waited for");
    }

    #[tokio::test]
    async fn last_words_come_after_what_waits() {
        let outbox = outbox();
        outbox.push(Bytes::from_static(b"a"));
        outbox.close(Bytes::from_static(b"bye"));
        assert!(!outbox.push(Bytes::from_static(b"late")));
        let (out, taken) = everything(&outbox).await;
        assert_eq!((out, taken), (vec![Bytes::from_static(b"a"), Bytes::from_static(b"bye")], Taken::Last));
    }
}
