//! Every open WebSocket, so that a hub that stops can let all of them end first.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Counts conversations by their receivers of one channel, which also tells them to end.
pub struct OpenSockets {
    stop: watch::Sender<bool>,
    doors: Arc<SocketCounts>,
}

/// How many go on at each door.
type SocketCounts = Mutex<BTreeMap<Box<str>, usize>>;

impl Default for OpenSockets {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), doors: Arc::default() }
    }
}

/// Held for as long as a conversation goes on.
pub struct SocketGuard {
    stop: watch::Receiver<bool>,
    door: Box<str>,
    doors: Arc<SocketCounts>,
}

impl OpenSockets {
    pub fn begin(&self, door: &str) -> SocketGuard {
        *self.doors.lock().entry(door.into()).or_default() += 1;
        SocketGuard { stop: self.stop.subscribe(), door: door.into(), doors: self.doors.clone() }
    }

    pub fn by_endpoint(&self) -> BTreeMap<Box<str>, usize> {
        self.doors.lock().clone()
    }

    /// Tells all to end, and waits until they have.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

impl SocketGuard {
    /// Waits until the hub stops.
    pub async fn stopped(&mut self) {
        // An error means that the hub is gone already.
        let _ = self.stop.wait_for(|stopped| *stopped).await;
    }
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        if let Some(count) = self.doors.lock().get_mut(&self.door) {
            *count -= 1;
        }
    }
}
