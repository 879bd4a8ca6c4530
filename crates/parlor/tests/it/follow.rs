//! Tests of `client:follow`: one frame opens all rooms of the user, and every change arrives once.

use std::collections::BTreeSet;

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_revoked, make_key, next, refused, so_far};

/// Opens all rooms; returns the frames before the confirmation, and its position.
async fn follow(client: &mut Client, since: Option<&str>) -> (Vec<Value>, String) {
    let mut request = json!({ "type": "client:follow" });
    if let Some(since) = since {
        request["since"] = since.into();
    }
    client.send(&request).await.unwrap();
    let mut frames = until(client, |frame| frame["type"] == "server:following").await;
    let following = frames.pop().unwrap();
    (frames, following["position"].as_str().unwrap().to_owned())
}

async fn follower(user: &RestClient) -> Client {
    let mut client = Client::connect(user).await.unwrap();
    follow(&mut client, None).await;
    client
}

/// Reads frames up to and including the first that matches.
async fn until(client: &mut Client, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = client.frame(TEST_TIMEOUT).await.unwrap();
        frames.push(frame.clone());
        if matches(&frame) {
            return frames;
        }
    }
}

async fn until_text(client: &mut Client, text: &str) -> Vec<Value> {
    until(client, |frame| frame["message"]["content"] == text).await
}

/// Contents of the messages in the frames, in order.
fn texts(frames: &[Value]) -> Vec<&str> {
    frames.iter().filter_map(|frame| frame["message"]["content"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_receives_each_change_of_a_run_as_a_frame_or_as_an_event() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut page = follower(&room.bob).await;
    room.say("@coder count").await;
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "r", "text", "one two").await.unwrap();
    gateway.complete(&run, "r", "one two").await.unwrap();
    let frames = until(&mut page, |frame| frame["event"]["kind"] == "turn_complete").await;
    assert_eq!(texts(&frames), ["@coder count", "one two"]);
    let chunks = frames.iter().filter(|frame| frame["type"] == "server:message_chunk");
    let streamed: String = chunks.map(|frame| frame["chunk"]["content"].as_str().unwrap()).collect();
    assert_eq!(streamed, "one two");
    let kinds: BTreeSet<&str> = frames.iter().filter_map(|frame| frame["event"]["kind"].as_str()).collect();
    assert!(kinds.is_superset(&BTreeSet::from(["activity", "run", "turn_complete"])), "{kinds:?}");
    for kind in ["message", "token", "text_segment", "content_block", "typing", "presence"] {
        assert!(!kinds.contains(kind), "{kind} has a frame of its own");
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_position_resumes_all_rooms_without_gap_or_duplicate() {
    let mut scene = Scene::start().await;
    let mut ada = scene.person("ada").await;
    let rooms = [ada.make_room("kitchen", &[]).await.unwrap(), ada.make_room("attic", &[]).await.unwrap()];
    let mut page = follower(&ada).await;
    ada.post_message(&rooms[0], "before").await.unwrap();
    let frames = until_text(&mut page, "before").await;
    let position = frames.last().unwrap()["position"].as_str().unwrap().to_owned();
    drop(page);
    for (index, text) in ["a", "b", "c", "d"].into_iter().enumerate() {
        ada.post_message(&rooms[index % 2], text).await.unwrap();
    }
    for _ in 0..2 {
        let mut resumed = Client::connect(&ada).await.unwrap();
        let (missed, _) = follow(&mut resumed, Some(&position)).await;
        assert_eq!(texts(&missed), ["a", "b", "c", "d"]);
        assert_eq!(texts(&so_far(&mut resumed).await), [""; 0]);
        // A restarted hub replays from the store instead of the replay buffer.
        drop(resumed);
        scene.crash_and_restart().await;
        ada = ada.at(scene.url());
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_position_is_answered_with_a_resync_and_a_malformed_one_with_an_error() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let mut page = Client::open(scene.url()).await.unwrap();
    refused(&mut page, json!({ "type": "client:follow" }), "NOT_AUTHENTICATED").await;
    let mut page = Client::connect(&ada).await.unwrap();
    let (_, position) = follow(&mut page, None).await;
    page.send(&json!({ "type": "client:follow", "since": "yesterday" })).await.unwrap();
    assert_eq!(next(&mut page, "server:error").await["code"], "INVALID_MESSAGE");
    let (epoch, seq) = position.split_once('-').unwrap();
    let ahead = format!("{epoch}-{}", seq.parse::<u64>().unwrap() + 1000);
    let (frames, _) = follow(&mut page, Some(&ahead)).await;
    assert_eq!(frames.last().unwrap()["event"]["phase"], "resync", "{frames:?}");
    ada.post_message(&room, "live again").await.unwrap();
    assert_eq!(texts(&until_text(&mut page, "live again").await), ["live again"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_joined_later_are_followed_and_lost_rooms_end() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let own = bob.make_room("own", &[]).await.unwrap();
    let mut page = follower(&bob).await;
    ada.post_message(&room, "CANARY before").await.unwrap();
    let member = json!({ "memberId": bob.user_id(), "memberType": "user" });
    ada.post(&format!("/api/rooms/{room}/members"), member).await.unwrap().data().unwrap();
    ada.post_message(&room, "welcome").await.unwrap();
    let frames = until_text(&mut page, "welcome").await;
    let updates = frames.iter().filter(|frame| frame["type"] == "server:room_update").count();
    assert_eq!((texts(&frames), updates), (vec!["welcome"], 1));
    ada.delete(&format!("/api/rooms/{room}/members/{}", bob.user_id())).await.unwrap();
    ada.post_message(&room, "CANARY after").await.unwrap();
    bob.post_message(&own, "the end").await.unwrap();
    let frames = until_text(&mut page, "the end").await;
    assert_eq!(frames.iter().filter(|frame| frame["type"] == "server:room_removed").count(), 1);
    assert!(!frames.iter().any(|frame| frame.to_string().contains("CANARY")), "{frames:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn following_replaces_joined_rooms_subscribed_events_and_earlier_follows() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let mut page = Client::connect(&ada).await.unwrap();
    page.join(&room).await.unwrap();
    page.send(&json!({ "type": "client:subscribe_events" })).await.unwrap();
    next(&mut page, "server:events_subscribed").await;
    follow(&mut page, None).await;
    follow(&mut page, None).await;
    // Sending joins a room that is not open; here it is.
    page.say(&room, "once", "c1").await.unwrap();
    let mut frames = until_text(&mut page, "once").await;
    ada.post_message(&room, "the end").await.unwrap();
    frames.extend(until_text(&mut page, "the end").await);
    frames.extend(so_far(&mut page).await);
    assert!(!frames.iter().any(|frame| frame["event"]["kind"] == "message"), "{frames:?}");
    assert_eq!(texts(&frames), ["once", "the end"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_read_cannot_follow() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let (_, key) = make_key(&scene.admin, &["write"]).await;
    let mut writer = Client::connect(&scene.admin.with_token(&key)).await.unwrap();
    refused(&mut writer, json!({ "type": "client:follow" }), "PERMISSION_DENIED").await;
    writer.say_and_wait(&room, "still writes", "c1").await.unwrap();
    assert_eq!(texts(&so_far(&mut writer).await), [""; 0]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_of_many_rooms_is_live_after_one_frame() {
    const ROOMS: usize = 200;
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let mut rooms = Vec::new();
    for number in 0..ROOMS {
        rooms.push(ada.make_room(&format!("room {number}"), &[]).await.unwrap());
    }
    let mut page = follower(&ada).await;
    for room in &rooms {
        ada.post_message(room, room).await.unwrap();
    }
    let frames = until_text(&mut page, rooms.last().unwrap()).await;
    assert_eq!(texts(&frames), rooms);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn joining_a_room_that_is_followed_delivers_nothing_twice() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let mut page = follower(&ada).await;
    page.send(&json!({ "type": "client:join_room", "roomId": room, "since": "now" })).await.unwrap();
    next(&mut page, "server:room_joined").await;
    ada.post_message(&room, "once").await.unwrap();
    ada.post_message(&room, "the end").await.unwrap();
    let mut frames = until_text(&mut page, "the end").await;
    frames.extend(so_far(&mut page).await);
    assert_eq!(texts(&frames), ["once", "the end"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_follower_receives_the_open_approval_the_queue_and_the_streaming_reply() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder count").await;
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "r", "text", "one ").await.unwrap();
    gateway.chunk(&run, "r", "text", "two").await.unwrap();
    ask(&mut gateway, &run).await;
    next(&mut room.at_alice, "server:permission_request").await;
    room.say("@coder and again").await;
    let mut page = follower(&room.bob).await;
    let frames = so_far(&mut page).await;
    let of = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).collect::<Vec<_>>();
    let streamed: String =
        of("server:message_chunk").iter().map(|frame| frame["chunk"]["content"].as_str().unwrap()).collect();
    assert_eq!(streamed, "one two", "{frames:?}");
    assert_eq!(of("server:permission_request").len(), 1, "{frames:?}");
    let queues = frames.iter().filter(|frame| frame["event"]["kind"] == "queue");
    let queued: Vec<&Value> = queues.map(|frame| &frame["event"]["data"]["items"][0]["preview"]).collect();
    assert_eq!(queued, ["@coder and again"], "{frames:?}");
    room.scene.ends_well().await;
}

async fn ask(gateway: &mut parlor_testkit::gateway::Gateway, run: &Value) {
    let request = json!({
        "type": "gateway:permission_request", "requestId": "p1", "agentId": run["agentId"],
        "roomId": run["roomId"], "toolName": "Bash", "toolInput": { "command": "ls" }, "timeoutMs": 60_000,
    });
    gateway.send(&request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_out_follower_is_closed_and_a_refused_message_changes_nothing() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let foreign = scene.admin.make_room("foreign", &[]).await.unwrap();
    let own = ada.make_room("own", &[]).await.unwrap();
    let mut page = follower(&ada).await;
    page.say(&foreign, "CANARY", "c1").await.unwrap();
    let refused = next(&mut page, "server:error").await;
    assert_eq!((&refused["code"], &refused["clientMessageId"]), (&json!("NOT_A_MEMBER"), &json!("c1")));
    scene.admin.post_message(&foreign, "CANARY too").await.unwrap();
    ada.post_message(&own, "still live").await.unwrap();
    assert_eq!(texts(&until_text(&mut page, "still live").await), ["still live"]);
    assert_eq!(ada.post("/api/auth/logout", json!({})).await.unwrap().status, 200);
    assert_revoked(&mut page).await;
    scene.ends_well().await;
}
