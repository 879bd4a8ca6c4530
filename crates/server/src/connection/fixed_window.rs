//! How many messages a connection may send in a fixed window of time.

use std::time::{Duration, Instant};

pub struct FixedWindow {
    length: Duration,
    most: Option<u32>,
    began: Instant,
    count: u32,
}

impl FixedWindow {
    pub fn new(length: Duration, most: Option<u32>) -> Self {
        Self { length, most, began: Instant::now(), count: 0 }
    }

    pub fn try_acquire(&mut self) -> bool {
        let Some(most) = self.most else { return true };
        if self.began.elapsed() >= self.length {
            self.began = Instant::now();
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}
