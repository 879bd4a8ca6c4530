//! Runs in sessions of real programs, over the broker protocol.

use super::{TestGateway, registered};
use crate::gateway::scenes::Room;
use parlor_testkit::broker::Broker;
use parlor_testkit::gateway_process::{gone, processes};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

/// Starts children in separate sessions, ignores SIGTERM, SIGINT and SIGHUP, and never ends.
const STUBBORN: &str = "
trap '' TERM INT HUP
setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 100; done' \"$0\" &
(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 100; done' \"$0\" &)
echo up
while :; do sleep 100; done
";

async fn wait_for(broker: &mut Broker, kind: &str, session: &str) -> Value {
    let is = |frame: &Value| frame["type"] == kind && frame["sessionId"] == session;
    broker.wait_for(TEST_TIMEOUT, is).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_answers_each_prompt_of_a_session() {
    let room = Room::start().await;
    let hosted = TestGateway::new(room.scene.url(), &[("parrot", "cat")]);
    let _gateway = hosted.gateway_launcher.start().await.unwrap();
    let agent = registered(&room.alice, "parrot").await;
    let mut broker = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
    let requests =
        [("session.start", "id", "The word is heron."), ("session.continue", "sessionId", "Which word?")];
    for (kind, id, prompt) in requests {
        let mut frame = json!({ "type": kind, "agent": agent, "prompt": prompt });
        frame[id] = json!("s1");
        let started = broker.ask(frame).await.unwrap();
        assert_eq!(started["type"], "session.started", "{started}");
        let is_running = |frame: &Value| frame["type"] == "session.status" && frame["status"] == "running";
        let running = broker.wait_for(TEST_TIMEOUT, is_running).await.unwrap();
        assert_eq!(running["promptPreview"], prompt);
        wait_for(&mut broker, "session.text", "s1").await;
        let result = wait_for(&mut broker, "session.result", "s1").await;
        assert_eq!(result["text"].as_str().unwrap().trim(), prompt);
        wait_for(&mut broker, "session.done", "s1").await;
    }
    let history = json!({ "type": "conversation.history", "agent": agent, "sessionId": "s1" });
    let history = broker.ask(history).await.unwrap();
    let entries = history["entries"].as_array().unwrap().iter();
    let texts: Vec<&str> = entries.map(|entry| entry["text"].as_str().unwrap().trim()).collect();
    assert_eq!(texts, ["The word is heron.", "The word is heron.", "Which word?", "Which word?"]);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_the_whole_process_tree_of_the_session() {
    let room = Room::start().await;
    let hosted = TestGateway::new(room.scene.url(), &[("stubborn", STUBBORN)]);
    let _gateway = hosted.gateway_launcher.start().await.unwrap();
    let agent = registered(&room.alice, "stubborn").await;
    let mut broker = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
    let start = json!({ "type": "session.start", "agent": agent, "id": "s1", "prompt": "go" });
    broker.ask(start).await.unwrap();
    wait_for(&mut broker, "session.text", "s1").await;
    let script = hosted.place.path().join("stubborn.sh").display().to_string();
    assert!(processes(&script).len() >= 4, "{:?}", processes(&script));
    let abort = json!({ "type": "session.abort", "sessionId": "s1" });
    assert_eq!(broker.ask(abort).await.unwrap()["type"], "session.aborted");
    gone(&script, TEST_TIMEOUT).await.unwrap();
    let stopped = |frame: &Value| frame["type"] == "session.status" && frame["status"] == "stopped";
    let ended = broker.wait_for(TEST_TIMEOUT, stopped).await.unwrap();
    assert_eq!(ended["reason"], "aborted_by_user");
    let active = broker.ask(json!({ "type": "status.active" })).await.unwrap();
    assert_eq!(active["sessions"], json!([]));
    room.scene.ends_well().await;
}
