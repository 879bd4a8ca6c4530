//! A database written before plans, questions and answers were stored as types of the model: the hub migrates
//! it and answers as the hub that wrote it did.
//!
//! `tests/fixtures/plans-and-questions/` has the database and the recorded answers; its README says how they
//! were made.

use crate::scene::PASSWORD;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::hub::{Hub, HubCommand, Topology};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/plans-and-questions");

/// Starts a hub on a copy of the database, at the time at which the hub that wrote it stopped.
async fn start(data: &Path, recorded: &Value) -> Hub {
    std::fs::copy(Path::new(FIXTURE).join("parlor.db"), data.join("parlor.db")).unwrap();
    let command = HubCommand::new(Topology::InProcess, data);
    command.clock.set(recorded["stopped_at"].as_i64().unwrap());
    command.start().await.unwrap()
}

/// Sends a recorded request and returns the status and the body.
async fn answer(hub: &Hub, request: &Value) -> (u16, String) {
    let user = user(hub, request).await;
    let method: Method = request["method"].as_str().unwrap().parse().unwrap();
    let mut sent = user.request(method, request["path"].as_str().unwrap());
    if let Some(body) = request.get("body") {
        sent = sent.json(body);
    }
    let response = sent.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn user(hub: &Hub, request: &Value) -> RestClient {
    hub.sign_in(request["user"].as_str().unwrap(), PASSWORD).await.unwrap()
}

/// Returns every event since the recorded position, up to the expiry of the questions that were open when the
/// hub stopped. Events after the recorded last message have the time of this start, which is removed.
async fn events(hub: &Hub, recorded: &Value) -> Vec<String> {
    let user = user(hub, recorded).await;
    let mut stream = EventReader::open(&user, "", recorded["since"].as_str()).await.unwrap();
    let open = format!("ask-user-{}", recorded["open_question"].as_str().unwrap());
    let mut events = stream.until(|event| event["text"] == "the end").await.unwrap();
    let rest = stream.until(|event| event["id"] == open && event["phase"] == "resolved").await.unwrap();
    events.extend(rest.into_iter().map(|mut event| {
        event.as_object_mut().unwrap().remove("ts_ms");
        event
    }));
    events.iter().map(Value::to_string).collect()
}

/// Returns the decisions that a gateway receives when it registers its agents again, and the prompt that the
/// approval of an edited plan sends to the agent.
async fn gateway_frames(hub: &Hub) -> Vec<String> {
    let alice = hub.sign_in("alice", PASSWORD).await.unwrap();
    let mut gateway = Gateway::connect(&alice, "g1").await.unwrap();
    let mut frames = Vec::new();
    for (agent, kind) in
        [("asker", "server:question_response"), ("tooler", "server:permission_response"), ("edited", "")]
    {
        gateway
            .send(&json!({ "type": "gateway:register_agent", "agent": {
            "id": agent, "name": agent, "type": "claude-code" } }))
            .await
            .unwrap();
        if !kind.is_empty() {
            frames.push(gateway.wait_for_type(kind).await.unwrap().to_string());
        }
    }
    let approved = alice.post("/api/plan/approve", json!({ "agent_id": "edited" })).await.unwrap();
    assert_eq!(approved.status, 200);
    let prompt =
        gateway.wait_for(TEST_TIMEOUT, |frame| frame["type"] == "server:send_to_agent").await.unwrap();
    frames.push(prompt["content"].to_string());
    frames
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_are_those_of_the_hub_that_wrote_the_database() {
    let recorded = std::fs::read_to_string(Path::new(FIXTURE).join("answers.json")).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    let data = tempfile::tempdir().unwrap();
    let mut hub = start(data.path(), &recorded).await;
    for request in recorded["requests"].as_array().unwrap() {
        let (status, body) = answer(&hub, request).await;
        assert_eq!(status, request["status"], "{request}: {body}");
        assert_eq!(body, request["answer"].as_str().unwrap(), "{request}");
    }
    assert_eq!(json!(events(&hub, &recorded["events"]).await), recorded["events"]["events"]);
    assert_eq!(json!(gateway_frames(&hub).await), recorded["gateway"]);
    hub.stop(Duration::from_secs(10)).await.unwrap();
    assert!(!hub.log().contains("panicked"));
}
