//! Measures the latency of acknowledgements while many users sign in with passwords.

use super::Sample;
use super::rest;
use super::server::{PASSWORD, Server, TEXT_BYTES};
use super::words;
use anyhow::{Context, Result};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Number of concurrent sign-ins; below the limit of the hashing queue, so that none is rejected.
const CONCURRENT_SIGN_INS: usize = 32;

/// Posts one message after the other, for at least `length` and until all sign-ins are done. Returns the 99th
/// percentile and the median of the latency, in ms.
pub async fn measure(server: &Arc<Server>, attempts: usize, length: Duration) -> Result<Sample> {
    static NEXT_MESSAGE: AtomicUsize = AtomicUsize::new(0);
    let mut socket = server.visitor(0).await?;
    let room = server.own_room(0)?.to_owned();
    let text = &words::texts(1, TEXT_BYTES)[0];
    let mut sign_ins = JoinSet::new();
    let left = Arc::new(AtomicUsize::new(attempts));
    for _ in 0..CONCURRENT_SIGN_INS.min(attempts) {
        sign_ins.spawn(sign_in(server.clone(), left.clone()));
    }
    let mut took = Vec::new();
    let started = Instant::now();
    while started.elapsed() < length || !sign_ins.is_empty() {
        let number = NEXT_MESSAGE.fetch_add(1, Ordering::Relaxed);
        let message = json!({
            "type": "client:send_message",
            "roomId": room,
            "content": text,
            "clientMessageId": format!("storm-{number}"),
        });
        let sent = Instant::now();
        socket.send(&message.to_string()).await?;
        socket.expect(&["server:message_ack"]).await?;
        took.push(sent.elapsed().as_secs_f64() * 1e3);
        while let Some(ended) = sign_ins.try_join_next() {
            ended?.context("signing in")?;
        }
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    Ok(Sample { value: at(0.99), extra: vec![at(0.5)], server_cpu_us: None, cores_of_others: None })
}

async fn sign_in(server: Arc<Server>, left: Arc<AtomicUsize>) -> Result<()> {
    let body = json!({ "username": "admin", "password": PASSWORD });
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        rest::post(server.process.address, "/api/auth/login", None, &body).await?;
    }
    Ok(())
}
