//! Registry of open WebSockets and event streams: counts them by endpoint, and notifies them when the hub stops.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

pub struct OpenSockets {
    stop: watch::Sender<bool>,
    counts: Arc<SocketCounts>,
}

/// Number of open connections by endpoint path.
type SocketCounts = Mutex<BTreeMap<Box<str>, usize>>;

impl Default for OpenSockets {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), counts: Arc::default() }
    }
}

/// Held by a connection while it is open.
pub struct SocketGuard {
    stop: watch::Receiver<bool>,
    endpoint: Box<str>,
    counts: Arc<SocketCounts>,
}

impl OpenSockets {
    pub fn begin(&self, endpoint: &str) -> SocketGuard {
        *self.counts.lock().entry(endpoint.into()).or_default() += 1;
        SocketGuard { stop: self.stop.subscribe(), endpoint: endpoint.into(), counts: self.counts.clone() }
    }

    pub fn by_endpoint(&self) -> BTreeMap<Box<str>, usize> {
        self.counts.lock().clone()
    }

    /// Signals all connections to end.
    pub fn begin_stop(&self) {
        self.stop.send_replace(true);
    }
}

impl SocketGuard {
    /// Completes when the hub stops.
    pub async fn stopped(&mut self) {
        // An error means that the sender was dropped, so the hub has stopped.
        let _ = self.stop.wait_for(|stopped| *stopped).await;
    }
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        if let Some(count) = self.counts.lock().get_mut(&self.endpoint) {
            *count -= 1;
        }
    }
}
