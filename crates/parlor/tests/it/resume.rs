//! Resume on the client socket.
//!
//! A client that rejoins with a position receives missed events once and in order, or a resync.

use std::sync::Arc;
use std::time::Duration;

use parlor_testkit::agentim::{Client, message};
use parlor_testkit::rest::RestClient;
use parlor_testkit::rng::Rng;
use parlor_testkit::seed::seed;
use parlor_testkit::socket::{SocketEvent, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::scene::{Scene, contents, following, heard, next, refused, so_far};

#[tokio::test(flavor = "multi_thread")]
async fn clients_cut_at_random_receive_every_message_once_and_in_order() {
    const CLIENTS: usize = 8;
    const MESSAGES: usize = 1_500;
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let seed = seed();
    let everyone_joined = Arc::new(Barrier::new(CLIENTS + 1));
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..CLIENTS {
        let client = UnstableClient {
            user: scene.admin.clone(),
            room: room.clone(),
            rng: Rng::new(seed ^ n as u64),
            position: following(&scene.admin, &room).await.join(&room).await.unwrap(),
            seen: Vec::new(),
            cuts: 0,
        };
        let everyone_joined = everyone_joined.clone();
        clients.spawn(async move {
            everyone_joined.wait().await;
            client.until(MESSAGES).await
        });
    }
    everyone_joined.wait().await;
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    send_many(&mut writer, &room, 0..MESSAGES, "text").await;
    let history = contents(&scene.admin.history(&room).await.unwrap());
    assert_eq!(history.len(), MESSAGES);
    let mut cuts = 0;
    while let Some(client) = clients.join_next().await {
        let client = client.unwrap();
        assert_eq!(contents(&client.seen), history);
        assert!(client.seen.is_sorted_by_key(|message| message["seq"].as_u64().unwrap()));
        cuts += client.cuts;
    }
    assert!(cuts > 5 * CLIENTS, "only {cuts} cuts");
    scene.ends_well().await;
}

/// A client whose connection is cut repeatedly at random and that resumes from its last position.
struct UnstableClient {
    user: RestClient,
    room: String,
    rng: Rng,
    position: String,
    seen: Vec<Value>,
    cuts: usize,
}

impl UnstableClient {
    async fn until(mut self, messages: usize) -> Self {
        while self.seen.len() < messages {
            let mut client = Client::connect(&self.user).await.unwrap();
            let join = json!({ "type": "client:join_room", "roomId": self.room, "since": self.position });
            client.send(&join).await.unwrap();
            let frames = 1 + self.rng.below(200);
            for _ in 0..frames {
                self.take(client.frame(TEST_TIMEOUT).await.unwrap());
                if self.seen.len() == messages {
                    return self;
                }
            }
            self.cuts += 1;
            if self.rng.below(2) == 0 {
                let half = message(&self.room, "never", "never");
                client.0.cut_in_mid_frame(&half).await.unwrap();
            }
        }
        self
    }

    fn take(&mut self, frame: Value) {
        match frame["type"].as_str().unwrap() {
            "server:new_message" => self.seen.push(frame["message"].clone()),
            // The update from the creation of the room may arrive after the join.
            "server:room_joined" | "server:room_update" => {}
            "server:presence" => return,
            other => panic!("{other} came: {frame}"),
        }
        let position = frame["position"].as_str().unwrap().to_owned();
        assert!(seq(&position) >= seq(&self.position), "{position} came after {}", self.position);
        self.position = position;
    }
}

fn seq(position: &str) -> u64 {
    position.split_once('-').unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_of_another_epoch_or_ahead_of_the_log_yields_a_resync() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut writer = following(&scene.admin, &room).await;
    let ack = writer.say_and_wait(&room, "before", "m0").await.unwrap();
    heard(&mut writer).await;
    let (epoch, other_epoch) =
        (ack.epoch.clone(), if ack.epoch == "00000001" { "00000002" } else { "00000001" });
    for since in [
        format!("{other_epoch}-0"),
        format!("{other_epoch}-{}", ack.seq),
        format!("{epoch}-{}", ack.seq + 1000),
    ] {
        let mut client = Client::connect(&scene.admin).await.unwrap();
        let joined = client.join_since(&room, &since).await.unwrap();
        assert!(joined.resync && joined.missed.is_empty(), "{since}: {joined:?}");
        assert!(joined.position.starts_with(&epoch), "{joined:?}");
        // After the resync the client receives live events, and can resume from the position that it
        // received.
        let text = format!("after {since}");
        writer.say_and_wait(&room, &text, &text).await.unwrap();
        assert_eq!(heard(&mut client).await["content"], *text);
        drop(client);
        let mut client = Client::connect(&scene.admin).await.unwrap();
        let joined = client.join_since(&room, &joined.position).await.unwrap();
        assert_eq!((joined.resync, joined.missed.len()), (false, 1));
    }
    // A position without an epoch is a sequence number of the current epoch.
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let joined = client.join_since(&room, &(ack.seq - 1).to_string()).await.unwrap();
    assert_eq!((joined.resync, joined.missed.len()), (false, 4));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_stay_valid_after_a_restart() {
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = following(&scene.admin, &room).await;
    let position = client.join(&room).await.unwrap();
    send_many(&mut client, &room, 0..50, "text").await;
    scene.crash_and_restart().await;
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let joined = client.join_since(&room, &position).await.unwrap();
    assert_eq!((joined.resync, joined.missed.len()), (false, 50));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_removed_while_offline_receives_no_missed_messages() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let position = following(&bob, &room).await.join(&room).await.unwrap();
    alice.post_message(&room, "while he was away").await.unwrap();
    alice.delete(&format!("/api/rooms/{room}/members/{}", bob.user_id())).await.unwrap();
    alice.post_message(&room, "after he was removed").await.unwrap();
    let mut client = Client::connect(&bob).await.unwrap();
    let join = json!({ "type": "client:join_room", "roomId": room, "since": position });
    refused(&mut client, join, "NOT_A_MEMBER").await;
    let frames = so_far(&mut client).await;
    assert!(frames.iter().all(|frame| frame.get("message").is_none()), "{frames:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_and_deletions_are_replayed_like_messages() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let position = following(&scene.admin, &room).await.join(&room).await.unwrap();
    let mut paths = Vec::new();
    for text in ["stays", "edited", "deleted"] {
        let posted = scene.admin.post_message(&room, text).await.unwrap();
        paths.push(format!("/api/messages/{}", posted["id"].as_str().unwrap()));
    }
    scene.admin.put(&paths[1], json!({ "content": "edited later" })).await.unwrap().data().unwrap();
    scene.admin.delete(&paths[2]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let join = json!({ "type": "client:join_room", "roomId": room, "since": position });
    client.send(&join).await.unwrap();
    next(&mut client, "server:room_joined").await;
    // The deletion is the last event; all earlier ones have arrived before it.
    let last = next(&mut client, "server:message_deleted").await;
    // Applying the replayed events in order yields the current history.
    let mut state: Vec<Value> = Vec::new();
    for frame in so_far(&mut client).await.into_iter().chain([last]) {
        let message = frame["message"].clone();
        let id = frame["messageId"].as_str().or(message["id"].as_str()).unwrap_or_default().to_owned();
        match frame["type"].as_str().unwrap() {
            "server:new_message" => state.push(message),
            "server:message_edited" => *state.iter_mut().find(|old| old["id"] == *id).unwrap() = message,
            "server:message_deleted" => state.retain(|old| old["id"] != *id),
            _ => {}
        }
    }
    assert_eq!(state, scene.admin.history(&room).await.unwrap());
    assert_eq!(contents(&state), ["stays", "edited later"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_missed_events_than_replay_buffer_and_outbox_hold_are_replayed_during_writes() {
    let scene =
        Scene::with(&[("PARLOR_OUTBOX_MAX_FRAMES", "16"), ("PARLOR_OUTBOX_MAX_BYTES", "16384")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let position = following(&scene.admin, &room).await.join(&room).await.unwrap();
    post_many(&scene.admin, &room, 0..1_300).await;

    let (admin, same_room) = (scene.admin.clone(), room.clone());
    let posting = tokio::spawn(async move { post_many(&admin, &same_room, 1_300..1_500).await });
    assert_replayed(&scene, &room, &position, 1_500).await;
    posting.await.unwrap();
    // Resume from a position inside the replay buffer; the missed events still exceed the outbox.
    let history = scene.admin.history(&room).await.unwrap();
    let epoch = position.split('-').next().unwrap();
    let recent = format!("{epoch}-{}", history[1_499 - 600]["seq"]);
    assert_replayed(&scene, &room, &recent, 600).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_that_exceed_the_outbox_are_replayed() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let position = following(&scene.admin, &room).await.join(&room).await.unwrap();
    for n in 0..40 {
        scene.admin.post_message(&room, &format!("{n} {}", "x".repeat(90_000))).await.unwrap();
    }
    assert_replayed(&scene, &room, &position, 40).await;
    scene.ends_well().await;
}

/// Resumes from a position and asserts that the last `messages` messages of the history arrive once and in
/// order.
async fn assert_replayed(scene: &Scene, room: &str, position: &str, messages: usize) {
    let mut position = json!(position);
    let (mut seen, mut joined) = (Vec::new(), false);
    while seen.len() < messages || !joined {
        let mut client = Client::connect(&scene.admin).await.unwrap();
        let join = json!({ "type": "client:join_room", "roomId": room, "since": position });
        client.send(&join).await.unwrap();
        joined = false;
        while seen.len() < messages || !joined {
            let frame = match client.next(Duration::from_secs(30)).await.unwrap() {
                SocketEvent::Frame(frame) => frame,
                // After the join this small outbox may overflow with live events; a replay never overflows
                // it.
                SocketEvent::Closed(1013) if joined => break,
                SocketEvent::Closed(code) => panic!("closed with {code} after {} messages", seen.len()),
            };
            match frame["type"].as_str().unwrap() {
                "server:new_message" => seen.push(frame["message"].clone()),
                "server:room_joined" => joined = true,
                "server:presence" | "server:room_update" => continue,
                "server:error" if joined => continue,
                other => panic!("{other} after {} messages: {frame}", seen.len()),
            }
            position = frame["position"].clone();
        }
    }
    let history = contents(&scene.admin.history(room).await.unwrap());
    assert_eq!(contents(&seen), history[history.len() - messages..]);
}

/// Sends messages and waits for all acknowledgements; at most `MAX_UNACKNOWLEDGED` are outstanding.
async fn send_many(client: &mut Client, room: &str, numbers: std::ops::Range<usize>, text: &str) {
    const MAX_UNACKNOWLEDGED: usize = 32;
    let (mut unacknowledged, last) = (0, numbers.end - 1);
    for n in numbers {
        client.say(room, &format!("{text} {n}"), &format!("{text}{n}")).await.unwrap();
        unacknowledged += 1;
        while unacknowledged >= MAX_UNACKNOWLEDGED || (n == last && unacknowledged > 0) {
            client.wait_for_type("server:message_ack").await.unwrap();
            unacknowledged -= 1;
        }
    }
}

/// Posts messages over REST, so that no outbox of a writer is involved.
async fn post_many(user: &RestClient, room: &str, numbers: std::ops::Range<usize>) {
    let mut posts = tokio::task::JoinSet::new();
    for n in numbers {
        let (user, room) = (user.clone(), room.to_owned());
        posts.spawn(async move { user.post_message(&room, &format!("text {n}")).await.map(drop) });
        if posts.len() >= 16 {
            posts.join_next().await.unwrap().unwrap().unwrap();
        }
    }
    while let Some(posted) = posts.join_next().await {
        posted.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejoining_a_joined_room_loses_no_message() {
    const MESSAGES: usize = 300;
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut rejoining = following(&scene.admin, &room).await;
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    let expected: Vec<String> = (0..MESSAGES).map(|n| format!("message {n}")).collect();
    let writing = async {
        for (n, content) in expected.iter().enumerate() {
            writer.say_and_wait(&room, content, &format!("again-{n}")).await.unwrap();
        }
    };
    // Repeated joins without a position, as the web page sends them when it shows the room again.
    let reading = async {
        let mut seen = Vec::new();
        while seen.last() != expected.last() {
            rejoining.send(&json!({ "type": "client:join_room", "roomId": room })).await.unwrap();
            let frame = rejoining.frame(TEST_TIMEOUT).await.unwrap();
            if frame["type"] == "server:new_message" {
                seen.push(frame["message"]["content"].as_str().unwrap().to_owned());
            }
        }
        seen
    };
    let ((), seen) = tokio::join!(writing, reading);
    assert_eq!(seen, expected);
    scene.ends_well().await;
}
