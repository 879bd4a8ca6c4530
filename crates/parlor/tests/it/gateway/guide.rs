//! The guide: a newcomer finds somebody to talk to.

use crate::scene::{Scene, following, next};
use parlor_testkit::agentim::Client;
use serde_json::{Value, json};

async fn welcoming() -> Scene {
    Scene::with(&[("PARLOR_WELCOME", "on")]).await
}

/// Waits for the end of a reply.
async fn reply(client: &mut Client) -> Value {
    next(client, "server:message_complete").await["message"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_who_is_new_is_greeted_in_the_room_welcome() {
    let scene = welcoming().await;
    let rooms = scene.admin.get("/api/rooms").await.unwrap().data().unwrap();
    assert_eq!((&rooms[0]["id"], &rooms[0]["name"]), (&json!("welcome"), &json!("welcome")));
    let mut at_admin = following(&scene.admin, "welcome").await;
    let history = scene.admin.history("welcome").await.unwrap();
    let greeting = match history.first() {
        Some(greeting) => greeting.clone(),
        None => reply(&mut at_admin).await,
    };
    assert_eq!((&greeting["senderId"], &greeting["senderType"]), (&json!("guide"), &json!("agent")));
    assert!(greeting["content"].as_str().unwrap().contains("admin"), "{greeting}");
    let ann = scene.person("ann").await;
    let members = ann.get("/api/rooms/welcome/members").await.unwrap().data().unwrap();
    assert_eq!(members.as_array().unwrap().len(), 3, "{members}");
    let greeting = reply(&mut at_admin).await;
    assert!(greeting["content"].as_str().unwrap().contains("ann"), "{greeting}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_answers_piece_by_piece_and_stops_when_told() {
    let scene = welcoming().await;
    let ann = scene.person("ann").await;
    let mut at_ann = following(&ann, "welcome").await;
    at_ann.say_and_wait("welcome", "@guide think and use a tool", "c1").await.unwrap();
    let mut kinds = Vec::new();
    let told = loop {
        let of_turn = |frame: &Value| {
            matches!(frame["type"].as_str(), Some("server:message_chunk" | "server:message_complete"))
        };
        let frame = at_ann.wait_for(parlor_testkit::socket::TEST_TIMEOUT, of_turn).await.unwrap();
        if frame["type"] == "server:message_complete" {
            if kinds.iter().any(|kind| kind == "tool_use") {
                break frame["message"].clone();
            }
            continue;
        }
        kinds.push(frame["chunk"]["type"].as_str().unwrap().to_owned());
    };
    for kind in ["thinking", "text", "tool_use", "tool_result"] {
        assert!(kinds.iter().any(|seen| seen == kind), "no {kind}: {kinds:?}");
    }
    assert_eq!(told["metadata"]["outcome"], "complete");

    at_ann.say_and_wait("welcome", "@guide slow", "c2").await.unwrap();
    next(&mut at_ann, "server:message_chunk").await;
    let stop = json!({ "type": "client:stop_generation", "roomId": "welcome", "agentId": "guide" });
    at_ann.send(&stop).await.unwrap();
    assert_eq!(reply(&mut at_ann).await["metadata"]["outcome"], "cancelled");
    scene.ends_well().await;
}
