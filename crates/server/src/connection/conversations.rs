//! Every open WebSocket, so that a hub that stops can let all of them end first.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Counts conversations by their receivers of one channel, which also tells them to end.
pub struct Conversations {
    stop: watch::Sender<bool>,
    doors: Arc<Doors>,
}

/// How many go on at each door.
type Doors = Mutex<BTreeMap<Box<str>, usize>>;

impl Default for Conversations {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), doors: Arc::default() }
    }
}

/// Held for as long as a conversation goes on.
pub struct Ongoing {
    stop: watch::Receiver<bool>,
    door: Box<str>,
    doors: Arc<Doors>,
}

impl Conversations {
    pub fn begin(&self, door: &str) -> Ongoing {
        *self.doors.lock().entry(door.into()).or_default() += 1;
        Ongoing { stop: self.stop.subscribe(), door: door.into(), doors: self.doors.clone() }
    }

    pub fn by_door(&self) -> BTreeMap<Box<str>, usize> {
        self.doors.lock().clone()
    }

    /// Tells all to end, and waits until they have.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

impl Ongoing {
    /// Waits until the hub stops.
    pub async fn stopped(&mut self) {
        // An error means that the hub is gone already.
        let _ = self.stop.wait_for(|stopped| *stopped).await;
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        if let Some(count) = self.doors.lock().get_mut(&self.door) {
            *count -= 1;
        }
    }
}
