//! Limits on agents that address each other: chain depth, message rates, and daily run and token budgets.
//! A gateway cannot evade them with forged fields.

use super::scenes::Room;
use crate::scene::Scene;
use serde_json::{Value, json};

/// Agents that were addressed but got no run, each with the reason.
fn refused(deliveries: &[Value]) -> Vec<(&str, &str)> {
    let refused = deliveries.iter().filter(|delivery| delivery["status"] == "refused");
    refused
        .map(|delivery| (delivery["agentId"].as_str().unwrap(), delivery["reason"].as_str().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_chain_never_repeats_an_agent_and_has_three_answers() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b", "c", "d", "e"]).await;
    room.say("@a begin").await;
    let mut depths = Vec::new();
    let chain = ["@b and @a", "@c and @a", "@d and @b"];
    let mut last = Value::Null;
    for (number, text) in chain.into_iter().enumerate() {
        let mut run = gateway.turn().await.unwrap();
        depths.push(run["depth"].as_u64().unwrap());
        // The hub ignores a forged depth or conversation id.
        (run["depth"], run["conversationId"]) = (json!(0), json!("another"));
        gateway.complete(&run, &format!("r{number}"), text).await.unwrap();
        last = room.reply().await;
    }
    assert_eq!(depths, [0, 1, 2]);
    let deliveries = room.deliveries(last["id"].as_str().unwrap()).await;
    assert_eq!(
        refused(&deliveries),
        [("b", "the agent has spoken in this chain already"), ("d", "the chain of agents is too long"),]
    );
    gateway.settled().await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_greet_each_other_forever_are_stopped() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_AGENT_MESSAGES_PER_MINUTE", "1000")]).await).await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    let run_of = |room: &Room, agent: &str| json!({ "roomId": room.room, "agentId": agent });
    let mut runs = 0;
    let stopped = loop {
        gateway.complete(&run_of(&room, "a"), &format!("a{runs}"), "Hello @b").await.unwrap();
        let reply = room.reply().await;
        let deliveries = room.deliveries(reply["id"].as_str().unwrap()).await;
        if let Some((_, reason)) = refused(&deliveries).first() {
            break reason.to_string();
        }
        let run = gateway.turn().await.unwrap();
        gateway.complete(&run, &format!("b{runs}"), "Hello @a").await.unwrap();
        room.reply().await;
        runs += 1;
        assert!(runs < 50, "the loop of the two agents is not stopped");
    };
    assert_eq!((runs, &*stopped), (10, "these two agents talk to each other too often"));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_agent_still_posts_but_starts_no_runs() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_AGENT_MESSAGES_PER_MINUTE", "3")]).await).await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    let no_run = json!({ "roomId": room.room, "agentId": "a" });
    for number in 0..3 {
        gateway.complete(&no_run, &format!("n{number}"), "noise").await.unwrap();
        room.reply().await;
    }
    gateway.complete(&no_run, "last", "@b help").await.unwrap();
    let reply = room.reply().await;
    assert_eq!(reply["content"], "@b help");
    let deliveries = room.deliveries("last").await;
    assert_eq!(refused(&deliveries), [("b", "the agent that asks speaks too often")]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_per_day_are_limited() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_TURNS_PER_DAY", "2")]).await).await;
    let mut gateway = room.gateway("g1", &["a"]).await;
    for number in 0..2 {
        room.say("@a go").await;
        let run = gateway.turn().await.unwrap();
        gateway.complete(&run, &format!("r{number}"), "gone").await.unwrap();
        room.reply().await;
    }
    let message = room.say("@a again").await;
    assert_eq!(refused(&room.deliveries(&message).await), [("a", "the turns of this day are used up")]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_per_day_are_limited() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MAX_TOKENS_PER_DAY", "100")]).await).await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    // Usage is known only after a run: the first run stays within the budget of 100 tokens, the second
    // exceeds it.
    for number in 0..2 {
        room.say("@a go").await;
        let run = gateway.turn().await.unwrap();
        let usage = json!({
            "type": "gateway:run_event", "agentId": "a",
            "event": { "kind": "usage", "inputTokens": 50, "outputTokens": 10 },
        });
        gateway.send(&usage).await.unwrap();
        gateway.complete(&run, &format!("r{number}"), "gone").await.unwrap();
        room.reply().await;
    }
    let message = room.say("@a again").await;
    assert_eq!(refused(&room.deliveries(&message).await), [("a", "the tokens of this day are used up")]);
    room.say("@b go").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "b", "each agent has its own budget");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn target_agent_name_starts_a_run_of_the_named_agent() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    room.say("@a begin").await;
    let run = gateway.turn().await.unwrap();
    let frame = json!({
        "type": "gateway:message_complete", "roomId": room.room, "agentId": "a", "messageId": "r",
        "fullContent": "over to you", "conversationId": run["conversationId"], "depth": 0,
        "targetAgentName": "b",
    });
    gateway.send(&frame).await.unwrap();
    let next = gateway.turn().await.unwrap();
    assert_eq!((&next["agentId"], &next["content"]), (&json!("b"), &json!("over to you")));
    assert_eq!((&next["senderType"], &next["depth"]), (&json!("agent"), &json!(1)));
    room.scene.ends_well().await;
}
