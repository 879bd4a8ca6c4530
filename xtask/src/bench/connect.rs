//! Measures connections per second: open, authenticate (reference: one echo), close.

use super::Sample;
use super::server::Server;
use super::timed;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Number of concurrent connections, enough to keep the server busy while some of them wait for a reply.
const CONCURRENT_CONNECTIONS: usize = 32;

pub async fn measure(server: &Arc<Server>, length: Duration) -> Result<Sample> {
    let finished = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut visitors = JoinSet::new();
    for number in 0..CONCURRENT_CONNECTIONS {
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
