//! Measures acknowledged publishes per second from many concurrent publishers.
//!
//! Each publisher keeps a window of messages in flight and sends the next one for every acknowledgement, so
//! that the hub always has enough queued commands to commit in batches. The rooms have no subscribers: this
//! measures the store.

use super::Sample;
use super::frames::{self, FrameCounter};
use super::server::{Server, TEXT_BYTES, TEXTS};
use super::socket::{RESPONSE_TIMEOUT, Socket};
use super::timed;
use super::words;
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

/// Messages in flight per publisher.
pub const WINDOW: usize = 16;

const ACKNOWLEDGEMENT: &str = "server:message_ack";

/// Number of the next message across all rounds; a repeated number would be deduplicated and not stored.
static NEXT_MESSAGE: AtomicU64 = AtomicU64::new(0);

pub async fn measure(server: &Arc<Server>, publishers: usize, length: Duration) -> Result<Sample> {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut publishing = JoinSet::new();
    for number in 0..publishers {
        let publisher = Publisher {
            socket: server.visitor(number).await.context("connecting a publisher")?,
            room: server.own_room(number)?.to_string(),
            acknowledged: acknowledged.clone(),
            stop: stop.clone(),
        };
        publishing.spawn(publisher.run());
    }
    let sample = timed::rate(&server.process, length, || acknowledged.load(Ordering::Relaxed)).await?;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = publishing.join_next().await {
        ended??;
    }
    Ok(sample)
}

struct Publisher {
    socket: Socket,
    room: String,
    acknowledged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Publisher {
    /// Publishes until `stop` is set, then waits until all messages are acknowledged.
    async fn run(mut self) -> Result<()> {
        let texts = words::texts(TEXTS, TEXT_BYTES);
        let mut counter = FrameCounter::new(ACKNOWLEDGEMENT);
        counter.feed(&self.socket.unread);
        let mut buffer = vec![0; 8 * 1024];
        let mut in_flight = 0;
        loop {
            if !self.stop.load(Ordering::Relaxed) {
                self.send(WINDOW - in_flight, &texts).await?;
                in_flight = WINDOW;
            }
            if in_flight == 0 {
                return Ok(());
            }
            let read = tokio::time::timeout(RESPONSE_TIMEOUT, self.socket.stream.read(&mut buffer)).await;
            let read = read.with_context(|| format!("no acknowledgement for {RESPONSE_TIMEOUT:?}"))??;
            if read == 0 {
                bail!("the server closed a publisher's connection; last frame: {:?}", counter.last_other);
            }
            counter.feed(&buffer[..read]);
            if let Some(refusal) = counter.last_other.take_if(|frame| frame.contains("server:error")) {
                bail!("a message was refused: {refusal}");
            }
            let arrived = std::mem::take(&mut counter.marked);
            in_flight = in_flight
                .checked_sub(arrived as usize)
                .context("more acknowledgements than messages in flight")?;
            self.acknowledged.fetch_add(arrived, Ordering::Relaxed);
        }
    }

    async fn send(&mut self, count: usize, texts: &[String]) -> Result<()> {
        let mut out = Vec::with_capacity(count * 320);
        for _ in 0..count {
            let number = NEXT_MESSAGE.fetch_add(1, Ordering::Relaxed);
            let text = &texts[number as usize % texts.len()];
            // Formatted by hand: texts and IDs need no escaping, and building a JSON value costs more than
            // sending it.
            let frame = format!(
                r#"{{"type":"client:send_message","roomId":"{}","content":"{text}","clientMessageId":"bench-{number}"}}"#,
                self.room
            );
            frames::push_text(&mut out, frame.as_bytes());
        }
        self.socket.stream.write_all(&out).await.context("publishing")
    }
}
