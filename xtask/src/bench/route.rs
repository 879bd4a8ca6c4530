//! Messages a second from many senders through the routing index to whoever listens, end to end: each counts once
//! it is acknowledged, which at the hub means on disk, and pushed to its listener.
//!
//! A sender waits for each answer before it sends the next message, as programs do that must not lose any; in a flood it
//! has some on the way, which is printed beside it without a bar. Every message matches exactly one of the listeners'
//! patterns, and must reach it, else the measurement fails. NATS is asked to acknowledge each message too; it keeps none.
//!
//! Both sides get the same messages from the same senders, as many on the way, and each acknowledgement and push is
//! read and counted. What differs is theirs: the hub speaks WebSocket and JSON, decides who may hear, and waits for the
//! disk; NATS speaks its own lines over TCP and waits for nothing.
//!
//! How much is on the way decides about the ratio, so it is printed. A message in turn costs NATS a read and a write of its
//! own, as it does the hub; the more of them come together, the less of that is left, and what remains is nearly nothing
//! at NATS, while the hub still has to decide about, store and describe each one: from some sixteen on the way the hub is
//! as fast as it gets, and NATS goes on gaining.

use super::Sample;
use super::frames::{self, FrameCounter};
use super::nats;
use super::server::{Server, TEXT_BYTES, TEXTS};
use super::socket::PATIENCE;
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

/// Connections that listen, each to a channel of its own.
pub const LISTENERS: usize = 4;
/// Messages on the way for each sender in a flood.
pub const WINDOW: u64 = 16;

/// One connection, and how its stream is read.
pub struct Wire {
    pub stream: TcpStream,
    pub counter: Counter,
}

pub enum Counter {
    /// Acknowledgements or pushes, as the counter's marker says.
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

    /// How many messages were acknowledged, or pushed, since it was last asked.
    fn take(&mut self) -> Result<u64> {
        match self {
            Self::Hub(counter) => match counter.last_other.take_if(|frame| frame.contains(".error\"")) {
                Some(refusal) => bail!("a message was refused: {refusal}"),
                None => Ok(std::mem::take(&mut counter.marked)),
            },
            Self::Nats { counter, sends } => match counter.trouble.take() {
                Some(trouble) => bail!("NATS said {trouble}"),
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
    let arrived = tokio::time::timeout(PATIENCE, all).await.is_ok();
    let pushed = route_counters.pushed.load(Ordering::Relaxed);
    if !arrived || pushed != sent {
        bail!("{pushed} of {sent} messages were pushed");
    }
    Ok(sample)
}

/// Counts what arrives until the measurement drops it.
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

/// Sends until told to stop, and then waits until everything is acknowledged; returns how much was sent.
async fn send(mut wire: Wire, number: usize, window: u64, route_counters: Arc<RouteCounters>) -> Result<u64> {
    let channel = channel(number % LISTENERS);
    let subject = nats::subject(&channel);
    // Written by hand: the type goes first, as clients send it, and texts need no escaping.
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
        let read = tokio::time::timeout(PATIENCE, wire.stream.read(&mut buffer)).await;
        let read = read.with_context(|| format!("no acknowledgement for {PATIENCE:?}"))??;
        if read == 0 {
            bail!("the server closed a sender's connection");
        }
        wire.counter.feed(&buffer[..read]);
        let arrived = wire.counter.take()?;
        acknowledged += arrived;
        route_counters.acknowledged.fetch_add(arrived, Ordering::Relaxed);
    }
}
