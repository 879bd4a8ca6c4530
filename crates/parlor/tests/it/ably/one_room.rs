//! One room over every protocol: each client receives each message once, in the same order.

use parlor_testkit::ably::object_of;
use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::events::EventReader;
use parlor_wire::ably::frames::Format;
use serde_json::{Value, json};

use super::{chat, connect, project, texts};
use crate::chatmd::BridgeScene;
use crate::scene::{Scene, contents, following, heard};

/// Number of messages that each client sends.
const EACH: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn four_protocols_deliver_the_same_messages_in_the_same_order() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let (sue, eve) = (scene.person("sue").await, scene.person("eve").await);
    let room = ann.make_room("kitchen", &[&bob, &sue, &eve]).await.unwrap();
    let channel = project(&room);

    let mut ably = connect(&ann, Format::Msgpack).await;
    ably.attach(&channel).await.unwrap();
    let mut page = following(&bob, &room).await;
    let mut events = EventReader::live(&sue, "").await.unwrap();
    let mut broker = Broker::connect(scene.url(), eve.token()).await.unwrap();
    broker.ok(json!({ "type": "msg.room.listen", "roomId": room })).await.unwrap();

    let (ably, page, events, broker) = tokio::join!(
        async {
            for n in 0..EACH {
                let data = chat(&ann, "ann", &room, &format!("ably {n}"), &format!("ably-{n}"));
                ably.say_json(&channel, "message", &data).await.unwrap();
            }
            let received = ably.messages(&channel, 4 * EACH).await.unwrap();
            let objects: Vec<Value> = received.iter().map(object_of).collect();
            assert!(objects.iter().all(|data| data["projectId"] == room), "{objects:?}");
            texts(&received)
        },
        async {
            for n in 0..EACH {
                page.say(&room, &format!("page {n}"), &format!("page-{n}")).await.unwrap();
            }
            let mut received = Vec::new();
            while received.len() < 4 * EACH {
                received.push(heard(&mut page).await);
            }
            contents(&received)
        },
        async {
            for n in 0..EACH {
                sue.post_message(&room, &format!("rest {n}")).await.unwrap();
            }
            let mut received = Vec::new();
            while received.len() < 4 * EACH {
                let message = events.wait_for(|event| event["kind"] == "message").await.unwrap();
                received.push(message["text"].as_str().unwrap().to_owned());
            }
            received
        },
        async {
            for n in 0..EACH {
                let text = format!("broker {n}");
                let relay = json!({
                    "type": "msg.relay", "roomId": room, "author": "script", "text": text, "source": "chatmd",
                });
                broker.ok(relay).await.unwrap();
            }
            let mut received = Vec::new();
            while received.len() < 4 * EACH {
                let push = broker.wait_for_type("msg.room.push").await.unwrap();
                received.push(push["message"]["text"].as_str().unwrap().to_owned());
            }
            received
        },
    );
    assert_eq!(ably, page);
    assert_eq!(ably, events);
    assert_eq!(ably, broker);
    let stored = contents(&ann.history(&room).await.unwrap());
    assert_eq!(ably, stored);
    for client in ["ably", "page", "rest", "broker"] {
        let own: Vec<&String> = ably.iter().filter(|text| text.starts_with(client)).collect();
        let expected: Vec<String> = (0..EACH).map(|n| format!("{client} {n}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>(), "the order of one sender stays");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_and_streamed_replies_pass_between_the_protocols() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let mut ably = connect(&ann, Format::Json).await;
    ably.attach(&channel).await.unwrap();
    let mut page = following(&bob, &room).await;

    page.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    let typing = ably.messages(&channel, 1).await.unwrap();
    let data = object_of(&typing[0]);
    assert_eq!((&data["type"], &data["from"]), (&json!("typing"), &json!(bob.user_id())));

    let mut data = chat(&ann, "ann", &room, "", "typing-1");
    data["type"] = json!("typing");
    ably.say_json(&channel, "message", &data).await.unwrap();
    let shown = page.wait_for_type("server:typing").await.unwrap();
    assert_eq!(shown["userId"], ann.user_id());
    assert!(bob.history(&room).await.unwrap().is_empty(), "signals are not stored");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_chat_md_reaches_an_ably_client_and_its_message_becomes_a_line() {
    let scene = BridgeScene::new().await;
    let channel = project(&scene.room);
    let mut ably = connect(&scene.eve, Format::Msgpack).await;
    ably.attach(&channel).await.unwrap();
    let bridge = scene.bridge().await;

    scene.project.write("[script-to-eve]: please build\n");
    let received = ably.messages(&channel, 1).await.unwrap();
    assert_eq!(texts(&received), ["please build"]);
    let data = object_of(&received[0]);
    assert_eq!(data["fromUsername"], "script (unverified)");

    let answer = chat(&scene.eve, "eve", &scene.room, "built @ada", "answer-1");
    ably.say_json(&channel, "message", &answer).await.unwrap();
    scene.project.wait_for("[eve-to-ada]: built @ada\n").await;
    assert_eq!(scene.history().await, ["please build", "built @ada"]);
    assert_eq!(bridge.stop().await, []);
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_one_id_in_every_protocol() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let mut ably = connect(&ann, Format::Json).await;
    ably.attach(&channel).await.unwrap();
    let mut page: Client = following(&bob, &room).await;

    let mut data = chat(&ann, "ann", &room, "hello @bob", "chosen-id");
    data["executionMode"] = json!("auto");
    ably.say_json(&channel, "message", &data).await.unwrap();
    let shown = heard(&mut page).await;
    assert_eq!((&shown["id"], &shown["mentions"]), (&json!("chosen-id"), &json!(["bob"])));
    let own = ably.messages(&channel, 1).await.unwrap();
    let object = object_of(&own[0]);
    assert_eq!((&object["messageId"], &object["executionMode"]), (&json!("chosen-id"), &json!("auto")));
    assert_eq!(own[0].connection_id.as_deref(), Some(&*ably.connection_id));
    assert_eq!(own[0].client_id.as_deref(), Some(ann.user_id()));

    // The same message again is acknowledged and not repeated.
    ably.say_json(&channel, "message", &data).await.unwrap();
    let ack = page.say_and_wait(&room, "reply", "p1").await.unwrap();
    let next = ably.messages(&channel, 1).await.unwrap();
    let object = object_of(&next[0]);
    assert_eq!((&object["messageId"], &object["from"]), (&json!(ack.message_id), &json!(bob.user_id())));
    assert_ne!(next[0].connection_id.as_deref(), Some(&*ably.connection_id));

    // An id of another sender is refused.
    let forged = chat(&ann, "ann", &room, "stolen", &ack.message_id);
    let serial = ably.publish(&channel, vec![parlor_testkit::ably::json("message", &forged)]).await.unwrap();
    ably.refused(serial).await.unwrap();
    assert_eq!(contents(&ann.history(&room).await.unwrap()), ["hello @bob", "reply"]);
    scene.ends_well().await;
}
