//! Threads, forwarded messages, and batch deletion.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contents, following, heard, next};

async fn post_reply(user: &RestClient, room: &str, parent: &Value, text: &str) -> Value {
    let body = json!({ "content": text, "replyToId": parent["id"] });
    user.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap()
}

async fn thread(user: &RestClient, message: &Value) -> Vec<String> {
    let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = user.get(&format!("{path}/thread?limit=2{cursor}")).await.unwrap();
        seen.extend(contents(page.body["data"].as_array().unwrap()));
        let Some(next) = page.body["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let count = user.get(&format!("{path}/replies/count")).await.unwrap().data().unwrap();
    assert_eq!(count, json!({ "count": seen.len() }), "the reply count equals the length of the thread");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_survives_the_deletion_of_a_reply_and_of_its_root() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let first = ada.post_message(&room, "what now?").await.unwrap();
    let unanswered = ada.post_message(&room, "alone").await.unwrap();
    let reply = post_reply(&bob, &room, &first, "one").await;
    let nested_reply = post_reply(&ada, &room, &reply, "below one").await;
    post_reply(&ada, &room, &first, "two").await;
    post_reply(&bob, &room, &nested_reply, "further below").await;
    assert_eq!((&nested_reply["replyToId"], &nested_reply["threadId"]), (&reply["id"], &first["id"]));
    assert!(first.get("threadId").is_none(), "{first}");

    assert_eq!(thread(&bob, &first).await, ["one", "below one", "two", "further below"]);
    assert_eq!(thread(&bob, &reply).await, ["below one"]);
    assert!(thread(&bob, &unanswered).await.is_empty());
    bob.delete(&format!("/api/messages/{}", reply["id"].as_str().unwrap())).await.unwrap();
    assert_eq!(thread(&ada, &first).await, ["below one", "two", "further below"]);
    ada.delete(&format!("/api/messages/{}", first["id"].as_str().unwrap())).await.unwrap();
    for endpoint in ["thread", "replies/count"] {
        let path = format!("/api/messages/{}/{endpoint}", first["id"].as_str().unwrap());
        assert_refused(&ada.get(&path).await.unwrap(), 404);
    }
    let late_reply = post_reply(&ada, &room, &nested_reply, "still going on").await;
    assert_eq!(late_reply["threadId"], first["id"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forwarded_message_names_its_original_author() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let (source, target) =
        (ada.make_room("source", &[&bob]).await.unwrap(), bob.make_room("target", &[&ada]).await.unwrap());
    let third_room = ada.make_room("elsewhere", &[]).await.unwrap();
    // A mention in a forwarded message does not address the agent.
    let mut broker = Broker::connect(scene.url(), bob.token()).await.unwrap();
    broker.create_agent("helper", &[]).await.unwrap();
    let member = json!({ "memberId": "helper", "memberType": "agent" });
    bob.post(&format!("/api/rooms/{target}/members"), member).await.unwrap().data().unwrap();
    let original = ada.post_message(&source, "ask @helper about <b>this</b>").await.unwrap();
    let path = format!("/api/messages/{}/forward", original["id"].as_str().unwrap());

    let mut watching = following(&ada, &target).await;
    let forwarded = bob.post(&path, json!({ "targetRoomId": target })).await.unwrap();
    assert_eq!(forwarded.status, 201);
    let forwarded = forwarded.data().unwrap();
    assert_eq!(
        (&forwarded["content"], &forwarded["senderName"], &forwarded["roomId"], &forwarded["mentions"]),
        (&original["content"], &json!("bob"), &json!(target), &json!([]))
    );
    let from = json!({
        "messageId": original["id"],
        "senderId": ada.user_id(),
        "senderType": "user",
        "senderName": "ada",
        "createdAt": original["createdAt"],
    });
    assert_eq!(forwarded["metadata"], json!({ "forwardedFrom": from }));
    assert_eq!(heard(&mut watching).await, forwarded);
    assert_eq!(broker.receive("helper").await.unwrap(), Vec::<Value>::new());
    let forwarded_path = format!("/api/messages/{}", forwarded["id"].as_str().unwrap());
    assert_refused(&bob.put(&forwarded_path, json!({ "content": "ada said otherwise" })).await.unwrap(), 403);
    // A forward of a forward still names Ada as the author, and survives the deletion of the original.
    ada.delete(&format!("/api/messages/{}", original["id"].as_str().unwrap())).await.unwrap();
    let forwarded_again =
        ada.post(&format!("{forwarded_path}/forward"), json!({ "targetRoomId": third_room })).await.unwrap();
    assert_eq!(forwarded_again.data().unwrap()["metadata"]["forwardedFrom"], from);
    assert_eq!(ada.history(&target).await.unwrap(), [forwarded]);

    let foreign = json!({ "targetRoomId": third_room });
    assert_refused(&bob.post(&format!("{forwarded_path}/forward"), foreign).await.unwrap(), 404);
    assert_refused(
        &bob.post(&format!("{forwarded_path}/forward"), json!({ "targetRoomId": "a/b" })).await.unwrap(),
        400,
    );
    assert_eq!(ada.history(&third_room).await.unwrap().len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_forward_with_the_same_client_message_id_is_posted_once() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (source, target) =
        (ada.make_room("source", &[]).await.unwrap(), ada.make_room("target", &[]).await.unwrap());
    let original = ada.post_message(&source, "hello").await.unwrap();
    let path = format!("/api/messages/{}/forward", original["id"].as_str().unwrap());
    let forward_to = |room: &str| json!({ "targetRoomId": room, "clientMessageId": "one" });
    let first = ada.post(&path, forward_to(&target)).await.unwrap();
    assert_eq!((first.status.as_u16(), &first.body["data"]["clientMessageId"]), (201, &json!("one")));
    let retried = ada.post(&path, forward_to(&target)).await.unwrap();
    assert_eq!((retried.status.as_u16(), &retried.body["data"]), (200, &first.body["data"]));
    assert_refused(&ada.post(&path, forward_to(&source)).await.unwrap(), 409);
    let used_id = json!({ "content": "hello", "clientMessageId": "one" });
    assert_refused(&ada.post(&format!("/api/rooms/{target}/messages"), used_id).await.unwrap(), 409);
    let too_long = json!({ "targetRoomId": target, "clientMessageId": "x".repeat(129) });
    assert_refused(&ada.post(&path, too_long).await.unwrap(), 400);
    assert_eq!(ada.history(&target).await.unwrap().len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_deletion_deletes_all_messages_or_none() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let other_room = bob.make_room("bob's own", &[]).await.unwrap();
    let mut ids = Vec::new();
    for (user, text) in [(&ada, "ada's"), (&bob, "bob's"), (&bob, "bob's too")] {
        ids.push(user.post_message(&room, text).await.unwrap()["id"].clone());
    }
    let foreign = bob.post_message(&other_room, "not hers").await.unwrap()["id"].clone();
    let batch = "/api/messages/batch-delete";
    let delete_batch = async |user: &RestClient, ids: &[&Value]| {
        user.post(batch, json!({ "messageIds": ids })).await.unwrap()
    };
    assert_refused(&delete_batch(&bob, &[&ids[1], &ids[0]]).await, 403);
    for missing in [&foreign, &json!("0190aaaa")] {
        assert_refused(&delete_batch(&ada, &[&ids[0], missing]).await, 404);
    }
    assert_refused(&delete_batch(&ada, &[]).await, 400);
    assert_refused(&delete_batch(&ada, &[&ids[0], &json!("a/b")]).await, 400);
    let too_many: Vec<Value> = (0..51).map(|n| json!(format!("m{n}"))).collect();
    assert_refused(&delete_batch(&ada, &too_many.iter().collect::<Vec<_>>()).await, 400);
    assert_eq!(ada.history(&room).await.unwrap().len(), 3, "no message was deleted");

    let mut watching = following(&bob, &room).await;
    let result = delete_batch(&bob, &[&ids[1], &ids[1]]).await.data().unwrap();
    assert_eq!(result, json!({ "deleted": 1 }));
    assert_eq!(next(&mut watching, "server:message_deleted").await["messageId"], ids[1]);
    assert_eq!(delete_batch(&ada, &[&ids[2], &ids[0]]).await.data().unwrap(), json!({ "deleted": 2 }));
    let mut deleted = Vec::new();
    for _ in 0..2 {
        deleted.push(next(&mut watching, "server:message_deleted").await["messageId"].clone());
    }
    assert!(deleted.contains(&ids[0]) && deleted.contains(&ids[2]), "{deleted:?}");
    assert!(ada.history(&room).await.unwrap().is_empty());
    assert_eq!(bob.history(&other_room).await.unwrap().len(), 1);
    scene.ends_well().await;
}
