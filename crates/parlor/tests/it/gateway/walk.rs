//! A run from the message that mentions an agent to the stored reply, the agent's backlog, and the
//! authentication of gateways.

use super::scenes::Room;
use crate::scene::{Scene, following, heard, next, so_far};
use parlor_testkit::broker::Broker;
use parlor_testkit::gateway::{Gateway, auth};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_mentioned_agent_streams_its_reply_to_all_members() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let mut broker = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
    broker.listen("coder").await.unwrap();

    let trigger = room.say("@coder please review").await;
    assert_eq!(broker.pushed().await.unwrap()["payload"]["text"], "@coder please review");
    let context = gateway.wait_for_type("server:room_context").await.unwrap();
    assert_eq!(context["context"]["roomName"], "kitchen");
    let members = context["context"]["members"].as_array().unwrap();
    let named = |name: &str| members.iter().find(|member| member["name"] == name).unwrap().clone();
    assert_eq!((&named("alice")["type"], &named("alice")["role"]), (&json!("user"), &json!("owner")));
    let coder = named("coder");
    assert_eq!((&coder["id"], &coder["agentType"]), (&json!("coder"), &json!("claude-code")));

    let run = gateway.turn().await.unwrap();
    assert_eq!((&run["agentId"], &run["roomId"]), (&json!("coder"), &json!(room.room)));
    assert_eq!((&run["messageId"], &run["content"]), (&json!(trigger), &json!("@coder please review")));
    assert_eq!((&run["senderName"], &run["senderType"]), (&json!("alice"), &json!("user")));
    assert_eq!((&run["routingMode"], &run["depth"]), (&json!("direct"), &json!(0)));
    assert!(run["conversationId"].is_string());
    let status = |deliveries: Vec<Value>| deliveries[0]["status"].clone();
    assert_eq!(status(room.deliveries(&trigger).await), "delivered");

    for (kind, content) in [("thinking", "Hm."), ("text", "Looks "), ("text", "fine.")] {
        gateway.chunk(&run, "reply-1", kind, content).await.unwrap();
    }
    gateway.settled().await.unwrap();
    assert_eq!(status(room.deliveries(&trigger).await), "started");
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

    gateway.complete(&run, "reply-1", "Looks fine.").await.unwrap();
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
    assert_eq!(reply["chunks"], chunks, "adjacent chunks of one type are merged");
    let delivered = room.deliveries(&trigger).await;
    assert_eq!((&delivered[0]["status"], &delivered[0]["replyId"]), (&json!("answered"), &json!("reply-1")));
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.last().unwrap(), &reply, "history and socket return the same message");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_joiner_receives_the_streaming_reply_from_its_start() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder count").await;
    let run = gateway.turn().await.unwrap();
    for number in 1..=20 {
        gateway.chunk(&run, "r", "text", &format!("{number} ")).await.unwrap();
    }
    gateway.settled().await.unwrap();
    let mut at_bob = following(&room.bob, &room.room).await;
    gateway.chunk(&run, "r", "text", "done").await.unwrap();
    let expected: String = (1..=20).map(|number| format!("{number} ")).collect::<String>() + "done";
    let mut text = String::new();
    while text.len() < expected.len() {
        text += next(&mut at_bob, "server:message_chunk").await["chunk"]["content"].as_str().unwrap();
    }
    assert_eq!(text, expected);
    gateway.complete(&run, "r", &expected).await.unwrap();
    assert_eq!(room.reply().await["content"], expected);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_runs_one_message_at_a_time_and_its_backlog_survives_a_crash() {
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
    assert_eq!(fourth["content"], "@coder four", "the backlog survives the crash");
    let mut at_alice = following(&alice, &room.room).await;
    gateway.complete(&fourth, "r4", "fourth").await.unwrap();
    assert_eq!(next(&mut at_alice, "server:message_complete").await["message"]["content"], "fourth");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_must_authenticate_before_it_hosts_agents() {
    let scene = Scene::with(&[("PARLOR_AUTH_TIMEOUT", "1")]).await;
    let alice = scene.person("alice").await;
    let mut unauthenticated = Gateway::open(scene.url()).await.unwrap();
    unauthenticated
        .send(&json!({ "type": "gateway:agent_status", "agentId": "a", "status": "online" }))
        .await
        .unwrap();
    assert_eq!(unauthenticated.closed(TEST_TIMEOUT).await.unwrap(), 1008);
    let mut silent = Gateway::open(scene.url()).await.unwrap();
    assert_eq!(silent.closed(TEST_TIMEOUT).await.unwrap(), 4001);
    let mut retrying = Gateway::open(scene.url()).await.unwrap();
    retrying.send(&auth("wrong", "g1")).await.unwrap();
    let refused = retrying.wait_for_type("server:gateway_auth_result").await.unwrap();
    assert_eq!((&refused["ok"], &refused["error"]), (&json!(false), &json!("Authentication failed")));
    for _ in 0..2 {
        retrying.send(&auth(alice.token(), "g1")).await.unwrap();
        let accepted = retrying.wait_for_type("server:gateway_auth_result").await.unwrap();
        assert_eq!(
            accepted["ok"], true,
            "a gateway may retry on the same socket, and authenticate again afterwards"
        );
    }
    let bob = scene.person("bob").await;
    let mut other_user = Gateway::open(scene.url()).await.unwrap();
    other_user.send(&auth(bob.token(), "g1")).await.unwrap();
    let refused = other_user.wait_for_type("server:gateway_auth_result").await.unwrap();
    assert_eq!(refused["error"], "Gateway ID belongs to another user");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_posts_without_a_run_only_for_its_own_agents_and_messages() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let message_id = room.say("hello").await;
    let run = json!({ "roomId": room.room, "agentId": "coder", "conversationId": "c", "depth": 0 });
    gateway.complete(&run, "free", "By the way").await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["id"], &reply["content"]), (&json!("free"), &json!("By the way")));

    gateway.complete(&run, &message_id, "HIJACK").await.unwrap();
    gateway.chunk(&run, &message_id, "text", "HIJACK").await.unwrap();
    gateway.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.iter().find(|message| message["id"] == *message_id).unwrap()["content"], "hello");
    assert!(!so_far(&mut room.at_alice).await.iter().any(|frame| frame.to_string().contains("HIJACK")));

    // A gateway of another user can neither post as the agent nor register it.
    let mut other = Gateway::connect(&room.bob, "g2").await.unwrap();
    other.complete(&run, "stolen", "not me").await.unwrap();
    assert_eq!(other.wait_for_type("server:error").await.unwrap()["code"], "INVALID_REQUEST");
    other.register("coder", "coder").await.unwrap();
    other.wait_for_type("server:error").await.unwrap();
    room.say("@coder still there?").await;
    assert_eq!(gateway.turn().await.unwrap()["content"], "@coder still there?");
    assert!(heard(&mut room.at_alice).await["content"].is_string());
    room.scene.ends_well().await;
}
