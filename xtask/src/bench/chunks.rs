//! Measures streaming replies: agents on one gateway, and viewers in their room.
//!
//! Every chunk has the same length and arrives once and in order, so the amount of text that a viewer has
//! received tells which chunks arrived, even if the hub merged them.

use super::Sample;
use super::fan_out::DeliveryCounters;
use super::frames;
use super::server::Server;
use super::socket::Socket;
use super::words;
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Length of a chunk: a few words, like the output of a model.
const CHUNK_BYTES: usize = 20;
/// Maximum number of sent chunks that have not reached every viewer.
const WINDOW_CHUNKS: u64 = 256;
/// Number of chunks per write.
const BATCH_CHUNKS: u64 = 16;
/// Interval between two chunks of an agent when many agents stream.
const CHUNK_INTERVAL: Duration = Duration::from_millis(10);

/// Returns the delivered text per second of server CPU time, in MB; the extra numbers are latencies in ms
/// (99th percentile and median) and chunks per second.
pub async fn measure(server: &Arc<Server>, chunks: usize, viewers: usize) -> Result<Sample> {
    let mut bench = ChunkBench::start(server, 1, viewers).await?;
    let texts = bench.frames(0);
    let (cpu, started) = (server.process.cpu()?, Instant::now());
    let mut sent = 0;
    let mut out = Vec::new();
    while sent < chunks as u64 {
        out.clear();
        for _ in 0..BATCH_CHUNKS.min(chunks as u64 - sent) {
            frames::push_text(&mut out, texts[sent as usize % texts.len()].as_bytes());
            bench.log.record_sent(0);
            sent += 1;
        }
        bench.host.stream.write_all(&out).await?;
        bench.log.chunks.all_have((sent + BATCH_CHUNKS).saturating_sub(WINDOW_CHUNKS)).await?;
    }
    bench.log.chunks.all_have(sent).await?;
    let (cpu, took) = (server.process.cpu()? - cpu, started.elapsed().as_secs_f64());
    let latencies = bench.end().await?;
    let delivered = (chunks * viewers * CHUNK_BYTES) as f64 / 1e6;
    Ok(Sample {
        value: delivered / cpu.as_secs_f64(),
        extra: vec![percentile(&latencies, 0.99), percentile(&latencies, 0.5), chunks as f64 / took],
        server_cpu_us: Some(cpu.as_secs_f64() * 1e6 / (chunks * viewers) as f64),
        cores_of_others: None,
    })
}

/// Returns the 99th percentile of the latency while many agents stream at a fixed rate, in ms; the extra
/// number is the median.
pub async fn measure_many(
    server: &Arc<Server>,
    agents: usize,
    viewers: usize,
    length: Duration,
) -> Result<Sample> {
    let mut bench = ChunkBench::start(server, agents, viewers).await?;
    let texts: Vec<Vec<String>> = (0..agents).map(|agent| bench.frames(agent)).collect();
    let rounds = (length.as_secs_f64() / CHUNK_INTERVAL.as_secs_f64()).ceil() as usize;
    let mut interval = tokio::time::interval(CHUNK_INTERVAL);
    let mut out = Vec::new();
    for round in 0..rounds {
        interval.tick().await;
        out.clear();
        for (agent, texts) in texts.iter().enumerate() {
            frames::push_text(&mut out, texts[round % texts.len()].as_bytes());
            bench.log.record_sent(agent);
        }
        bench.host.stream.write_all(&out).await?;
    }
    bench.log.chunks.all_have((rounds * agents) as u64).await?;
    let latencies = bench.end().await?;
    Ok(Sample {
        value: percentile(&latencies, 0.99),
        extra: vec![percentile(&latencies, 0.5)],
        server_cpu_us: None,
        cores_of_others: None,
    })
}

/// Returns the memory of an idle online agent, in KiB.
///
/// Several groups of agents are registered before the measured one, to fill memory that the setup left free.
/// A user may have at most a thousand agents, so each group belongs to another user.
pub async fn measure_idle(server: &Arc<Server>, agents: usize) -> Result<Sample> {
    const WARM_UP_GROUPS: usize = 3;
    let mut hosts = Vec::new();
    for group in 0..WARM_UP_GROUPS {
        hosts.push(register_idle_agents(server, group, agents).await?);
    }
    server.process.becomes_quiet().await?;
    let before = server.process.resident_kib()?;
    hosts.push(register_idle_agents(server, WARM_UP_GROUPS, agents).await?);
    server.process.becomes_quiet().await?;
    let after = server.process.resident_kib()?;
    let each = after.saturating_sub(before) as f64 / agents as f64;
    Ok(Sample { value: each, extra: Vec::new(), server_cpu_us: None, cores_of_others: None })
}

async fn register_idle_agents(server: &Server, person: usize, agents: usize) -> Result<Socket> {
    let mut host = server.host(person, &format!("bench-idle-{person}")).await?;
    for agent in 0..agents {
        register(&mut host, &format!("idle-{person}-{agent}")).await?;
    }
    Ok(host)
}

/// Creates the agents and adds them to the common room.
pub async fn prepare(server: &Server, agents: usize) -> Result<()> {
    let mut host = server.host(0, "bench-host").await?;
    for agent in 0..agents {
        register(&mut host, &name(agent)).await?;
        server.add_agent(&name(agent)).await?;
    }
    host.close().await
}

fn name(agent: usize) -> String {
    format!("speaker-{agent:04}")
}

/// Registers an agent. The reply to the ping after it proves that the hub has processed the registration.
async fn register(host: &mut Socket, name: &str) -> Result<()> {
    let frame = format!(
        r#"{{"type":"gateway:register_agent","agent":{{"id":"{name}","name":"{name}","type":"generic"}}}}"#
    );
    host.send(&frame).await?;
    host.send(r#"{"type":"gateway:ping","ts":1}"#).await?;
    host.expect(&["server:pong"]).await.map(|_| ())
}

/// Connected viewers, and agents whose runs have started.
struct ChunkBench {
    host: Socket,
    log: Arc<DeliveryLog>,
    listening: JoinSet<Vec<f32>>,
    agents: usize,
    /// Room at the hub; `None` at the reference, which has no rooms and no replies to complete.
    room: Option<String>,
    round: u128,
}

impl ChunkBench {
    async fn start(server: &Arc<Server>, agents: usize, viewers: usize) -> Result<Self> {
        let log = Arc::new(DeliveryLog::new(agents, viewers));
        let mut listening = JoinSet::new();
        let sockets =
            server.open_many(viewers, |server, number| async move { server.subscriber(number).await });
        for (number, socket) in sockets.await.context("connecting viewers")?.into_iter().enumerate() {
            listening.spawn(listen(socket.stream, socket.unread, log.clone(), number));
        }
        let room = server.common_room().ok().map(|(room, _)| room.to_owned());
        let host = match &room {
            Some(room) => mention_agents(server, agents, room).await.context("mentioning the agents")?,
            None => server.publisher(0).await?,
        };
        // Message IDs contain the time, so that they differ in every round.
        let round = std::time::UNIX_EPOCH.elapsed()?.as_micros();
        Ok(Self { host, log, listening, agents, room, round })
    }

    /// Returns the chunk frames of an agent, which are sent in rotation.
    fn frames(&self, agent: usize) -> Vec<String> {
        // The reference server forwards frames unchanged. It is therefore sent frames in the format in which
        // the hub delivers them to clients.
        let (kind, room, agent_name) = match &self.room {
            Some(room) => ("gateway", room.as_str(), ""),
            None => ("server", "01234567-89ab-cdef-0123-456789abcdef", r#""agentName":"speaker-0000","#),
        };
        let (agent, message) = (name(agent), self.message(agent));
        let frame = |text: String| {
            format!(
                r#"{{"type":"{kind}:message_chunk","roomId":"{room}","agentId":"{agent}",{agent_name}"messageId":"{message}","chunk":{{"type":"text","content":"{text}"}}}}"#
            )
        };
        words::texts(64, CHUNK_BYTES).into_iter().map(frame).collect()
    }

    fn message(&self, agent: usize) -> String {
        format!("reply-{}-{agent}", self.round)
    }

    /// Completes the replies and returns the latency of each chunk to each viewer, in ms, sorted.
    async fn end(mut self) -> Result<Vec<f32>> {
        if let Some(room) = &self.room {
            for agent in 0..self.agents {
                let (agent, message) = (name(agent), self.message(agent));
                let complete = format!(
                    r#"{{"type":"gateway:message_complete","roomId":"{room}","agentId":"{agent}","messageId":"{message}"}}"#
                );
                self.host.send(&complete).await?;
            }
            self.log.complete.all_have(self.agents as u64).await?;
        }
        self.log.stop.send_replace(true);
        let mut latencies = Vec::new();
        while let Some(ended) = self.listening.join_next().await {
            latencies.extend(ended?);
        }
        latencies.sort_by(f32::total_cmp);
        Ok(latencies)
    }
}

/// Registers the agents, and mentions all of them in one message. Returns once their runs have started.
async fn mention_agents(server: &Server, agents: usize, room: &str) -> Result<Socket> {
    let mut host = server.host(0, "bench-host").await?;
    for agent in 0..agents {
        register(&mut host, &name(agent)).await?;
    }
    let mut person = server.visitor(0).await?;
    let mentions: String = (0..agents).map(|agent| format!("@{} ", name(agent))).collect();
    let say = format!(
        r#"{{"type":"client:send_message","roomId":"{room}","content":"{mentions}please","clientMessageId":"{}"}}"#,
        std::time::UNIX_EPOCH.elapsed()?.as_micros()
    );
    person.send(&say).await?;
    person.expect(&["server:message_ack"]).await?;
    for _ in 0..agents {
        host.expect(&["server:send_to_agent"]).await?;
    }
    Ok(host)
}

/// Send times of all chunks, and the number of chunks that each viewer has received.
struct DeliveryLog {
    started: Instant,
    /// Send times of the chunks of each agent. Written before a chunk is sent, read by the viewers that
    /// receive it.
    sent: Vec<std::sync::Mutex<Vec<Instant>>>,
    chunks: DeliveryCounters,
    complete: DeliveryCounters,
    stop: tokio::sync::watch::Sender<bool>,
}

impl DeliveryLog {
    fn new(agents: usize, viewers: usize) -> Self {
        Self {
            started: Instant::now(),
            sent: (0..agents).map(|_| std::sync::Mutex::default()).collect(),
            chunks: DeliveryCounters::new(viewers),
            complete: DeliveryCounters::new(viewers),
            stop: tokio::sync::watch::Sender::new(false),
        }
    }

    fn record_sent(&self, agent: usize) {
        self.sent[agent].lock().expect("no thread panics while holding the lock").push(Instant::now());
    }

    fn sent_at(&self, agent: usize, chunk: usize) -> Instant {
        let sent = self.sent[agent].lock().expect("no thread panics while holding the lock");
        sent.get(chunk).copied().unwrap_or(self.started)
    }
}

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 64 * 1024]);
}

/// Receives chunks until the log is stopped, and returns the latency of each chunk in ms.
async fn listen(stream: TcpStream, unread: Vec<u8>, log: Arc<DeliveryLog>, viewer: usize) -> Vec<f32> {
    let mut stop = log.stop.subscribe();
    let mut reader = Reader { unread, bytes: vec![0; log.sent.len()] };
    let mut latencies = Vec::new();
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return latencies,
            ready = stream.readable() => {
                if ready.is_err() {
                    break;
                }
            }
        }
        let read = BUFFER.with_borrow_mut(|buffer| {
            let read = stream.try_read(buffer)?;
            reader.unread.extend_from_slice(&buffer[..read]);
            Ok::<usize, std::io::Error>(read)
        });
        match read {
            Ok(0) => break,
            Ok(_) => reader.take(&log, viewer, &mut latencies),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    log.chunks.end();
    log.complete.end();
    latencies
}

struct Reader {
    unread: Vec<u8>,
    /// Number of text bytes received from each agent.
    bytes: Vec<usize>,
}

impl Reader {
    fn take(&mut self, log: &DeliveryLog, viewer: usize, latencies: &mut Vec<f32>) {
        let (now, mut at, mut chunks, mut complete) = (Instant::now(), 0, 0, 0);
        while let Some((_, header, length)) = frames::header(&self.unread[at..]) {
            let (begin, end) = (at + header, at + header + length as usize);
            let Some(payload) = self.unread.get(begin..end) else { break };
            match parse_chunk(payload) {
                Some((agent, length)) if agent < self.bytes.len() => {
                    let before = self.bytes[agent] / CHUNK_BYTES;
                    self.bytes[agent] += length;
                    for chunk in before..self.bytes[agent] / CHUNK_BYTES {
                        let took = now.saturating_duration_since(log.sent_at(agent, chunk));
                        latencies.push(took.as_secs_f32() * 1e3);
                        chunks += 1;
                    }
                }
                _ if payload.starts_with(br#"{"type":"server:message_complete""#) => complete += 1,
                _ => log.chunks.note(String::from_utf8_lossy(&payload[..payload.len().min(128)]).into()),
            }
            at = end;
        }
        self.unread.drain(..at);
        log.chunks.add(viewer, chunks);
        log.complete.add(viewer, complete);
    }
}

/// Returns the agent of a chunk frame and the length of its text, which contains no escapes.
fn parse_chunk(payload: &[u8]) -> Option<(usize, usize)> {
    if !payload.starts_with(br#"{"type":"server:message_chunk""#) {
        return None;
    }
    let text = std::str::from_utf8(payload).ok()?;
    let after =
        |key: &str| text.split_once(key).and_then(|(_, rest)| rest.split_once('"')).map(|(value, _)| value);
    let agent = after(r#""agentId":"speaker-"#)?.parse().ok()?;
    Some((agent, after(r#""content":""#)?.len()))
}

fn percentile(sorted: &[f32], share: f64) -> f64 {
    let index = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    sorted.get(index).map_or(f64::NAN, |value| f64::from(*value))
}
