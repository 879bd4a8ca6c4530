//! The guide, the built-in agent of the `welcome` room (setting `PARLOR_WELCOME`).

use crate::scene::{Scene, following, next};
use parlor_testkit::agentim::Client;
use serde_json::{Value, json};

async fn hub_with_guide() -> Scene {
    Scene::with(&[("PARLOR_WELCOME", "on")]).await
}

/// Waits for the next completed reply.
async fn reply(client: &mut Client) -> Value {
    next(client, "server:message_complete").await["message"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_new_user_is_greeted_in_the_welcome_room() {
    let scene = hub_with_guide().await;
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
async fn the_guide_streams_its_reply_and_stops_on_request() {
    let scene = hub_with_guide().await;
    let ann = scene.person("ann").await;
    let mut at_ann = following(&ann, "welcome").await;
    at_ann.say_and_wait("welcome", "@guide think and use a tool", "c1").await.unwrap();
    let mut kinds = Vec::new();
    let completed = loop {
        let chunk_or_complete = |frame: &Value| {
            matches!(frame["type"].as_str(), Some("server:message_chunk" | "server:message_complete"))
        };
        let frame = at_ann.wait_for(parlor_testkit::socket::TEST_TIMEOUT, chunk_or_complete).await.unwrap();
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
    assert_eq!(completed["metadata"]["outcome"], "complete");

    at_ann.say_and_wait("welcome", "@guide slow", "c2").await.unwrap();
    next(&mut at_ann, "server:message_chunk").await;
    let stop = json!({ "type": "client:stop_generation", "roomId": "welcome", "agentId": "guide" });
    at_ann.send(&stop).await.unwrap();
    assert_eq!(reply(&mut at_ann).await["metadata"]["outcome"], "cancelled");
    scene.ends_well().await;
}
