//! Connections a second: open, sign in (at the reference: one echo), close.

use super::Sample;
use super::server::Server;
use super::timed;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Enough to keep the server busy while others of them wait for an answer.
const AT_ONCE: usize = 32;

pub async fn measure(server: &Arc<Server>, length: Duration) -> Result<Sample> {
    let finished = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut visitors = JoinSet::new();
    for number in 0..AT_ONCE {
        let (server, finished, stop) = (server.clone(), finished.clone(), stop.clone());
        visitors.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                server.visitor(number).await?.close().await?;
                finished.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    let sample = timed::rate(&server.process, length, || finished.load(Ordering::Relaxed)).await?;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = visitors.join_next().await {
        ended??;
    }
    Ok(sample)
}
