//! Tests of chat events over `/ws/client`: the same events as on the stream, as frames of the client socket.

use super::{check_schema, live, texts};
use crate::gateway::scenes::Room;
use crate::scene::Scene;
use parlor_testkit::agentim::Client;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

/// Subscribes to all events; without `since`, waits for the confirmation and returns its position.
async fn subscribe(client: &mut Client, since: Option<&str>) -> String {
    let mut request = json!({ "type": "client:subscribe_events" });
    if let Some(since) = since {
        request["since"] = since.into();
    }
    client.send(&request).await.unwrap();
    if since.is_some() {
        return String::new();
    }
    let subscribed = client.wait_for_type("server:events_subscribed").await.unwrap();
    subscribed["position"].as_str().unwrap().to_owned()
}

/// Reads events up to and including the first that matches; returns them and the last position.
async fn until(client: &mut Client, matches: impl Fn(&Value) -> bool) -> (Vec<Value>, String) {
    let (mut events, mut position) = (Vec::new(), String::new());
    loop {
        let frame = client.wait_for(TEST_TIMEOUT, |frame| frame["type"] == "server:event").await.unwrap();
        if let Some(reached) = frame["position"].as_str() {
            position = reached.to_owned();
        }
        check_schema(&frame["event"]).unwrap();
        events.push(frame["event"].clone());
        if matches(&frame["event"]) {
            return (events, position);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_delivers_the_same_events_as_the_stream() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    let mut socket = Client::connect(&room.bob).await.unwrap();
    let start = subscribe(&mut socket, None).await;
    // The client also joins the room: both subscriptions deliver all events, each in its own format.
    socket.join(&room.room).await.unwrap();
    room.say("@coder count").await;
    let run = gateway.turn().await.unwrap();
    for number in 1..=20 {
        gateway.chunk(&run, "r", "text", &format!("{number} ")).await.unwrap();
    }
    gateway.complete(&run, "r", "counted").await.unwrap();
    let end = |message: &Value| message["kind"] == "turn_complete";
    let of_stream = stream.until(end).await.unwrap();
    let (of_socket, position) = until(&mut socket, end).await;
    // Queued chunks of a reply may be merged differently, and the presence of Bob may precede either
    // subscription: compare the joined text and all other events.
    let comparable = |events: &[Value]| {
        let tokens = events.iter().filter(|m| m["kind"] == "token" && m.get("phase").is_none());
        let text: String = tokens.map(|message| message["text"].as_str().unwrap()).collect();
        let rest: Vec<Value> =
            events.iter().filter(|m| m["kind"] != "token" && m["kind"] != "presence").cloned().collect();
        (text, rest)
    };
    assert_eq!(comparable(&of_stream), comparable(&of_socket));
    assert_eq!(Some(position.as_str()), stream.position.as_deref());

    let mut resumed = Client::connect(&room.bob).await.unwrap();
    subscribe(&mut resumed, Some(&start)).await;
    let (replayed, _) = until(&mut resumed, end).await;
    assert_eq!(texts(&replayed), texts(&of_socket), "the resumed subscription replays all messages");
    resumed.wait_for_type("server:events_subscribed").await.unwrap();
    // A second subscription replaces the first, so that no event is delivered twice.
    subscribe(&mut resumed, None).await;
    room.say("once").await;
    room.say("the end").await;
    let (events, _) = until(&mut resumed, |message| message["text"] == "the end").await;
    assert_eq!(texts(&events), ["once", "the end"]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribing_requires_authentication_and_a_removed_member_receives_no_more_events() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let mut unauthenticated = Client::open(scene.url()).await.unwrap();
    unauthenticated.send(&json!({ "type": "client:subscribe_events" })).await.unwrap();
    unauthenticated.wait_for_type("server:error").await.unwrap();
    let mut at_bob = Client::connect(&bob).await.unwrap();
    at_bob.send(&json!({ "type": "client:subscribe_events", "since": "yesterday" })).await.unwrap();
    at_bob.wait_for_type("server:error").await.unwrap();
    let position = subscribe(&mut at_bob, None).await;
    let (epoch, seq) = position.split_once('-').unwrap();
    let ahead = format!("{epoch}-{}", seq.parse::<u64>().unwrap() + 1000);
    subscribe(&mut at_bob, Some(&ahead)).await;
    let (events, _) = until(&mut at_bob, |message| message["phase"] == "resync").await;
    assert_eq!(events.last().unwrap()["data"]["lagged_count"], 1000);
    at_bob.wait_for_type("server:events_subscribed").await.unwrap();

    alice.delete(&format!("/api/rooms/{room}/members/{}", bob.user_id())).await.unwrap();
    alice.post_message(&room, "CANARY").await.unwrap();
    let own = bob.make_room("own", &[]).await.unwrap();
    bob.post_message(&own, "the end").await.unwrap();
    let (events, _) = until(&mut at_bob, |message| message["text"] == "the end").await;
    assert!(events.iter().any(|message| message["kind"] == "room" && message["phase"] == "removed"));
    assert!(!events.iter().any(|message| message.to_string().contains("CANARY")), "{events:?}");
    scene.ends_well().await;
}
