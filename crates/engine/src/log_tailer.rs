//! Turns news that may be lost, repeated or late into a feed without holes, in order.

use crate::Fault;
use crate::fanout::Fanout;
use crate::ports::{Bus, BusPoll, Reader};
use crate::runs::SchedulerHandle;
use parlor_model::{LoggedEvent, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many events are read at once to fill a hole.
const GAP_FILL_PAGE: usize = 500;

pub struct LogTailer {
    pub bus: Arc<dyn Bus>,
    pub reader: Arc<dyn Reader>,
    pub switchboard: Arc<Fanout>,
    pub turns: Arc<SchedulerHandle>,
    pub stop: Arc<AtomicBool>,
}

impl LogTailer {
    /// Runs until told to stop, or until nobody can announce any more.
    pub fn run(self) {
        while !self.stop.load(Ordering::Acquire) {
            let result = match self.bus.next() {
                BusPoll::Batch(batch) => self.take(&batch),
                // The last batch may be the one that was lost.
                BusPoll::TimedOut => self.fill_until(None),
                BusPoll::Closed => return,
            };
            if let Err(fault) = result {
                tracing::error!(%fault, "the follower could not read the log");
            }
        }
    }

    pub fn take(&self, batch: &[LoggedEvent]) -> Result<(), Fault> {
        let Some(first) = batch.first() else { return Ok(()) };
        let seen = self.switchboard.seen();
        if first.seq > seen.next() {
            self.fill_until(Some(first.seq))?;
        }
        let seen = self.switchboard.seen();
        let known = batch.iter().take_while(|logged_event| logged_event.seq <= seen).count();
        self.tell(&batch[known..]);
        Ok(())
    }

    fn tell(&self, batch: &[LoggedEvent]) {
        // Whoever waits for something to be told may rely on the turns to know it.
        self.turns.learn(batch);
        self.switchboard.publish(batch);
    }

    fn fill_until(&self, next: Option<Seq>) -> Result<(), Fault> {
        loop {
            let seen = self.switchboard.seen();
            let mut missed = Vec::new();
            self.reader.with(&mut |snapshot| {
                missed = snapshot.tail(seen, GAP_FILL_PAGE)?;
                Ok(())
            })?;
            let full = missed.len() == GAP_FILL_PAGE;
            if let Some(next) = next {
                missed.retain(|logged_event| logged_event.seq < next);
            }
            let shortened = missed.len() < GAP_FILL_PAGE;
            self.tell(&missed);
            if !full || shortened {
                return Ok(());
            }
        }
    }
}
