//! Tests that a slow consumer does not affect other clients, and costs the hub at most its outbox.

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
async fn a_slow_consumer_is_disconnected_while_a_hundred_other_clients_receive_everything() {
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
    let mut in_flight = 0;
    for n in 0..MESSAGES {
        writer.say(&room, &format!("{n} {}", "x".repeat(SIZE)), &format!("m{n}")).await.unwrap();
        in_flight += 1;
        while in_flight >= 16 || (n + 1 == MESSAGES && in_flight > 0) {
            writer.wait_for_type("server:message_ack").await.unwrap();
            in_flight -= 1;
        }
    }
    drop(writer);
    let history = scene.admin.history(&room).await.unwrap();
    let ids: Vec<Value> = history.iter().map(|message| message["id"].clone()).collect();
    while let Some(seen) = others.join_next().await {
        assert_eq!(seen.unwrap(), ids, "every other client receives all messages in order");
    }
    let grown = resident_kilobytes(&scene, "VmHWM") - before;
    assert!(grown < 128 * 1024, "the hub grew by {grown} kB at its peak");

    // The slow client receives the data in kernel buffers, then the error frame, or only the close.
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
    assert!(seen.len() < MESSAGES, "the client was never too slow");
    let position = seen.last().map_or(position, |last| last["position"].as_str().unwrap().to_owned());
    let mut resumed = Client::connect(&scene.admin).await.unwrap();
    let joined = resumed.join_since(&room, &position).await.unwrap();
    assert!(!joined.resync);
    let received: Vec<Value> =
        seen.iter().chain(&joined.missed).map(|frame| frame["message"].clone()).collect();
    assert_eq!(contents(&received), contents(&history), "the resume delivers the missing messages");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_frames_are_delivered_before_the_shutdown_notice() {
    let mut scene = Scene::process_set(&[("PARLOR_OUTBOX_MAX_BYTES", "64000000")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut slow = following(&scene.admin, &room).await;
    let mut witness = following(&scene.admin, &room).await;
    // More than the kernel buffers hold, so that frames are still queued in the hub at shutdown.
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

/// Connects with small kernel buffers, so that the hub soon notices a client that does not read.
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
