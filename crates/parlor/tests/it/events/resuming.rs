//! Tests of ordinals and positions: equal for all readers, always increasing, and no event lost on resume.

use super::{live, resumed, texts};
use crate::scene::{Scene, connect, following};
use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use parlor_testkit::rng::Rng;
use parlor_testkit::seed::seed;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Barrier, Notify};
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn ordinals_are_equal_for_all_readers_and_increase_across_a_restart() {
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let (mut first_reader, mut second_reader) = (live(&scene.admin).await, live(&scene.admin).await);
    let bob = scene.person("bob").await;
    let path = format!("/api/rooms/{room}/members");
    scene.admin.post(&path, json!({ "memberId": bob.user_id(), "memberType": "user" })).await.unwrap();
    let mut at_bob = following(&bob, &room).await;
    at_bob.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    at_bob.say_and_wait(&room, "hello", "c1").await.unwrap();
    let end = |message: &Value| message["kind"] == "message";
    let (first, second) = (first_reader.until(end).await.unwrap(), second_reader.until(end).await.unwrap());
    assert_eq!(first, second);
    assert!(first.iter().any(|message| message["kind"] == "typing"), "{first:?}");
    let (highest, position) =
        (first.last().unwrap()["seq"].as_u64().unwrap(), first_reader.position.clone().unwrap());
    // A new connection, because one connection may send only one typing signal per second.
    let mut at_bob = following(&bob, &room).await;
    at_bob.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    let typing = first_reader.wait_for_kind("typing").await.unwrap();
    assert!(typing["seq"].as_u64().unwrap() > highest);

    scene.crash_and_restart().await;
    // A replayed event has the same ordinal as before.
    let earlier = position_before(&position, 1);
    let replayed = resumed(&scene.admin, &earlier).await.until(end).await.unwrap();
    assert_eq!(replayed.last(), first.last());
    let mut after = live(&scene.admin).await;
    let mut at_bob = following(&bob.at(scene.url()), &room).await;
    at_bob.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    let signal = after.wait_for_kind("typing").await.unwrap();
    assert!(signal["seq"].as_u64().unwrap() > typing["seq"].as_u64().unwrap(), "{signal} after {typing}");
    scene.ends_well().await;
}

fn position_before(position: &str, by: u64) -> String {
    let (epoch, seq) = position.split_once('-').unwrap();
    format!("{epoch}-{}", seq.parse::<u64>().unwrap() - by)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_position_yields_a_resync_with_the_number_of_lost_events() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut before = live(&scene.admin).await;
    scene.admin.post_message(&room, "before").await.unwrap();
    before.wait_for_kind("message").await.unwrap();
    let position = before.position.clone().unwrap();
    let (epoch, seq) = position.split_once('-').unwrap();
    let other_epoch = if epoch == "00000001" { "00000002" } else { "00000001" };
    let ahead = seq.parse::<u64>().unwrap() + 1000;
    for (since, lost) in
        [(format!("{other_epoch}-0"), Value::Null), (format!("{epoch}-{ahead}"), json!(1000))]
    {
        let resync = resumed(&scene.admin, &since).await.wait_for_kind("run").await.unwrap();
        assert_eq!(
            (&resync["phase"], &resync["data"]["lagged_count"]),
            (&json!("resync"), &lost),
            "{resync}"
        );
        assert_eq!(resync["data"]["position"], position);
    }
    let mut stream = resumed(&scene.admin, &format!("{other_epoch}-0")).await;
    stream.wait_for_kind("run").await.unwrap();
    scene.admin.post_message(&room, "after").await.unwrap();
    assert_eq!(
        stream.wait_for_kind("message").await.unwrap()["text"],
        "after",
        "the stream is live after the resync"
    );
    scene.ends_well().await;
}

/// Number of messages that each reader has read, so that the writer can wait for the slowest.
struct Progress {
    seen: Vec<AtomicUsize>,
    moved: Notify,
}

impl Progress {
    fn record(&self, reader: usize, seen: usize) {
        self.seen[reader].store(seen, Relaxed);
        if seen.is_multiple_of(64) {
            self.moved.notify_one();
        }
    }

    /// Waits until every reader has read at least `min` messages.
    async fn wait_for_all(&self, min: usize) {
        while self.seen.iter().any(|seen| seen.load(Relaxed) < min) {
            self.moved.notified().await;
        }
    }
}

/// Posts `count` numbered messages, at most 64 of them unacknowledged and at most `max_lead` ahead of the
/// slowest reader.
async fn post_many(writer: &mut Client, room: &str, count: usize, max_lead: usize, progress: &Progress) {
    let mut unacknowledged = 0;
    for n in 0..count {
        if n.is_multiple_of(64) {
            timeout(TEST_TIMEOUT, progress.wait_for_all(n.saturating_sub(max_lead)))
                .await
                .expect("readers make progress");
        }
        writer.say(room, &n.to_string(), &format!("m{n}")).await.unwrap();
        unacknowledged += 1;
        while unacknowledged >= 64 || (n + 1 == count && unacknowledged > 0) {
            writer.wait_for_type("server:message_ack").await.unwrap();
            unacknowledged -= 1;
        }
    }
}

/// Minimal stream reader for load tests: extracts only the ordinal and text of each message and the position.
struct RawReader {
    stream: TcpStream,
    more: Vec<u8>,
    read: String,
    /// Number of bytes of `read` that are already parsed.
    done: usize,
    position: String,
}

impl RawReader {
    async fn open(user: &RestClient, position: String) -> Self {
        let mut stream = connect(user.url()).await;
        let host = user.url().trim_start_matches("http://");
        let request = format!(
            "GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: {position}\r\n\r\n",
            user.token()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self { stream, more: vec![0; 64 * 1024], read: String::with_capacity(128 * 1024), done: 0, position }
    }

    /// Returns the number in the text of the next message, and its ordinal.
    async fn next(&mut self) -> (usize, u64) {
        let mut position = None;
        loop {
            while let Some(line) = self.line() {
                if let Some(id) = line.strip_prefix("id: ") {
                    position = Some(id.to_owned());
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let number_after = |name: &str| {
                        let rest = &data[data.find(name)? + name.len()..];
                        rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse::<u64>().ok()
                    };
                    assert!(!data.contains(r#""phase":"resync""#), "{data}");
                    let is_message = data.starts_with(r#"{"id":"msg-"#);
                    let numbers = (
                        number_after(r#","seq":"#),
                        is_message.then(|| number_after(r#","text":""#)).flatten(),
                    );
                    self.position = position.take().unwrap_or_else(|| std::mem::take(&mut self.position));
                    if let (Some(seq), Some(text)) = numbers {
                        return (text as usize, seq);
                    }
                }
            }
            self.read.drain(..self.done);
            self.done = 0;
            let more = &mut self.more;
            let read = timeout(TEST_TIMEOUT, self.stream.read(more))
                .await
                .expect("data arrives before the timeout")
                .unwrap();
            assert_ne!(read, 0, "the stream must not end");
            self.read.push_str(std::str::from_utf8(&more[..read]).expect("the test sends ASCII only"));
        }
    }

    /// Returns the next complete line.
    fn line(&mut self) -> Option<&str> {
        let rest = &self.read[self.done..];
        // `str::find` is optimised even in debug builds; a hand-written loop is not.
        let end = rest.find('\n')?;
        self.done += end + 1;
        Some(&rest[..end])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_cut_at_random_deliver_every_event_once_and_in_order() {
    // Four million deliveries take too long in a debug build. `cargo xtask test cuts` runs the full size.
    const FULL: bool = !cfg!(debug_assertions);
    const READERS: usize = if FULL { 200 } else { 5 };
    const MESSAGES: usize = if FULL { 20_000 } else { 2_000 };
    const CUTS: usize = 50;
    // More events than the replay buffer holds, so that slow readers resume from the store.
    const MAX_LEAD: usize = 1_500;
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let position = live(&scene.admin).await.position.clone().unwrap();
    let seed = seed();
    let start = Arc::new(Barrier::new(READERS + 1));
    // Ordinal of each message, as received by the first reader.
    let ordinals: Arc<[AtomicU64]> = (0..MESSAGES).map(|_| AtomicU64::new(0)).collect();
    let seen = (0..READERS).map(|_| AtomicUsize::new(0)).collect();
    let progress = Arc::new(Progress { seen, moved: Notify::new() });
    let mut readers = tokio::task::JoinSet::new();
    for n in 0..READERS {
        let (user, start, mut position) = (scene.admin.clone(), start.clone(), position.clone());
        let (ordinals, progress) = (ordinals.clone(), progress.clone());
        let mut rng = Rng::new(seed ^ n as u64);
        readers.spawn(async move {
            start.wait().await;
            let (mut seen, mut last, mut cuts) = (0, 0, 0);
            while seen < MESSAGES {
                let mut reader = RawReader::open(&user, position).await;
                let max_messages = 1 + rng.below(2 * (MESSAGES / CUTS) as u64) as usize;
                let until = MESSAGES.min(seen + max_messages);
                while seen < until {
                    let (text, seq) = reader.next().await;
                    assert_eq!(text, seen, "a message was lost or repeated");
                    assert!(seq > last, "{seq} after {last}");
                    let first = ordinals[text].compare_exchange(0, seq, Relaxed, Relaxed);
                    assert!(first.is_ok() || first == Err(seq), "all readers receive the same ordinal");
                    (seen, last) = (seen + 1, seq);
                    progress.record(n, seen);
                }
                position = reader.position;
                cuts += 1;
            }
            cuts
        });
    }
    start.wait().await;
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    post_many(&mut writer, &room, MESSAGES, MAX_LEAD, &progress).await;
    let mut all_cuts = 0;
    while let Some(cuts) = readers.join_next().await {
        all_cuts += cuts.unwrap();
    }
    assert!(all_cuts > READERS * CUTS * 9 / 10, "only {all_cuts} cuts");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_consumer_delays_no_other_reader_and_resumes_after_a_resync() {
    // More data than the socket buffers of the kernel and the outbox hold together.
    const MESSAGES: usize = 250;
    let scene = Scene::with(&[("PARLOR_OUTBOX_MAX_BYTES", "1000000")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut slow = live(&scene.admin).await;
    let (mut fast, user) = (live(&scene.admin).await, scene.admin.clone());
    let reading = tokio::spawn(async move {
        let mut seen = 0;
        while seen < MESSAGES {
            match fast.next(TEST_TIMEOUT).await.unwrap() {
                Some(message) => seen += usize::from(message["kind"] == "message"),
                // On a busy machine even this reader can become a slow consumer.
                None => fast = resumed(&user, fast.position.as_deref().unwrap()).await,
            }
        }
    });
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    for n in 0..MESSAGES {
        writer.say_and_wait(&room, &format!("{n} {}", "x".repeat(60_000)), &format!("m{n}")).await.unwrap();
    }
    reading.await.unwrap();
    let (mut seen, mut resync) = (Vec::new(), None);
    while let Some(message) = slow.next(TEST_TIMEOUT).await.unwrap() {
        match message["kind"].as_str() {
            Some("message") => seen.push(message),
            Some("run") if message["phase"] == "resync" => resync = Some(message),
            _ => {}
        }
    }
    let resync = resync.expect("the slow reader receives a resync");
    assert_eq!(resync["data"]["reason"], "broadcast_lag");
    assert!(resync["data"]["lagged_count"].as_u64().unwrap() > 0, "{resync}");
    assert!(seen.len() < MESSAGES, "the slow reader must lose messages");
    let mut resumed_stream = resumed(&scene.admin, slow.position.as_deref().unwrap()).await;
    while seen.len() < MESSAGES {
        seen.push(resumed_stream.wait_for_kind("message").await.unwrap());
    }
    let number = |text: &str| text.split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(texts(&seen).into_iter().map(number).eq(0..MESSAGES), "the slow reader resumes without loss");
    scene.ends_well().await;
}
