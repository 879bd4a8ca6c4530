//! Threads, what is passed on, and deleting many.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contents, following, heard, next};

async fn answer(person: &RestClient, room: &str, to: &Value, text: &str) -> Value {
    let body = json!({ "content": text, "replyToId": to["id"] });
    person.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap()
}

async fn thread(person: &RestClient, message: &Value) -> Vec<String> {
    let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = person.get(&format!("{path}/thread?limit=2{cursor}")).await.unwrap();
        seen.extend(contents(page.body["data"].as_array().unwrap()));
        let Some(next) = page.body["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let count = person.get(&format!("{path}/replies/count")).await.unwrap().data().unwrap();
    assert_eq!(count, json!({ "count": seen.len() }), "as many as are shown");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_holds_together_when_an_answer_in_it_is_deleted() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let first = ada.post_message(&room, "what now?").await.unwrap();
    let alone = ada.post_message(&room, "alone").await.unwrap();
    let one = answer(&bob, &room, &first, "one").await;
    let below = answer(&ada, &room, &one, "below one").await;
    answer(&ada, &room, &first, "two").await;
    answer(&bob, &room, &below, "further below").await;
    assert_eq!((&below["replyToId"], &below["threadId"]), (&one["id"], &first["id"]));
    assert!(first.get("threadId").is_none(), "{first}");

    assert_eq!(thread(&bob, &first).await, ["one", "below one", "two", "further below"]);
    assert_eq!(thread(&bob, &one).await, ["below one"]);
    assert!(thread(&bob, &alone).await.is_empty());
    bob.delete(&format!("/api/messages/{}", one["id"].as_str().unwrap())).await.unwrap();
    assert_eq!(thread(&ada, &first).await, ["below one", "two", "further below"]);
    ada.delete(&format!("/api/messages/{}", first["id"].as_str().unwrap())).await.unwrap();
    for of in ["thread", "replies/count"] {
        let path = format!("/api/messages/{}/{of}", first["id"].as_str().unwrap());
        assert_refused(&ada.get(&path).await.unwrap(), 404);
    }
    let late = answer(&ada, &room, &below, "still going on").await;
    assert_eq!(late["threadId"], first["id"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_on_keeps_whose_words_it_is() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let (here, there) =
        (ada.make_room("here", &[&bob]).await.unwrap(), bob.make_room("there", &[&ada]).await.unwrap());
    let elsewhere = ada.make_room("elsewhere", &[]).await.unwrap();
    // An agent that is mentioned in what is passed on is not called by it.
    let mut broker = Broker::connect(scene.url(), bob.token()).await.unwrap();
    broker.create_agent("helper", &[]).await.unwrap();
    let member = json!({ "memberId": "helper", "memberType": "agent" });
    bob.post(&format!("/api/rooms/{there}/members"), member).await.unwrap().data().unwrap();
    let said = ada.post_message(&here, "ask @helper about <b>this</b>").await.unwrap();
    let path = format!("/api/messages/{}/forward", said["id"].as_str().unwrap());

    let mut watching = following(&ada, &there).await;
    let made = bob.post(&path, json!({ "targetRoomId": there })).await.unwrap();
    assert_eq!(made.status, 201);
    let made = made.data().unwrap();
    assert_eq!(
        (&made["content"], &made["senderName"], &made["roomId"], &made["mentions"]),
        (&said["content"], &json!("bob"), &json!(there), &json!([]))
    );
    let from = json!({
        "messageId": said["id"],
        "senderId": ada.user_id(),
        "senderType": "user",
        "senderName": "ada",
        "createdAt": said["createdAt"],
    });
    assert_eq!(made["metadata"], json!({ "forwardedFrom": from }));
    assert_eq!(heard(&mut watching).await, made);
    assert_eq!(broker.receive("helper").await.unwrap(), Vec::<Value>::new());
    let own = format!("/api/messages/{}", made["id"].as_str().unwrap());
    assert_refused(&bob.put(&own, json!({ "content": "ada said otherwise" })).await.unwrap(), 403);
    // Passed on once more it is still hers, and outlives the first.
    ada.delete(&format!("/api/messages/{}", said["id"].as_str().unwrap())).await.unwrap();
    let again = ada.post(&format!("{own}/forward"), json!({ "targetRoomId": elsewhere })).await.unwrap();
    assert_eq!(again.data().unwrap()["metadata"]["forwardedFrom"], from);
    assert_eq!(ada.history(&there).await.unwrap(), [made]);

    let foreign = json!({ "targetRoomId": elsewhere });
    assert_refused(&bob.post(&format!("{own}/forward"), foreign).await.unwrap(), 404);
    assert_refused(
        &bob.post(&format!("{own}/forward"), json!({ "targetRoomId": "a/b" })).await.unwrap(),
        400,
    );
    assert_eq!(ada.history(&elsewhere).await.unwrap().len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_on_twice_under_one_id_is_passed_on_once() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (here, there) =
        (ada.make_room("here", &[]).await.unwrap(), ada.make_room("there", &[]).await.unwrap());
    let said = ada.post_message(&here, "hello").await.unwrap();
    let path = format!("/api/messages/{}/forward", said["id"].as_str().unwrap());
    let to = |room: &str| json!({ "targetRoomId": room, "clientMessageId": "one" });
    let first = ada.post(&path, to(&there)).await.unwrap();
    assert_eq!((first.status.as_u16(), &first.body["data"]["clientMessageId"]), (201, &json!("one")));
    let again = ada.post(&path, to(&there)).await.unwrap();
    assert_eq!((again.status.as_u16(), &again.body["data"]), (200, &first.body["data"]));
    assert_refused(&ada.post(&path, to(&here)).await.unwrap(), 409);
    let taken = json!({ "content": "hello", "clientMessageId": "one" });
    assert_refused(&ada.post(&format!("/api/rooms/{there}/messages"), taken).await.unwrap(), 409);
    let long = json!({ "targetRoomId": there, "clientMessageId": "x".repeat(129) });
    assert_refused(&ada.post(&path, long).await.unwrap(), 400);
    assert_eq!(ada.history(&there).await.unwrap().len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_messages_are_deleted_together_or_not_at_all() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let own = bob.make_room("bob's own", &[]).await.unwrap();
    let mut ids = Vec::new();
    for (person, text) in [(&ada, "ada's"), (&bob, "bob's"), (&bob, "bob's too")] {
        ids.push(person.post_message(&room, text).await.unwrap()["id"].clone());
    }
    let foreign = bob.post_message(&own, "not hers").await.unwrap()["id"].clone();
    let batch = "/api/messages/batch-delete";
    let ask = async |person: &RestClient, ids: &[&Value]| {
        person.post(batch, json!({ "messageIds": ids })).await.unwrap()
    };
    assert_refused(&ask(&bob, &[&ids[1], &ids[0]]).await, 403);
    for missing in [&foreign, &json!("0190aaaa")] {
        assert_refused(&ask(&ada, &[&ids[0], missing]).await, 404);
    }
    assert_refused(&ask(&ada, &[]).await, 400);
    assert_refused(&ask(&ada, &[&ids[0], &json!("a/b")]).await, 400);
    let many: Vec<Value> = (0..51).map(|n| json!(format!("m{n}"))).collect();
    assert_refused(&ask(&ada, &many.iter().collect::<Vec<_>>()).await, 400);
    assert_eq!(ada.history(&room).await.unwrap().len(), 3, "nothing was changed");

    let mut watching = following(&bob, &room).await;
    let done = ask(&bob, &[&ids[1], &ids[1]]).await.data().unwrap();
    assert_eq!(done, json!({ "deleted": 1 }));
    assert_eq!(next(&mut watching, "server:message_deleted").await["messageId"], ids[1]);
    assert_eq!(ask(&ada, &[&ids[2], &ids[0]]).await.data().unwrap(), json!({ "deleted": 2 }));
    let mut told = Vec::new();
    for _ in 0..2 {
        told.push(next(&mut watching, "server:message_deleted").await["messageId"].clone());
    }
    assert!(told.contains(&ids[0]) && told.contains(&ids[2]), "{told:?}");
    assert!(ada.history(&room).await.unwrap().is_empty());
    assert_eq!(bob.history(&own).await.unwrap().len(), 1);
    scene.ends_well().await;
}
