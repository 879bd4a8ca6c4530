//! Counts and times for whoever watches the hub. They cost the writer a few additions, and decide nothing.

use crate::Health;
use crate::hub::CommandResult;
use parlor_model::{Refusal, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The picture at one moment.
pub struct HubMetrics {
    pub tally: Arc<WriterMetrics>,
    pub health: Health,
    /// Commands that wait for the writer, and how many may.
    pub waiting_commands: usize,
    pub most_waiting_commands: usize,
    /// Reads that are under way, and how many may be at once.
    pub reads: usize,
    pub most_reads: usize,
    /// The newest event that was told; what lies between it and the head is still to be told.
    pub told: Seq,
    pub size: StoreSize,
}

/// What a store takes up on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSize {
    pub database: u64,
    /// Written, but not yet moved to its place.
    pub journal: u64,
}

/// Kept by the writer, read by anybody.
#[derive(Default)]
pub struct WriterMetrics {
    /// Deciding a group and having it on disk.
    pub commits: Histogram,
    /// From the moment a command was submitted until its outcome was known.
    pub answers: Histogram,
    pub done: AtomicU64,
    pub refused: AtomicU64,
    /// Not decided, because the store failed.
    pub failed: AtomicU64,
    pub head: AtomicU64,
}

impl WriterMetrics {
    pub(crate) fn answered(&self, outcome: &CommandResult, after: Duration) {
        self.answers.observe(after);
        let counter = match outcome {
            Ok(_) => &self.done,
            Err(Refusal::Unavailable) => &self.failed,
            Err(_) => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// How often something took how long.
#[derive(Default)]
pub struct Histogram {
    counts: [AtomicU64; HISTOGRAM_BOUNDS_MICROS.len() + 1],
    micros: AtomicU64,
}

/// The upper ends of the classes, in microseconds; what takes longer than the last has a class of its own.
pub const HISTOGRAM_BOUNDS_MICROS: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    10_000_000,
];

impl Histogram {
    pub fn observe(&self, time: Duration) {
        let micros = time.as_micros() as u64;
        self.counts[HISTOGRAM_BOUNDS_MICROS.partition_point(|bound| *bound < micros)]
            .fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many took at most as long as each bound, and how many there are in all.
    pub fn cumulated(&self) -> [u64; HISTOGRAM_BOUNDS_MICROS.len() + 1] {
        let mut sum = 0;
        self.counts.each_ref().map(|count| {
            sum += count.load(Ordering::Relaxed);
            sum
        })
    }

    pub fn seconds(&self) -> f64 {
        self.micros.load(Ordering::Relaxed) as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_every_class_that_is_wide_enough() {
        let histogram = Histogram::default();
        for micros in [0, 250, 251, 10_000_000, 10_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let counts = histogram.cumulated();
        assert_eq!((counts[0], counts[1], counts[12], counts[13], counts[14]), (2, 3, 3, 4, 5));
        assert_eq!(histogram.seconds(), 20.000502);
    }
}
