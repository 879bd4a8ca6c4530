//! Hostile ids through every protocol: refused, never an internal error.
//!
//! Path traversal, separators, line breaks, NUL and SQL.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use serde_json::json;

use crate::scene::{Scene, assert_refused, bare};

const HOSTILE: [&str; 24] = [
    "..",
    ".",
    "../admin",
    "a/../b",
    "a/b",
    "/",
    "a:b",
    "a--b:",
    "--; DROP TABLE users",
    "' OR '1'='1",
    "a\nb",
    "a\r\nSet-Cookie: x=y",
    "a\0b",
    "\0",
    "a b",
    " ",
    "",
    "é",
    "\u{202e}abc",
    "*",
    "**",
    "%2e%2e",
    "${jndi}",
    "C:\\",
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_in_a_path_yield_a_client_error_in_json() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let long = "x".repeat(65);
    let raw =
        ["..%2f..%2fetc%2fpasswd", "%00", "%FF%FE", "%", "%2", "..", ".%2e", "a%0ab", "a%2Fb", "%c0%ae"];
    let hostile = HOSTILE.iter().map(|id| encoded(id)).chain(raw.map(str::to_owned)).chain([long]);
    for id in hostile {
        for (method, path) in [
            ("GET", format!("/api/rooms/{id}")),
            ("DELETE", format!("/api/rooms/{id}")),
            ("GET", format!("/api/rooms/{id}/members")),
            ("DELETE", format!("/api/rooms/{room}/members/{id}")),
            ("GET", format!("/api/messages/rooms/{id}")),
            ("POST", format!("/api/messages/rooms/{id}/read")),
            ("GET", format!("/api/messages/{id}/history")),
            ("DELETE", format!("/api/messages/{id}")),
            ("GET", format!("/api/messages/{id}/thread")),
            ("GET", format!("/api/messages/{id}/replies/count")),
            ("POST", format!("/api/messages/{id}/reactions")),
            ("POST", format!("/api/messages/{id}/pin")),
            ("PUT", format!("/api/rooms/{id}/clear")),
            ("GET", format!("/api/rooms/{id}/pins")),
            ("DELETE", format!("/api/bookmarks/{id}")),
            ("DELETE", format!("/api/users/{id}")),
            ("DELETE", format!("/api/keys/{id}")),
            ("DELETE", format!("/api/auth/sessions/{id}")),
        ] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n",
                scene.admin.token()
            );
            let answer = bare(scene.url(), request.as_bytes()).await;
            assert!(matches!(answer.status, 400 | 404 | 405), "{method} {path}: {answer:?}");
            let body: serde_json::Value = serde_json::from_str(&answer.body)
                .unwrap_or_else(|_| panic!("{method} {path} has a response that is not JSON: {answer:?}"));
            assert_eq!(body["ok"], false, "{method} {path}: {body}");
            assert!(!answer.head.to_ascii_lowercase().contains("set-cookie"), "{answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_in_a_body_are_refused() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    for id in HOSTILE {
        let members = format!("/api/rooms/{room}/members");
        for kind in ["user", "agent"] {
            // `a/b` is a valid agent id, but no such agent exists.
            let body = json!({ "memberId": id, "memberType": kind });
            let answer = scene.admin.post(&members, body).await.unwrap();
            assert_refused(&answer, if kind == "agent" && id == "a/b" { 404 } else { 400 });
        }
        let answer = scene.admin.post("/api/rooms", json!({ "name": "x", "memberIds": [id] })).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], "memberIds");
        let body = json!({ "content": "hello", "replyToId": id });
        let answer = scene.admin.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap();
        assert_refused(&answer, 400);
        assert_refused(&scene.admin.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap(), 400);
        let batch = json!({ "messageIds": [id] });
        assert_refused(&scene.admin.post("/api/messages/batch-delete", batch).await.unwrap(), 400);
        let body = json!({ "username": id, "password": crate::scene::PASSWORD });
        let answer = scene.admin.post("/api/users", body).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], "username");
    }
    assert_eq!(scene.admin.get("/api/rooms").await.unwrap().data().unwrap().as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_on_the_client_socket_are_refused_as_unknown_rooms_or_invalid_messages() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for id in HOSTILE {
        client.send(&json!({ "type": "client:join_room", "roomId": id })).await.unwrap();
        assert_eq!(client.wait_for_type("server:error").await.unwrap()["code"], "ROOM_NOT_FOUND", "{id:?}");
        client.say(id, "hello", "c1").await.unwrap();
        assert_eq!(client.wait_for_type("server:error").await.unwrap()["code"], "ROOM_NOT_FOUND", "{id:?}");
        let reply = json!({ "type": "client:send_message", "roomId": room, "content": "x", "replyToId": id });
        client.send(&reply).await.unwrap();
        assert_eq!(client.wait_for_type("server:error").await.unwrap()["code"], "INVALID_MESSAGE", "{id:?}");
        client.send(&json!({ "type": "client:typing", "roomId": id })).await.unwrap();
        client.send(&json!({ "type": "client:leave_room", "roomId": id })).await.unwrap();
        let since = json!({ "type": "client:join_room", "roomId": room, "since": format!("{id}x") });
        client.send(&since).await.unwrap();
        assert_eq!(client.wait_for_type("server:error").await.unwrap()["code"], "INVALID_MESSAGE", "{id:?}");
    }
    client.say_and_wait(&room, "still here", "c2").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_agent_ids_are_refused_by_the_broker() {
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for id in HOSTILE.into_iter().filter(|id| *id != "a/b") {
        for frame in [
            json!({ "type": "agent.create", "id": id }),
            json!({ "type": "msg.receive", "agentId": id }),
            json!({ "type": "msg.listen", "agentId": id }),
        ] {
            let reply = broker.ask(frame.clone()).await.unwrap();
            let expected = format!("{}.error", frame["type"].as_str().unwrap());
            assert_eq!(reply["type"], expected, "{frame}");
        }
    }
    for path in ["", "/", "a\nb", "a\0b", &"a/".repeat(40), &"x".repeat(2000)] {
        let frame = json!({ "type": "msg.route", "from": "bridge", "path": path });
        assert_eq!(broker.ask(frame).await.unwrap()["type"], "msg.route.error", "{path:.40}");
    }
    for id in ["a/b/c", "a--b", "1/2/3/4/5/6/7/8"] {
        broker.create_agent(id, &[]).await.unwrap();
        assert_eq!(broker.receive(id).await.unwrap().len(), 0, "{id}");
    }
    // Agent ids that could collide after joining or escaping have separate mailboxes.
    for id in ["x/y", "x--y", "x-/y", "x_y"] {
        broker.create_agent(id, &[]).await.unwrap();
    }
    broker.route("x/y", "agent/x--y", json!({ "text": "to one" })).await.unwrap();
    assert_eq!(broker.receive("x--y").await.unwrap().len(), 1);
    for id in ["x/y", "x-/y", "x_y"] {
        assert_eq!(broker.receive(id).await.unwrap().len(), 0, "{id}");
    }
}
