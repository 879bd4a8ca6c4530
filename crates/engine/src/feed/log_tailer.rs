//! The log tailer: takes batches of events from the bus, fills gaps from the store, and passes every event
//! once and in order to the projections, then to the fan-out.

use super::Fanout;
use crate::Fault;
use crate::ports::{Bus, BusPoll, Reader};
use parlor_model::{LoggedEvent, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of events per read when filling a gap.
const GAP_FILL_PAGE: usize = 500;

/// In-memory state that must be up to date before any subscriber receives an event, such as the scheduler's.
pub trait Projection: Send + Sync {
    /// Applies committed events. The log tailer calls it in log order, without gaps and before the fan-out
    /// publishes them. Must not block.
    fn apply(&self, batch: &[LoggedEvent]);
}

pub struct LogTailer {
    pub bus: Arc<dyn Bus>,
    pub reader: Arc<dyn Reader>,
    pub fanout: Arc<Fanout>,
    pub projections: Vec<Arc<dyn Projection>>,
    pub stop: Arc<AtomicBool>,
}

impl LogTailer {
    /// Runs until `stop` is set or the bus is closed.
    pub fn run(self) {
        while !self.stop.load(Ordering::Acquire) {
            let result = match self.bus.next() {
                BusPoll::Batch(batch) => self.take(&batch),
                // The newest batch itself may have been lost, which no later batch reveals.
                BusPoll::TimedOut => self.fill_until(None),
                BusPoll::Closed => return,
            };
            if let Err(fault) = result {
                tracing::error!(%fault, "the log tailer could not read the log");
            }
        }
    }

    pub fn take(&self, batch: &[LoggedEvent]) -> Result<(), Fault> {
        let Some(first) = batch.first() else { return Ok(()) };
        let published = self.fanout.seen();
        if first.seq > published.next() {
            self.fill_until(Some(first.seq))?;
        }
        let published = self.fanout.seen();
        let duplicates = batch.iter().take_while(|logged_event| logged_event.seq <= published).count();
        self.publish(&batch[duplicates..]);
        Ok(())
    }

    fn publish(&self, batch: &[LoggedEvent]) {
        // Projections apply a batch first: callers that wait for an event's publication may rely on their
        // state.
        self.projections.iter().for_each(|projection| projection.apply(batch));
        self.fanout.publish(batch);
    }

    fn fill_until(&self, next: Option<Seq>) -> Result<(), Fault> {
        loop {
            let published = self.fanout.seen();
            let mut missed = Vec::new();
            self.reader.with(&mut |snapshot| {
                missed = snapshot.tail(published, GAP_FILL_PAGE)?;
                Ok(())
            })?;
            let full = missed.len() == GAP_FILL_PAGE;
            if let Some(next) = next {
                missed.retain(|logged_event| logged_event.seq < next);
            }
            let truncated = missed.len() < GAP_FILL_PAGE;
            self.publish(&missed);
            if !full || truncated {
                return Ok(());
            }
        }
    }
}
