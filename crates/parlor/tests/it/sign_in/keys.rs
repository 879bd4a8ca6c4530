//! API keys: what each scope permits over REST, the client socket and the broker, and what no key may do.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene, assert_refused, assert_revoked, following, make_key, next, so_far};

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_returned_once_listed_without_its_secret_and_revoked() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let body = json!({ "name": "ci", "scopes": ["read", "write"] });
    let created = ada.post("/api/keys", body).await.unwrap();
    assert_eq!(created.status, 201);
    let created = created.data().unwrap();
    let key = created["key"].as_str().unwrap();
    assert!(key.starts_with("plk_") && key.len() > 40, "{key}");
    let listed = ada.get("/api/keys").await.unwrap().data().unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&listed[0]["name"], &listed[0]["scopes"]), (&json!("ci"), &json!(["read", "write"])));
    assert!(listed[0]["id"].is_string() && listed[0]["createdAt"].is_string());
    assert!(listed[0].get("key").is_none(), "{listed}");
    assert_eq!(
        bob.get("/api/keys").await.unwrap().data().unwrap(),
        json!([]),
        "the list contains only the caller's keys"
    );

    let key_client = RestClient::outsider(scene.url()).with_token(key);
    assert_eq!(key_client.get("/api/users/me").await.unwrap().data().unwrap()["username"], "ada");
    let path = format!("/api/keys/{}", created["id"].as_str().unwrap());
    assert_refused(&bob.delete(&path).await.unwrap(), 404);
    assert_refused(&scene.admin.delete(&path).await.unwrap(), 404);
    assert_eq!(ada.delete(&path).await.unwrap().status, 200);
    assert_refused(&key_client.get("/api/users/me").await.unwrap(), 401);
    assert_refused(&ada.delete(&path).await.unwrap(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_needs_a_name_and_known_scopes() {
    let scene = Scene::start().await;
    for (body, field) in [
        (json!({ "name": "", "scopes": ["read"] }), "name"),
        (json!({ "name": "ci", "scopes": [] }), "scopes"),
        (json!({ "name": "ci", "scopes": ["everything"] }), "scopes"),
        (json!({ "name": "ci", "scopes": ["READ"] }), "scopes"),
        (json!({ "name": "ci" }), "scopes"),
        (json!({ "scopes": ["read"] }), "name"),
    ] {
        let answer = scene.admin.post("/api/keys", body.clone()).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], field, "{body}: {answer:?}");
    }
}

/// Sends a request with this key and returns the status.
async fn status(key_client: &RestClient, method: Method, path: &str, body: Value) -> u16 {
    let request = key_client.request(method, path);
    let request = if body.is_null() { request } else { request.json(&body) };
    RestResponse::of(request).await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_permits_its_own_part_of_the_rest_api() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let post = format!("/api/rooms/{room}/messages");
    let history = format!("/api/messages/rooms/{room}");
    for (scope, read, write, admin) in [
        ("read", 200, 403, 403),
        ("write", 403, 201, 403),
        ("agents", 403, 403, 403),
        ("hosting", 403, 403, 403),
        ("sources", 403, 403, 403),
        ("admin", 403, 403, 200),
    ] {
        let (_, key) = make_key(&scene.admin, &[scope]).await;
        let key_client = RestClient::outsider(scene.url()).with_token(&key);
        for path in ["/api/users/me", "/api/rooms", "/api/messages/recent", "/api/agents", &history] {
            assert_eq!(status(&key_client, Method::GET, path, json!(null)).await, read, "{scope} GET {path}");
        }
        let posted = status(&key_client, Method::POST, &post, json!({ "content": "by a program" })).await;
        assert_eq!(posted, write, "{scope} posts");
        let created = status(&key_client, Method::POST, "/api/rooms", json!({ "name": "made" })).await;
        assert_eq!(created, write, "{scope} creates a room");
        assert_eq!(
            status(&key_client, Method::GET, "/api/users", json!(null)).await,
            admin,
            "{scope} lists users"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_scope_grants_nothing_beyond_the_rights_of_the_owner() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&ada, &["read", "write", "admin"]).await;
    let key_client = ada.with_token(&key);
    assert_refused(&key_client.get("/api/users").await.unwrap(), 403);
    let body = json!({ "username": "mallory", "password": PASSWORD, "role": "admin" });
    assert_refused(&key_client.post("/api/users", body).await.unwrap(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_manages_keys_passwords_or_sign_ins() {
    let scene = Scene::start().await;
    let (id, key) = make_key(&scene.admin, &["read", "write", "agents", "sources", "admin"]).await;
    let key_client = scene.admin.with_token(&key);
    let sessions = scene.admin.get("/api/auth/sessions").await.unwrap().data().unwrap();
    let session = sessions[0]["id"].as_str().unwrap();
    let (own, bob) = (scene.admin.user_id().to_owned(), scene.person("bob").await);
    for (method, path, body) in [
        (Method::PUT, format!("/api/users/{own}"), json!({ "password": "Taken-over-13" })),
        (Method::PUT, format!("/api/users/{}", bob.user_id()), json!({ "password": "Taken-over-13" })),
        (Method::POST, "/api/keys".to_owned(), json!({ "name": "more", "scopes": ["read"] })),
        (Method::GET, "/api/keys".to_owned(), json!(null)),
        (Method::DELETE, format!("/api/keys/{id}"), json!(null)),
        (Method::GET, "/api/auth/sessions".to_owned(), json!(null)),
        (Method::DELETE, format!("/api/auth/sessions/{session}"), json!(null)),
        (Method::POST, "/api/auth/logout".to_owned(), json!(null)),
        (
            Method::PUT,
            "/api/users/me/password".to_owned(),
            json!({ "currentPassword": parlor_testkit::hub::PASSWORD, "newPassword": "Taken-over-13" }),
        ),
    ] {
        assert_eq!(status(&key_client, method.clone(), &path, body).await, 403, "{method} {path}");
    }
    assert_eq!(scene.admin.get("/api/users/me").await.unwrap().status, 200);
    scene.hub.admin().await.expect("the password is unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_are_enforced_on_the_client_socket() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let (_, read_key) = make_key(&scene.admin, &["read"]).await;
    let mut reader = Client::connect(&scene.admin.with_token(&read_key)).await.unwrap();
    reader.join(&room).await.unwrap();
    reader.say(&room, "may I?", "c1").await.unwrap();
    let refused = reader.wait_for_type("server:error").await.unwrap();
    assert_eq!((&refused["code"], &refused["clientMessageId"]), (&json!("PERMISSION_DENIED"), &json!("c1")));
    scene.admin.post_message(&room, "for readers").await.unwrap();
    let received = reader.wait_for_type("server:new_message").await.unwrap();
    assert_eq!(received["message"]["content"], "for readers");

    let (_, write_key) = make_key(&scene.admin, &["write"]).await;
    let mut writer = Client::connect(&scene.admin.with_token(&write_key)).await.unwrap();
    writer.send(&json!({ "type": "client:join_room", "roomId": room, "since": "0" })).await.unwrap();
    assert_eq!(writer.wait_for_type("server:error").await.unwrap()["code"], "PERMISSION_DENIED");
    let ack = writer.say_and_wait(&room, "by a program that only writes", "c2").await.unwrap();
    scene.admin.post_message(&room, "not for writers").await.unwrap();
    writer.send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
    let mut frames = Vec::new();
    while frames.last().is_none_or(|frame: &Value| frame["type"] != "server:pong") {
        frames.push(writer.frame(TEST_TIMEOUT).await.unwrap());
    }
    assert!(frames.iter().all(|frame| frame["type"] != "server:new_message"), "{frames:?}");
    let history = scene.admin.history(&room).await.unwrap();
    assert_eq!(history.len(), 3, "the refused message is not stored");
    assert_eq!(history[1]["id"], ack.message_id.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_the_read_scope_receives_no_events_and_shows_no_presence() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let shared = ada.make_room("shared", &[&bob]).await.unwrap();
    let mut watching = following(&bob, &shared).await;
    let mut without_read = Vec::new();
    for scopes in [&["write"][..], &["hosting"], &["agents"]] {
        let (id, key) = make_key(&ada, scopes).await;
        without_read.push((id, Client::connect(&ada.with_token(&key)).await.unwrap()));
    }
    let is_presence = |frame: &Value| frame["type"] == "server:presence" && frame["userId"] == ada.user_id();
    let seen = so_far(&mut watching).await;
    assert!(
        !seen.iter().any(is_presence),
        "a connection without the scope `read` shows no presence: {seen:?}"
    );
    let (_, read_key) = make_key(&ada, &["read"]).await;
    let mut reader = Client::connect(&ada.with_token(&read_key)).await.unwrap();
    let room = bob.make_room("new and quiet", &[&ada]).await.unwrap();
    next(&mut reader, "server:room_update").await;
    bob.delete(&format!("/api/rooms/{room}")).await.unwrap().data().unwrap();
    next(&mut reader, "server:room_removed").await;
    for (id, mut key_client) in without_read {
        let frames = so_far(&mut key_client).await;
        assert_eq!(frames, [json!(null); 0], "it receives only its own errors and acknowledgements");
        ada.delete(&format!("/api/keys/{id}")).await.unwrap().data().unwrap();
        assert_revoked(&mut key_client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_are_enforced_on_the_broker() {
    let scene = Scene::start().await;
    let (_, agents) = make_key(&scene.admin, &["agents"]).await;
    let mut owner = Broker::connect(scene.url(), &agents).await.unwrap();
    owner.create_agent("helper", &["slack/**"]).await.unwrap();
    owner.listen("helper").await.unwrap();
    owner.route("helper", "agent/helper", json!({ "text": "to myself" })).await.unwrap();
    for scopes in [&["read", "write", "admin"][..], &["sources"], &["hosting"]] {
        let (_, key) = make_key(&scene.admin, scopes).await;
        let mut key_client = Broker::connect(scene.url(), &key).await.unwrap();
        for frame in [
            json!({ "type": "agent.create", "id": "more" }),
            json!({ "type": "msg.listen", "agentId": "helper" }),
            json!({ "type": "msg.receive", "agentId": "helper" }),
            json!({ "type": "msg.route", "from": "helper", "path": "agent/helper" }),
        ] {
            let reply = key_client.ask(frame.clone()).await.unwrap();
            let kind = format!("{}.error", frame["type"].as_str().unwrap());
            assert_eq!(
                (&reply["type"], &reply["error"]),
                (&json!(kind), &json!("Not allowed")),
                "{scopes:?}"
            );
        }
    }
    assert_eq!(owner.receive("helper").await.unwrap().len(), 1);
}
