//! Every open WebSocket, so that a hub that stops can let all of them end first.

use tokio::sync::watch;

/// Counts conversations by their receivers of one channel, which also tells them to end.
pub struct Conversations {
    stop: watch::Sender<bool>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false) }
    }
}

/// Held for as long as a conversation goes on.
pub struct Ongoing(watch::Receiver<bool>);

impl Conversations {
    pub fn begin(&self) -> Ongoing {
        Ongoing(self.stop.subscribe())
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
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
