//! Keeps every core busy while tests run, as other programs on a busy machine would.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Load that lasts as long as this value. It is made by threads of this process, which no test runs in, so it ends
/// with this process however that ends.
pub struct Load {
    over: Arc<AtomicBool>,
}

impl Load {
    pub fn on_every_core() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        println!("Keeping {cores} cores busy.");
        for _ in 0..cores {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        Self { over }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
