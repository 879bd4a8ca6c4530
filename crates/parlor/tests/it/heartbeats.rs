//! Heartbeats of idle WebSocket connections.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;

use crate::scene::{Scene, bare};

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_pinged_and_stay_open() {
    let scene = Scene::with(&[("PARLOR_HEARTBEAT", "1")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    // More pings than may stay unanswered: the library answers each of them.
    for _ in 0..5 {
        tokio::try_join!(client.ping(), broker.ping()).unwrap();
    }
    client.say_and_wait(&room, "still here", "c1").await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_answers_no_ping_is_disconnected() {
    let scene = Scene::with(&[("PARLOR_HEARTBEAT", "1")]).await;
    let request = format!(
        "GET /ws/broker HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer {}\r\n\r\n",
        scene.admin.token()
    );
    let answer = bare(scene.url(), request.as_bytes()).await;
    assert_eq!(answer.status, 101);
    assert!(answer.body.contains("auth.ok"), "{}", answer.body);
    assert!(answer.body.contains("No answer to heartbeats"), "{}", answer.body);
    scene.ends_well().await;
}
