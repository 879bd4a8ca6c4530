//! The same events as frames of `/ws/client`, for pages that have that socket anyway.

use super::{is_lawful, live, texts};
use crate::gateway::scenes::Room;
use crate::scene::Scene;
use parlor_testkit::agentim::Client;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

/// Follows everything, from a position if one is given; where that begins.
async fn subscribe(client: &mut Client, since: Option<&str>) -> String {
    let mut asked = json!({ "type": "client:subscribe_events" });
    if let Some(since) = since {
        asked["since"] = since.into();
    }
    client.send(&asked).await.unwrap();
    if since.is_some() {
        return String::new();
    }
    let subscribed = client.wait_for_type("server:events_subscribed").await.unwrap();
    subscribed["position"].as_str().unwrap().to_owned()
}

/// The events up to and with the first that is wanted, and the position behind them.
async fn until(client: &mut Client, wanted: impl Fn(&Value) -> bool) -> (Vec<Value>, String) {
    let (mut all, mut position) = (Vec::new(), String::new());
    loop {
        let frame = client.wait_for(TEST_TIMEOUT, |frame| frame["type"] == "server:event").await.unwrap();
        if let Some(reached) = frame["position"].as_str() {
            position = reached.to_owned();
        }
        is_lawful(&frame["event"]).unwrap();
        all.push(frame["event"].clone());
        if wanted(&frame["event"]) {
            return (all, position);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_carries_what_the_stream_carries() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    let mut socket = Client::connect(&room.bob).await.unwrap();
    let begun = subscribe(&mut socket, None).await;
    // The room itself is followed too: both are told everything, each in its own words.
    socket.join(&room.room).await.unwrap();
    room.say("@coder count").await;
    let turn = gateway.turn().await.unwrap();
    for number in 1..=20 {
        gateway.chunk(&turn, "r", "text", &format!("{number} ")).await.unwrap();
    }
    gateway.complete(&turn, "r", "counted").await.unwrap();
    let end = |message: &Value| message["kind"] == "turn_complete";
    let of_stream = stream.until(end).await.unwrap();
    let (of_socket, position) = until(&mut socket, end).await;
    // Pieces of a reply that waited are told as one, here or there; that Bob came was told before or after.
    let whole = |told: &[Value]| {
        let tokens = told.iter().filter(|m| m["kind"] == "token" && m.get("phase").is_none());
        let text: String = tokens.map(|message| message["text"].as_str().unwrap()).collect();
        let rest: Vec<Value> =
            told.iter().filter(|m| m["kind"] != "token" && m["kind"] != "presence").cloned().collect();
        (text, rest)
    };
    assert_eq!(whole(&of_stream), whole(&of_socket));
    assert_eq!(Some(position.as_str()), stream.position.as_deref());

    let mut back = Client::connect(&room.bob).await.unwrap();
    subscribe(&mut back, Some(&begun)).await;
    let (again, _) = until(&mut back, end).await;
    assert_eq!(texts(&again), texts(&of_socket), "what was missed");
    back.wait_for_type("server:events_subscribed").await.unwrap();
    // Asked for once more it begins anew, and nothing comes twice.
    subscribe(&mut back, None).await;
    room.say("once").await;
    room.say("the end").await;
    let (told, _) = until(&mut back, |message| message["text"] == "the end").await;
    assert_eq!(texts(&told), ["once", "the end"]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_follow_is_refused_and_who_is_removed_hears_nothing_more() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let mut stranger = Client::open(scene.url()).await.unwrap();
    stranger.send(&json!({ "type": "client:subscribe_events" })).await.unwrap();
    stranger.wait_for_type("server:error").await.unwrap();
    let mut at_bob = Client::connect(&bob).await.unwrap();
    at_bob.send(&json!({ "type": "client:subscribe_events", "since": "yesterday" })).await.unwrap();
    at_bob.wait_for_type("server:error").await.unwrap();
    let position = subscribe(&mut at_bob, None).await;
    let (epoch, seq) = position.split_once('-').unwrap();
    let ahead = format!("{epoch}-{}", seq.parse::<u64>().unwrap() + 1000);
    subscribe(&mut at_bob, Some(&ahead)).await;
    let (told, _) = until(&mut at_bob, |message| message["phase"] == "resync").await;
    assert_eq!(told.last().unwrap()["data"]["lagged_count"], 1000);
    at_bob.wait_for_type("server:events_subscribed").await.unwrap();

    alice.delete(&format!("/api/rooms/{room}/members/{}", bob.user_id())).await.unwrap();
    alice.post_message(&room, "CANARY").await.unwrap();
    let own = bob.make_room("own", &[]).await.unwrap();
    bob.post_message(&own, "the end").await.unwrap();
    let (told, _) = until(&mut at_bob, |message| message["text"] == "the end").await;
    assert!(told.iter().any(|message| message["kind"] == "room" && message["phase"] == "removed"));
    assert!(!told.iter().any(|message| message.to_string().contains("CANARY")), "{told:?}");
    scene.ends_well().await;
}
