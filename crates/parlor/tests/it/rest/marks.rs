//! Reactions, pins, bookmarks.

use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, following, next, so_far};

fn path_of(message: &Value) -> String {
    format!("/api/messages/{}", message["id"].as_str().unwrap())
}

async fn react(person: &RestClient, message: &Value, emoji: &str) -> Value {
    let path = format!("{}/reactions", path_of(message));
    person.post(&path, json!({ "emoji": emoji })).await.unwrap().data().unwrap()
}

fn reaction(emoji: &str, people: &[(&RestClient, &str)]) -> Value {
    let ids: Vec<&str> = people.iter().map(|(person, _)| person.user_id()).collect();
    let names: Vec<&str> = people.iter().map(|(_, name)| *name).collect();
    json!({ "emoji": emoji, "userIds": ids, "usernames": names })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reaction_is_told_to_the_room_and_taken_back_by_the_same_request() {
    let scene = Scene::with(&[("PARLOR_MAX_REACTIONS", "2")]).await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let message = ada.post_message(&room, "react to this").await.unwrap();
    let mut watching = following(&bob, &room).await;
    let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}";

    let first = json!([reaction("+1", &[(&ada, "ada")])]);
    assert_eq!(react(&ada, &message, "+1").await, first);
    let told = next(&mut watching, "server:reaction_update").await;
    assert_eq!(
        (&told["roomId"], &told["messageId"], &told["reactions"]),
        (&json!(room), &message["id"], &first)
    );
    assert!(told["position"].is_string(), "{told}");
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
    let left = json!([reaction("+1", &[(&ada, "ada"), (&bob, "bob")])]);
    assert_eq!(react(&bob, &message, family).await, left);
    assert_eq!(react(&ada, &message, "+1").await, json!([reaction("+1", &[(&bob, "bob")])]));
    assert_eq!(react(&bob, &message, "+1").await, json!([]));
    assert_eq!(bob.history(&room).await.unwrap()[0]["reactions"], json!([]));

    // Who comes back sees them as they are now; what is edited keeps them.
    let position = watching.join(&room).await.unwrap();
    react(&ada, &message, "+1").await;
    ada.put(&path_of(&message), json!({ "content": "edited" })).await.unwrap().data().unwrap();
    assert_eq!(ada.history(&room).await.unwrap()[0]["reactions"], first);
    let mut late = following(&bob, &room).await;
    late.join_since(&room, &position).await.unwrap();
    let missed = so_far(&mut late).await;
    let missed = missed.iter().find(|frame| frame["type"] == "server:reaction_update");
    assert_eq!(missed.map(|frame| &frame["reactions"]), Some(&first));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_keeps_messages_in_sight() {
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
    let told = next(&mut watching, "server:message_pinned").await;
    assert_eq!((&told["messageId"], &told["pinnedById"]), (&first["id"], &json!(bob.user_id())));
    assert_eq!(told["pinnedAt"], pinned["pinnedAt"]);
    let again = cyd.post(&pin(&first), json!({})).await.unwrap().data().unwrap();
    assert_eq!(again["pinnedById"], bob.user_id(), "it is pinned already");
    ada.post(&pin(&second), json!({})).await.unwrap().data().unwrap();
    let listed = cyd.get(&pins).await.unwrap().data().unwrap();
    let shown: Vec<&Value> =
        listed.as_array().unwrap().iter().map(|pin| &pin["message"]["content"]).collect();
    assert_eq!(shown, ["second", "first"], "the newest pin first");

    assert_refused(&cyd.delete(&pin(&first)).await.unwrap(), 403);
    assert_eq!(bob.delete(&pin(&first)).await.unwrap().body, json!({ "ok": true }), "whoever pinned it");
    let told = next(&mut watching, "server:message_unpinned").await;
    assert_eq!((&told["roomId"], &told["messageId"]), (&json!(room), &first["id"]));
    assert_refused(&bob.delete(&pin(&first)).await.unwrap(), 404);
    cyd.post(&pin(&first), json!({})).await.unwrap().data().unwrap();
    assert_eq!(ada.delete(&pin(&first)).await.unwrap().status, 200, "an admin of the room");
    bob.delete(&path_of(&second)).await.unwrap();
    assert_eq!(cyd.get(&pins).await.unwrap().data().unwrap(), json!([]), "what is deleted is not pinned");

    for n in 0..100 {
        let message = ada.post_message(&room, &format!("{n}")).await.unwrap();
        assert_eq!(bob.post(&pin(&message), json!({})).await.unwrap().status, 200);
    }
    assert_refused(&bob.post(&pin(&first), json!({})).await.unwrap(), 400);
    assert_eq!(cyd.get(&pins).await.unwrap().data().unwrap().as_array().unwrap().len(), 100);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bookmarks_are_one_s_own_and_paged_newest_first() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let mut ids = Vec::new();
    // Personal: told to the other devices of the same person, whether they joined the room or not.
    let mut other_device = parlor_testkit::agentim::Client::connect(&ada).await.unwrap();
    let mut watching = following(&bob, &room).await;
    for n in 0..5 {
        let message = bob.post_message(&room, &format!("m{n}")).await.unwrap();
        let body = json!({ "messageId": message["id"] });
        let made = ada.post("/api/bookmarks", body.clone()).await.unwrap();
        assert_eq!((made.status.as_u16(), &made.body["data"]["message"]), (201, &message));
        let again = ada.post("/api/bookmarks", body).await.unwrap();
        assert_eq!((again.status.as_u16(), again.data().unwrap()), (200, made.data().unwrap()));
        let told = next(&mut other_device, "server:bookmark_update").await;
        assert_eq!((&told["messageId"], &told["bookmarked"]), (&message["id"], &json!(true)));
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
    let gone = format!("/api/bookmarks/{}", ids[0].as_str().unwrap());
    assert_refused(&bob.delete(&gone).await.unwrap(), 404);
    assert_eq!(ada.delete(&gone).await.unwrap().body, json!({ "ok": true }));
    assert_eq!(next(&mut other_device, "server:bookmark_update").await["bookmarked"], false);
    assert_refused(&ada.delete(&gone).await.unwrap(), 404);
    bob.delete(&format!("/api/messages/{}", ids[1].as_str().unwrap())).await.unwrap();
    let left = ada.get("/api/bookmarks").await.unwrap().data().unwrap();
    assert_eq!(left["items"].as_array().unwrap().len(), 3, "{left}");
    let heard = so_far(&mut watching).await;
    assert!(heard.iter().all(|frame| frame["type"] != "server:bookmark_update"), "{heard:?}");
    for query in ["cursor=x", "cursor=2024-01-01T00:00:00Z", "limit=x"] {
        assert_refused(&ada.get(&format!("/api/bookmarks?{query}")).await.unwrap(), 400);
    }
    assert_refused(&ada.get("/api/bookmarks?cursor=00000000-1").await.unwrap(), 410);
    scene.ends_well().await;
}
