//! A mention, from the person who types it to the answer of the agent.

use super::scenes::Room;
use crate::scene::{Scene, following, heard, next, so_far};
use parlor_testkit::broker::Broker;
use parlor_testkit::gateway::{Gateway, auth};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_mentioned_answers_while_everybody_watches() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let mut broker = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
    broker.listen("coder").await.unwrap();

    let asked = room.say("@coder please review").await;
    assert_eq!(broker.pushed().await.unwrap()["payload"]["text"], "@coder please review");
    let context = gateway.wait_for_type("server:room_context").await.unwrap();
    assert_eq!(context["context"]["roomName"], "kitchen");
    let members = context["context"]["members"].as_array().unwrap();
    let named = |name: &str| members.iter().find(|member| member["name"] == name).unwrap().clone();
    assert_eq!((&named("alice")["type"], &named("alice")["role"]), (&json!("user"), &json!("owner")));
    let coder = named("coder");
    assert_eq!((&coder["id"], &coder["agentType"]), (&json!("coder"), &json!("claude-code")));

    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["agentId"], &turn["roomId"]), (&json!("coder"), &json!(room.room)));
    assert_eq!((&turn["messageId"], &turn["content"]), (&json!(asked), &json!("@coder please review")));
    assert_eq!((&turn["senderName"], &turn["senderType"]), (&json!("alice"), &json!("user")));
    assert_eq!((&turn["routingMode"], &turn["depth"]), (&json!("direct"), &json!(0)));
    assert!(turn["conversationId"].is_string());
    let state = |deliveries: Vec<Value>| deliveries[0]["status"].clone();
    assert_eq!(state(room.deliveries(&asked).await), "delivered");

    for (kind, content) in [("thinking", "Hm."), ("text", "Looks "), ("text", "fine.")] {
        gateway.chunk(&turn, "reply-1", kind, content).await.unwrap();
    }
    gateway.settled().await.unwrap();
    assert_eq!(state(room.deliveries(&asked).await), "started");
    let mut texts = (String::new(), String::new());
    while texts.1 != "Looks fine." {
        let frame = next(&mut at_bob, "server:message_chunk").await;
        assert_eq!((&frame["messageId"], &frame["agentName"]), (&json!("reply-1"), &json!("coder")));
        let content = frame["chunk"]["content"].as_str().unwrap();
        match frame["chunk"]["type"].as_str() {
            Some("thinking") => texts.0 += content,
            _ => texts.1 += content,
        }
    }
    assert_eq!(texts.0, "Hm.");

    gateway.complete(&turn, "reply-1", "Looks fine.").await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["id"], &reply["content"]), (&json!("reply-1"), &json!("Looks fine.")));
    assert_eq!((&reply["senderId"], &reply["senderType"]), (&json!("coder"), &json!("agent")));
    assert_eq!(
        (&reply["type"], &reply["metadata"]["outcome"]),
        (&json!("agent_response"), &json!("complete"))
    );
    let chunks = json!([
        { "type": "thinking", "content": "Hm." },
        { "type": "text", "content": "Looks fine." },
    ]);
    assert_eq!(reply["chunks"], chunks, "neighbours flow together");
    let delivered = room.deliveries(&asked).await;
    assert_eq!((&delivered[0]["status"], &delivered[0]["replyId"]), (&json!("answered"), &json!("reply-1")));
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.last().unwrap(), &reply, "history says what the socket said");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_later_sees_the_running_reply_so_far() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder count").await;
    let turn = gateway.turn().await.unwrap();
    for number in 1..=20 {
        gateway.chunk(&turn, "r", "text", &format!("{number} ")).await.unwrap();
    }
    gateway.settled().await.unwrap();
    let mut at_bob = following(&room.bob, &room.room).await;
    gateway.chunk(&turn, "r", "text", "done").await.unwrap();
    let expected: String = (1..=20).map(|number| format!("{number} ")).collect::<String>() + "done";
    let mut text = String::new();
    while text.len() < expected.len() {
        text += next(&mut at_bob, "server:message_chunk").await["chunk"]["content"].as_str().unwrap();
    }
    assert_eq!(text, expected);
    gateway.complete(&turn, "r", &expected).await.unwrap();
    assert_eq!(room.reply().await["content"], expected);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_does_one_thing_after_the_other_and_nothing_is_lost_while_it_is_away() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder one").await;
    let first = gateway.turn().await.unwrap();
    room.say("@coder two").await;
    room.say("@coder three").await;
    gateway.complete(&first, "r1", "first").await.unwrap();
    let second = gateway.turn().await.unwrap();
    assert_eq!(second["content"], "@coder two");
    gateway.complete(&second, "r2", "second").await.unwrap();
    let third = gateway.turn().await.unwrap();
    gateway.complete(&third, "r3", "third").await.unwrap();
    for expected in ["first", "second", "third"] {
        assert_eq!(room.reply().await["content"], expected);
    }
    drop(gateway);
    room.say("@coder four").await;
    room.scene.crash_and_restart().await;
    let alice = room.alice.at(room.scene.url());
    let mut gateway = Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    let fourth = gateway.turn().await.unwrap();
    assert_eq!(fourth["content"], "@coder four", "what waited survives");
    let mut at_alice = following(&alice, &room.room).await;
    gateway.complete(&fourth, "r4", "fourth").await.unwrap();
    assert_eq!(next(&mut at_alice, "server:message_complete").await["message"]["content"], "fourth");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_who_they_are_hosts_nothing() {
    let scene = Scene::with(&[("PARLOR_AUTH_TIMEOUT", "1")]).await;
    let alice = scene.person("alice").await;
    let mut early = Gateway::open(scene.url()).await.unwrap();
    early.send(&json!({ "type": "gateway:agent_status", "agentId": "a", "status": "online" })).await.unwrap();
    assert_eq!(early.closed(TEST_TIMEOUT).await.unwrap(), 1008);
    let mut silent = Gateway::open(scene.url()).await.unwrap();
    assert_eq!(silent.closed(TEST_TIMEOUT).await.unwrap(), 4001);
    let mut again = Gateway::open(scene.url()).await.unwrap();
    again.send(&auth("wrong", "g1")).await.unwrap();
    let refused = again.wait_for_type("server:gateway_auth_result").await.unwrap();
    assert_eq!((&refused["ok"], &refused["error"]), (&json!(false), &json!("Authentication failed")));
    for _ in 0..2 {
        again.send(&auth(alice.token(), "g1")).await.unwrap();
        let taken = again.wait_for_type("server:gateway_auth_result").await.unwrap();
        assert_eq!(taken["ok"], true, "on the same socket, and once more when it is signed in");
    }
    let bob = scene.person("bob").await;
    let mut thief = Gateway::open(scene.url()).await.unwrap();
    thief.send(&auth(bob.token(), "g1")).await.unwrap();
    let refused = thief.wait_for_type("server:gateway_auth_result").await.unwrap();
    assert_eq!(refused["error"], "Gateway ID belongs to another user");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_may_speak_up_unasked_but_not_in_the_name_of_others() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let asked = room.say("hello").await;
    let turn = json!({ "roomId": room.room, "agentId": "coder", "conversationId": "c", "depth": 0 });
    gateway.complete(&turn, "free", "By the way").await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["id"], &reply["content"]), (&json!("free"), &json!("By the way")));

    gateway.complete(&turn, &asked, "HIJACK").await.unwrap();
    gateway.chunk(&turn, &asked, "text", "HIJACK").await.unwrap();
    gateway.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.iter().find(|message| message["id"] == *asked).unwrap()["content"], "hello");
    assert!(!so_far(&mut room.at_alice).await.iter().any(|frame| frame.to_string().contains("HIJACK")));

    // Somebody else's gateway says nothing for it, and takes it over neither.
    let mut other = Gateway::connect(&room.bob, "g2").await.unwrap();
    other.complete(&turn, "stolen", "not me").await.unwrap();
    assert_eq!(other.wait_for_type("server:error").await.unwrap()["code"], "INVALID_REQUEST");
    other.register("coder", "coder").await.unwrap();
    other.wait_for_type("server:error").await.unwrap();
    room.say("@coder still there?").await;
    assert_eq!(gateway.turn().await.unwrap()["content"], "@coder still there?");
    assert!(heard(&mut room.at_alice).await["content"].is_string());
    room.scene.ends_well().await;
}
