//! Tests of every limit and every error code of the AgentIM protocol; each limit also with a changed setting.

use std::time::{Duration, Instant};

use parlor_testkit::agentim::{Client, message};
use parlor_testkit::hub::PASSWORD;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{NotUpgraded, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::scene::{Scene, auth_error, following, heard, next, refused, so_far};

/// Turns rate and connection limits on; test hubs start without them.
const ON: (&str, &str) = ("PARLOR_LIMITS", "on");

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_has_at_most_64_kilobytes_15_levels_and_1000_elements() {
    let scene = Scene::start().await;
    let mut client = Client::connect(&scene.admin).await.unwrap();
    assert_accepted(&mut client, &ping_of(65_536)).await;
    assert_error(&mut client, &ping_of(65_537), "MESSAGE_TOO_LARGE").await;
    assert_accepted(&mut client, &ping_with(&nested(14))).await;
    assert_error(&mut client, &ping_with(&nested(15)), "JSON_TOO_DEEP").await;
    assert_accepted(&mut client, &ping_with(&list(1000))).await;
    assert_error(&mut client, &ping_with(&list(1001)), "JSON_TOO_DEEP").await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_limits_of_frames_and_messages_are_settings() {
    let scene = Scene::with(&[
        ("PARLOR_MAX_WS_MESSAGE_SIZE", "2000"),
        ("PARLOR_MAX_JSON_DEPTH", "5"),
        ("PARLOR_MAX_MESSAGE_LENGTH", "20"),
        ("PARLOR_MAX_ATTACHMENTS", "2"),
    ])
    .await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    assert_accepted(&mut client, &ping_of(2000)).await;
    assert_error(&mut client, &ping_of(2001), "MESSAGE_TOO_LARGE").await;
    assert_accepted(&mut client, &ping_with(&nested(4))).await;
    assert_error(&mut client, &ping_with(&nested(5)), "JSON_TOO_DEEP").await;
    client.say_and_wait(&room, &"é".repeat(20), "fits").await.unwrap();
    let error = refused(&mut client, message(&room, &"é".repeat(21), "long"), "MESSAGE_TOO_LARGE").await;
    assert_eq!(error["clientMessageId"], "long");
    let mut three = message(&room, "look", "three");
    three["attachmentIds"] = json!(["a", "b", "c"]);
    let error = refused(&mut client, three, "INVALID_MESSAGE").await;
    assert!(error["message"].as_str().unwrap().contains("too many attachments"), "{error}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_at_most_100000_characters_and_20_attachments() {
    let scene = Scene::with(&[("PARLOR_MAX_WS_MESSAGE_SIZE", "1000000")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = following(&scene.admin, &room).await;
    let (fits, long) = ("ß".repeat(100_000), "ß".repeat(100_001));
    client.say_and_wait(&room, &fits, "fits").await.unwrap();
    assert_eq!(heard(&mut client).await["content"].as_str().unwrap().chars().count(), 100_000);
    refused(&mut client, message(&room, &long, "long"), "MESSAGE_TOO_LARGE").await;
    let path = format!("/api/rooms/{room}/messages");
    assert_eq!(scene.admin.post(&path, json!({ "content": fits })).await.unwrap().status, 201);
    let answer = scene.admin.post(&path, json!({ "content": long })).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body["code"]), (413, &json!("MESSAGE_TOO_LARGE")));

    // No such upload exists: 20 ids are refused as unknown uploads, 21 as too many attachments.
    for (count, expected) in [(20, "no such upload"), (21, "too many attachments")] {
        let ids: Vec<String> = (0..count).map(|n| format!("upload-{n}")).collect();
        let mut frame = message(&room, "look", "with attachments");
        frame["attachmentIds"] = json!(ids);
        let error = refused(&mut client, frame, "INVALID_MESSAGE").await;
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        let body = json!({ "content": "look", "attachmentIds": ids });
        assert_eq!(scene.admin.post(&path, body).await.unwrap().status, 400);
    }
    assert_eq!(scene.admin.history(&room).await.unwrap().len(), 2);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_messages_per_window_are_accepted_and_auth_and_ping_do_not_count() {
    // The window is longer than the test takes, even on a busy machine.
    let scene = Scene::with(&[ON, ("PARLOR_CLIENT_RATE_LIMIT_WINDOW", "600")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for n in 0..30 {
        client.send(&json!({ "type": "client:ping", "ts": n })).await.unwrap();
        client.send(&json!({ "type": "client:auth", "token": scene.admin.token() })).await.unwrap();
        client.say(&room, &format!("{n}"), &format!("m{n}")).await.unwrap();
    }
    client.say(&room, "one too many", "m30").await.unwrap();
    let error = next(&mut client, "server:error").await;
    assert_eq!((&error["code"], &error["clientMessageId"]), (&json!("RATE_LIMITED"), &json!("m30")));
    refused(&mut client, json!({ "type": "client:join_room", "roomId": room }), "RATE_LIMITED").await;
    assert_error(&mut client, "{not json", "RATE_LIMITED").await;
    assert_accepted(&mut client, &ping_of(100)).await;
    // The limit applies per connection: REST and another connection are not affected.
    scene.admin.post_message(&room, "by REST").await.unwrap();
    let mut other = Client::connect(&scene.admin).await.unwrap();
    other.say_and_wait(&room, "elsewhere", "m31").await.unwrap();
    assert_eq!(scene.admin.history(&room).await.unwrap().len(), 32);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_limit_window_is_a_setting_and_expires() {
    let scene =
        Scene::with(&[ON, ("PARLOR_CLIENT_RATE_LIMIT_WINDOW", "1"), ("PARLOR_CLIENT_RATE_LIMIT_MAX", "2")])
            .await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let start = Instant::now();
    let (mut accepted, mut limited) = (0, 0);
    while accepted < 5 {
        match client.say_and_wait(&room, "hello", &format!("m{}", accepted + limited)).await {
            Ok(_) => accepted += 1,
            Err(refusal) => {
                assert!(refusal.to_string().contains("RATE_LIMITED"), "{refusal}");
                limited += 1;
                // The hub does not announce the end of the window, so the client polls.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    assert!(
        limited > 0 && start.elapsed() >= Duration::from_secs(1),
        "five messages took {:?}",
        start.elapsed()
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_at_most_ten_connections_or_the_number_set_by_an_admin() {
    let scene = Scene::with(&[ON]).await;
    let alice = scene.person("alice").await;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(Client::connect(&alice).await.unwrap());
    }
    assert_eq!(auth_error(&alice).await, "Too many connections");
    Client::connect(&scene.admin).await.unwrap();
    let mut last = open.pop().unwrap();
    last.send_message(Message::Close(None)).await.unwrap();
    last.closed(TEST_TIMEOUT).await.unwrap();
    connect_with_retry(&alice).await;

    let path = format!("/api/users/{}", alice.user_id());
    let max_connections = |max_connections: Value| json!({ "maxConnections": max_connections });
    scene.admin.put(&path, max_connections(json!(12))).await.unwrap().data().unwrap();
    while open.len() < 12 {
        open.push(connect_with_retry(&alice).await);
    }
    assert_eq!(auth_error(&alice).await, "Too many connections");
    scene.admin.put(&path, max_connections(json!(1))).await.unwrap().data().unwrap();
    open.truncate(11);
    assert_eq!(auth_error(&alice).await, "Too many connections");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_limits_are_settings() {
    let scene = Scene::with(&[
        ON,
        ("PARLOR_MAX_WS_CONNECTIONS_PER_USER", "2"),
        ("PARLOR_MAX_TOTAL_WS_CONNECTIONS", "3"),
        ("PARLOR_MAX_UNAUTHENTICATED_PER_ADDRESS", "2"),
    ])
    .await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(Client::connect(&alice).await.unwrap());
    }
    assert_eq!(auth_error(&alice).await, "Too many connections");
    open.push(connect_with_retry(&bob).await);
    assert_eq!(auth_error(&bob).await, "Server at capacity");

    let unauthenticated = async {
        // Sockets of earlier attempts may still be closing and occupy slots.
        let mut unauthenticated: Vec<Client> = Vec::new();
        loop {
            match Client::open(scene.url()).await {
                Ok(socket) => unauthenticated.push(socket),
                Err(error) => {
                    let NotUpgraded(status) = error.downcast().unwrap();
                    assert_eq!(status, 429);
                    if unauthenticated.len() == 2 {
                        return unauthenticated;
                    }
                }
            }
            assert!(unauthenticated.len() <= 2, "a third unauthenticated socket was accepted");
        }
    };
    drop(tokio::time::timeout(TEST_TIMEOUT, unauthenticated).await.unwrap());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turning_limits_off_disables_rate_and_connection_limits_only() {
    let scene = Scene::with(&[
        ("PARLOR_CLIENT_RATE_LIMIT_MAX", "1"),
        ("PARLOR_MAX_WS_CONNECTIONS_PER_USER", "1"),
        ("PARLOR_MAX_TOTAL_WS_CONNECTIONS", "1"),
        ("PARLOR_MAX_UNAUTHENTICATED_PER_ADDRESS", "1"),
        ("PARLOR_LOGIN_RATE_LIMIT_MAX", "1"),
    ])
    .await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let _unauthenticated = Client::open(scene.url()).await.unwrap();
    let _first = Client::connect(&scene.admin).await.unwrap();
    let mut second = Client::connect(&scene.hub.admin().await.unwrap()).await.unwrap();
    for n in 0..5 {
        second.say_and_wait(&room, "hello", &format!("m{n}")).await.unwrap();
    }
    assert_error(&mut second, &ping_of(65_537), "MESSAGE_TOO_LARGE").await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_and_refreshes_per_address_are_limited_by_settings() {
    let scene = Scene::with(&[
        ON,
        ("PARLOR_LOGIN_RATE_LIMIT_MAX", "3"),
        ("PARLOR_REFRESH_RATE_LIMIT_MAX", "2"),
        ("PARLOR_LOCKOUT_FAILURES", "1"),
    ])
    .await;
    let body = |password: &str| json!({ "username": "admin", "password": password });
    let outsider = RestClient::outsider(scene.url());
    let wrong = outsider.post("/api/auth/login", body("Wrong-horse-7")).await.unwrap();
    assert_eq!(wrong.status, 401);
    let locked = outsider.post("/api/auth/login", body(PASSWORD)).await.unwrap();
    assert_eq!(locked.status, 401, "the setting locks the account after one failure");
    let limited = outsider.post("/api/auth/login", body(PASSWORD)).await.unwrap();
    assert_eq!((limited.status.as_u16(), &limited.body["code"]), (429, &json!("RATE_LIMITED")));
    for expected in [401, 401, 429] {
        let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": "none" })).await.unwrap();
        assert_eq!(answer.status.as_u16(), expected);
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unauthenticated_connection_is_closed_with_4001_after_the_timeout() {
    let scene = Scene::with(&[("PARLOR_AUTH_TIMEOUT", "1")]).await;
    let mut client = Client::open(scene.url()).await.unwrap();
    client.send(&json!({ "type": "client:auth", "token": "nonsense" })).await.unwrap();
    let result = next(&mut client, "server:auth_result").await;
    assert_eq!(result, json!({ "type": "server:auth_result", "ok": false, "error": "Invalid token" }));
    // A failed attempt leaves the connection open and does not restart the authentication timeout.
    assert_accepted(&mut client, &ping_of(50)).await;
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 4001);
    let mut signed_in = Client::connect(&scene.admin).await.unwrap();
    let mut silent = Client::open(scene.url()).await.unwrap();
    assert_eq!(silent.closed(TEST_TIMEOUT).await.unwrap(), 4001);
    assert_accepted(&mut signed_in, &ping_of(50)).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_failed_attempts_or_an_unknown_protocol_version_close_with_1008() {
    let scene = Scene::start().await;
    let bad = json!({ "type": "client:auth", "token": "nonsense" });
    let good = json!({ "type": "client:auth", "token": scene.admin.token(), "protocolVersion": "1" });
    let mut client = Client::open(scene.url()).await.unwrap();
    for _ in 0..4 {
        client.send(&bad).await.unwrap();
        assert_eq!(next(&mut client, "server:auth_result").await["ok"], false);
    }
    client.send(&good).await.unwrap();
    let result = next(&mut client, "server:auth_result").await;
    let expected = json!({ "type": "server:auth_result", "ok": true, "userId": scene.admin.user_id() });
    assert_eq!(result, expected, "the fifth attempt may still succeed");

    let mut client = Client::open(scene.url()).await.unwrap();
    for _ in 0..5 {
        client.send(&bad).await.unwrap();
    }
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1008);

    let mut client = Client::open(scene.url()).await.unwrap();
    let newer = json!({ "type": "client:auth", "token": scene.admin.token(), "protocolVersion": "2" });
    refused(&mut client, newer, "PROTOCOL_VERSION_MISMATCH").await;
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1008);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_has_its_code() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[]).await.unwrap();
    let join = |room: &str| json!({ "type": "client:join_room", "roomId": room });

    let mut unauthenticated = Client::open(scene.url()).await.unwrap();
    refused(&mut unauthenticated, join(&room), "NOT_AUTHENTICATED").await;
    let error = refused(&mut unauthenticated, message(&room, "hello", "s1"), "NOT_AUTHENTICATED").await;
    assert_eq!(error["clientMessageId"], "s1");
    assert_accepted(&mut unauthenticated, &ping_of(50)).await;

    let mut client = Client::connect(&bob).await.unwrap();
    for unknown in ["01a1e0fe-0000-7000-8000-000000000000", "../etc", ""] {
        refused(&mut client, join(unknown), "ROOM_NOT_FOUND").await;
        refused(&mut client, message(unknown, "hello", "b1"), "ROOM_NOT_FOUND").await;
    }
    refused(&mut client, join(&room), "NOT_A_MEMBER").await;
    let error = refused(&mut client, message(&room, "hello", "b2"), "NOT_A_MEMBER").await;
    assert_eq!(error["clientMessageId"], "b2");

    let own = bob.make_room("own", &[]).await.unwrap();
    let elsewhere = alice.post_message(&room, "in the kitchen").await.unwrap();
    for (field, value) in [
        ("content", json!("  ")),
        ("replyToId", elsewhere["id"].clone()),
        ("replyToId", json!("../x")),
        ("mentions", json!(vec!["x"; 51])),
        ("clientMessageId", json!("x".repeat(129))),
        ("clientMessageId", json!("")),
    ] {
        let mut frame = message(&own, "hello", "b3");
        frame[field] = value;
        let error = refused(&mut client, frame, "INVALID_MESSAGE").await;
        assert!(error["message"].as_str().unwrap().contains(field), "{error}");
    }
    let mut since = join(&own);
    since["since"] = json!("yesterday");
    refused(&mut client, since, "INVALID_MESSAGE").await;
    assert_error(&mut client, "{not json", "INVALID_JSON").await;
    assert_error(&mut client, r#"{"type":"client:fly"}"#, "INVALID_MESSAGE").await;
    assert!(bob.history(&own).await.unwrap().is_empty());

    let body = json!({ "name": "reader", "scopes": ["read"] });
    let key = bob.post("/api/keys", body).await.unwrap().data().unwrap();
    let mut reader = following(&bob.with_token(key["key"].as_str().unwrap()), &own).await;
    refused(&mut reader, message(&own, "hello", "k1"), "PERMISSION_DENIED").await;
    scene.ends_well().await;
}

/// Retries to connect until closing connections have freed a slot.
async fn connect_with_retry(user: &RestClient) -> Client {
    let attempt = async {
        loop {
            if let Ok(client) = Client::connect(user).await {
                return client;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, attempt)
        .await
        .expect("a connection slot becomes free before the timeout")
}

/// Returns the next frame that is no new message: the client's own message may arrive after its
/// acknowledgement.
async fn answer(client: &mut Client) -> Value {
    client.wait_for(TEST_TIMEOUT, |frame| frame["type"] != "server:new_message").await.unwrap()
}

/// Asserts that the hub accepts this text frame, a ping, and answers with a pong only.
async fn assert_accepted(client: &mut Client, text: &str) {
    so_far(client).await;
    client.send_message(Message::text(text)).await.unwrap();
    let answer = answer(client).await;
    assert_eq!(answer["type"], "server:pong", "{text:.100} got {answer}");
}

/// Asserts that the hub refuses this text frame with this code and keeps the connection open.
async fn assert_error(client: &mut Client, text: &str, code: &str) {
    so_far(client).await;
    client.send_message(Message::text(text)).await.unwrap();
    let answer = answer(client).await;
    assert_eq!(answer["code"], code, "{text:.100} got {answer}");
    so_far(client).await;
}

fn ping_with(extra: &str) -> String {
    format!(r#"{{"type":"client:ping","ts":1,"x":{extra}}}"#)
}

/// A ping frame of exactly this many bytes.
fn ping_of(bytes: usize) -> String {
    let overhead = ping_with("\"\"").len();
    ping_with(&format!("\"{}\"", "x".repeat(bytes - overhead)))
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn list(elements: usize) -> String {
    format!("[{}]", vec!["0"; elements].join(","))
}
