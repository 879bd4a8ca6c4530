//! Health of the hub's store: set by the writer, read by any thread.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether the hub can store new commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good = 0,
    /// The store has no free space; the writer retries by itself.
    Full = 1,
    /// The disk failed; the hub acknowledges no command until a restart.
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

    /// Raises the severity: health never improves through `set`, and never leaves `Broken`.
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
