//! Connection rules of the broker protocol: authentication, echo of `reqId`, revocation, shutdown and
//! backpressure.

use parlor_testkit::broker::Broker;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::scene::Scene;

async fn open_unauthenticated(scene: &Scene) -> Socket {
    Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap()
}

async fn send_and_read(socket: &mut Socket, frame: Value) -> Value {
    socket.send(&frame).await.unwrap();
    socket.frame(TEST_TIMEOUT).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_token_closes_with_4003_and_a_missing_one_with_4001() {
    let scene = Scene::with(&[("PARLOR_AUTH_TIMEOUT", "1")]).await;
    let mut socket = open_unauthenticated(&scene).await;
    let reply = send_and_read(&mut socket, json!({ "type": "auth", "token": "wrong", "reqId": 7 })).await;
    assert_eq!(reply, json!({ "type": "auth.error", "error": "Invalid token", "reqId": 7 }));
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 4003);

    let mut socket = open_unauthenticated(&scene).await;
    let reply = socket.frame(TEST_TIMEOUT).await.unwrap();
    assert_eq!(reply, json!({ "type": "auth.error", "error": "Authentication timeout" }));
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 4001);

    let headers = [("authorization", &*format!("Bearer {}", scene.admin.token()))];
    let mut socket = Socket::open(scene.url(), "/ws/broker", &headers).await.unwrap();
    assert_eq!(
        socket.frame(TEST_TIMEOUT).await.unwrap(),
        json!({ "type": "auth.ok" }),
        "the Authorization header authenticates without a frame"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_before_authentication_are_refused_and_the_connection_stays_open() {
    let scene = Scene::start().await;
    let mut socket = open_unauthenticated(&scene).await;
    for kind in ["msg.route", "msg.listen", "msg.receive", "agent.create", "ping", "nope"] {
        let reply = send_and_read(&mut socket, json!({ "type": kind, "reqId": kind })).await;
        assert_eq!(reply, json!({ "type": "auth.error", "error": "Must authenticate first", "reqId": kind }));
    }
    let reply = send_and_read(&mut socket, json!({ "type": "auth", "token": scene.admin.token() })).await;
    assert_eq!(reply, json!({ "type": "auth.ok" }));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_echoed_unless_it_is_falsy() {
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for id in [json!("r"), json!(7), json!(true), json!({ "a": [1] }), json!("0"), json!(-1)] {
        let reply = send_and_read(&mut broker, json!({ "type": "ping", "reqId": id })).await;
        assert_eq!(reply, json!({ "type": "pong", "reqId": id }));
    }
    for falsy in [json!(0), json!(""), json!(false), Value::Null] {
        let reply = send_and_read(&mut broker, json!({ "type": "ping", "reqId": falsy })).await;
        assert_eq!(reply, json!({ "type": "pong" }));
    }
    for bad in ["{not json", "[]", "7", "\"auth\"", "", r#"{"type":"ping","type":"ping"}"#] {
        broker.send_message(Message::text(bad)).await.unwrap();
        let reply = broker.frame(TEST_TIMEOUT).await.unwrap();
        assert_eq!(reply, json!({ "type": "error", "error": "Invalid JSON" }), "{bad}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_accepts_messages_only_from_member_agents() {
    let scene = Scene::start().await;
    let owner = scene.person("owner").await;
    let room = owner.make_room("kitchen", &[]).await.unwrap();
    let path = format!("room/{room}");
    let mut broker = Broker::connect(scene.url(), owner.token()).await.unwrap();
    broker.create_agent("coder", &[]).await.unwrap();
    let route = |from: &str, payload: Value| json!({ "type": "msg.route", "from": from, "path": path, "payload": payload });
    let refusals = [
        (route("coder", json!({ "text": "hi" })), "Not a member of this room"),
        (route("somebody", json!({ "text": "hi" })), "Agent not found"),
    ];
    for (frame, sentence) in refusals {
        let reply = broker.ask(frame).await.unwrap();
        assert_eq!((&reply["type"], &reply["error"]), (&json!("msg.route.error"), &json!(sentence)));
    }
    let body = json!({ "memberId": "coder", "memberType": "agent" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    let reply = broker.ask(route("coder", json!({ "n": 1 }))).await.unwrap();
    assert_eq!(reply["error"], "payload a message to a room needs payload.text");
    broker.ok(route("coder", json!({ "text": "hi" }))).await.unwrap();
    assert_eq!(owner.history(&room).await.unwrap().len(), 1);
    // An agent of another user looks like an unknown agent.
    let mut other = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for frame in [
        json!({ "type": "msg.listen", "agentId": "coder" }),
        json!({ "type": "msg.receive", "agentId": "coder" }),
    ] {
        let reply = other.ask(frame).await.unwrap();
        assert_eq!(reply["error"], "Agent not found: coder");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_and_a_shutdown_close_the_connection() {
    let mut scene = Scene::start().await;
    let body = json!({ "name": "program", "scopes": ["agents"] });
    let key = scene.admin.post("/api/keys", body).await.unwrap().data().unwrap();
    let mut by_key = Broker::connect(scene.url(), key["key"].as_str().unwrap()).await.unwrap();
    let mut by_token = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    scene.admin.delete(&format!("/api/keys/{}", key["id"].as_str().unwrap())).await.unwrap();
    assert_eq!(by_key.wait_for_type("error").await.unwrap()["error"], "Your session was revoked");
    assert_eq!(by_key.closed(TEST_TIMEOUT).await.unwrap(), 1008);
    let reader = tokio::spawn(async move { by_token.closed(TEST_TIMEOUT).await.unwrap() });
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    assert_eq!(reader.await.unwrap(), 1001);
    scene.assert_never_panicked();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipelining_client_is_served_as_fast_as_it_reads() {
    const ROUTES: usize = 20;
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    broker.create_agent("coder", &[]).await.unwrap();
    let payload = json!({ "text": "x".repeat(900_000) });
    let route = json!({ "type": "msg.route", "from": "coder", "path": "agent/coder", "payload": payload });
    for sent in 0..ROUTES {
        broker.send(&route).await.unwrap();
        // Three requests are always outstanding, and their replies together exceed the capacity of the
        // outbox.
        if sent >= 3 {
            broker.wait_for_type("msg.route.ok").await.unwrap();
        }
    }
    for _ in 0..3 {
        broker.wait_for_type("msg.route.ok").await.unwrap();
    }
    scene.ends_well().await;
}
