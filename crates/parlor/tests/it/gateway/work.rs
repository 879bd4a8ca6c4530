//! `/api/agents/{id}/runs` and `/rooms`: the latest runs and the rooms of an agent, limited to rooms of the
//! caller.

use super::scenes::Room;
use crate::scene::assert_refused;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

async fn runs(user: &RestClient, query: &str) -> Vec<Value> {
    let answer = user.get(&format!("/api/agents/a/runs{query}")).await.unwrap();
    answer.data().unwrap().as_array().unwrap().clone()
}

async fn rooms(user: &RestClient) -> Vec<Value> {
    let answer = user.get("/api/agents/a/rooms").await.unwrap().data().unwrap();
    answer.as_array().unwrap().iter().map(|room| room["name"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_and_rooms_of_an_agent_are_listed_only_for_members_of_the_room() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a"]).await;
    let trigger = room.say("@a water the fern").await;
    let run = gateway.turn().await.unwrap();
    let usage = json!({
        "type": "gateway:run_event", "agentId": "a",
        "event": { "kind": "usage", "inputTokens": 50, "outputTokens": 10, "costMicros": 1200 },
    });
    gateway.send(&usage).await.unwrap();
    gateway.complete(&run, "r1", "Done.").await.unwrap();
    room.reply().await;

    let study = room.alice.make_room("study", &[]).await.unwrap();
    let member = json!({ "memberId": "a", "memberType": "agent" });
    assert_eq!(room.alice.post(&format!("/api/rooms/{study}/members"), member).await.unwrap().status, 201);
    room.alice.post_message(&study, "@a and here?").await.unwrap();
    let other_run = gateway.turn().await.unwrap();
    assert_eq!(other_run["roomId"], study);

    let listed = runs(&room.alice, "").await;
    assert_eq!(
        (&listed[0]["roomId"], &listed[0]["status"]),
        (&json!(study), &json!("delivered")),
        "{listed:?}"
    );
    let finished = &listed[1];
    assert_eq!(
        (&finished["roomId"], &finished["messageId"]),
        (&json!(room.room), &json!(trigger)),
        "{listed:?}"
    );
    assert_eq!((&finished["status"], &finished["agentName"]), (&json!("answered"), &json!("a")));
    assert_eq!(
        (&finished["inputTokens"], &finished["outputTokens"], &finished["costMicros"]),
        (&json!(50), &json!(10), &json!(1200))
    );
    assert_eq!(listed.len(), 2);
    assert_eq!(runs(&room.alice, "?limit=1").await, listed[..1]);
    assert_eq!(runs(&room.bob, "").await, listed[1..], "Bob is not in the study");
    assert_eq!(rooms(&room.alice).await, ["kitchen", "study"]);
    assert_eq!(rooms(&room.bob).await, ["kitchen"]);

    let cyd = room.scene.person("cyd").await;
    for path in ["/api/agents/a/runs", "/api/agents/a/rooms", "/api/agents/nobody/runs"] {
        assert_refused(&cyd.get(path).await.unwrap(), 404);
    }
    room.scene.ends_well().await;
}
