//! Tests that every message is handled by exactly one finished turn, whenever the hub is killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use parlor_testkit::broker::Broker;
use parlor_testkit::hub::{Hub, HubCommand};
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::rest::RestClient;
use parlor_testkit::seed;
use serde_json::{Value, json};

use super::agents::automatic_turns::{poll, poll_for};

const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");
/// Number of kills; more than the default only with `PARLOR_TEST_ROUNDS`.
const KILLS: u32 = 5;
/// Messages before each kill: several batches.
const MESSAGES: u64 = 12;
/// Timeout for the turns that the kills have left.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(200);
/// Takes long enough that most kills hit a turn.
const SCRIPT: &str = "sleep 0.1; echo done";

async fn connect(hub: &Hub, admin: &RestClient) -> Broker {
    Broker::connect(hub.url(), admin.token()).await.unwrap()
}

/// Writes a settings file with the agent `coder`, which runs a shell script. Returns its path.
fn hosting(place: &Path) -> String {
    let (config, program) = (place.join("parlor.toml"), place.join("coder.sh"));
    std::fs::write(&program, SCRIPT).unwrap();
    let command = json!(["sh", program]);
    let settings = format!("[[agent]]\nname = 'coder'\nkind = 'command'\ncommand = {command}\n");
    std::fs::write(&config, settings).unwrap();
    config.to_str().unwrap().to_owned()
}

/// Waits until the hosted agent is online, and returns its id.
async fn online(owner: &RestClient) -> String {
    poll(|| async {
        let agents = owner.get("/api/agents").await.unwrap().data().unwrap();
        let agent = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "coder")?;
        (agent["status"] != "offline").then(|| agent["id"].as_str().unwrap().to_owned())
    })
    .await
}

/// All pages of a list.
async fn all(admin: &RestClient, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = admin.get(&format!("{path}&limit=200{cursor}")).await.unwrap().data().unwrap();
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_handled_by_one_finished_turn_or_is_a_dead_letter() {
    let (data, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The model wakes the agent for every batch: without its decision, the budget would delay the turns.
    let endpoint = ModelEndpoint::start().await.unwrap();
    for _ in 0..10_000 {
        endpoint.respond_with(ScriptedResponse::say("YES"));
    }
    let command = HubCommand::process(PARLOR, data.path())
        .env("PARLOR_TRIAGE_URL", &endpoint.url)
        .env("PARLOR_TRIAGE_MODEL", "small")
        .env("PARLOR_CONFIG", &hosting(place.path()))
        .env("PARLOR_TURN_RETRY_DELAY", "0")
        .env("PARLOR_GATEWAY_GRACE", "1")
        .env("PARLOR_MAX_TURNS_PER_DAY", "100000");
    let mut hub = command.start().await.unwrap();
    let mut admin = hub.admin().await.unwrap();
    let agent = online(&admin).await;
    let config = json!({ "autoRun": { "enabled": true, "debounceMs": 10, "maxBatchSize": 4 } });
    let mut broker = connect(&hub, &admin).await;
    broker.ok(json!({ "type": "agent.update", "id": agent, "config": config })).await.unwrap();
    let (mut rng, mut number) = (seed::rng(), 0);
    for _ in 0..seed::cases(KILLS) {
        // The hub is killed while some messages have no answer yet and turns are queued and active.
        let kill_after = rng.below(MESSAGES);
        for sent in 0..MESSAGES {
            let frame = json!({ "type": "msg.route", "from": "bridge", "path": format!("agent/{agent}"),
                                "payload": { "n": number }, "source": "ci", "externalId": number.to_string() });
            number += 1;
            if sent < kill_after {
                broker.ok(frame).await.unwrap();
            } else {
                broker.send(&frame).await.unwrap();
            }
        }
        // A wait without an event: the kill shall hit any moment of a turn.
        tokio::time::sleep(Duration::from_millis(rng.below(400))).await;
        hub.crash().await.unwrap();
        hub = command.start().await.unwrap();
        admin = admin.at(hub.url());
        broker = connect(&hub, &admin).await;
    }
    online(&admin).await;
    let mailbox = format!("/api/agents/{agent}/sessions");
    poll_for(DRAIN_TIMEOUT, || async {
        let found = admin.get(&mailbox).await.unwrap().data().unwrap();
        let idle = |mailbox: &Value| mailbox["pending"] == 0 && mailbox["leased"] == 0;
        let sessions = found["sessions"].as_array().unwrap();
        (idle(&found["mailbox"]) && sessions.iter().all(|session| idle(&session["mailbox"]))).then_some(())
    })
    .await;

    let mut completed: BTreeMap<String, u32> = BTreeMap::new();
    let mut dead: BTreeMap<String, String> = BTreeMap::new();
    for turn in all(&admin, &format!("/api/turns?agentId={agent}")).await {
        for message in turn["messageIds"].as_array().unwrap() {
            let message = message.as_str().unwrap().to_owned();
            match turn["decision"].as_str().unwrap() {
                "completed" => *completed.entry(message).or_default() += 1,
                "dead_lettered" => {
                    let reason = turn["reason"].as_str().unwrap().to_owned();
                    assert_eq!(dead.insert(message, reason), None);
                }
                "cancelled" | "triaged_no" | "answered" => panic!("{turn}"),
                _ => {}
            }
        }
    }
    let letters = broker.ask(json!({ "type": "msg.unmatched", "options": { "limit": 1000 } })).await.unwrap();
    let letters = letters["messages"].as_array().unwrap();
    assert_eq!(letters.len(), dead.len(), "{letters:?}");
    let history = json!({ "type": "msg.history", "agentId": agent, "options": { "limit": 1000 } });
    let history = broker.ok(history).await.unwrap();
    let stored = history["messages"].as_array().unwrap();
    assert!(!stored.is_empty());
    for message in stored {
        let id = message["id"].as_str().unwrap();
        let handled = completed.remove(id).unwrap_or_default();
        match dead.remove(id) {
            Some(reason) => assert!(handled == 0 && !reason.is_empty(), "{message}"),
            None => assert_eq!(handled, 1, "{message}"),
        }
    }
    assert!(completed.is_empty() && dead.is_empty(), "{completed:?} {dead:?}");
    hub.stop(Duration::from_secs(10)).await.unwrap();
}
