//! Loss of access: a removed member, a signed-out or deleted user and a revoked API key receive no later
//! event.
//!
//! Also tests that a room of which the caller is no member is indistinguishable from an unknown room.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene, assert_refused, assert_revoked, make_key, until_closed};

/// Creates two rooms of the admin with this user as a member.
async fn two_rooms(scene: &Scene, user: &RestClient) -> (String, String) {
    let first = scene.admin.make_room("first", &[user]).await.unwrap();
    let second = scene.admin.make_room("second", &[user]).await.unwrap();
    (first, second)
}

/// Reads frames up to and including the message with this text.
async fn up_to(socket: &mut Socket, text: &str) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = socket.frame(TEST_TIMEOUT).await.unwrap();
        let last = frame["message"]["content"] == text;
        frames.push(frame);
        if last {
            return frames;
        }
    }
}

fn mentions(frames: &[Value], text: &str) -> bool {
    frames.iter().any(|frame| frame.to_string().contains(text))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_receives_no_more_events_of_the_room_and_cannot_resume_it() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (room, other) = two_rooms(&scene, &ada).await;
    let mut client = Client::connect(&ada).await.unwrap();
    let position = client.join(&room).await.unwrap();
    client.join(&other).await.unwrap();
    scene.admin.post_message(&room, "while she was in").await.unwrap();

    let path = format!("/api/rooms/{room}/members/{}", ada.user_id());
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    let secret = scene.admin.post_message(&room, "after she was out").await.unwrap();
    let edit = json!({ "content": "after she was out, edited" });
    let message = format!("/api/messages/{}", secret["id"].as_str().unwrap());
    scene.admin.put(&message, edit).await.unwrap().data().unwrap();
    scene.admin.put(&format!("/api/rooms/{room}"), json!({ "name": "renamed after" })).await.unwrap();
    scene.admin.post_message(&other, "the end of this test").await.unwrap();

    let frames = up_to(&mut client, "the end of this test").await;
    assert!(mentions(&frames, "while she was in"), "{frames:?}");
    assert!(
        frames.iter().any(|frame| frame["type"] == "server:room_removed" && frame["roomId"] == room.as_str())
    );
    assert!(!mentions(&frames, "after"), "{frames:?}");

    for since in [json!(position), json!("0"), json!("now")] {
        client.send(&json!({ "type": "client:join_room", "roomId": room, "since": since })).await.unwrap();
        assert_eq!(client.frame(TEST_TIMEOUT).await.unwrap()["code"], "NOT_A_MEMBER");
    }
    client.say(&room, "let me in", "c1").await.unwrap();
    assert_eq!(client.frame(TEST_TIMEOUT).await.unwrap()["code"], "NOT_A_MEMBER");
    let mut again = Client::connect(&ada).await.unwrap();
    assert!(again.join_since(&room, &position).await.is_err());
    assert_room_is_hidden(&scene, &ada, &room, secret["id"].as_str().unwrap()).await;
}

/// Asserts that REST answers alike for this room, of which `outsider` is no member, and for an unknown room.
async fn assert_room_is_hidden(scene: &Scene, outsider: &RestClient, room: &str, message: &str) {
    let unknown = "0190aaaabbbbccccddddeeeeffff0000";
    let own = outsider.make_room("their own", &[]).await.unwrap();
    for (method, path, body) in [
        (Method::GET, "/api/rooms/ROOM", json!(null)),
        (Method::PUT, "/api/rooms/ROOM", json!({ "name": "mine" })),
        (Method::DELETE, "/api/rooms/ROOM", json!(null)),
        (Method::GET, "/api/rooms/ROOM/members", json!(null)),
        (
            Method::POST,
            "/api/rooms/ROOM/members",
            json!({ "memberId": outsider.user_id(), "memberType": "user" }),
        ),
        (Method::PUT, "/api/rooms/ROOM/members/ME", json!({ "role": "owner" })),
        (Method::DELETE, "/api/rooms/ROOM/members/ADMIN", json!(null)),
        (Method::GET, "/api/rooms/ROOM/messages", json!(null)),
        (Method::POST, "/api/rooms/ROOM/messages", json!({ "content": "hello" })),
        (Method::GET, "/api/messages/rooms/ROOM", json!(null)),
        (Method::GET, "/api/messages/rooms/ROOM?after=0", json!(null)),
        (Method::POST, "/api/messages/rooms/ROOM/read", json!(null)),
        (Method::GET, "/api/messages/MESSAGE/history", json!(null)),
        (Method::PUT, "/api/messages/MESSAGE", json!({ "content": "mine" })),
        (Method::DELETE, "/api/messages/MESSAGE", json!(null)),
        (Method::POST, "/api/messages/batch-delete", json!({ "messageIds": ["MESSAGE"] })),
        (Method::POST, "/api/messages/MESSAGE/reactions", json!({ "emoji": "+1" })),
        (Method::GET, "/api/messages/MESSAGE/thread", json!(null)),
        (Method::GET, "/api/messages/MESSAGE/replies/count", json!(null)),
        (Method::POST, "/api/messages/MESSAGE/forward", json!({ "targetRoomId": own })),
        (Method::POST, "/api/messages/MESSAGE/forward", json!({ "targetRoomId": "ROOM" })),
        (Method::POST, "/api/messages/MESSAGE/pin", json!(null)),
        (Method::DELETE, "/api/messages/MESSAGE/pin", json!(null)),
        (Method::POST, "/api/bookmarks", json!({ "messageId": "MESSAGE" })),
        (Method::DELETE, "/api/bookmarks/MESSAGE", json!(null)),
        (Method::GET, "/api/rooms/ROOM/pins", json!(null)),
        (Method::PUT, "/api/rooms/ROOM/pin", json!(null)),
        (Method::PUT, "/api/rooms/ROOM/archive", json!(null)),
        (Method::PUT, "/api/rooms/ROOM/clear", json!(null)),
        (Method::PUT, "/api/rooms/ROOM/notification-pref", json!({ "pref": "none" })),
    ] {
        let send = async |room: &str, message: &str| {
            let path = path.replace("ROOM", room).replace("MESSAGE", message);
            let path = path.replace("ME", outsider.user_id()).replace("ADMIN", scene.admin.user_id());
            let request = outsider.request(method.clone(), &path);
            let body = body.to_string().replace("ROOM", room).replace("MESSAGE", message);
            let request = if body == "null" { request } else { request.body(body) };
            parlor_testkit::rest::RestResponse::of(request).await.unwrap()
        };
        let foreign_answer = send(room, message).await;
        assert_refused(&foreign_answer, 404);
        let unknown_answer = send(unknown, unknown).await;
        assert_eq!(
            (unknown_answer.status, unknown_answer.body),
            (foreign_answer.status, foreign_answer.body),
            "{method} {path}"
        );
    }
    assert!(outsider.history(&own).await.unwrap().is_empty(), "no message was forwarded");
    for path in ["/api/rooms", "/api/messages/recent", "/api/bookmarks"] {
        let listed = outsider.get(path).await.unwrap().body.to_string();
        assert!(!listed.contains(room) && !listed.contains(message), "{path}: {listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn room_list_recent_messages_and_search_hide_foreign_rooms() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("ada's own", &[]).await.unwrap();
    let message = ada.post_message(&room, "between me and myself").await.unwrap();
    let message = message["id"].as_str().unwrap();
    for outsider in [&bob, &scene.admin] {
        assert_room_is_hidden(&scene, outsider, &room, message).await;
    }
    let found = bob.get("/api/users/search?q=ada").await.unwrap().data().unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["username"], "ada");
    for secret in ["role", "locked", "password", "maxConnections"] {
        assert!(found[0].get(secret).is_none(), "{found}");
    }
    let history = ada.history(&room).await.unwrap();
    assert_eq!((history.len(), &history[0]["reactions"]), (1, &json!([])));
    assert_eq!(ada.get(&format!("/api/rooms/{room}/pins")).await.unwrap().data().unwrap(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_cannot_read_messages_through_their_own_annotations() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let secret = scene.admin.post_message(&room, "canary").await.unwrap();
    let id = secret["id"].as_str().unwrap();
    let body = json!({ "content": "canary answer", "replyToId": id });
    scene.admin.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap();
    ada.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap().data().unwrap();
    ada.post(&format!("/api/messages/{id}/pin"), json!({})).await.unwrap().data().unwrap();
    ada.post(&format!("/api/messages/{id}/reactions"), json!({ "emoji": "+1" }))
        .await
        .unwrap()
        .data()
        .unwrap();
    let shown = ada.get("/api/bookmarks").await.unwrap().body.to_string();
    assert!(shown.contains("canary"), "{shown}");

    let member = format!("/api/rooms/{room}/members/{}", ada.user_id());
    assert_eq!(scene.admin.delete(&member).await.unwrap().status, 200);
    scene.admin.put(&format!("/api/messages/{id}"), json!({ "content": "canary later" })).await.unwrap();
    let shown = ada.get("/api/bookmarks").await.unwrap().data().unwrap();
    assert_eq!(shown, json!({ "items": [], "hasMore": false }));
    for path in [
        format!("/api/messages/{id}/thread"),
        format!("/api/messages/{id}/replies/count"),
        format!("/api/messages/{id}/history"),
        format!("/api/rooms/{room}/pins"),
    ] {
        let answer = ada.get(&path).await.unwrap();
        assert_refused(&answer, 404);
        assert!(!answer.body.to_string().contains("canary"), "{answer:?}");
    }
    // A former member can neither remove her pin nor create a bookmark; her reaction stays.
    assert_refused(&ada.delete(&format!("/api/messages/{id}/pin")).await.unwrap(), 404);
    let again = ada.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap();
    assert_refused(&again, 404);
    let history = scene.admin.history(&room).await.unwrap();
    assert_eq!(history[0]["reactions"][0]["usernames"], json!(["ada"]));
    // A former member can still delete her bookmark.
    assert_eq!(ada.delete(&format!("/api/bookmarks/{id}")).await.unwrap().body, json!({ "ok": true }));
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_revokes_the_sockets_and_the_token_of_that_sign_in_only() {
    let scene = Scene::start().await;
    let phone = scene.person("ada").await;
    let laptop = scene.hub.sign_in("ada", PASSWORD).await.unwrap();
    let (room, _) = two_rooms(&scene, &phone).await;
    let mut on_phone = Client::connect(&phone).await.unwrap();
    let mut on_laptop = Client::connect(&laptop).await.unwrap();
    let mut agents = Broker::connect(scene.url(), phone.token()).await.unwrap();
    on_phone.join(&room).await.unwrap();
    on_laptop.join(&room).await.unwrap();

    assert_eq!(phone.post("/api/auth/logout", json!({})).await.unwrap().status, 200);
    scene.admin.post_message(&room, "after the phone was out").await.unwrap();
    assert_revoked(&mut on_phone).await;
    let (frames, code) = until_closed(&mut agents).await;
    assert_eq!(code, 1008);
    assert!(!mentions(&frames, "after"), "{frames:?}");
    up_to(&mut on_laptop, "after the phone was out").await;

    assert_refused(&phone.get("/api/users/me").await.unwrap(), 401);
    assert_refused(&phone.get(&format!("/api/messages/rooms/{room}")).await.unwrap(), 401);
    assert!(Client::connect(&phone).await.is_err());
    assert_eq!(laptop.get("/api/users/me").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_socket_receives_no_event_from_after_the_revocation() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (room, _) = two_rooms(&scene, &ada).await;
    let mut client = Client::connect(&ada).await.unwrap();
    client.join(&room).await.unwrap();
    scene.admin.post_message(&room, "before").await.unwrap();
    assert_eq!(ada.post("/api/auth/logout", json!({})).await.unwrap().status, 200);
    for n in 0..20 {
        scene.admin.post_message(&room, &format!("after {n}")).await.unwrap();
    }
    let (frames, code) = until_closed(&mut client).await;
    assert_eq!(code, 1008);
    assert!(mentions(&frames, "before") && !mentions(&frames, "after"), "{frames:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_user_loses_sockets_tokens_keys_and_agents_at_once() {
    let scene = Scene::start().await;
    let ada = scene.hearer("ada", &["slack/**"]).await;
    let (room, _) = two_rooms(&scene, &ada).await;
    let (_, key) = make_key(&ada, &["read", "write", "agents"]).await;
    let mut client = Client::connect(&ada).await.unwrap();
    client.join(&room).await.unwrap();
    let mut agents = Broker::connect(scene.url(), &key).await.unwrap();
    agents.create_agent("ada-helper", &["slack/**"]).await.unwrap();
    agents.listen("ada-helper").await.unwrap();

    let path = format!("/api/users/{}", ada.user_id());
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    scene.admin.post_message(&room, "after she was gone").await.unwrap();
    let mut bridge = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    let routed = bridge.route("bridge", "slack/x", json!({ "text": "after she was gone" })).await.unwrap();
    assert_eq!(routed["deliveredTo"], json!([]), "the agents of a deleted user are deleted");

    let (frames, code) = until_closed(&mut client).await;
    assert_eq!(code, 1008);
    assert!(frames.iter().any(|frame| frame["code"] == "SESSION_REVOKED"), "{frames:?}");
    assert!(!mentions(&frames, "after she"), "{frames:?}");
    let (frames, code) = until_closed(&mut agents).await;
    assert_eq!(code, 1008);
    assert!(!mentions(&frames, "after she"), "{frames:?}");

    assert_refused(&ada.get("/api/users/me").await.unwrap(), 401);
    assert_refused(&ada.with_token(&key).get("/api/users/me").await.unwrap(), 401);
    assert!(Broker::connect(scene.url(), &key).await.is_err());
    assert!(scene.hub.sign_in("ada", PASSWORD).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_closes_its_own_sockets_only() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (room, _) = two_rooms(&scene, &ada).await;
    let (id, key) = make_key(&ada, &["read", "write", "agents"]).await;
    let mut by_key = Client::connect(&ada.with_token(&key)).await.unwrap();
    let mut agents = Broker::connect(scene.url(), &key).await.unwrap();
    let mut by_hand = Client::connect(&ada).await.unwrap();
    by_key.join(&room).await.unwrap();
    by_hand.join(&room).await.unwrap();

    assert_eq!(ada.delete(&format!("/api/keys/{id}")).await.unwrap().status, 200);
    scene.admin.post_message(&room, "after the key was gone").await.unwrap();
    let (frames, code) = until_closed(&mut by_key).await;
    assert_eq!(code, 1008);
    assert!(!mentions(&frames, "after the key"), "{frames:?}");
    assert_eq!(agents.closed(TEST_TIMEOUT).await.unwrap(), 1008);
    assert_refused(&ada.with_token(&key).get("/api/rooms").await.unwrap(), 401);
    up_to(&mut by_hand, "after the key was gone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_revokes_every_sign_in() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let mut client = Client::connect(&ada).await.unwrap();
    let body = json!({ "currentPassword": PASSWORD, "newPassword": "Another-one-10" });
    assert_eq!(ada.put("/api/users/me/password", body).await.unwrap().status, 200);
    assert_revoked(&mut client).await;
    assert_refused(&ada.get("/api/users/me").await.unwrap(), 401);
    assert!(scene.hub.sign_in("ada", PASSWORD).await.is_err());
    let ada = scene.hub.sign_in("ada", "Another-one-10").await.unwrap();
    let mut client = Client::connect(&ada).await.unwrap();
    let body = json!({ "password": "Given-by-admin-11" });
    let path = format!("/api/users/{}", ada.user_id());
    assert_eq!(scene.admin.put(&path, body).await.unwrap().status, 200);
    assert_revoked(&mut client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_room_is_reported_to_subscribers_and_cannot_be_joined_again() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (room, other) = two_rooms(&scene, &ada).await;
    let message = scene.admin.post_message(&room, "a secret").await.unwrap();
    let mut client = Client::connect(&ada).await.unwrap();
    let position = client.join(&room).await.unwrap();
    client.join(&other).await.unwrap();
    assert_eq!(scene.admin.delete(&format!("/api/rooms/{room}")).await.unwrap().status, 200);
    scene.admin.post_message(&other, "the end").await.unwrap();
    let frames = up_to(&mut client, "the end").await;
    assert!(frames.iter().any(|frame| frame["type"] == "server:room_removed"), "{frames:?}");
    client.send(&json!({ "type": "client:join_room", "roomId": room, "since": position })).await.unwrap();
    assert_eq!(client.frame(TEST_TIMEOUT).await.unwrap()["code"], "ROOM_NOT_FOUND");
    assert_room_is_hidden(&scene, &ada, &room, message["id"].as_str().unwrap()).await;
}
