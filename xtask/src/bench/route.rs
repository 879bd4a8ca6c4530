//! Measures routed messages per second, end to end: a message counts once it is acknowledged, which at the
//! hub means on disk, and pushed to its listener.
//!
//! A sender waits for each acknowledgement before it sends the next message, like programs that must not lose
//! messages. In the flood scenario it has a window of messages in flight; that number is printed without a
//! threshold. Every message matches exactly one listener and must reach it, otherwise the measurement fails.
//! NATS acknowledges each message too, but stores none.
//!
//! Both servers get the same messages from the same number of senders with the same window, and each
//! acknowledgement and push is counted. They differ in their work: the hub uses WebSocket and JSON, checks
//! permissions and waits for the disk; NATS uses its own text protocol over TCP and does not wait.
//!
//! The window decides the ratio, so it is printed. With one message in flight, each message costs a read and
//! a write at both servers. With more in flight, these costs are shared; then almost nothing remains at NATS,
//! while the hub still has to authorise, store and encode each message. From about sixteen in flight, the hub
//! does not get faster, while NATS still does.

use super::Sample;
use super::frames::{self, FrameCounter};
use super::nats;
use super::server::{Server, TEXT_BYTES, TEXTS};
use super::socket::RESPONSE_TIMEOUT;
use super::subscriptions::channel;
use super::timed;
use super::words;
use anyhow::{Context, Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Number of listening connections, each with its own channel.
pub const LISTENERS: usize = 4;
/// Messages in flight per sender in the flood scenario.
pub const WINDOW: u64 = 16;

/// A connection with the counter for its protocol.
pub struct Wire {
    pub stream: TcpStream,
    pub counter: Counter,
}

pub enum Counter {
    /// Counts acknowledgements or pushes, depending on its marker.
    Hub(FrameCounter),
    Nats {
        counter: nats::Counter,
        sends: bool,
    },
}

impl Counter {
    fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Hub(counter) => counter.feed(bytes),
            Self::Nats { counter, .. } => counter.feed(bytes),
        }
    }

    /// Returns the number of messages that were acknowledged, or pushed, since the last call.
    fn take(&mut self) -> Result<u64> {
        match self {
            Self::Hub(counter) => match counter.last_other.take_if(|frame| frame.contains(".error\"")) {
                Some(refusal) => bail!("a message was refused: {refusal}"),
                None => Ok(std::mem::take(&mut counter.marked)),
            },
            Self::Nats { counter, sends } => match counter.error.take() {
                Some(error) => bail!("NATS returned {error}"),
                None if *sends => Ok(std::mem::take(&mut counter.acknowledged)),
                None => Ok(std::mem::take(&mut counter.messages)),
            },
        }
    }
}

#[derive(Default)]
struct RouteCounters {
    acknowledged: AtomicU64,
    pushed: AtomicU64,
    changed: Notify,
    stop: AtomicBool,
}

impl RouteCounters {
    fn done(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed).min(self.pushed.load(Ordering::Relaxed))
    }
}

pub async fn measure(server: &Arc<Server>, senders: usize, window: u64, length: Duration) -> Result<Sample> {
    let route_counters = Arc::new(RouteCounters::default());
    let mut listening = JoinSet::new();
    for number in 0..LISTENERS {
        let wire = server.route_listener(number).await.context("connecting a listener")?;
        listening.spawn(listen(wire, route_counters.clone()));
    }
    let mut sending = JoinSet::new();
    for number in 0..senders {
        let wire = server.route_sender().await.context("connecting a sender")?;
        sending.spawn(send(wire, number, window, route_counters.clone()));
    }
    let sample = timed::rate(&server.process, length, || route_counters.done()).await?;
    route_counters.stop.store(true, Ordering::Relaxed);
    let mut sent = 0;
    while let Some(ended) = sending.join_next().await {
        sent += ended??;
    }
    let all = async {
        while route_counters.pushed.load(Ordering::Relaxed) < sent {
            route_counters.changed.notified().await;
        }
    };
    let arrived = tokio::time::timeout(RESPONSE_TIMEOUT, all).await.is_ok();
    let pushed = route_counters.pushed.load(Ordering::Relaxed);
    if !arrived || pushed != sent {
        bail!("{pushed} of {sent} messages were pushed");
    }
    Ok(sample)
}

/// Counts pushed messages until the measurement drops this task.
async fn listen(mut wire: Wire, route_counters: Arc<RouteCounters>) -> Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = wire.stream.read(&mut buffer).await?;
        if read == 0 {
            bail!("the server closed a listener's connection");
        }
        wire.counter.feed(&buffer[..read]);
        route_counters.pushed.fetch_add(wire.counter.take()?, Ordering::Relaxed);
        route_counters.changed.notify_one();
    }
}

/// Sends until `stop` is set, then waits until all messages are acknowledged. Returns the number of sent
/// messages.
async fn send(mut wire: Wire, number: usize, window: u64, route_counters: Arc<RouteCounters>) -> Result<u64> {
    let channel = channel(number % LISTENERS);
    let subject = nats::subject(&channel);
    // Formatted by hand: the type comes first, like in real clients, and texts need no escaping.
    let messages = words::texts(TEXTS, TEXT_BYTES).into_iter().map(|text| {
        format!(
            r#"{{"type":"msg.route","from":"slack-bridge","path":"{channel}","command":"new_message","payload":{{"text":"{text}"}},"source":"slack"}}"#
        )
    });
    let messages: Vec<String> = messages.collect();
    let (mut sent, mut acknowledged) = (0_u64, 0_u64);
    let (mut out, mut buffer) = (Vec::new(), vec![0; 8 * 1024]);
    loop {
        out.clear();
        while !route_counters.stop.load(Ordering::Relaxed) && sent < acknowledged + window {
            let message = messages[sent as usize % messages.len()].as_bytes();
            match wire.counter {
                Counter::Hub(_) => frames::push_text(&mut out, message),
                Counter::Nats { .. } => nats::push_message(&mut out, &subject, message),
            }
            sent += 1;
        }
        wire.stream.write_all(&out).await.context("sending")?;
        if sent == acknowledged {
            return Ok(sent);
        }
        let read = tokio::time::timeout(RESPONSE_TIMEOUT, wire.stream.read(&mut buffer)).await;
        let read = read.with_context(|| format!("no acknowledgement for {RESPONSE_TIMEOUT:?}"))??;
        if read == 0 {
            bail!("the server closed a sender's connection");
        }
        wire.counter.feed(&buffer[..read]);
        let arrived = wire.counter.take()?;
        acknowledged += arrived;
        route_counters.acknowledged.fetch_add(arrived, Ordering::Relaxed);
    }
}
