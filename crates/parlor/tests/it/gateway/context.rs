//! The earlier messages of the room that the hub sends to a Parlor gateway as `context` of a run.

use super::scenes::Room;
use parlor_testkit::gateway::{Gateway, auth};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn only_a_parlor_gateway_receives_earlier_messages_as_context() {
    let mut room = Room::start().await;
    let mut plain_gateway = room.gateway("g1", &["old"]).await;
    let mut parlor_gateway = Gateway::open(room.alice.url()).await.unwrap();
    let mut auth_frame = auth(room.alice.token(), "g2");
    auth_frame["parlor"] = json!(true);
    parlor_gateway.send(&auth_frame).await.unwrap();
    parlor_gateway.wait_for_type("server:gateway_auth_result").await.unwrap();
    parlor_gateway.register("new", "new").await.unwrap();
    room.add("new").await;

    room.say("@new first").await;
    let run = parlor_gateway.turn().await.unwrap();
    assert_eq!(run.get("context"), None, "the room has no earlier messages: {run}");
    parlor_gateway.complete(&run, "r1", "second").await.unwrap();
    room.reply().await;
    let long = "é".repeat(10_000);
    room.say(&long).await;
    let deleted = room.say("to be deleted").await;
    let path = format!("/api/messages/{deleted}");
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    room.say("@new and @old third").await;

    let run = parlor_gateway.turn().await.unwrap();
    let context = run["context"].as_array().unwrap();
    let received: Vec<(&str, &str, &str)> = context
        .iter()
        .map(|message| (text(message, "senderName"), text(message, "senderType"), text(message, "content")))
        .collect();
    let truncated = format!("{}…", &long[..8192]);
    assert_eq!(
        received,
        [("alice", "user", "@new first"), ("new", "agent", "second"), ("alice", "user", &*truncated)]
    );
    assert!(
        context.iter().all(|message| message["senderId"].is_string() && message["createdAt"].is_string())
    );
    assert_eq!(plain_gateway.turn().await.unwrap().get("context"), None);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn context_holds_the_last_twenty_messages() {
    let mut room = Room::start().await;
    let mut auth_frame = auth(room.alice.token(), "g2");
    auth_frame["parlor"] = json!(true);
    let mut parlor_gateway = Gateway::open(room.alice.url()).await.unwrap();
    parlor_gateway.send(&auth_frame).await.unwrap();
    parlor_gateway.wait_for_type("server:gateway_auth_result").await.unwrap();
    parlor_gateway.register("new", "new").await.unwrap();
    room.add("new").await;
    for number in 0..25 {
        room.say(&format!("number {number}")).await;
    }
    room.say("@new well?").await;
    let run = parlor_gateway.turn().await.unwrap();
    let received: Vec<&str> =
        run["context"].as_array().unwrap().iter().map(|message| text(message, "content")).collect();
    let expected: Vec<String> = (5..25).map(|number| format!("number {number}")).collect();
    assert_eq!(received, expected);
    room.scene.ends_well().await;
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}
