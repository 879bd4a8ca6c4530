//! Agents that call each other stop, whatever they claim.

use super::scenes::Room;
use crate::scene::Scene;
use serde_json::{Value, json};

/// Why each agent that a message addressed got no turn.
fn refused(deliveries: &[Value]) -> Vec<(&str, &str)> {
    let refused = deliveries.iter().filter(|delivery| delivery["status"] == "refused");
    refused.map(|one| (one["agentId"].as_str().unwrap(), one["reason"].as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_never_comes_back_and_never_goes_deeper_than_three() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b", "c", "d", "e"]).await;
    room.say("@a begin").await;
    let mut depths = Vec::new();
    let chain = ["@b and @a", "@c and @a", "@d and @b", "@e and @a"];
    let mut last = Value::Null;
    for (number, text) in chain.into_iter().enumerate() {
        let mut turn = gateway.turn().await.unwrap();
        depths.push(turn["depth"].as_u64().unwrap());
        // A forged depth or conversation does not help.
        (turn["depth"], turn["conversationId"]) = (json!(0), json!("another"));
        gateway.complete(&turn, &format!("r{number}"), text).await.unwrap();
        last = room.reply().await;
    }
    assert_eq!(depths, [0, 1, 2, 3]);
    let deliveries = room.deliveries(last["id"].as_str().unwrap()).await;
    assert_eq!(
        refused(&deliveries),
        [("a", "the agent has spoken in this chain already"), ("e", "the chain of agents is too long"),]
    );
    gateway.settled().await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_greet_each_other_forever_are_stopped() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_AGENT_MESSAGES_PER_MINUTE", "1000")]).await).await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    let voice = |room: &Room, agent: &str| json!({ "roomId": room.room, "agentId": agent });
    let mut turns = 0;
    let stopped = loop {
        gateway.complete(&voice(&room, "a"), &format!("a{turns}"), "Hello @b").await.unwrap();
        let said = room.reply().await;
        let deliveries = room.deliveries(said["id"].as_str().unwrap()).await;
        if let Some((_, reason)) = refused(&deliveries).first() {
            break reason.to_string();
        }
        let turn = gateway.turn().await.unwrap();
        gateway.complete(&turn, &format!("b{turns}"), "Hello @a").await.unwrap();
        room.reply().await;
        turns += 1;
        assert!(turns < 50, "nobody stops them");
    };
    assert_eq!((turns, &*stopped), (10, "these two agents talk to each other too often"));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_speaks_too_often_is_shown_and_asks_nobody() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_AGENT_MESSAGES_PER_MINUTE", "3")]).await).await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    let voice = json!({ "roomId": room.room, "agentId": "a" });
    for number in 0..3 {
        gateway.complete(&voice, &format!("n{number}"), "noise").await.unwrap();
        room.reply().await;
    }
    gateway.complete(&voice, "last", "@b help").await.unwrap();
    let said = room.reply().await;
    assert_eq!(said["content"], "@b help");
    let deliveries = room.deliveries("last").await;
    assert_eq!(refused(&deliveries), [("b", "the agent that asks speaks too often")]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turns_of_a_day_are_counted() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_TURNS_PER_DAY", "2")]).await).await;
    let mut gateway = room.gateway("g1", &["a"]).await;
    for number in 0..2 {
        room.say("@a go").await;
        let turn = gateway.turn().await.unwrap();
        gateway.complete(&turn, &format!("r{number}"), "gone").await.unwrap();
        room.reply().await;
    }
    let asked = room.say("@a again").await;
    assert_eq!(refused(&room.deliveries(&asked).await), [("a", "the turns of this day are used up")]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_a_day_are_counted() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_TOKENS_PER_DAY", "100")]).await).await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    // The first leaves some, the second takes more than there is: what was spent is known afterwards.
    for number in 0..2 {
        room.say("@a go").await;
        let turn = gateway.turn().await.unwrap();
        let usage = json!({
            "type": "gateway:run_event", "agentId": "a",
            "event": { "kind": "usage", "inputTokens": 50, "outputTokens": 10 },
        });
        gateway.send(&usage).await.unwrap();
        gateway.complete(&turn, &format!("r{number}"), "gone").await.unwrap();
        room.reply().await;
    }
    let asked = room.say("@a again").await;
    assert_eq!(refused(&room.deliveries(&asked).await), [("a", "the tokens of this day are used up")]);
    room.say("@b go").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "b", "each agent has its own");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_hands_over_to_one_that_it_names_apart_from_its_text() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    room.say("@a begin").await;
    let turn = gateway.turn().await.unwrap();
    let frame = json!({
        "type": "gateway:message_complete", "roomId": room.room, "agentId": "a", "messageId": "r",
        "fullContent": "over to you", "conversationId": turn["conversationId"], "depth": 0,
        "targetAgentName": "b",
    });
    gateway.send(&frame).await.unwrap();
    let next = gateway.turn().await.unwrap();
    assert_eq!((&next["agentId"], &next["content"]), (&json!("b"), &json!("over to you")));
    assert_eq!((&next["senderType"], &next["depth"]), (&json!("agent"), &json!(1)));
    room.scene.ends_well().await;
}
