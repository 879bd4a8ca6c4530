//! How long a message takes to be acknowledged while many people sign in with their passwords.

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

/// At the same time; fewer than may wait for the hashing, so that none is turned away.
const AT_ONCE: usize = 32;

/// Says one thing after the other, for this long and until everybody is in.
pub async fn measure(server: &Arc<Server>, attempts: usize, length: Duration) -> Result<Sample> {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    let mut socket = server.visitor(0).await?;
    let room = server.own_room(0)?.to_owned();
    let text = &words::texts(1, TEXT_BYTES)[0];
    let mut storm = JoinSet::new();
    let left = Arc::new(AtomicUsize::new(attempts));
    for _ in 0..AT_ONCE.min(attempts) {
        storm.spawn(sign_in(server.clone(), left.clone()));
    }
    let mut took = Vec::new();
    let began = Instant::now();
    while began.elapsed() < length || !storm.is_empty() {
        let number = SAID.fetch_add(1, Ordering::Relaxed);
        let message = json!({
            "type": "client:send_message",
            "roomId": room,
            "content": text,
            "clientMessageId": format!("storm-{number}"),
        });
        let asked = Instant::now();
        socket.send(&message.to_string()).await?;
        socket.expect(&["server:message_ack"]).await?;
        took.push(asked.elapsed().as_secs_f64() * 1e3);
        while let Some(ended) = storm.try_join_next() {
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
