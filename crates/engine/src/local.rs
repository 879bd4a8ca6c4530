//! In-process implementations of ports: the bus as a bounded channel, the system clock, random ids.

use crate::ports::{Bus, BusPoll, Clock, IdGenerator};
use parking_lot::Mutex;
use parlor_model::{LoggedEvent, Time};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// A channel that drops batches when its reader falls far behind; the log tailer detects the gap and reads
/// the store.
pub struct LocalBus {
    sender: SyncSender<Arc<[LoggedEvent]>>,
    /// Locked only by the log tailer, while it waits for a batch.
    receiver: Mutex<Receiver<Arc<[LoggedEvent]>>>,
}

impl LocalBus {
    pub fn new(capacity: usize) -> Self {
        let (sender, receiver) = sync_channel(capacity);
        Self { sender, receiver: Mutex::new(receiver) }
    }
}

impl Bus for LocalBus {
    fn publish(&self, events: Arc<[LoggedEvent]>) {
        // Drops the batch when the channel is full: the store has the events, and the writer must not wait.
        let _ = self.sender.try_send(events);
    }

    fn next(&self) -> BusPoll {
        match self.receiver.lock().recv_timeout(Duration::from_millis(200)) {
            Ok(batch) => BusPoll::Batch(batch),
            Err(RecvTimeoutError::Timeout) => BusPoll::TimedOut,
            Err(RecvTimeoutError::Disconnected) => BusPoll::Closed,
        }
    }
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Time(since.as_micros() as i64)
    }
}

/// UUIDs of version 7: 74 random bits, and ids created close in time are close in an index.
pub struct RandomIds;

impl IdGenerator for RandomIds {
    fn next(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}
