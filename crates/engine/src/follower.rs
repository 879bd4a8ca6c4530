//! Turns news that may be lost, repeated or late into a feed without holes, in order.

use crate::Fault;
use crate::ports::{Bus, News, Reader};
use crate::switchboard::Switchboard;
use crate::turns::Turns;
use parlor_model::{LoggedEvent, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many events are read at once to fill a hole.
const FILL: usize = 500;

pub struct Follower {
    pub bus: Arc<dyn Bus>,
    pub reader: Arc<dyn Reader>,
    pub switchboard: Arc<Switchboard>,
    pub turns: Arc<Turns>,
    pub stop: Arc<AtomicBool>,
}

impl Follower {
    /// Runs until told to stop, or until nobody can announce any more.
    pub fn run(self) {
        while !self.stop.load(Ordering::Acquire) {
            let result = match self.bus.next() {
                News::Batch(batch) => self.take(&batch),
                // The last batch may be the one that was lost.
                News::Quiet => self.fill_until(None),
                News::Over => return,
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
        let known = batch.iter().take_while(|logged| logged.seq <= seen).count();
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
                missed = snapshot.tail(seen, FILL)?;
                Ok(())
            })?;
            let full = missed.len() == FILL;
            if let Some(next) = next {
                missed.retain(|logged| logged.seq < next);
            }
            let shortened = missed.len() < FILL;
            self.tell(&missed);
            if !full || shortened {
                return Ok(());
            }
        }
    }
}
