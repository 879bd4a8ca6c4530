//! What an agent did lately, and where it is: told of the rooms of who asks, and of no others.

use super::scenes::Room;
use crate::scene::assert_refused;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

async fn runs(person: &RestClient, query: &str) -> Vec<Value> {
    let answer = person.get(&format!("/api/agents/a/runs{query}")).await.unwrap();
    answer.data().unwrap().as_array().unwrap().clone()
}

async fn rooms(person: &RestClient) -> Vec<Value> {
    let answer = person.get("/api/agents/a/rooms").await.unwrap().data().unwrap();
    answer.as_array().unwrap().iter().map(|room| room["name"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_did_is_told_to_the_members_of_the_room() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a"]).await;
    let asked = room.say("@a water the fern").await;
    let turn = gateway.turn().await.unwrap();
    let usage = json!({
        "type": "gateway:run_event", "agentId": "a",
        "event": { "kind": "usage", "inputTokens": 50, "outputTokens": 10, "costMicros": 1200 },
    });
    gateway.send(&usage).await.unwrap();
    gateway.complete(&turn, "r1", "Done.").await.unwrap();
    room.reply().await;

    let study = room.alice.make_room("study", &[]).await.unwrap();
    let bring = json!({ "memberId": "a", "memberType": "agent" });
    assert_eq!(room.alice.post(&format!("/api/rooms/{study}/members"), bring).await.unwrap().status, 201);
    room.alice.post_message(&study, "@a and here?").await.unwrap();
    let other = gateway.turn().await.unwrap();
    assert_eq!(other["roomId"], study);

    let seen = runs(&room.alice, "").await;
    assert_eq!((&seen[0]["roomId"], &seen[0]["status"]), (&json!(study), &json!("delivered")), "{seen:?}");
    let done = &seen[1];
    assert_eq!((&done["roomId"], &done["messageId"]), (&json!(room.room), &json!(asked)), "{seen:?}");
    assert_eq!((&done["status"], &done["agentName"]), (&json!("answered"), &json!("a")));
    assert_eq!(
        (&done["inputTokens"], &done["outputTokens"], &done["costMicros"]),
        (&json!(50), &json!(10), &json!(1200))
    );
    assert_eq!(seen.len(), 2);
    assert_eq!(runs(&room.alice, "?limit=1").await, seen[..1]);
    assert_eq!(runs(&room.bob, "").await, seen[1..], "Bob is not in the study");
    assert_eq!(rooms(&room.alice).await, ["kitchen", "study"]);
    assert_eq!(rooms(&room.bob).await, ["kitchen"]);

    let cyd = room.scene.person("cyd").await;
    for path in ["/api/agents/a/runs", "/api/agents/a/rooms", "/api/agents/nobody/runs"] {
        assert_refused(&cyd.get(path).await.unwrap(), 404);
    }
    room.scene.ends_well().await;
}
