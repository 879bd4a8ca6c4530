//! Whether the hub can keep what it is told: written by the writer, read by everyone.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether what is submitted can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good = 0,
    /// The store has no room; it is tried again by itself.
    Full = 1,
    /// The disk failed; nothing is acknowledged until a restart.
    Broken = 2,
}

#[derive(Default)]
pub struct HealthCell(AtomicU8);

impl HealthCell {
    pub fn get(&self) -> Health {
        match self.0.load(Ordering::Acquire) {
            0 => Health::Good,
            1 => Health::Full,
            _ => Health::Broken,
        }
    }

    /// Never gets better by itself once broken.
    pub fn set(&self, health: Health) {
        self.0.fetch_max(health as u8, Ordering::AcqRel);
    }

    pub fn recovered(&self) {
        let _ = self.0.compare_exchange(
            Health::Full as u8,
            Health::Good as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }
}
