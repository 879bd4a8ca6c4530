//! Tests of the export of traces, with a minimal OpenTelemetry collector.

use std::time::Duration;

use parlor_testkit::socket::TEST_TIMEOUT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::scene::{Scene, contains};

/// Receives requests as a collector does, and sends head and body of each to `received`.
async fn collect(mut stream: TcpStream, received: mpsc::UnboundedSender<(String, Vec<u8>)>) {
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let whole = head.and_then(|end| {
            let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            Some((text.clone(), end + 4, end + 4 + length.parse::<usize>().ok()?))
        });
        match whole.filter(|(.., end)| bytes.len() >= *end) {
            Some((head, start, end)) => {
                received.send((head, bytes[start..end].to_vec())).unwrap();
                bytes.drain(..end);
                let answer =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            None => match stream.read_buf(&mut bytes).await {
                Ok(1..) => {}
                _ => return,
            },
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collector_receives_routes_and_timings_but_no_content() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (received, mut requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(collect(stream, received.clone()));
        }
    });
    let mut scene = Scene::process_set(&[("PARLOR_OTLP_ENDPOINT", &endpoint)]).await;
    let room = scene.admin.make_room("canary-room", &[]).await.unwrap();
    scene.admin.post_message(&room, "canary-text").await.unwrap();
    scene.admin.get(&format!("/api/messages/rooms/{room}?after=0&canary=1")).await.unwrap();
    scene.admin.get("/api/canary").await.unwrap();
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let (mut heads, mut bodies) = (Vec::new(), Vec::new());
    while let Ok((head, body)) = requests.try_recv() {
        heads.push(head);
        bodies.extend(body);
    }
    assert!(heads.iter().all(|head| head.starts_with("post /v1/traces http/1.1")), "{heads:?}");
    for part in [
        "parlor",
        "POST /api/rooms/{id}/messages",
        "GET /api/messages/rooms/{id}",
        "commit",
        "read",
        "command",
    ] {
        assert!(contains(&bodies, part), "no {part} in {:?}", String::from_utf8_lossy(&bodies));
    }
    for secret in ["canary", room.as_str(), scene.admin.token(), scene.admin.user_id()] {
        assert!(!contains(&bodies, secret), "{secret} in {:?}", String::from_utf8_lossy(&bodies));
    }
    assert!(!scene.hub.log().contains("http{"), "the log contains no spans: {}", scene.hub.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_collector_does_not_affect_the_hub() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let mut scene = Scene::process_set(&[("PARLOR_OTLP_ENDPOINT", &endpoint)]).await;
    for _ in 0..50 {
        assert_eq!(scene.admin.health().await.unwrap(), 200);
    }
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
}
