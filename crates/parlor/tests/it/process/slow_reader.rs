//! One client that stops reading costs the others nothing and the hub no more than its outbox.

use std::time::Duration;

use parlor_testkit::agentim::{Client, check_frame};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{Socket, SocketEvent, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::scene::{Scene, contents, following, heard};

const OTHERS: usize = 100;
const MESSAGES: usize = 600;
const SIZE: usize = 8_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_is_ended_while_a_hundred_others_lose_nothing() {
    let scene = Scene::process_set(&[("PARLOR_OUTBOX_MAX_BYTES", "1000000")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut slow = with_small_window(&scene.admin).await;
    let position = slow.join(&room).await.unwrap();
    let mut others = JoinSet::new();
    for _ in 0..OTHERS {
        let mut client = following(&scene.admin, &room).await;
        others.spawn(async move {
            let mut seen = Vec::new();
            while seen.len() < MESSAGES {
                let frame = client.frame(Duration::from_secs(60)).await.unwrap();
                if frame["type"] == "server:new_message" {
                    seen.push(frame["message"]["id"].clone());
                }
            }
            seen
        });
    }
    let before = resident_kilobytes(&scene, "VmRSS");
    let mut writer = Client::connect(&scene.admin).await.unwrap();
    let mut under_way = 0;
    for n in 0..MESSAGES {
        writer.say(&room, &format!("{n} {}", "x".repeat(SIZE)), &format!("m{n}")).await.unwrap();
        under_way += 1;
        while under_way >= 16 || (n + 1 == MESSAGES && under_way > 0) {
            writer.wait_for_type("server:message_ack").await.unwrap();
            under_way -= 1;
        }
    }
    drop(writer);
    let history = scene.admin.history(&room).await.unwrap();
    let ids: Vec<Value> = history.iter().map(|message| message["id"].clone()).collect();
    while let Some(seen) = others.join_next().await {
        assert_eq!(seen.unwrap(), ids, "everyone else sees everything, in order");
    }
    let grown = resident_kilobytes(&scene, "VmHWM") - before;
    assert!(grown < 128 * 1024, "the hub grew by {grown} kB at its peak");

    // What the kernel still held arrives, then the hub's word, or at least the end.
    let mut seen = Vec::new();
    let code = loop {
        match slow.next(TEST_TIMEOUT).await.unwrap() {
            SocketEvent::Frame(frame) if frame["type"] == "server:new_message" => seen.push(frame),
            SocketEvent::Frame(frame) if frame["type"] == "server:error" => {
                assert_eq!(frame["code"], "RATE_LIMITED", "{frame}");
            }
            SocketEvent::Frame(_) => {}
            SocketEvent::Closed(code) => break code,
        }
    };
    assert!(matches!(code, 1013 | 1006), "closed with {code}");
    assert!(seen.len() < MESSAGES, "it was never too slow");
    let position = seen.last().map_or(position, |last| last["position"].as_str().unwrap().to_owned());
    let mut back = Client::connect(&scene.admin).await.unwrap();
    let joined = back.join_since(&room, &position).await.unwrap();
    assert!(!joined.resync);
    let whole: Vec<Value> = seen.iter().chain(&joined.missed).map(|frame| frame["message"].clone()).collect();
    assert_eq!(contents(&whole), contents(&history), "and it comes back to the rest");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_reader_at_shutdown_still_reaches_it_before_the_good_bye() {
    let mut scene = Scene::process_set(&[("PARLOR_OUTBOX_MAX_BYTES", "64000000")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut slow = following(&scene.admin, &room).await;
    let mut witness = following(&scene.admin, &room).await;
    // More than the kernel takes, so that much of it is still the hub's when it is told to end.
    for _ in 0..150 {
        scene.admin.post_message(&room, &"x".repeat(90_000)).await.unwrap();
        heard(&mut witness).await;
    }
    drop(witness);
    let reader = tokio::spawn(async move {
        let (mut messages, mut last) = (0, Value::Null);
        loop {
            match slow.next(TEST_TIMEOUT).await.unwrap() {
                SocketEvent::Frame(frame) => {
                    messages += usize::from(frame["type"] == "server:new_message");
                    last = frame;
                }
                SocketEvent::Closed(code) => return (messages, last["code"].clone(), code),
            }
        }
    });
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    assert_eq!(reader.await.unwrap(), (150, json!("SERVER_SHUTDOWN"), 1001));
    scene.assert_never_panicked();
}

/// A connection whose kernel buffers take little, so that not reading is soon noticed.
async fn with_small_window(person: &RestClient) -> Client {
    let address = person.url().strip_prefix("http://").unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let socket = Socket::upgrade(stream, address, "/ws/client", &[]).await.unwrap().hold_to(check_frame);
    let mut client = Client(socket);
    client.send(&json!({ "type": "client:auth", "token": person.token() })).await.unwrap();
    assert_eq!(client.wait_for_type("server:auth_result").await.unwrap()["ok"], true);
    client
}

fn resident_kilobytes(scene: &Scene, field: &str) -> i64 {
    let status = format!("/proc/{}/status", scene.hub.process_id().unwrap());
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
