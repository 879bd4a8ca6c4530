//! Measures the latency of receiving one message from a mailbox with a long history.

use super::Sample;
use super::frames::{self, FrameCounter};
use super::server::{Server, TEXT_BYTES};
use super::socket::{RESPONSE_TIMEOUT, Socket};
use super::words;
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

const SENDERS: usize = 32;
/// Messages in flight per sender while the history is created.
const WINDOW: usize = 32;
const RECEIVE: &str = r#"{"type":"msg.receive","agentId":"historian"}"#;

/// Creates the agent, and routes and receives `count` messages.
pub async fn fill(server: &Arc<Server>, count: usize) -> Result<()> {
    let mut owner = server.broker(0).await?;
    owner
        .send(r#"{"type":"agent.create","id":"historian","config":{"subscriptions":["slack/history"]}}"#)
        .await?;
    owner.expect(&["agent.create.ok"]).await?;
    let message = route(&words::texts(1, TEXT_BYTES)[0]);
    let mut sending = JoinSet::new();
    for number in 0..SENDERS.min(count) {
        let share = count / SENDERS.min(count) + usize::from(number < count % SENDERS.min(count));
        let messages = std::iter::repeat_n(message.clone(), share);
        sending.spawn(send(server.broker(0).await?, "msg.route.ok", messages));
    }
    let mut received = 0;
    while received < count {
        let got = receive(&mut owner).await?;
        received += got;
        // Receiving is faster than sending, so errors of the senders are checked here.
        while let Some(ended) = sending.try_join_next() {
            ended??;
        }
        if got == 0 && sending.is_empty() && received < count {
            received += receive(&mut owner).await?;
            if received < count {
                bail!("{received} of {count} messages were received");
            }
        }
    }
    Ok(())
}

/// Sends all messages with a window, and returns when each is acknowledged with a frame that contains
/// `acknowledged`.
pub async fn send(
    mut socket: Socket,
    acknowledged: &'static str,
    messages: impl ExactSizeIterator<Item = String>,
) -> Result<()> {
    let mut counter = FrameCounter::new(acknowledged);
    let (mut out, mut buffer) = (Vec::new(), vec![0; 8 * 1024]);
    let (count, mut sent) = (messages.len(), 0);
    let mut messages = messages.fuse();
    while counter.marked < count as u64 {
        out.clear();
        while sent < counter.marked as usize + WINDOW
            && let Some(message) = messages.next()
        {
            frames::push_text(&mut out, message.as_bytes());
            sent += 1;
        }
        socket.stream.write_all(&out).await?;
        let read = tokio::time::timeout(RESPONSE_TIMEOUT, socket.stream.read(&mut buffer)).await;
        match read.with_context(|| format!("no acknowledgement for {RESPONSE_TIMEOUT:?}"))?? {
            0 => bail!("the hub closed a sender's connection; last frame: {:?}", counter.last_other),
            read => counter.feed(&buffer[..read]),
        }
    }
    Ok(())
}

/// Sends and receives one message after the other. Returns median and 99th percentile of the receive latency,
/// in ms.
pub async fn measure(server: &Arc<Server>, length: Duration) -> Result<Sample> {
    let mut socket = server.broker(0).await?;
    let message = route(&words::texts(1, TEXT_BYTES)[0]);
    let mut took = Vec::new();
    let started = Instant::now();
    while started.elapsed() < length {
        socket.send(&message).await?;
        socket.expect(&["msg.route.ok"]).await?;
        let requested = Instant::now();
        let got = receive(&mut socket).await?;
        took.push(requested.elapsed().as_secs_f64() * 1e3);
        if got != 1 {
            bail!("{got} messages were received instead of one");
        }
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    Ok(Sample { value: at(0.5), extra: vec![at(0.99)], server_cpu_us: None, cores_of_others: None })
}

/// Receives the pending messages and returns their number.
async fn receive(socket: &mut Socket) -> Result<usize> {
    socket.send(RECEIVE).await?;
    Ok(socket.expect(&["msg.receive.ok"]).await?.matches("\"_deliveredTo\"").count())
}

fn route(text: &str) -> String {
    format!(
        r#"{{"type":"msg.route","from":"slack-bridge","path":"slack/history","payload":{{"text":"{text}"}},"source":"slack"}}"#
    )
}
