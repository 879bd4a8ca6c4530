//! The ports within one process: the bus as a bounded channel, the system's clock, random ids.

use crate::ports::{Bus, BusPoll, Clock, IdGenerator};
use parking_lot::Mutex;
use parlor_model::{LoggedEvent, Time};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// A channel that drops news when its reader is far behind: the follower notices and reads the store.
pub struct LocalBus {
    sender: SyncSender<Arc<[LoggedEvent]>>,
    /// Only the follower locks it, for as long as it waits.
    receiver: Mutex<Receiver<Arc<[LoggedEvent]>>>,
}

impl LocalBus {
    pub fn new(waiting: usize) -> Self {
        let (sender, receiver) = sync_channel(waiting);
        Self { sender, receiver: Mutex::new(receiver) }
    }
}

impl Bus for LocalBus {
    fn publish(&self, news: Arc<[LoggedEvent]>) {
        // A full channel loses this batch on purpose: the store has it, and the writer must not wait.
        let _ = self.sender.try_send(news);
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

/// UUIDs of version 7: 74 random bits, and neighbours in time are neighbours in an index.
pub struct RandomIds;

impl IdGenerator for RandomIds {
    fn next(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}
