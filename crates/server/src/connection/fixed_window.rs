//! Fixed-window rate limiter for the messages of one connection.

use std::time::{Duration, Instant};

pub struct FixedWindow {
    length: Duration,
    max: Option<u32>,
    began: Instant,
    count: u32,
}

impl FixedWindow {
    pub fn new(length: Duration, max: Option<u32>) -> Self {
        Self { length, max, began: Instant::now(), count: 0 }
    }

    pub fn unlimited() -> Self {
        Self::new(Duration::MAX, None)
    }

    pub fn try_acquire(&mut self) -> bool {
        let Some(max) = self.max else { return true };
        if self.began.elapsed() >= self.length {
            self.began = Instant::now();
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= max
    }
}
