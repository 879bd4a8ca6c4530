//! Idempotency of messages: a retry with the same `clientMessageId` yields the first message, also after a
//! reconnect, after a crash and through another protocol.

use std::collections::HashMap;

use parlor_testkit::agentim::{Ack, Client, message};
use parlor_testkit::seed;
use serde_json::{Value, json};

use crate::scene::{Scene, following, heard, next, refused, so_far};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_up_to_five_times_is_stored_once() {
    const MESSAGES: u64 = 600;
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut rng = seed::rng();
    let mut to_send: Vec<u64> = (0..MESSAGES).flat_map(|n| vec![n; 1 + rng.below(5) as usize]).collect();
    for at in (1..to_send.len()).rev() {
        to_send.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let frame = |n: u64| message(&room, &format!("text {n}"), &format!("m{n}"));
    let mut acks: HashMap<String, Ack> = HashMap::new();
    let crash_at = to_send.len() / 2;
    let mut sent = 0;
    // Each burst uses a new connection; some connections are dropped before all acknowledgements arrive.
    while sent < to_send.len() {
        let burst = &to_send[sent..to_send.len().min(sent + 1 + rng.below(120) as usize)];
        let mut client = Client::connect(&scene.admin).await.unwrap();
        for n in burst {
            client.feed(&frame(*n)).await.unwrap();
        }
        client.flush().await.unwrap();
        let crashes = (sent..sent + burst.len()).contains(&crash_at);
        let awaited = if crashes { 1 } else { burst.len() - rng.below(burst.len() as u64 / 2 + 1) as usize };
        for _ in 0..awaited {
            record_ack(&mut acks, &client.wait_for_type("server:message_ack").await.unwrap());
        }
        sent += burst.len();
        if crashes {
            scene.crash_and_restart().await;
        }
    }
    // Send all messages once more, as a client does with unacknowledged ones.
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for n in 0..MESSAGES {
        client.feed(&frame(n)).await.unwrap();
    }
    client.flush().await.unwrap();
    for _ in 0..MESSAGES {
        record_ack(&mut acks, &client.wait_for_type("server:message_ack").await.unwrap());
    }
    let history = scene.admin.history(&room).await.unwrap();
    assert_eq!(history.len() as u64, MESSAGES);
    for item in &history {
        let ack = &acks[item["clientMessageId"].as_str().unwrap()];
        assert_eq!((&item["id"], &item["seq"]), (&json!(ack.message_id), &json!(ack.seq)));
    }
    scene.ends_well().await;
}

/// Records an acknowledgement and asserts that it equals every earlier one of the same message.
fn record_ack(acks: &mut HashMap<String, Ack>, frame: &Value) {
    let ack = Ack::of(frame).unwrap().unwrap();
    let first = acks.entry(ack.client_message_id.clone()).or_insert_with(|| ack.clone());
    assert_eq!(*first, ack);
}

#[tokio::test(flavor = "multi_thread")]
async fn reusing_a_client_message_id_for_other_content_is_refused_by_every_protocol() {
    let mut scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let path = format!("/api/rooms/{room}/messages");
    let mut client = following(&alice, &room).await;
    let ack = client.say_and_wait(&room, "hello", "m1").await.unwrap();
    heard(&mut client).await;
    let body = |content: &str| json!({ "content": content, "clientMessageId": "m1" });

    // A retry over REST returns the same message and publishes nothing.
    let retried = alice.post(&path, body("hello")).await.unwrap();
    assert_eq!(retried.status, 200);
    assert_eq!(
        (&retried.body["data"]["id"], &retried.body["data"]["seq"]),
        (&json!(ack.message_id), &json!(ack.seq))
    );
    assert_eq!(client.say_and_wait(&room, "hello", "m1").await.unwrap(), ack);
    assert!(so_far(&mut client).await.iter().all(|frame| frame["type"] != "server:new_message"));

    for restarted in [false, true] {
        if restarted {
            scene.crash_and_restart().await;
        }
        let alice = alice.at(scene.url());
        let mut client = Client::connect(&alice).await.unwrap();
        let error = refused(&mut client, message(&room, "other", "m1"), "INVALID_MESSAGE").await;
        assert_eq!(error["clientMessageId"], "m1");
        let conflict = alice.post(&path, body("other")).await.unwrap();
        assert_eq!((conflict.status.as_u16(), &conflict.body["ok"]), (409, &json!(false)));
        assert_eq!(client.say_and_wait(&room, "hello", "m1").await.unwrap(), ack);
    }
    // Idempotency keys are scoped to the sender: `m1` of another user is another message.
    let of_bob = bob.at(scene.url()).post(&path, body("mine")).await.unwrap();
    assert_eq!(of_bob.status, 201);
    assert_eq!(bob.at(scene.url()).history(&room).await.unwrap().len(), 2);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_deleted_message_does_not_restore_it() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = following(&scene.admin, &room).await;
    let ack = client.say_and_wait(&room, "regretted", "m1").await.unwrap();
    scene.admin.delete(&format!("/api/messages/{}", ack.message_id)).await.unwrap();
    assert_eq!(client.say_and_wait(&room, "regretted", "m1").await.unwrap(), ack);
    assert!(scene.admin.history(&room).await.unwrap().is_empty());
    next(&mut client, "server:message_deleted").await;
    let frames = so_far(&mut client).await;
    let count = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).count();
    assert_eq!((count("server:new_message"), count("server:message_deleted")), (1, 0), "{frames:?}");
    scene.ends_well().await;
}
