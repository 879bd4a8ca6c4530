//! Shape and status of the REST endpoints, the common form of errors, authentication, and security headers.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene, assert_refused, bare, send_text};

#[track_caller]
fn assert_fields(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no {field} in {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_rooms_have_the_documented_fields() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let me = ada.get("/api/users/me").await.unwrap().data().unwrap();
    let user_fields = ["id", "username", "displayName", "avatarUrl", "role", "createdAt", "updatedAt"];
    assert_fields(&me, &user_fields);
    let changed = ada.put("/api/users/me", json!({ "displayName": "Ada L." })).await.unwrap();
    assert_eq!((changed.status.as_u16(), &changed.body["data"]["displayName"]), (200, &json!("Ada L.")));
    let found = scene.admin.get("/api/users/search?q=ada").await.unwrap().data().unwrap();
    assert_fields(&found[0], &["id", "username", "displayName", "avatarUrl"]);
    for (query, status) in [("q=a", 400), ("q=", 400), ("", 400), ("q=%25%25", 200), ("q=nobody", 200)] {
        let answer = scene.admin.get(&format!("/api/users/search?{query}")).await.unwrap();
        assert_eq!(answer.status, status, "{query}: {answer:?}");
        if status == 200 {
            assert_eq!(answer.body["data"], json!([]), "wildcards are plain text: {query}");
        }
    }

    let body = json!({ "name": "Salon", "memberIds": [ada.user_id()], "type": "private", "systemPrompt": "Be kind" });
    let created = scene.admin.post("/api/rooms", body).await.unwrap();
    assert_eq!(created.status, 201);
    let room = created.data().unwrap();
    let fields = [
        "id",
        "name",
        "type",
        "broadcastMode",
        "systemPrompt",
        "routerId",
        "createdById",
        "createdAt",
        "updatedAt",
    ];
    assert_fields(&room, &fields);
    assert_eq!(
        (&room["name"], &room["type"], &room["systemPrompt"]),
        (&json!("Salon"), &json!("private"), &json!("Be kind"))
    );
    let path = format!("/api/rooms/{}", room["id"].as_str().unwrap());
    let details = ada.get(&path).await.unwrap().data().unwrap();
    assert_eq!((&details["totalMembers"], details["members"].as_array().unwrap().len()), (&json!(2), 2));
    let listed = ada.get("/api/rooms").await.unwrap().data().unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["role"]), (&room["id"], &json!("member")));
    let members = ada.get(&format!("{path}/members?limit=1&offset=1")).await.unwrap();
    assert_eq!(members.body["pagination"], json!({ "limit": 1, "offset": 1, "total": 2 }));
    let member = &members.body["data"][0];
    assert_fields(
        member,
        &["roomId", "memberId", "memberType", "role", "displayName", "joinedAt", "lastReadAt"],
    );
    assert_eq!((&member["memberId"], &member["role"]), (&json!(ada.user_id()), &json!("member")));
    let renamed = scene.admin.put(&path, json!({ "name": " Parlour ", "systemPrompt": null })).await.unwrap();
    let renamed = renamed.data().unwrap();
    assert_eq!((&renamed["name"], &renamed["systemPrompt"]), (&json!("Parlour"), &json!(null)));
    let removed = scene.admin.delete(&path).await.unwrap();
    assert_eq!((removed.status.as_u16(), removed.body), (200, json!({ "ok": true })));
    assert_refused(&scene.admin.get(&path).await.unwrap(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_agents_have_the_documented_fields() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let path = format!("/api/rooms/{room}/messages");
    let body = json!({ "content": "hello @ada", "clientMessageId": "c1" });
    let created = scene.admin.post(&path, body.clone()).await.unwrap();
    assert_eq!(created.status, 201);
    let message = created.data().unwrap();
    assert_fields(
        &message,
        &["id", "roomId", "senderId", "senderType", "senderName", "type", "content", "createdAt", "seq"],
    );
    assert_eq!(
        (&message["mentions"], &message["attachments"], &message["reactions"]),
        (&json!(["ada"]), &json!([]), &json!([]))
    );
    assert_eq!((&message["clientMessageId"], &message["senderType"]), (&json!("c1"), &json!("user")));
    let retried = scene.admin.post(&path, body).await.unwrap();
    assert_eq!(
        (retried.status.as_u16(), &retried.body["data"]["id"]),
        (200, &message["id"]),
        "a retry creates no second message"
    );
    let other = json!({ "content": "something else", "clientMessageId": "c1" });
    let refused = scene.admin.post(&path, other.clone()).await.unwrap();
    assert_refused(&refused, 409);
    assert_eq!(refused.body["code"], "INVALID_MESSAGE");
    assert_eq!(
        ada.post(&path, other).await.unwrap().status,
        201,
        "client message ids are scoped to their sender"
    );

    let reply = json!({ "content": "hello back", "replyToId": message["id"] });
    assert_eq!(ada.post(&path, reply).await.unwrap().data().unwrap()["replyToId"], message["id"]);
    let other_room = scene.admin.make_room("another", &[]).await.unwrap();
    let foreign = json!({ "content": "hello", "replyToId": message["id"] });
    let refused = scene.admin.post(&format!("/api/rooms/{other_room}/messages"), foreign).await.unwrap();
    assert_refused(&refused, 400);
    assert_eq!(refused.body["fields"][0]["field"], "replyToId");
    for (body, field) in [
        (json!({ "content": "" }), "content"),
        (json!({ "content": "  \n " }), "content"),
        (json!({}), "content"),
        (json!({ "content": "x", "clientMessageId": "" }), "clientMessageId"),
        (json!({ "content": "x", "clientMessageId": "x".repeat(129) }), "clientMessageId"),
        (json!({ "content": "x", "attachmentIds": ["unknown"] }), "attachmentIds"),
    ] {
        let refused = scene.admin.post(&path, body.clone()).await.unwrap();
        assert_refused(&refused, 400);
        assert_eq!(refused.body["fields"][0]["field"], field, "{body}");
    }

    let mut broker = Broker::connect(scene.url(), ada.token()).await.unwrap();
    broker.create_agent("helper", &[]).await.unwrap();
    let agents = ada.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!((&agents[0]["id"], &agents[0]["type"]), (&json!("helper"), &json!("generic")));
    assert_fields(&agents[0], &["name", "status", "visibility", "createdAt"]);
    assert_eq!(
        scene.admin.get("/api/agents").await.unwrap().data().unwrap(),
        json!([]),
        "the list contains only the caller's agents"
    );
    assert_eq!(ada.get("/api/agents/shared").await.unwrap().data().unwrap(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_health_and_the_web_page_are_available_without_a_sign_in() {
    let scene = Scene::start().await;
    let anonymous = RestClient::outsider(scene.url());
    let health = anonymous.get("/api/health").await.unwrap();
    assert_eq!((health.status.as_u16(), &health.body["ok"]), (200, &json!(true)));
    assert_fields(&health.body, &["status", "timestamp", "version", "checks"]);
    assert!(health.headers.contains_key("x-request-id"));
    assert_eq!(anonymous.get("/").await.unwrap().status, 200);
    for (method, path) in [
        (Method::GET, "/api/users/me"),
        (Method::PUT, "/api/users/me"),
        (Method::PUT, "/api/users/me/password"),
        (Method::GET, "/api/users"),
        (Method::POST, "/api/users"),
        (Method::PUT, "/api/users/x"),
        (Method::DELETE, "/api/users/x"),
        (Method::GET, "/api/users/search?q=admin"),
        (Method::GET, "/api/rooms"),
        (Method::POST, "/api/rooms"),
        (Method::GET, "/api/rooms/x"),
        (Method::PUT, "/api/rooms/x"),
        (Method::DELETE, "/api/rooms/x"),
        (Method::GET, "/api/rooms/x/members"),
        (Method::POST, "/api/rooms/x/members"),
        (Method::PUT, "/api/rooms/x/members/y"),
        (Method::DELETE, "/api/rooms/x/members/y"),
        (Method::POST, "/api/rooms/x/messages"),
        (Method::GET, "/api/messages/recent"),
        (Method::GET, "/api/messages/rooms/x"),
        (Method::POST, "/api/messages/rooms/x/read"),
        (Method::POST, "/api/messages/mark-all-read"),
        (Method::GET, "/api/messages/x"),
        (Method::PUT, "/api/messages/x"),
        (Method::DELETE, "/api/messages/x"),
        (Method::GET, "/api/messages/x/history"),
        (Method::GET, "/api/messages/x/thread"),
        (Method::GET, "/api/messages/x/replies/count"),
        (Method::POST, "/api/messages/x/forward"),
        (Method::POST, "/api/messages/x/reactions"),
        (Method::POST, "/api/messages/x/pin"),
        (Method::DELETE, "/api/messages/x/pin"),
        (Method::POST, "/api/messages/batch-delete"),
        (Method::GET, "/api/rooms/x/pins"),
        (Method::PUT, "/api/rooms/x/pin"),
        (Method::PUT, "/api/rooms/x/archive"),
        (Method::PUT, "/api/rooms/x/clear"),
        (Method::PUT, "/api/rooms/x/notification-pref"),
        (Method::GET, "/api/bookmarks"),
        (Method::POST, "/api/bookmarks"),
        (Method::DELETE, "/api/bookmarks/x"),
        (Method::GET, "/api/keys"),
        (Method::POST, "/api/keys"),
        (Method::DELETE, "/api/keys/x"),
        (Method::GET, "/api/agents"),
        (Method::GET, "/api/agents/shared"),
        (Method::GET, "/api/auth/sessions"),
        (Method::DELETE, "/api/auth/sessions"),
        (Method::DELETE, "/api/auth/sessions/x"),
        (Method::POST, "/api/auth/logout"),
    ] {
        let answer = RestResponse::of(anonymous.request(method.clone(), path)).await.unwrap();
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
        assert_refused(&answer, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_return_404_and_wrong_methods_405_in_json() {
    let scene = Scene::start().await;
    for path in [
        "/api",
        "/api/",
        "/api/nothing",
        "/api/rooms/x/y/z",
        "/api/messages",
        "/nothing",
        "/ws",
        "/uploads/x",
    ] {
        let answer = scene.admin.get(path).await.unwrap();
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert_refused(&answer, 404);
    }
    for (method, path) in [
        (Method::DELETE, "/api/health"),
        (Method::GET, "/api/auth/login"),
        (Method::PATCH, "/api/rooms"),
        (Method::POST, "/api/messages/recent"),
        (Method::OPTIONS, "/api/rooms"),
        (Method::POST, "/"),
        (Method::POST, "/ws/client"),
    ] {
        let answer = RestResponse::of(scene.admin.request(method.clone(), path)).await.unwrap();
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        assert_refused(&answer, 405);
        assert!(answer.headers.contains_key("allow"), "{method} {path}: {answer:?}");
    }
    assert_refused(&scene.admin.get("/ws/client").await.unwrap(), 426);
    for query in ["limit=x", "limit=-1", "limit=1.5", "limit=99999999999999999999999", "offset=x"] {
        for path in ["/api/users", "/api/rooms/x/members"] {
            assert_refused(&scene.admin.get(&format!("{path}?{query}")).await.unwrap(), 400);
        }
    }
    for query in ["limit=0", "limit=18446744073709551615", "offset=18446744073709551615"] {
        assert_eq!(scene.admin.get(&format!("/api/users?{query}")).await.unwrap().status, 200, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_carry_security_headers() {
    let scene = Scene::start().await;
    // The web page contains no user data: it may be cached, but is revalidated each time.
    for (path, cache_control) in [
        ("/api/health", "no-store"),
        ("/api/users/me", "no-store"),
        ("/api/nothing", "no-store"),
        ("/", "no-cache"),
    ] {
        let answer = scene.admin.get(path).await.unwrap();
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", cache_control),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{path}");
    }
    let page = scene.admin.get("/").await.unwrap();
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_content_type_is_required_and_only_bearer_tokens_are_accepted() {
    let scene = Scene::start().await;
    let answer = send_text(&scene.admin, Method::POST, "/api/rooms", r#"{"name":"by curl -d"}"#).await;
    assert_eq!(answer.status, 201);
    let anonymous = RestClient::outsider(scene.url());
    for value in
        [format!("Basic {}", scene.admin.token()), scene.admin.token().to_owned(), "Bearer".to_owned()]
    {
        let request = anonymous.request(Method::GET, "/api/users/me").header("authorization", &value);
        assert_refused(&RestResponse::of(request).await.unwrap(), 401);
    }
    let in_query = anonymous.get(&format!("/api/users/me?token={}", scene.admin.token())).await.unwrap();
    assert_refused(&in_query, 401);
    let sign_in = json!({ "username": "nobody", "password": PASSWORD }).to_string();
    let request =
        format!("POST /api/auth/login HTTP/1.0\r\nContent-Length: {}\r\n\r\n{sign_in}", sign_in.len());
    assert_eq!(bare(scene.url(), request.as_bytes()).await.status, 401, "HTTP/1.0 is served");
}
