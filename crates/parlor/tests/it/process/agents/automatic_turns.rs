//! Automatic turns: mail of a session starts a turn of a real program, and each decision is listed.

use std::future::Future;
use std::time::Duration;

use parlor_testkit::broker::Broker;
use parlor_testkit::gateway_process::ClientProcess;
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use super::TestGateway;
use crate::gateway::scenes::Room;
use crate::scene::Scene;

/// Leaves the processor to the hub between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Prints the number of messages in the prompt.
const COUNT: &str = "grep -c '^--- Message'";
/// A batch is complete only when it is full: the debounce is longer than any test.
const FULL_BATCH_OF_9: &str = r#"{"enabled":true,"debounceMs":600000,"maxBatchSize":9}"#;
const AT_ONCE: &str = r#"{"enabled":true,"debounceMs":1}"#;

/// Alice's agent `coder` in a room, with the session `slack` whose replies are posted there.
struct Turns {
    room: Room,
    agent: String,
    /// Connection of the admin, who sends as a source.
    source: Broker,
    alice: Broker,
    _hosted: (TestGateway, ClientProcess),
}

impl Turns {
    async fn start(script: &str, auto_run: &str, settings: &[(&str, &str)]) -> Self {
        let settings = [settings, &[("PARLOR_TURN_RETRY_DELAY", "0")]].concat();
        let room = Room::on(Scene::with(&settings).await).await;
        let path = format!("/api/users/{}", room.alice.user_id());
        room.scene.admin.put(&path, json!({ "hears": ["slack/**"] })).await.unwrap().data().unwrap();
        let hosted = TestGateway::new(room.scene.url(), &[("coder", script)]);
        let gateway = hosted.join(&room, &["coder"]).await;
        let agent = hosted.gateway_launcher.agent("coder").unwrap();
        let source = Broker::connect(room.scene.url(), room.scene.admin.token()).await.unwrap();
        let mut alice = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
        let subscribe = json!({ "type": "msg.session.sub.add", "agentId": agent, "sessionId": "slack",
                                "pattern": "slack/**" });
        alice.ok(subscribe).await.unwrap();
        let auto_run: Value = serde_json::from_str(auto_run).unwrap();
        let body = json!({ "autoRun": auto_run, "roomId": room.room });
        let path = format!("/api/agents/{agent}/sessions/slack");
        room.alice.put(&path, body).await.unwrap().data().unwrap();
        Self { room, agent, source, alice, _hosted: (hosted, gateway) }
    }

    /// Routes messages to the session, without waiting between them.
    async fn burst(&mut self, count: usize) {
        for number in 0..count {
            let routed = self.source.route("bridge", "slack/team", json!({ "n": number })).await.unwrap();
            assert_eq!(routed["deliveredToSessions"][0]["sessionId"], "slack", "{routed}");
        }
    }

    /// Waits for the next reply in the room.
    async fn reply(&mut self) -> String {
        let reply = self.room.reply().await;
        reply["content"].as_str().unwrap().trim().to_owned()
    }

    async fn turns(&self) -> Value {
        let path = format!("/api/turns?agentId={}&limit=200", self.agent);
        self.room.alice.get(&path).await.unwrap().data().unwrap()
    }

    /// Waits until the decision with this name is listed as often, and returns the statistics.
    async fn decided(&self, decision: &str, times: u64) -> Value {
        poll(|| async {
            let turns = self.turns().await;
            (turns["statistics"][decision] == times).then(|| turns["statistics"].clone())
        })
        .await
    }

    async fn mailbox(&self, session: &str) -> Value {
        let path = format!("/api/agents/{}/sessions", self.agent);
        let found = self.room.alice.get(&path).await.unwrap().data().unwrap();
        let sessions = found["sessions"].as_array().unwrap();
        sessions
            .iter()
            .find(|card| card["id"] == session)
            .map(|card| card["mailbox"].clone())
            .unwrap_or_default()
    }
}

/// Polls until a value is found: nothing reports that a decision was stored.
pub async fn poll<T, F: Future<Output = Option<T>>>(find: impl Fn() -> F) -> T {
    poll_for(TEST_TIMEOUT, find).await
}

/// Like [`poll`], with another timeout.
pub async fn poll_for<T, F: Future<Output = Option<T>>>(limit: Duration, find: impl Fn() -> F) -> T {
    let found = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(limit, found).await.expect("the value is found before the timeout")
}

fn decisions(turns: &Value) -> Vec<&str> {
    let items = turns["items"].as_array().unwrap().iter().rev();
    items.map(|turn| turn["decision"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_bursts_become_one_triaged_turn_whose_answer_reaches_a_room() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    endpoint.respond_with(ScriptedResponse::say("YES\nA build failed."));
    let settings = [("PARLOR_TRIAGE_URL", &*endpoint.url.clone()), ("PARLOR_TRIAGE_MODEL", "small")];
    let mut turns = Turns::start(COUNT, FULL_BATCH_OF_9, &settings).await;
    for _ in 0..3 {
        turns.burst(3).await;
    }
    assert_eq!(turns.reply().await, "9", "one turn with all messages");
    let request = endpoint.asked().await.unwrap();
    assert_eq!(request.body["model"], "small");
    let asked = request.body.to_string();
    assert!(asked.contains("slack/team") && asked.contains("YES or NO on the first line"), "{asked}");
    assert_eq!(endpoint.unseen(), 0, "one question for the batch");
    turns.decided("completed", 1).await;
    let listed = turns.turns().await;
    assert_eq!(decisions(&listed), ["debounced", "triaged_yes", "run", "completed"]);
    let completed = &listed["items"][0];
    assert_eq!(completed["messageIds"].as_array().unwrap().len(), 9);
    assert_eq!((&completed["sessionId"], &completed["attempt"]), (&json!("slack"), &json!(1)));
    assert_eq!(turns.mailbox("slack").await["pending"], 0, "{:?}", turns.mailbox("slack").await);
    turns.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_model_down_there_is_one_turn_per_burst_and_the_budget_holds() {
    // Nothing listens on this port: the request fails at once.
    let settings = [("PARLOR_TRIAGE_URL", "http://127.0.0.1:9/v1"), ("PARLOR_TRIAGE_MODEL", "small")];
    let mut turns = Turns::start(COUNT, FULL_BATCH_OF_9, &settings).await;
    // The budget of a session: five turns at once, then one per minute.
    for _ in 0..5 {
        for _ in 0..3 {
            turns.burst(3).await;
        }
        assert_eq!(turns.reply().await, "9");
    }
    turns.burst(9).await;
    let statistics = turns.decided("held", 1).await;
    assert_eq!((&statistics["run"], &statistics["completed"]), (&json!(5), &json!(5)), "{statistics}");
    assert_eq!(turns.mailbox("slack").await["pending"], 9, "held mail stays pending");
    turns.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_of_the_model_acknowledges_the_messages() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    endpoint.respond_with(ScriptedResponse::say("NO\nIt is only chatter."));
    let settings = [("PARLOR_TRIAGE_URL", &*endpoint.url.clone()), ("PARLOR_TRIAGE_MODEL", "small")];
    let mut turns = Turns::start(COUNT, AT_ONCE, &settings).await;
    turns.burst(1).await;
    turns.decided("triaged_no", 1).await;
    let listed = turns.turns().await;
    assert_eq!(decisions(&listed), ["debounced", "triaged_no"]);
    assert_eq!(listed["items"][0]["reason"], "It is only chatter.");
    assert_eq!(turns.mailbox("slack").await["pending"], 0);
    turns.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_turn_is_retried_and_its_messages_are_dead_letters_after_five_attempts() {
    let mut turns = Turns::start("echo broken >&2; exit 3", AT_ONCE, &[]).await;
    turns.burst(1).await;
    let statistics = turns.decided("dead_lettered", 1).await;
    assert_eq!((&statistics["run"], &statistics["retried"]), (&json!(5), &json!(4)), "{statistics}");
    let letters = turns.source.ask(json!({ "type": "msg.unmatched" })).await.unwrap();
    let letter = &letters["messages"][0];
    assert_eq!(letter["_deliveredTo"], format!("{}:slack", turns.agent), "{letters}");
    assert!(!letter["reason"].as_str().unwrap().is_empty(), "{letter}");
    assert_eq!(turns.mailbox("slack").await["pending"], 0);
    turns.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_receives_the_mail_that_no_other_session_handled() {
    let mut turns = Turns::start(COUNT, r#"{"enabled":false}"#, &[]).await;
    let config = json!({ "autoRun": { "enabled": true, "debounceMs": 1 } });
    turns.alice.ok(json!({ "type": "agent.update", "id": turns.agent, "config": config })).await.unwrap();
    turns.burst(1).await;
    let path = format!("agent/{}", turns.agent);
    turns.source.route("bridge", &path, json!({ "text": "hello" })).await.unwrap();
    turns.decided("completed", 1).await;
    let listed = turns.turns().await;
    assert!(listed["items"].as_array().unwrap().iter().all(|turn| turn["sessionId"] == "main"), "{listed}");
    assert_eq!(turns.mailbox("slack").await["pending"], 1, "its own setting disables automatic turns");
    turns.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_triggered_without_triage_over_both_protocols() {
    let mut turns = Turns::start(COUNT, r#"{"enabled":false}"#, &[]).await;
    turns.burst(2).await;
    let trigger = |messages: Value| json!({ "type": "turn.trigger", "agentId": turns.agent, "sessionId": "slack", "messages": messages });
    let triggered = turns.alice.ok(trigger(json!([]))).await.unwrap();
    assert_eq!(
        (&triggered["messages"], &triggered["sessionId"]),
        (&json!(2), &json!("slack")),
        "{triggered}"
    );
    assert_eq!(turns.reply().await, "2");
    turns.decided("completed", 1).await;
    let trigger = |messages: Value| json!({ "type": "turn.trigger", "agentId": turns.agent, "sessionId": "slack", "messages": messages });
    let refused = turns.alice.ask(trigger(json!(["never"]))).await.unwrap();
    assert_eq!(refused["type"], "turn.trigger.error", "{refused}");
    let triggered = turns.alice.ok(trigger(json!([{ "payload": { "text": "new" } }]))).await.unwrap();
    assert_eq!(triggered["messages"], 0);
    assert_eq!(turns.reply().await, "1");

    let body = json!({ "agentId": turns.agent, "sessionId": "slack", "prompt": "--- Message" });
    let started = turns.room.alice.post("/api/turns", body).await.unwrap();
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(turns.reply().await, "1");
    let body = json!({ "agentId": turns.agent, "prompt": "hello" });
    crate::scene::assert_refused(&turns.room.bob.post("/api/turns", body).await.unwrap(), 404);
    assert_eq!(turns.decided("triggered", 3).await["run"], 1);
    turns.room.scene.ends_well().await;
}
