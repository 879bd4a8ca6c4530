//! Measures deliveries per second from a few publishers to many subscribers of one room, over WebSockets or
//! as server-sent events, or of one channel over Ably connections.
//!
//! Publishers keep a window of messages in flight, so this measures throughput, not latency. Every message
//! must reach every subscriber, otherwise the measurement fails.

use super::Sample;
use super::ably::Format;
use super::frames::FrameCounter;
use super::lines::LineCounter;
use super::server::{DELIVERY, Publications, Server};
use super::socket::RESPONSE_TIMEOUT;
use super::timed;
use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

const PUBLISHERS: usize = 4;
/// Maximum number of sent messages that have not reached every subscriber; far below the capacity of an
/// outbox.
const WINDOW: u64 = 256;
/// Number of messages per write.
const BATCH: u64 = 16;

/// Transport of the deliveries.
#[derive(Clone, Copy)]
pub enum Transport {
    Sockets,
    Events,
    Ably(Format),
}

/// Delivery counter for a transport.
enum Counter {
    Frames(FrameCounter),
    Lines(LineCounter),
}

impl Counter {
    fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Frames(frames) => frames.feed(bytes),
            Self::Lines(lines) => lines.feed(bytes),
        }
    }

    /// Returns the number of deliveries and their bytes since the last call.
    fn take(&mut self) -> (u64, u64) {
        let (marked, bytes) = match self {
            Self::Frames(frames) => (&mut frames.marked, &mut frames.marked_payload_bytes),
            Self::Lines(lines) => (&mut lines.marked, &mut lines.marked_bytes),
        };
        (std::mem::take(marked), std::mem::take(bytes))
    }

    fn last_other(&mut self) -> Option<String> {
        match self {
            Self::Frames(frames) => frames.last_other.take(),
            Self::Lines(_) => None,
        }
    }
}

/// Measures the rate. Also returns the average payload length of a delivery.
pub async fn measure(
    server: &Arc<Server>,
    transport: Transport,
    subscribers: usize,
    length: Duration,
) -> Result<(Sample, usize)> {
    let delivery_counters = Arc::new(DeliveryCounters::new(subscribers));
    let mut connections = JoinSet::new();
    let sockets = server.open_many(subscribers, |server, number| async move {
        match transport {
            Transport::Sockets => server.subscriber(number).await,
            Transport::Events => server.event_reader(number).await,
            Transport::Ably(format) => server.ably_subscriber(number, format).await,
        }
    });
    for (number, socket) in sockets.await.context("connecting subscribers")?.into_iter().enumerate() {
        let stream = Arc::new(socket.stream);
        let counter = match transport {
            Transport::Sockets => Counter::Frames(FrameCounter::new(DELIVERY)),
            Transport::Events => Counter::Lines(LineCounter::new(server.event_marker())),
            Transport::Ably(format) => Counter::Frames(FrameCounter::new(server.ably_marker(format))),
        };
        connections.spawn(listen(
            stream,
            socket.unread,
            counter,
            delivery_counters.clone(),
            Role::Subscriber(number),
        ));
    }
    let mut publishers = Vec::new();
    for number in 0..PUBLISHERS {
        let socket = match transport {
            Transport::Ably(format) => server.ably_publisher(number, format).await,
            Transport::Sockets | Transport::Events => server.publisher(number).await,
        };
        let socket = socket.context("connecting a publisher")?;
        let stream = Arc::new(socket.stream);
        publishers.push(stream.clone());
        let counter = Counter::Frames(FrameCounter::new(DELIVERY));
        connections.spawn(listen(stream, socket.unread, counter, delivery_counters.clone(), Role::Publisher));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let messages = match transport {
        Transport::Ably(format) => server.ably_publications(format),
        Transport::Sockets | Transport::Events => Publications::encoded(&server.publications()),
    };
    let publishing = tokio::spawn(publish(publishers, messages, delivery_counters.clone(), stop.clone()));

    let sample = timed::rate(&server.process, length, || delivery_counters.deliveries()).await?;
    stop.store(true, Ordering::Relaxed);
    let sent = publishing.await??;
    delivery_counters.all_have(sent).await?;
    if delivery_counters.deliveries() != sent * subscribers as u64 {
        bail!(
            "{} deliveries of {sent} messages to {subscribers} subscribers",
            delivery_counters.deliveries()
        );
    }
    let frame_bytes =
        delivery_counters.payload_bytes.load(Ordering::Relaxed) / delivery_counters.deliveries().max(1);
    Ok((sample, frame_bytes as usize))
}

/// Sends in batches, rotating the publishers, until `stop` is set. Returns the number of sent messages.
async fn publish(
    publishers: Vec<Arc<TcpStream>>,
    messages: Publications,
    delivery_counters: Arc<DeliveryCounters>,
    stop: Arc<AtomicBool>,
) -> Result<u64> {
    let mut sent = 0;
    let mut out = Vec::new();
    let mut rotation = publishers.iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        out.clear();
        for _ in 0..BATCH {
            messages.push(&mut out, sent);
            sent += 1;
        }
        write_all(rotation.next().expect("there is at least one publisher"), &out).await?;
        delivery_counters.all_have((sent + BATCH).saturating_sub(WINDOW)).await?;
    }
    Ok(sent)
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("publishing"),
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Role {
    Subscriber(usize),
    Publisher,
}

thread_local! {
    // One buffer per thread instead of per connection: a thousand buffers would not fit into the cache.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 64 * 1024]);
}

/// Counts deliveries until the connection ends.
async fn listen(
    stream: Arc<TcpStream>,
    unread: Vec<u8>,
    mut counter: Counter,
    delivery_counters: Arc<DeliveryCounters>,
    role: Role,
) {
    counter.feed(&unread);
    loop {
        if let Role::Subscriber(number) = role {
            let (new, bytes) = counter.take();
            delivery_counters.payload_bytes.fetch_add(bytes, Ordering::Relaxed);
            delivery_counters.add(number, new);
        }
        if let Some(other) = counter.last_other() {
            delivery_counters.note(other);
        }
        if stream.readable().await.is_err() {
            break;
        }
        let read = BUFFER.with_borrow_mut(|buffer| {
            let read = stream.try_read(buffer)?;
            counter.feed(&buffer[..read]);
            Ok::<usize, std::io::Error>(read)
        });
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    delivery_counters.end();
}

/// Number of deliveries per subscriber. Each count is written by its connection and read by the publisher
/// task, which waits for the slowest subscriber: a window over the sum would let one subscriber fall behind
/// without limit.
pub struct DeliveryCounters {
    counts: Vec<AtomicU64>,
    payload_bytes: AtomicU64,
    /// Index of the subscriber for which the publisher waits.
    awaited: AtomicUsize,
    /// Count of that subscriber at which the publisher is woken.
    target: AtomicU64,
    wake: Notify,
    /// Whether a connection ended before the measurement.
    ended: AtomicBool,
    /// Last frame that was not a delivery; it often explains missing deliveries.
    last_other: Mutex<String>,
}

impl DeliveryCounters {
    pub fn new(subscribers: usize) -> Self {
        Self {
            counts: (0..subscribers).map(|_| AtomicU64::new(0)).collect(),
            payload_bytes: AtomicU64::new(0),
            awaited: AtomicUsize::new(0),
            target: AtomicU64::new(0),
            wake: Notify::new(),
            ended: AtomicBool::new(false),
            last_other: Mutex::new(String::new()),
        }
    }

    fn deliveries(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub fn add(&self, subscriber: usize, new: u64) {
        let count = self.counts[subscriber].fetch_add(new, Ordering::SeqCst) + new;
        let is_awaited = self.awaited.load(Ordering::SeqCst) == subscriber;
        if is_awaited && count >= self.target.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    pub fn note(&self, frame: String) {
        *self.last_other.lock().expect("no thread panics while holding the lock") = frame;
    }

    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// Waits until every subscriber has received `target` messages. Fails if a connection ends or no delivery
    /// arrives.
    pub async fn all_have(&self, target: u64) -> Result<()> {
        for (subscriber, count) in self.counts.iter().enumerate() {
            // The target is stored before the count is checked, so that a delivery in between wakes this
            // task.
            self.target.store(target, Ordering::SeqCst);
            self.awaited.store(subscriber, Ordering::SeqCst);
            while count.load(Ordering::SeqCst) < target {
                if self.ended.load(Ordering::SeqCst) {
                    bail!("the server closed a connection; its last frame: {}", self.last_frame());
                }
                let before = self.deliveries();
                let woken = tokio::time::timeout(RESPONSE_TIMEOUT, self.wake.notified()).await;
                if woken.is_err() && self.deliveries() == before {
                    let count = count.load(Ordering::SeqCst);
                    bail!("a subscriber is stuck at {count} of {target}; last frame: {}", self.last_frame());
                }
            }
        }
        Ok(())
    }

    fn last_frame(&self) -> String {
        self.last_other.lock().expect("no thread panics while holding the lock").clone()
    }
}
