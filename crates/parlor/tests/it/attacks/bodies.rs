//! Hostile request bodies and frames.
//!
//! Deep nesting, repeated keys, excessive size, lone surrogates and compression.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestResponse;
use parlor_testkit::socket::{TEST_TIMEOUT, TEXT, masked_frame};
use reqwest::Method;
use serde_json::json;

use crate::scene::{Scene, assert_refused, bare, send_text};

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_refuses_malformed_json_bodies_without_effect() {
    let scene = Scene::start().await;
    let many = format!(r#"{{"name":"x","more":[{}0]}}"#, "0,".repeat(2000));
    for body in [
        "",
        "nonsense",
        "{",
        r#"{"name":"x"} trailing"#,
        r#"{"name":"x","name":"y"}"#,
        r#"{"name":"x","n\u0061me":"y"}"#,
        r#"{"name":"x","more":{"a":1,"a":2}}"#,
        r#"{"name":"\ud800"}"#,
        r#"{"name":"\udc00\ud800"}"#,
        r#"{"name":"x","more":1e999}"#,
        &format!(r#"{{"name":"x","more":{}}}"#, nested(40)),
        &nested(200_000),
        &many,
    ] {
        let answer = send_text(&scene.admin, Method::POST, "/api/rooms", body.to_owned()).await;
        assert_refused(&answer, 400);
        assert_eq!(answer.body["error"], "Invalid JSON body", "{body:.80}");
    }
    for body in [&b"\xff\xfe{}"[..], b"{\"name\":\"\xc3\x28\"}"] {
        assert_refused(&send_text(&scene.admin, Method::POST, "/api/rooms", body.to_vec()).await, 400);
    }
    for body in ["[]", "null", "5", "\"name\"", r#"{"name":5}"#, r#"{"name":"x","memberIds":"y"}"#] {
        let answer = send_text(&scene.admin, Method::POST, "/api/rooms", body.to_owned()).await;
        assert_refused(&answer, 400);
    }
    let rooms = scene.admin.get("/api/rooms").await.unwrap().data().unwrap();
    assert_eq!(rooms, json!([]), "no refused body created a room");
    let digits = "9".repeat(5000);
    let body = format!(r#"{{"name":"x","more":[{digits},-{digits},0.{digits}]}}"#);
    let answer = send_text(&scene.admin, Method::POST, "/api/rooms", body).await;
    assert!(
        answer.status == 201 || answer.status == 400,
        "huge numbers are accepted or refused, never a fault: {answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_refuses_oversized_bodies_with_and_without_content_length() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let path = format!("/api/rooms/{room}/messages");
    let huge = json!({ "content": "x".repeat(1024 * 1024) }).to_string();
    assert_refused(&send_text(&scene.admin, Method::POST, &path, huge).await, 413);
    let answer = scene.admin.post(&path, json!({ "content": "x".repeat(100_001) })).await.unwrap();
    assert_refused(&answer, 413);
    assert_eq!(answer.body["code"], "MESSAGE_TOO_LARGE");

    // With chunked encoding the hub does not know the length before it reads the body.
    let token = scene.admin.token();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    for _ in 0..20 {
        request.extend(b"10000\r\n");
        request.extend(vec![b'x'; 0x10000]);
        request.extend(b"\r\n");
    }
    let answer = bare_allowing_reset(scene.url(), &request).await;
    assert!(matches!(answer, None | Some(413)), "{answer:?}");
    // Two different `Content-Length` headers could smuggle a second request past a proxy.
    let smuggled = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 5\r\n\
         Content-Length: 6\r\nConnection: close\r\n\r\nhello"
    );
    assert_eq!(bare(scene.url(), smuggled.as_bytes()).await.status, 400);
    assert_eq!(scene.admin.history(&room).await.unwrap().len(), 0);
}

/// Sends a raw request; returns its status, or `None` if the hub closed the connection before the request was
/// complete.
async fn bare_allowing_reset(url: &str, request: &[u8]) -> Option<u16> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = crate::scene::connect(url).await;
    let written = stream.write_all(request).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut answer))
        .await
        .expect("the hub closes the connection before the timeout");
    if answer.is_empty() {
        assert!(written.is_err() || read.is_err(), "the hub closed a healthy connection without a response");
        return None;
    }
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_bodies_and_frames_are_refused() {
    let scene = Scene::start().await;
    // `{"name":"x"}`, compressed with gzip and with deflate.
    let gzip: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xab, 0x56, 0xca, 0x4b, 0xcc, 0x4d, 0x55, 0xb2, 0x52, 0xaa, 0x50,
        0xaa, 0x05, 0, 0x69, 0xb3, 0x81, 0x9e, 12, 0, 0, 0,
    ];
    let deflate: &[u8] = &[
        0x78, 0x9c, 0xab, 0x56, 0xca, 0x4b, 0xcc, 0x4d, 0x55, 0xb2, 0x52, 0xaa, 0x50, 0xaa, 5, 0, 0x19, 0xc5,
        0x03, 0xd4,
    ];
    for (name, body) in [("gzip", gzip), ("deflate", deflate), ("br", gzip)] {
        let request = scene.admin.request(Method::POST, "/api/rooms").header("content-encoding", name);
        assert_refused(&RestResponse::of(request.body(body)).await.unwrap(), 415);
    }
    let plain = scene.admin.request(Method::POST, "/api/rooms").header("content-encoding", "identity");
    assert_eq!(RestResponse::of(plain.body(r#"{"name":"x"}"#)).await.unwrap().status, 201);

    for path in ["/ws/client", "/ws/broker"] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
        );
        let mut stream = crate::scene::connect(scene.url()).await;
        let mut head = vec![0; 1024];
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        let read = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101"), "{head}");
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
        // A frame with the compression bit (RSV1) set although compression was not negotiated.
        let mut frame = masked_frame(TEXT, b"\xaa\x56\x00");
        frame[0] |= 0x40;
        tokio::io::AsyncWriteExt::write_all(&mut stream, &frame).await.unwrap();
        let mut rest = Vec::new();
        let end = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest);
        tokio::time::timeout(TEST_TIMEOUT, end)
            .await
            .expect("the hub closes the socket before the timeout")
            .unwrap();
        assert!(rest.windows(2).any(|pair| pair == 1002_u16.to_be_bytes()), "{rest:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_refuses_hostile_frames_and_stays_open() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let send =
        |content: &str| format!(r#"{{"type":"client:send_message","roomId":"{room}","content":{content}}}"#);
    let deep = format!(r#"{{"type":"client:ping","ts":1,"x":{}}}"#, nested(15));
    let wide = format!(r#"{{"type":"client:ping","ts":1,"x":[{}0]}}"#, "0,".repeat(1000));
    let doubled =
        format!(r#"{{"type":"client:send_message","roomId":"{room}","content":"a","content":"b"}}"#);
    for (frame, code) in [
        (deep, "JSON_TOO_DEEP"),
        (nested(30_000), "JSON_TOO_DEEP"),
        (wide, "JSON_TOO_DEEP"),
        (doubled, "INVALID_MESSAGE"),
        (send(r#""\ud800""#), "INVALID_JSON"),
        (send("1e999"), "INVALID_JSON"),
        (send("5"), "INVALID_MESSAGE"),
        (send(&format!("\"{}\"", "x".repeat(70_000))), "MESSAGE_TOO_LARGE"),
    ] {
        client.send_bytes(&masked_frame(TEXT, frame.as_bytes())).await.unwrap();
        let error = client.wait_for_type("server:error").await.unwrap();
        assert_eq!(error["code"], code, "{frame:.100}");
    }
    client.say_and_wait(&room, "still here", "c1").await.unwrap();
    assert_eq!(client.wait_for_type("server:new_message").await.unwrap()["message"]["content"], "still here");

    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for frame in [
        format!(r#"{{"type":"ping","x":{}}}"#, nested(40)),
        nested(100_000),
        r#"{"type":"ping","type":"msg.route"}"#.to_owned(),
        r#"{"type":"ping","x":"\ud800"}"#.to_owned(),
        r#"{"type":"ping","x":1e999}"#.to_owned(),
    ] {
        broker.send_bytes(&masked_frame(TEXT, frame.as_bytes())).await.unwrap();
        assert_eq!(broker.wait_for_type("error").await.unwrap()["error"], "Invalid JSON", "{frame:.60}");
    }
    broker.create_agent("still-here", &[]).await.unwrap();
}

/// Bounds the memory that a client can occupy by requesting large responses without reading them.
#[tokio::test(flavor = "multi_thread")]
async fn no_response_is_larger_than_two_megabytes() {
    const MAX_BYTES: usize = 2 * 1024 * 1024;
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let text = "x".repeat(100_000);
    let id = scene.admin.post_message(&room, &text).await.unwrap()["id"].as_str().unwrap().to_owned();
    for n in 0..25 {
        scene.admin.post_message(&room, &text).await.unwrap();
        let edit = json!({ "content": format!("{n}{text:.60000}") });
        scene.admin.put(&format!("/api/messages/{id}"), edit).await.unwrap().data().unwrap();
    }
    for path in [format!("/api/messages/rooms/{room}?limit=200"), format!("/api/messages/{id}/history")] {
        let answer = scene.admin.get(&path).await.unwrap().data().unwrap().to_string();
        assert!((text.len()..MAX_BYTES).contains(&answer.len()), "{} bytes from {path}", answer.len());
    }
    let recent = scene.admin.get("/api/messages/recent").await.unwrap().data().unwrap();
    assert_eq!(recent[&room]["content"], text[..1000]);
    assert_eq!(scene.admin.history(&room).await.unwrap().len(), 26, "paging returns every message");
    scene.ends_well().await;
}
