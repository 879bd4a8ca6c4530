//! What an agent is told of the conversation it is asked in.

use super::scenes::Room;
use parlor_testkit::gateway::{Gateway, auth};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_of_ours_is_told_what_was_said_before_and_others_are_not() {
    let mut room = Room::start().await;
    let mut stranger = room.gateway("g1", &["old"]).await;
    let mut ours = Gateway::open(room.alice.url()).await.unwrap();
    let mut hello = auth(room.alice.token(), "g2");
    hello["parlor"] = json!(true);
    ours.send(&hello).await.unwrap();
    ours.wait_for_type("server:gateway_auth_result").await.unwrap();
    ours.register("new", "new").await.unwrap();
    room.add("new").await;

    room.say("@new first").await;
    let turn = ours.turn().await.unwrap();
    assert_eq!(turn.get("context"), None, "nothing was said before: {turn}");
    ours.complete(&turn, "r1", "second").await.unwrap();
    room.reply().await;
    let long = "é".repeat(10_000);
    room.say(&long).await;
    let gone = room.say("to be deleted").await;
    let path = format!("/api/messages/{gone}");
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    room.say("@new and @old third").await;

    let turn = ours.turn().await.unwrap();
    let context = turn["context"].as_array().unwrap();
    let told: Vec<(&str, &str, &str)> = context
        .iter()
        .map(|one| (text(one, "senderName"), text(one, "senderType"), text(one, "content")))
        .collect();
    let cut = format!("{}…", &long[..8192]);
    assert_eq!(told, [("alice", "user", "@new first"), ("new", "agent", "second"), ("alice", "user", &*cut)]);
    assert!(context.iter().all(|one| one["senderId"].is_string() && one["createdAt"].is_string()));
    assert_eq!(stranger.turn().await.unwrap().get("context"), None);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_long_conversation_the_last_twenty_messages_are_told() {
    let mut room = Room::start().await;
    let mut hello = auth(room.alice.token(), "g2");
    hello["parlor"] = json!(true);
    let mut ours = Gateway::open(room.alice.url()).await.unwrap();
    ours.send(&hello).await.unwrap();
    ours.wait_for_type("server:gateway_auth_result").await.unwrap();
    ours.register("new", "new").await.unwrap();
    room.add("new").await;
    for number in 0..25 {
        room.say(&format!("number {number}")).await;
    }
    room.say("@new well?").await;
    let turn = ours.turn().await.unwrap();
    let told: Vec<&str> =
        turn["context"].as_array().unwrap().iter().map(|one| text(one, "content")).collect();
    let expected: Vec<String> = (5..25).map(|number| format!("number {number}")).collect();
    assert_eq!(told, expected);
    room.scene.ends_well().await;
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}
