//! Numbers and positions: the same for everyone, never back, and nothing lost on the way.

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
async fn numbers_are_the_same_for_everyone_and_grow_over_a_restart() {
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let (mut one, mut two) = (live(&scene.admin).await, live(&scene.admin).await);
    let other = scene.person("bob").await;
    let path = format!("/api/rooms/{room}/members");
    scene.admin.post(&path, json!({ "memberId": other.user_id(), "memberType": "user" })).await.unwrap();
    let mut at_bob = following(&other, &room).await;
    at_bob.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    at_bob.say_and_wait(&room, "hello", "c1").await.unwrap();
    let end = |message: &Value| message["kind"] == "message";
    let (first, second) = (one.until(end).await.unwrap(), two.until(end).await.unwrap());
    assert_eq!(first, second);
    assert!(first.iter().any(|message| message["kind"] == "typing"), "{first:?}");
    let (highest, position) = (first.last().unwrap()["seq"].as_u64().unwrap(), one.position.clone().unwrap());
    // Another connection: one alone may not say so twice in a second.
    let mut at_bob = following(&other, &room).await;
    at_bob.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    let typing = one.wait_for_kind("typing").await.unwrap();
    assert!(typing["seq"].as_u64().unwrap() > highest);

    scene.crash_and_restart().await;
    // The same event has the same number when it is told again.
    let earlier = position_before(&position, 1);
    let again = resumed(&scene.admin, &earlier).await.until(end).await.unwrap();
    assert_eq!(again.last(), first.last());
    let mut after = live(&scene.admin).await;
    let mut at_bob = following(&other.at(scene.url()), &room).await;
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
async fn a_position_that_is_not_known_is_answered_with_resync_and_the_count() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut before = live(&scene.admin).await;
    scene.admin.post_message(&room, "before").await.unwrap();
    before.wait_for_kind("message").await.unwrap();
    let position = before.position.clone().unwrap();
    let (epoch, seq) = position.split_once('-').unwrap();
    let other = if epoch == "00000001" { "00000002" } else { "00000001" };
    let ahead = seq.parse::<u64>().unwrap() + 1000;
    for (since, lost) in [(format!("{other}-0"), Value::Null), (format!("{epoch}-{ahead}"), json!(1000))] {
        let told = resumed(&scene.admin, &since).await.wait_for_kind("run").await.unwrap();
        assert_eq!((&told["phase"], &told["data"]["lagged_count"]), (&json!("resync"), &lost), "{told}");
        assert_eq!(told["data"]["position"], position);
    }
    let mut stream = resumed(&scene.admin, &format!("{other}-0")).await;
    stream.wait_for_kind("run").await.unwrap();
    scene.admin.post_message(&room, "after").await.unwrap();
    assert_eq!(stream.wait_for_kind("message").await.unwrap()["text"], "after", "it is live from there on");
    scene.ends_well().await;
}

/// How far each of many readers is.
struct Pace {
    seen: Vec<AtomicUsize>,
    moved: Notify,
}

impl Pace {
    fn is_at(&self, reader: usize, seen: usize) {
        self.seen[reader].store(seen, Relaxed);
        if seen.is_multiple_of(64) {
            self.moved.notify_one();
        }
    }

    /// Waits until everyone has come so far.
    async fn until(&self, least: usize) {
        while self.seen.iter().any(|seen| seen.load(Relaxed) < least) {
            self.moved.notified().await;
        }
    }
}

/// Says many things, several at a time, and never more than `lead` ahead of the slowest reader.
async fn say_many(writer: &mut Client, room: &str, count: usize, lead: usize, pace: &Pace) {
    let mut under_way = 0;
    for n in 0..count {
        if n.is_multiple_of(64) {
            timeout(TEST_TIMEOUT, pace.until(n.saturating_sub(lead))).await.expect("readers go on");
        }
        writer.say(room, &n.to_string(), &format!("m{n}")).await.unwrap();
        under_way += 1;
        while under_way >= 64 || (n + 1 == count && under_way > 0) {
            writer.wait_for_type("server:message_ack").await.unwrap();
            under_way -= 1;
        }
    }
}

/// Reads a stream with as little work as can be: of each event the number and the text, and where it stands.
struct Reader {
    stream: TcpStream,
    more: Vec<u8>,
    read: String,
    /// How much of it was looked at.
    done: usize,
    position: String,
}

impl Reader {
    async fn open(person: &RestClient, position: String) -> Self {
        let mut stream = connect(person.url()).await;
        let host = person.url().trim_start_matches("http://");
        let request = format!(
            "GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: {position}\r\n\r\n",
            person.token()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self { stream, more: vec![0; 64 * 1024], read: String::with_capacity(128 * 1024), done: 0, position }
    }

    /// The next message: what it says, and its number.
    async fn next(&mut self) -> (usize, u64) {
        let mut here = None;
        loop {
            while let Some(line) = self.line() {
                if let Some(id) = line.strip_prefix("id: ") {
                    here = Some(id.to_owned());
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let after = |name: &str| {
                        let rest = &data[data.find(name)? + name.len()..];
                        rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse::<u64>().ok()
                    };
                    assert!(!data.contains(r#""phase":"resync""#), "{data}");
                    let is_message = data.starts_with(r#"{"id":"msg-"#);
                    let told = (after(r#","seq":"#), is_message.then(|| after(r#","text":""#)).flatten());
                    self.position = here.take().unwrap_or_else(|| std::mem::take(&mut self.position));
                    if let (Some(seq), Some(text)) = told {
                        return (text as usize, seq);
                    }
                }
            }
            self.read.drain(..self.done);
            self.done = 0;
            let more = &mut self.more;
            let read = timeout(TEST_TIMEOUT, self.stream.read(more)).await.expect("something comes").unwrap();
            assert_ne!(read, 0, "it ended");
            self.read.push_str(std::str::from_utf8(&more[..read]).expect("all of it is ASCII"));
        }
    }

    /// The next line that is whole.
    fn line(&mut self) -> Option<&str> {
        let rest = &self.read[self.done..];
        // The library's own search: a loop here would not be optimised.
        let end = rest.find('\n')?;
        self.done += end + 1;
        Some(&rest[..end])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_cut_at_random_bring_everything_once_and_in_order() {
    // Four million events told and read by programs that are not optimised take longer than anybody waits:
    // `cargo xtask test cuts` has it all.
    const FULL: bool = !cfg!(debug_assertions);
    const READERS: usize = if FULL { 200 } else { 5 };
    const MESSAGES: usize = if FULL { 20_000 } else { 2_000 };
    const CUTS: usize = 50;
    // Further than the hub keeps in mind: who is cut while being slow is told from the store.
    const LEAD: usize = 1_500;
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let position = live(&scene.admin).await.position.clone().unwrap();
    let seed = seed();
    let begin = Arc::new(Barrier::new(READERS + 1));
    // The number of each message, as whoever came first was told.
    let numbers: Arc<[AtomicU64]> = (0..MESSAGES).map(|_| AtomicU64::new(0)).collect();
    let seen = (0..READERS).map(|_| AtomicUsize::new(0)).collect();
    let pace = Arc::new(Pace { seen, moved: Notify::new() });
    let mut readers = tokio::task::JoinSet::new();
    for n in 0..READERS {
        let (person, begin, mut position) = (scene.admin.clone(), begin.clone(), position.clone());
        let (numbers, pace) = (numbers.clone(), pace.clone());
        let mut rng = Rng::new(seed ^ n as u64);
        readers.spawn(async move {
            begin.wait().await;
            let (mut seen, mut last, mut cuts) = (0, 0, 0);
            while seen < MESSAGES {
                let mut reader = Reader::open(&person, position).await;
                let most = 1 + rng.below(2 * (MESSAGES / CUTS) as u64) as usize;
                let until = MESSAGES.min(seen + most);
                while seen < until {
                    let (text, seq) = reader.next().await;
                    assert_eq!(text, seen, "a hole or a repeat");
                    assert!(seq > last, "{seq} after {last}");
                    let first = numbers[text].compare_exchange(0, seq, Relaxed, Relaxed);
                    assert!(first.is_ok() || first == Err(seq), "one number for everyone");
                    (seen, last) = (seen + 1, seq);
                    pace.is_at(n, seen);
                }
                position = reader.position;
                cuts += 1;
            }
            cuts
        });
    }
    begin.wait().await;
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    say_many(&mut writer, &room, MESSAGES, LEAD, &pace).await;
    let mut all_cuts = 0;
    while let Some(cuts) = readers.join_next().await {
        all_cuts += cuts.unwrap();
    }
    assert!(all_cuts > READERS * CUTS * 9 / 10, "only {all_cuts} cuts");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_slows_nobody_and_is_told_when_it_reads_again() {
    // More than the buffers of the kernel and the outbox hold together.
    const MESSAGES: usize = 250;
    let scene = Scene::with(&[("PARLOR_OUTBOX_MAX_BYTES", "1000000")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut slow = live(&scene.admin).await;
    let (mut quick, person) = (live(&scene.admin).await, scene.admin.clone());
    let reading = tokio::spawn(async move {
        let mut seen = 0;
        while seen < MESSAGES {
            match quick.next(TEST_TIMEOUT).await.unwrap() {
                Some(message) => seen += usize::from(message["kind"] == "message"),
                // On a busy machine even who reads falls behind at times.
                None => quick = resumed(&person, quick.position.as_deref().unwrap()).await,
            }
        }
    });
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    for n in 0..MESSAGES {
        writer.say_and_wait(&room, &format!("{n} {}", "x".repeat(60_000)), &format!("m{n}")).await.unwrap();
    }
    reading.await.unwrap();
    let (mut seen, mut told) = (Vec::new(), None);
    while let Some(message) = slow.next(TEST_TIMEOUT).await.unwrap() {
        match message["kind"].as_str() {
            Some("message") => seen.push(message),
            Some("run") if message["phase"] == "resync" => told = Some(message),
            _ => {}
        }
    }
    let told = told.expect("told that something was lost");
    assert_eq!(told["data"]["reason"], "broadcast_lag");
    assert!(told["data"]["lagged_count"].as_u64().unwrap() > 0, "{told}");
    assert!(seen.len() < MESSAGES, "it was never too slow");
    let mut back = resumed(&scene.admin, slow.position.as_deref().unwrap()).await;
    while seen.len() < MESSAGES {
        seen.push(back.wait_for_kind("message").await.unwrap());
    }
    let number = |text: &str| text.split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(texts(&seen).into_iter().map(number).eq(0..MESSAGES), "and it comes back to the rest");
    scene.ends_well().await;
}
