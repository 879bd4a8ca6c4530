//! Replies while they are spoken: agents on one gateway, and viewers in their room.
//!
//! Every piece has the same length and comes once and in order, so how much text a viewer has tells which pieces
//! arrived, whether they came one by one or together.

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

/// A few words, as models say them at a time.
const PIECE_BYTES: usize = 20;
/// Pieces that were said and have not reached everybody yet.
const WINDOW: u64 = 256;
/// Pieces written at once.
const BATCH: u64 = 16;
/// How often each of many agents says something.
const EVERY: Duration = Duration::from_millis(10);

/// Text delivered for each second of the server's CPU, in MB; beside it latencies in ms and pieces/s.
pub async fn measure(server: &Arc<Server>, pieces: usize, viewers: usize) -> Result<Sample> {
    let mut stage = ChunkBench::set(server, 1, viewers).await?;
    let texts = stage.pieces(0);
    let (cpu, started) = (server.process.cpu()?, Instant::now());
    let mut sent = 0;
    let mut out = Vec::new();
    while sent < pieces as u64 {
        out.clear();
        for _ in 0..BATCH.min(pieces as u64 - sent) {
            frames::push_text(&mut out, texts[sent as usize % texts.len()].as_bytes());
            stage.heard.note_said(0);
            sent += 1;
        }
        stage.host.stream.write_all(&out).await?;
        stage.heard.pieces.all_have((sent + BATCH).saturating_sub(WINDOW)).await?;
    }
    stage.heard.pieces.all_have(sent).await?;
    let (cpu, took) = (server.process.cpu()? - cpu, started.elapsed().as_secs_f64());
    let latencies = stage.end().await?;
    let delivered = (pieces * viewers * PIECE_BYTES) as f64 / 1e6;
    Ok(Sample {
        value: delivered / cpu.as_secs_f64(),
        extra: vec![percentile(&latencies, 0.99), percentile(&latencies, 0.5), pieces as f64 / took],
        server_cpu_us: Some(cpu.as_secs_f64() * 1e6 / (pieces * viewers) as f64),
        cores_of_others: None,
    })
}

/// The latency that 99 of 100 pieces stay below while many agents speak evenly, in ms; beside it the median.
pub async fn measure_many(
    server: &Arc<Server>,
    agents: usize,
    viewers: usize,
    length: Duration,
) -> Result<Sample> {
    let mut stage = ChunkBench::set(server, agents, viewers).await?;
    let texts: Vec<Vec<String>> = (0..agents).map(|agent| stage.pieces(agent)).collect();
    let rounds = (length.as_secs_f64() / EVERY.as_secs_f64()).ceil() as usize;
    let mut beat = tokio::time::interval(EVERY);
    let mut out = Vec::new();
    for round in 0..rounds {
        beat.tick().await;
        out.clear();
        for (agent, texts) in texts.iter().enumerate() {
            frames::push_text(&mut out, texts[round % texts.len()].as_bytes());
            stage.heard.note_said(agent);
        }
        stage.host.stream.write_all(&out).await?;
    }
    stage.heard.pieces.all_have((rounds * agents) as u64).await?;
    let latencies = stage.end().await?;
    Ok(Sample {
        value: percentile(&latencies, 0.99),
        extra: vec![percentile(&latencies, 0.5)],
        server_cpu_us: None,
        cores_of_others: None,
    })
}

/// Memory of an agent that is there and does nothing, in KiB.
///
/// Those before it fill up what setting up left free. Nobody may have more than a thousand: each crowd is a person's.
pub async fn measure_idle(server: &Arc<Server>, agents: usize) -> Result<Sample> {
    const CROWDS_BEFORE: usize = 3;
    let mut hosts = Vec::new();
    for crowd in 0..CROWDS_BEFORE {
        hosts.push(idle_crowd(server, crowd, agents).await?);
    }
    server.process.becomes_quiet().await?;
    let before = server.process.resident_kib()?;
    hosts.push(idle_crowd(server, CROWDS_BEFORE, agents).await?);
    server.process.becomes_quiet().await?;
    let after = server.process.resident_kib()?;
    let each = after.saturating_sub(before) as f64 / agents as f64;
    Ok(Sample { value: each, extra: Vec::new(), server_cpu_us: None, cores_of_others: None })
}

async fn idle_crowd(server: &Server, person: usize, agents: usize) -> Result<Socket> {
    let mut host = server.host(person, &format!("bench-idle-{person}")).await?;
    for agent in 0..agents {
        register(&mut host, &format!("idle-{person}-{agent}")).await?;
    }
    Ok(host)
}

/// Makes the agents, in the common room.
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

/// An agent is presented; the pong behind it says that it was taken in.
async fn register(host: &mut Socket, name: &str) -> Result<()> {
    let frame = format!(
        r#"{{"type":"gateway:register_agent","agent":{{"id":"{name}","name":"{name}","type":"generic"}}}}"#
    );
    host.send(&frame).await?;
    host.send(r#"{"type":"gateway:ping","ts":1}"#).await?;
    host.expect(&["server:pong"]).await.map(|_| ())
}

/// Viewers who listen, and agents who were asked to speak.
struct ChunkBench {
    host: Socket,
    heard: Arc<DeliveryLog>,
    listening: JoinSet<Vec<f32>>,
    agents: usize,
    /// At the hub; the reference has no room and nothing to complete.
    room: Option<String>,
    round: u128,
}

impl ChunkBench {
    async fn set(server: &Arc<Server>, agents: usize, viewers: usize) -> Result<Self> {
        let heard = Arc::new(DeliveryLog::new(agents, viewers));
        let mut listening = JoinSet::new();
        let sockets =
            server.open_many(viewers, |server, number| async move { server.subscriber(number).await });
        for (number, socket) in sockets.await.context("connecting viewers")?.into_iter().enumerate() {
            listening.spawn(listen(socket.stream, socket.unread, heard.clone(), number));
        }
        let room = server.common_room().ok().map(|(room, _)| room.to_owned());
        let host = match &room {
            Some(room) => address(server, agents, room).await.context("asking the agents")?,
            None => server.publisher(0).await?,
        };
        // Every round speaks under ids of its own.
        let round = std::time::UNIX_EPOCH.elapsed()?.as_micros();
        Ok(Self { host, heard, listening, agents, room, round })
    }

    /// The frames with which an agent says something, in turn.
    fn pieces(&self, agent: usize) -> Vec<String> {
        // The reference sends on what it gets: the frame as the hub tells it.
        let (kind, room, told) = match &self.room {
            Some(room) => ("gateway", room.as_str(), ""),
            None => ("server", "01234567-89ab-cdef-0123-456789abcdef", r#""agentName":"speaker-0000","#),
        };
        let (agent, message) = (name(agent), self.message(agent));
        let frame = |text: String| {
            format!(
                r#"{{"type":"{kind}:message_chunk","roomId":"{room}","agentId":"{agent}",{told}"messageId":"{message}","chunk":{{"type":"text","content":"{text}"}}}}"#
            )
        };
        words::texts(64, PIECE_BYTES).into_iter().map(frame).collect()
    }

    fn message(&self, agent: usize) -> String {
        format!("reply-{}-{agent}", self.round)
    }

    /// Completes the replies and gives how long each piece took to each viewer, in ms.
    async fn end(mut self) -> Result<Vec<f32>> {
        if let Some(room) = &self.room {
            for agent in 0..self.agents {
                let (agent, message) = (name(agent), self.message(agent));
                let complete = format!(
                    r#"{{"type":"gateway:message_complete","roomId":"{room}","agentId":"{agent}","messageId":"{message}"}}"#
                );
                self.host.send(&complete).await?;
            }
            self.heard.complete.all_have(self.agents as u64).await?;
        }
        self.heard.over.send_replace(true);
        let mut latencies = Vec::new();
        while let Some(ended) = self.listening.join_next().await {
            latencies.extend(ended?);
        }
        latencies.sort_by(f32::total_cmp);
        Ok(latencies)
    }
}

/// Presents the agents, and has a person address them all.
async fn address(server: &Server, agents: usize, room: &str) -> Result<Socket> {
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

/// What was said when, and who has heard how much of it.
struct DeliveryLog {
    began: Instant,
    /// For each agent, when it said each piece: written before the piece is, read by those who hear it.
    said: Vec<std::sync::Mutex<Vec<Instant>>>,
    pieces: DeliveryCounters,
    complete: DeliveryCounters,
    over: tokio::sync::watch::Sender<bool>,
}

impl DeliveryLog {
    fn new(agents: usize, viewers: usize) -> Self {
        Self {
            began: Instant::now(),
            said: (0..agents).map(|_| std::sync::Mutex::default()).collect(),
            pieces: DeliveryCounters::new(viewers),
            complete: DeliveryCounters::new(viewers),
            over: tokio::sync::watch::Sender::new(false),
        }
    }

    fn note_said(&self, agent: usize) {
        self.said[agent].lock().expect("nobody panics while holding this").push(Instant::now());
    }

    fn said(&self, agent: usize, piece: usize) -> Instant {
        let said = self.said[agent].lock().expect("nobody panics while holding this");
        said.get(piece).copied().unwrap_or(self.began)
    }
}

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 64 * 1024]);
}

/// Hears until everything is over, and gives how long each piece took.
async fn listen(stream: TcpStream, unread: Vec<u8>, heard: Arc<DeliveryLog>, viewer: usize) -> Vec<f32> {
    let mut over = heard.over.subscribe();
    let mut reader = Reader { unread, bytes: vec![0; heard.said.len()] };
    let mut latencies = Vec::new();
    loop {
        tokio::select! {
            _ = over.wait_for(|over| *over) => return latencies,
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
            Ok(_) => reader.take(&heard, viewer, &mut latencies),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    heard.pieces.end();
    heard.complete.end();
    latencies
}

struct Reader {
    unread: Vec<u8>,
    /// How much text of each agent there was.
    bytes: Vec<usize>,
}

impl Reader {
    fn take(&mut self, heard: &DeliveryLog, viewer: usize, latencies: &mut Vec<f32>) {
        let (now, mut at, mut pieces, mut complete) = (Instant::now(), 0, 0, 0);
        while let Some((_, header, length)) = frames::header(&self.unread[at..]) {
            let (begin, end) = (at + header, at + header + length as usize);
            let Some(payload) = self.unread.get(begin..end) else { break };
            match piece(payload) {
                Some((agent, length)) if agent < self.bytes.len() => {
                    let before = self.bytes[agent] / PIECE_BYTES;
                    self.bytes[agent] += length;
                    for piece in before..self.bytes[agent] / PIECE_BYTES {
                        let took = now.saturating_duration_since(heard.said(agent, piece));
                        latencies.push(took.as_secs_f32() * 1e3);
                        pieces += 1;
                    }
                }
                _ if payload.starts_with(br#"{"type":"server:message_complete""#) => complete += 1,
                _ => heard.pieces.note(String::from_utf8_lossy(&payload[..payload.len().min(128)]).into()),
            }
            at = end;
        }
        self.unread.drain(..at);
        heard.pieces.add(viewer, pieces);
        heard.complete.add(viewer, complete);
    }
}

/// Whose text is in a frame, and how long it is. The texts need no escaping.
fn piece(payload: &[u8]) -> Option<(usize, usize)> {
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
    let place = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    sorted.get(place).map_or(f64::NAN, |value| f64::from(*value))
}
