//! Automatic turns: mail of a session starts a turn of a real program, and each decision is listed.

use std::future::Future;
use std::path::Path;

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scene::{Scene, following, next};

/// Prints the number of messages in the prompt.
const COUNT: &str = "grep -c '^--- Message'";
/// A batch is complete only when it is full: the debounce is longer than any test.
const FULL_BATCH_OF_9: &str = r#"{"enabled":true,"debounceMs":600000,"maxBatchSize":9}"#;
const AT_ONCE: &str = r#"{"enabled":true,"debounceMs":1}"#;

/// A hub that hosts the agent `coder` of its admin, with a room for the replies of the session `slack`.
struct Turns {
    scene: Scene,
    agent: String,
    broker: Broker,
    /// Follows the room.
    admin: Client,
    room: String,
    _place: TempDir,
}

impl Turns {
    async fn start(script: &str, auto_run: &str, settings: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let config = hosting(place.path(), script);
        let settings = [settings, &[("PARLOR_CONFIG", &*config), ("PARLOR_TURN_RETRY_DELAY", "0")]].concat();
        let scene = Scene::with(&settings).await;
        let agent = online(&scene.admin).await;
        let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
        let body = json!({ "memberId": agent, "memberType": "agent" });
        let added = scene.admin.post(&format!("/api/rooms/{room}/members"), body).await.unwrap();
        added.data().unwrap();
        let admin = following(&scene.admin, &room).await;
        let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
        let subscribe = json!({ "type": "msg.session.sub.add", "agentId": agent, "sessionId": "slack",
                                "pattern": "slack/**" });
        broker.ok(subscribe).await.unwrap();
        let auto_run: Value = serde_json::from_str(auto_run).unwrap();
        let body = json!({ "autoRun": auto_run, "roomId": room });
        let path = format!("/api/agents/{agent}/sessions/slack");
        scene.admin.put(&path, body).await.unwrap().data().unwrap();
        Self { scene, agent, broker, admin, room, _place: place }
    }

    /// Routes messages to the session, without waiting between them.
    async fn burst(&mut self, count: usize) {
        for number in 0..count {
            let routed = self.broker.route("bridge", "slack/team", json!({ "n": number })).await.unwrap();
            assert_eq!(routed["deliveredToSessions"][0]["sessionId"], "slack", "{routed}");
        }
    }

    /// Waits for the next reply in the room.
    async fn reply(&mut self) -> String {
        let reply = next(&mut self.admin, "server:message_complete").await;
        reply["message"]["content"].as_str().unwrap().trim().to_owned()
    }

    async fn turns(&self) -> Value {
        let path = format!("/api/turns?agentId={}&limit=200", self.agent);
        self.scene.admin.get(&path).await.unwrap().data().unwrap()
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
        let found = self.scene.admin.get(&path).await.unwrap().data().unwrap();
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
    let found = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, found).await.expect("the value is found before the timeout")
}

/// Writes a settings file with the agent `coder`, which runs a shell script. Returns its path.
pub fn hosting(place: &Path, script: &str) -> String {
    let (config, program) = (place.join("parlor.toml"), place.join("coder.sh"));
    std::fs::write(&program, script).unwrap();
    let command = json!(["sh", program]);
    std::fs::write(&config, format!("[[agent]]\nname = 'coder'\nkind = 'command'\ncommand = {command}\n"))
        .unwrap();
    config.to_str().unwrap().to_owned()
}

/// Waits until the hosted agent is online, and returns its id.
pub async fn online(owner: &RestClient) -> String {
    poll(|| async {
        let agents = owner.get("/api/agents").await.unwrap().data().unwrap();
        let agent = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "coder")?;
        (agent["status"] != "offline").then(|| agent["id"].as_str().unwrap().to_owned())
    })
    .await
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
    turns.scene.ends_well().await;
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
    turns.scene.ends_well().await;
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
    turns.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_turn_is_retried_and_its_messages_are_dead_letters_after_five_attempts() {
    let mut turns = Turns::start("echo broken >&2; exit 3", AT_ONCE, &[]).await;
    turns.burst(1).await;
    let statistics = turns.decided("dead_lettered", 1).await;
    assert_eq!((&statistics["run"], &statistics["retried"]), (&json!(5), &json!(4)), "{statistics}");
    let letters = turns.broker.ask(json!({ "type": "msg.unmatched" })).await.unwrap();
    let letter = &letters["messages"][0];
    assert_eq!(letter["_deliveredTo"], format!("{}:slack", turns.agent), "{letters}");
    assert!(!letter["reason"].as_str().unwrap().is_empty(), "{letter}");
    assert_eq!(turns.mailbox("slack").await["pending"], 0);
    turns.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_receives_the_mail_that_no_other_session_handled() {
    let mut turns = Turns::start(COUNT, r#"{"enabled":false}"#, &[]).await;
    let config = json!({ "autoRun": { "enabled": true, "debounceMs": 1 } });
    turns.broker.ok(json!({ "type": "agent.update", "id": turns.agent, "config": config })).await.unwrap();
    turns.burst(1).await;
    let path = format!("agent/{}", turns.agent);
    turns.broker.route("bridge", &path, json!({ "text": "hello" })).await.unwrap();
    turns.decided("completed", 1).await;
    let listed = turns.turns().await;
    assert!(listed["items"].as_array().unwrap().iter().all(|turn| turn["sessionId"] == "main"), "{listed}");
    assert_eq!(turns.mailbox("slack").await["pending"], 1, "its own setting disables automatic turns");
    turns.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_triggered_without_triage_over_both_protocols() {
    let mut turns = Turns::start(COUNT, r#"{"enabled":false}"#, &[]).await;
    turns.burst(2).await;
    let trigger = |messages: Value| json!({ "type": "turn.trigger", "agentId": turns.agent, "sessionId": "slack", "messages": messages });
    let triggered = turns.broker.ok(trigger(json!([]))).await.unwrap();
    assert_eq!(
        (&triggered["messages"], &triggered["sessionId"]),
        (&json!(2), &json!("slack")),
        "{triggered}"
    );
    assert_eq!(turns.reply().await, "2");
    turns.decided("completed", 1).await;
    let trigger = |messages: Value| json!({ "type": "turn.trigger", "agentId": turns.agent, "sessionId": "slack", "messages": messages });
    let refused = turns.broker.ask(trigger(json!(["never"]))).await.unwrap();
    assert_eq!(refused["type"], "turn.trigger.error", "{refused}");
    let triggered = turns.broker.ok(trigger(json!([{ "payload": { "text": "new" } }]))).await.unwrap();
    assert_eq!(triggered["messages"], 0);
    assert_eq!(turns.reply().await, "1");

    let body = json!({ "agentId": turns.agent, "sessionId": "slack", "prompt": "--- Message" });
    let started = turns.scene.admin.post("/api/turns", body).await.unwrap();
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(turns.reply().await, "1");
    let stranger = turns.scene.person("bob").await;
    let body = json!({ "agentId": turns.agent, "prompt": "hello" });
    crate::scene::assert_refused(&stranger.post("/api/turns", body).await.unwrap(), 404);
    assert_eq!(turns.decided("triggered", 3).await["run"], 1);
    assert!(!turns.room.is_empty());
    turns.scene.ends_well().await;
}
