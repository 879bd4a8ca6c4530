//! Counters and histograms for monitoring. They cost the writer a few atomic additions and influence no
//! decision.

use crate::Health;
use parlor_model::{Refusal, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Snapshot of all metrics at one moment.
pub struct HubMetrics {
    pub tally: Arc<WriterMetrics>,
    pub health: Health,
    /// Commands queued for the writer, and the capacity of that queue.
    pub waiting_commands: usize,
    pub most_waiting_commands: usize,
    /// Reads in progress, and the maximum number of concurrent reads.
    pub reads: usize,
    pub most_reads: usize,
    /// `Seq` of the newest published event; events between it and the head are committed but not published
    /// yet.
    pub told: Seq,
    pub size: StoreSize,
}

/// Size of a store on disk, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSize {
    pub database: u64,
    /// Bytes in the write-ahead log that are not yet in the database file.
    pub journal: u64,
}

/// Metrics written by the writer and read by any thread.
#[derive(Default)]
pub struct WriterMetrics {
    /// Time to decide a batch and commit it to disk.
    pub commits: Histogram,
    /// Time from the submission of a command to its result.
    pub answers: Histogram,
    pub done: AtomicU64,
    pub refused: AtomicU64,
    /// Commands that were not decided because the store failed.
    pub failed: AtomicU64,
    pub head: AtomicU64,
    /// Reads of the store in the writer's transactions.
    pub store_reads: AtomicU64,
}

impl WriterMetrics {
    pub(crate) fn answered(&self, refusal: Option<&Refusal>, after: Duration) {
        self.answers.observe(after);
        let counter = match refusal {
            None => &self.done,
            Some(Refusal::Unavailable) => &self.failed,
            Some(_) => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Histogram of durations.
#[derive(Default)]
pub struct Histogram {
    counts: [AtomicU64; HISTOGRAM_BOUNDS_MICROS.len() + 1],
    micros: AtomicU64,
}

/// Upper bounds of the buckets, in microseconds; longer durations fall into one additional bucket.
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

    /// Cumulative counts: observations up to each bound, then the total.
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
    fn a_duration_counts_in_every_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for micros in [0, 250, 251, 10_000_000, 10_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let counts = histogram.cumulated();
        assert_eq!((counts[0], counts[1], counts[12], counts[13], counts[14]), (2, 3, 3, 4, 5));
        assert_eq!(histogram.seconds(), 20.000502);
    }
}
