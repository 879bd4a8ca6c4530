//! Annotations of messages: reactions, pins and bookmarks.

use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, following, next, so_far};

fn path_of(message: &Value) -> String {
    format!("/api/messages/{}", message["id"].as_str().unwrap())
}

async fn react(user: &RestClient, message: &Value, emoji: &str) -> Value {
    let path = format!("{}/reactions", path_of(message));
    user.post(&path, json!({ "emoji": emoji })).await.unwrap().data().unwrap()
}

fn reaction(emoji: &str, users: &[(&RestClient, &str)]) -> Value {
    let ids: Vec<&str> = users.iter().map(|(user, _)| user.user_id()).collect();
    let names: Vec<&str> = users.iter().map(|(_, name)| *name).collect();
    json!({ "emoji": emoji, "userIds": ids, "usernames": names })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_is_published_to_the_room_and_toggled_off_by_the_same_request() {
    let scene = Scene::with(&[("PARLOR_MAX_REACTIONS", "2")]).await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let message = ada.post_message(&room, "react to this").await.unwrap();
    let mut watching = following(&bob, &room).await;
    let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}";

    let first = json!([reaction("+1", &[(&ada, "ada")])]);
    assert_eq!(react(&ada, &message, "+1").await, first);
    let frame = next(&mut watching, "server:reaction_update").await;
    assert_eq!(
        (&frame["roomId"], &frame["messageId"], &frame["reactions"]),
        (&json!(room), &message["id"], &first)
    );
    assert!(frame["position"].is_string(), "{frame}");
    react(&bob, &message, "+1").await;
    let all = json!([reaction("+1", &[(&ada, "ada"), (&bob, "bob")]), reaction(family, &[(&bob, "bob")])]);
    assert_eq!(react(&bob, &message, family).await, all);
    assert_eq!(ada.history(&room).await.unwrap()[0]["reactions"], all);

    let reactions = format!("{}/reactions", path_of(&message));
    for emoji in ["a third", "third", "", " ", "thumbsup9", "\u{7}", &"x".repeat(100_000)] {
        let refused = ada.post(&reactions, json!({ "emoji": emoji })).await.unwrap();
        assert_refused(&refused, 400);
        assert_eq!(refused.body["fields"][0]["field"], "emoji", "{refused:?}");
    }
    let remaining = json!([reaction("+1", &[(&ada, "ada"), (&bob, "bob")])]);
    assert_eq!(react(&bob, &message, family).await, remaining);
    assert_eq!(react(&ada, &message, "+1").await, json!([reaction("+1", &[(&bob, "bob")])]));
    assert_eq!(react(&bob, &message, "+1").await, json!([]));
    assert_eq!(bob.history(&room).await.unwrap()[0]["reactions"], json!([]));

    // A resuming client receives the current reactions; an edited message keeps its reactions.
    let position = watching.join(&room).await.unwrap();
    react(&ada, &message, "+1").await;
    ada.put(&path_of(&message), json!({ "content": "edited" })).await.unwrap().data().unwrap();
    assert_eq!(ada.history(&room).await.unwrap()[0]["reactions"], first);
    let mut resumed = following(&bob, &room).await;
    resumed.join_since(&room, &position).await.unwrap();
    let missed = so_far(&mut resumed).await;
    let missed = missed.iter().find(|frame| frame["type"] == "server:reaction_update");
    assert_eq!(missed.map(|frame| &frame["reactions"]), Some(&first));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_pin_messages_and_the_author_or_an_admin_unpins_them() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let cyd = scene.person("cyd").await;
    let room = ada.make_room("a room", &[&bob, &cyd]).await.unwrap();
    let (first, second) =
        (ada.post_message(&room, "first").await.unwrap(), bob.post_message(&room, "second").await.unwrap());
    let mut watching = following(&ada, &room).await;
    let pins = format!("/api/rooms/{room}/pins");
    let pin = |message: &Value| format!("{}/pin", path_of(message));

    let pinned = bob.post(&pin(&first), json!({})).await.unwrap().data().unwrap();
    assert_eq!((&pinned["messageId"], &pinned["pinnedById"]), (&first["id"], &json!(bob.user_id())));
    let frame = next(&mut watching, "server:message_pinned").await;
    assert_eq!((&frame["messageId"], &frame["pinnedById"]), (&first["id"], &json!(bob.user_id())));
    assert_eq!(frame["pinnedAt"], pinned["pinnedAt"]);
    let repeated = cyd.post(&pin(&first), json!({})).await.unwrap().data().unwrap();
    assert_eq!(repeated["pinnedById"], bob.user_id(), "a second pin keeps the first author");
    ada.post(&pin(&second), json!({})).await.unwrap().data().unwrap();
    let listed = cyd.get(&pins).await.unwrap().data().unwrap();
    let contents: Vec<&Value> =
        listed.as_array().unwrap().iter().map(|pin| &pin["message"]["content"]).collect();
    assert_eq!(contents, ["second", "first"], "the newest pin first");

    assert_refused(&cyd.delete(&pin(&first)).await.unwrap(), 403);
    assert_eq!(
        bob.delete(&pin(&first)).await.unwrap().body,
        json!({ "ok": true }),
        "the author of the pin may unpin"
    );
    let frame = next(&mut watching, "server:message_unpinned").await;
    assert_eq!((&frame["roomId"], &frame["messageId"]), (&json!(room), &first["id"]));
    assert_refused(&bob.delete(&pin(&first)).await.unwrap(), 404);
    cyd.post(&pin(&first), json!({})).await.unwrap().data().unwrap();
    assert_eq!(ada.delete(&pin(&first)).await.unwrap().status, 200, "an admin of the room may unpin");
    bob.delete(&path_of(&second)).await.unwrap();
    assert_eq!(
        cyd.get(&pins).await.unwrap().data().unwrap(),
        json!([]),
        "deleting a message removes its pin"
    );

    for n in 0..100 {
        let message = ada.post_message(&room, &format!("{n}")).await.unwrap();
        assert_eq!(bob.post(&pin(&message), json!({})).await.unwrap().status, 200);
    }
    assert_refused(&bob.post(&pin(&first), json!({})).await.unwrap(), 400);
    assert_eq!(cyd.get(&pins).await.unwrap().data().unwrap().as_array().unwrap().len(), 100);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bookmarks_are_private_and_paged_newest_first() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let mut ids = Vec::new();
    // Bookmark changes are sent to the user's other devices, whether or not they joined the room.
    let mut other_device = parlor_testkit::agentim::Client::connect(&ada).await.unwrap();
    let mut watching = following(&bob, &room).await;
    for n in 0..5 {
        let message = bob.post_message(&room, &format!("m{n}")).await.unwrap();
        let body = json!({ "messageId": message["id"] });
        let created = ada.post("/api/bookmarks", body.clone()).await.unwrap();
        assert_eq!((created.status.as_u16(), &created.body["data"]["message"]), (201, &message));
        let repeated = ada.post("/api/bookmarks", body).await.unwrap();
        assert_eq!((repeated.status.as_u16(), repeated.data().unwrap()), (200, created.data().unwrap()));
        let frame = next(&mut other_device, "server:bookmark_update").await;
        assert_eq!((&frame["messageId"], &frame["bookmarked"]), (&message["id"], &json!(true)));
        ids.insert(0, message["id"].clone());
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ada.get(&format!("/api/bookmarks?limit=2{cursor}")).await.unwrap().data().unwrap();
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["messageId"].clone()));
        assert_eq!(page["hasMore"].as_bool().unwrap(), page.get("nextCursor").is_some(), "{page}");
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, ids);
    assert_eq!(
        bob.get("/api/bookmarks").await.unwrap().data().unwrap(),
        json!({ "items": [], "hasMore": false })
    );
    let bookmark_path = format!("/api/bookmarks/{}", ids[0].as_str().unwrap());
    assert_refused(&bob.delete(&bookmark_path).await.unwrap(), 404);
    assert_eq!(ada.delete(&bookmark_path).await.unwrap().body, json!({ "ok": true }));
    assert_eq!(next(&mut other_device, "server:bookmark_update").await["bookmarked"], false);
    assert_refused(&ada.delete(&bookmark_path).await.unwrap(), 404);
    bob.delete(&format!("/api/messages/{}", ids[1].as_str().unwrap())).await.unwrap();
    let remaining = ada.get("/api/bookmarks").await.unwrap().data().unwrap();
    assert_eq!(remaining["items"].as_array().unwrap().len(), 3, "{remaining}");
    let frames = so_far(&mut watching).await;
    assert!(frames.iter().all(|frame| frame["type"] != "server:bookmark_update"), "{frames:?}");
    for query in ["cursor=x", "cursor=2024-01-01T00:00:00Z", "limit=x"] {
        assert_refused(&ada.get(&format!("/api/bookmarks?{query}")).await.unwrap(), 400);
    }
    assert_refused(&ada.get("/api/bookmarks?cursor=00000000-1").await.unwrap(), 410);
    scene.ends_well().await;
}
