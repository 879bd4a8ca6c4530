//! Changes of the store that concern automatic turns and that no event reports: settings, and mail that was moved.

use parking_lot::Mutex;
use parlor_model::AgentId;
use std::collections::BTreeSet;
use tokio::sync::Notify;

/// Changes since the driver took the last ones.
#[derive(Default)]
pub struct Changed {
    /// Whether automatic turns or heartbeats may have been added, changed or removed.
    pub settings: bool,
    /// Agents that got pending mail without an event. Bounded by the number of agents.
    pub mail_of: BTreeSet<AgentId>,
}

/// Changes that the writer reports to the driver.
#[derive(Default)]
pub struct TurnChanges {
    changed: Mutex<Changed>,
    wake: Notify,
}

impl TurnChanges {
    /// Adds the changes of a committed batch.
    pub fn add(&self, settings: bool, mail_of: Vec<AgentId>) {
        if !settings && mail_of.is_empty() {
            return;
        }
        let mut changed = self.changed.lock();
        changed.settings |= settings;
        changed.mail_of.extend(mail_of);
        drop(changed);
        self.wake.notify_one();
    }

    pub fn take(&self) -> Changed {
        std::mem::take(&mut self.changed.lock())
    }

    /// Waits for changes. Supports a single waiter.
    pub async fn changed(&self) {
        self.wake.notified().await;
    }
}
