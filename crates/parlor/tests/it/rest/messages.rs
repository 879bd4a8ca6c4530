//! Messages over REST: unread counts, read receipts, edits with their history, and deletion.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contains};

async fn unread(user: &RestClient, room: &str) -> Value {
    user.get("/api/messages/recent").await.unwrap().data().unwrap()[room]["unread"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_counts_messages_of_other_users_since_the_last_read() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (first, second) = (
        scene.admin.make_room("first", &[]).await.unwrap(),
        scene.admin.make_room("second", &[&ada]).await.unwrap(),
    );
    scene.admin.post_message(&first, "before she came").await.unwrap();
    let body = json!({ "memberId": ada.user_id(), "memberType": "user" });
    assert_eq!(scene.admin.post(&format!("/api/rooms/{first}/members"), body).await.unwrap().status, 201);
    assert_eq!(unread(&ada, &first).await, 0, "messages from before joining do not count as unread");
    for n in 0..3 {
        scene.admin.post_message(&first, &format!("news {n}")).await.unwrap();
        scene.admin.post_message(&second, &format!("news {n}")).await.unwrap();
    }
    ada.post_message(&first, "my own").await.unwrap();
    assert_eq!((unread(&ada, &first).await, unread(&ada, &second).await), (json!(3), json!(3)));
    assert_eq!(unread(&scene.admin, &first).await, 1, "only messages of other users count");
    let recent = ada.get("/api/messages/recent").await.unwrap().data().unwrap();
    let entry = &recent[&first];
    assert_eq!((&entry["content"], &entry["senderName"]), (&json!("my own"), &json!("ada")));
    assert!(entry["createdAt"].is_string());

    let mut watching = Client::connect(&scene.admin).await.unwrap();
    watching.join(&first).await.unwrap();
    let read = format!("/api/messages/rooms/{first}/read");
    assert_eq!(ada.post(&read, json!({})).await.unwrap().body, json!({ "ok": true }));
    let receipt = watching.wait_for_type("server:read_receipt").await.unwrap();
    assert_eq!((&receipt["userId"], &receipt["roomId"]), (&json!(ada.user_id()), &json!(first)));
    assert_eq!((unread(&ada, &first).await, unread(&ada, &second).await), (json!(0), json!(3)));
    let members = scene.admin.get(&format!("/api/rooms/{first}/members")).await.unwrap().data().unwrap();
    let member =
        members.as_array().unwrap().iter().find(|member| member["memberId"] == ada.user_id()).unwrap();
    assert!(member["lastReadAt"].is_string(), "{member}");

    scene.admin.post_message(&first, "more").await.unwrap();
    assert_eq!(ada.post("/api/messages/mark-all-read", json!({})).await.unwrap().status, 200);
    assert_eq!((unread(&ada, &first).await, unread(&ada, &second).await), (json!(0), json!(0)));
    let deleted = scene.admin.post_message(&second, "soon deleted").await.unwrap();
    assert_eq!(unread(&ada, &second).await, 1);
    scene.admin.delete(&format!("/api/messages/{}", deleted["id"].as_str().unwrap())).await.unwrap();
    assert_eq!(unread(&ada, &second).await, 0, "a deleted message does not count as unread");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_message_is_as_in_the_history_and_only_for_members_who_can_see_it() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = scene.admin.make_room("room", &[&ada]).await.unwrap();
    let posted = scene.admin.post_message(&room, "a message to link to").await.unwrap();
    let path = format!("/api/messages/{}", posted["id"].as_str().unwrap());
    let history = ada.get(&format!("/api/rooms/{room}/messages")).await.unwrap().data().unwrap();
    assert_eq!(ada.get(&path).await.unwrap().data().unwrap(), history["items"][0]);
    assert_refused(&bob.get(&path).await.unwrap(), 404);
    assert_refused(&ada.get("/api/messages/unknown").await.unwrap(), 404);
    assert_eq!(ada.put(&format!("/api/rooms/{room}/clear"), json!({})).await.unwrap().status, 200);
    assert_refused(&ada.get(&path).await.unwrap(), 404);
    assert_eq!(scene.admin.get(&path).await.unwrap().status, 200, "clearing concerns one member");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_can_read_the_earlier_versions_of_an_edited_message() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = scene.admin.make_room("a room", &[&ada, &bob]).await.unwrap();
    let message = ada.post_message(&room, "first").await.unwrap();
    assert!(message.get("updatedAt").is_none() && message.get("editedAt").is_none(), "{message}");
    let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
    let mut watching = Client::connect(&bob).await.unwrap();
    watching.join(&room).await.unwrap();
    for text in ["second", "third @bob"] {
        let edited = ada.put(&path, json!({ "content": text })).await.unwrap().data().unwrap();
        assert_eq!(
            (&edited["content"], &edited["id"], &edited["seq"]),
            (&json!(text), &message["id"], &message["seq"])
        );
        assert!(edited["updatedAt"].is_string() && edited["editedAt"].is_string(), "{edited}");
        let frame = watching.wait_for_type("server:message_edited").await.unwrap();
        assert_eq!(frame["message"]["content"], text);
    }
    let history = bob.get(&format!("{path}/history")).await.unwrap().data().unwrap();
    let before: Vec<&str> =
        history.as_array().unwrap().iter().map(|entry| entry["previousContent"].as_str().unwrap()).collect();
    assert_eq!(before, ["second", "first"], "newest first");
    assert!(history[0]["editedAt"].is_string() && history[0]["messageId"] == message["id"]);
    for other in [&bob, &scene.admin] {
        assert_refused(&other.put(&path, json!({ "content": "forged" })).await.unwrap(), 403);
    }
    for body in [json!({ "content": "" }), json!({}), json!({ "content": " " })] {
        assert_refused(&ada.put(&path, body).await.unwrap(), 400);
    }
    let long = json!({ "content": "x".repeat(100_001) });
    assert_refused(&ada.put(&path, long).await.unwrap(), 413);
    assert_eq!(bob.history(&room).await.unwrap()[0]["content"], "third @bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_text_is_in_no_response_no_row_and_no_free_page_of_the_database() {
    let mut scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = scene.admin.make_room("a room", &[&ada, &bob]).await.unwrap();
    ada.post_message(&room, "stays").await.unwrap();
    let body = json!({ "content": "canary one", "clientMessageId": "c1" });
    let messages = format!("/api/rooms/{room}/messages");
    let message = ada.post(&messages, body.clone()).await.unwrap().data().unwrap();
    let id = message["id"].as_str().unwrap();
    let path = format!("/api/messages/{id}");
    ada.put(&path, json!({ "content": "canary two" })).await.unwrap().data().unwrap();
    let mut watching = Client::connect(&scene.admin).await.unwrap();
    let position = watching.join_since(&room, "now").await.unwrap().position;
    assert_refused(&bob.delete(&path).await.unwrap(), 403);
    assert_eq!(ada.delete(&path).await.unwrap().body, json!({ "ok": true }));
    let frame = watching.wait_for_type("server:message_deleted").await.unwrap();
    assert_eq!((&frame["messageId"], &frame["roomId"]), (&json!(id), &json!(room)));

    let history = bob.history(&room).await.unwrap();
    assert_eq!(history.len(), 1, "{history:?}");
    for path in [format!("{path}/history"), path.clone()] {
        let answer = ada.get(&path).await.unwrap();
        assert!(!answer.body.to_string().contains("canary"), "{answer:?}");
    }
    assert_refused(&ada.delete(&path).await.unwrap(), 404);
    assert_refused(&ada.put(&path, json!({ "content": "back again" })).await.unwrap(), 404);
    assert_eq!(unread(&bob, &room).await, 1);
    let reply = json!({ "content": "to whom?", "replyToId": id });
    assert_refused(&bob.post(&messages, reply).await.unwrap(), 400);
    // A retry of a deleted message is recognised: it neither restores the text nor creates a second message.
    let retried = ada.post(&messages, body).await.unwrap();
    assert_eq!((retried.status.as_u16(), &retried.body["data"]["deleted"]), (200, &json!(true)));
    let (epoch, _) = position.split_once('-').unwrap();
    let mut resumed = Client::connect(&bob).await.unwrap();
    let joined = resumed.join_since(&room, &format!("{epoch}-0")).await.unwrap();
    assert!(!format!("{joined:?}").contains("canary"), "{joined:?}");

    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    // A full-text index stores its terms in shadow tables, which are checked like all other tables.
    let tables =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'";
    let mut names = database.prepare(tables).unwrap();
    let tables: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tables.contains(&"messages".to_owned()));
    for table in tables {
        let mut rows = database.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let value = row.get::<_, rusqlite::types::Value>(column).unwrap();
                let text = match &value {
                    rusqlite::types::Value::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    other => format!("{other:?}"),
                };
                assert!(!text.contains("canary"), "{table}: {text}");
            }
        }
    }
    drop(names);
    drop(database);

    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    let bytes = std::fs::read(scene.data().join("parlor.db")).unwrap();
    assert!(contains(&bytes, "stays"), "stopping the hub checkpoints the write-ahead log into the database");
    assert!(!contains(&bytes, "canary"), "a deleted text is overwritten");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_admin_may_delete_messages_of_other_users() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let message = ada.post_message(&room, "out of order").await.unwrap();
    let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    assert_eq!(ada.history(&room).await.unwrap().len(), 0);
}
