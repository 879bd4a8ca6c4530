//! The broker door's own rules: signing in, what comes back with a `reqId`, and how it ends.

use parlor_testkit::broker::Broker;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::scene::Scene;

async fn stranger(scene: &Scene) -> Socket {
    Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap()
}

async fn answer(socket: &mut Socket, frame: Value) -> Value {
    socket.send(&frame).await.unwrap();
    socket.frame(TEST_TIMEOUT).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_closes_with_4003_and_none_in_time_with_4001() {
    let scene = Scene::with(&[("PARLOR_AUTH_TIMEOUT", "1")]).await;
    let mut socket = stranger(&scene).await;
    let told = answer(&mut socket, json!({ "type": "auth", "token": "wrong", "reqId": 7 })).await;
    assert_eq!(told, json!({ "type": "auth.error", "error": "Invalid token", "reqId": 7 }));
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 4003);

    let mut socket = stranger(&scene).await;
    let told = socket.frame(TEST_TIMEOUT).await.unwrap();
    assert_eq!(told, json!({ "type": "auth.error", "error": "Authentication timeout" }));
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 4001);

    let headers = [("authorization", &*format!("Bearer {}", scene.admin.token()))];
    let mut socket = Socket::open(scene.url(), "/ws/broker", &headers).await.unwrap();
    assert_eq!(
        socket.frame(TEST_TIMEOUT).await.unwrap(),
        json!({ "type": "auth.ok" }),
        "the header is enough"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_signing_in_every_request_is_refused_and_the_connection_stays() {
    let scene = Scene::start().await;
    let mut socket = stranger(&scene).await;
    for kind in ["msg.route", "msg.listen", "msg.receive", "agent.create", "ping", "nope"] {
        let told = answer(&mut socket, json!({ "type": kind, "reqId": kind })).await;
        assert_eq!(told, json!({ "type": "auth.error", "error": "Must authenticate first", "reqId": kind }));
    }
    let told = answer(&mut socket, json!({ "type": "auth", "token": scene.admin.token() })).await;
    assert_eq!(told, json!({ "type": "auth.ok" }));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_comes_back_as_it_was_unless_it_says_nothing() {
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for id in [json!("r"), json!(7), json!(true), json!({ "a": [1] }), json!("0"), json!(-1)] {
        let told = answer(&mut broker, json!({ "type": "ping", "reqId": id })).await;
        assert_eq!(told, json!({ "type": "pong", "reqId": id }));
    }
    for nothing in [json!(0), json!(""), json!(false), Value::Null] {
        let told = answer(&mut broker, json!({ "type": "ping", "reqId": nothing })).await;
        assert_eq!(told, json!({ "type": "pong" }));
    }
    for bad in ["{not json", "[]", "7", "\"auth\"", "", r#"{"type":"ping","type":"ping"}"#] {
        broker.send_message(Message::text(bad)).await.unwrap();
        let told = broker.frame(TEST_TIMEOUT).await.unwrap();
        assert_eq!(told, json!({ "type": "error", "error": "Invalid JSON" }), "{bad}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_takes_a_route_only_from_an_agent_that_is_its_member() {
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
        let told = broker.ask(frame).await.unwrap();
        assert_eq!((&told["type"], &told["error"]), (&json!("msg.route.error"), &json!(sentence)));
    }
    let body = json!({ "memberId": "coder", "memberType": "agent" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    let told = broker.ask(route("coder", json!({ "n": 1 }))).await.unwrap();
    assert_eq!(told["error"], "payload a message to a room needs payload.text");
    broker.ok(route("coder", json!({ "text": "hi" }))).await.unwrap();
    assert_eq!(owner.history(&room).await.unwrap().len(), 1);
    // Somebody else's agent is nobody's business.
    let mut other = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for frame in [
        json!({ "type": "msg.listen", "agentId": "coder" }),
        json!({ "type": "msg.receive", "agentId": "coder" }),
    ] {
        let told = other.ask(frame).await.unwrap();
        assert_eq!(told["error"], "Agent not found: coder");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_and_a_shutdown_end_the_connection() {
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
async fn a_program_that_sends_much_at_once_is_heard_as_fast_as_it_reads() {
    const ROUTES: usize = 20;
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    broker.create_agent("coder", &[]).await.unwrap();
    let payload = json!({ "text": "x".repeat(900_000) });
    let route = json!({ "type": "msg.route", "from": "coder", "path": "agent/coder", "payload": payload });
    for sent in 0..ROUTES {
        broker.send(&route).await.unwrap();
        // A few are always under way, and their replies together are more than the outbox holds.
        if sent >= 3 {
            broker.wait_for_type("msg.route.ok").await.unwrap();
        }
    }
    for _ in 0..3 {
        broker.wait_for_type("msg.route.ok").await.unwrap();
    }
    scene.ends_well().await;
}
