//! Service agents: who may define them, how their API key is protected, and that changes apply at once. Their
//! replies are tested in `process/agents/model.rs`.

use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, bytes_in, contains, next, parlor_command};
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

pub const CANARY: &str = "sk-canary-of-a-service-0123";

/// Setting that allows this endpoint although it is on loopback.
pub fn allowed(endpoint: &ModelEndpoint) -> (&'static str, &str) {
    ("PARLOR_ALLOWED_ENDPOINTS", endpoint.url.trim_start_matches("http://"))
}

/// Creates the service agent `Sage` with these additional config fields and waits until it is online.
pub async fn make_service_agent(admin: &RestClient, url: &str, extra: Value) -> Value {
    make_named(admin, "Sage", url, extra).await
}

async fn make_named(admin: &RestClient, name: &str, url: &str, extra: Value) -> Value {
    let mut config = json!({ "baseUrl": url, "apiKey": CANARY, "model": "small" });
    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let body = json!({ "name": name, "description": "knows things", "config": config });
    let answer = admin.post("/api/service-agents", body).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    let created = answer.data().unwrap();
    wait_for_status(admin, created["id"].as_str().unwrap(), "online").await;
    created
}

fn agent_path(agent: &Value) -> String {
    format!("/api/service-agents/{}", agent["id"].as_str().unwrap())
}

/// Waits until the agent has this status.
async fn wait_for_status(admin: &RestClient, agent: &str, status: &str) {
    let poll = async {
        while admin.get(&format!("/api/agents/{agent}")).await.unwrap().data().unwrap()["status"] != status {}
    };
    tokio::time::timeout(TEST_TIMEOUT, poll).await.unwrap_or_else(|_| panic!("{agent} was never {status}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_define_service_agents_and_all_users_add_them_to_rooms() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let mut room = Room::on(Scene::with(&[allowed(&endpoint)]).await).await;
    let admin = room.scene.admin.clone();
    let sage = make_service_agent(&admin, &endpoint.url, json!({ "maxTokens": 9 })).await;
    let expected = json!({ "baseUrl": format!("{}/", endpoint.url), "apiKey": "********", "model": "small", "maxTokens": 9 });
    assert_eq!(sage["config"], expected);
    for (field, value) in [
        ("name", "Sage"),
        ("type", "openai-chat"),
        ("category", "chat"),
        ("description", "knows things"),
        ("status", "active"),
        ("createdById", admin.user_id()),
    ] {
        assert_eq!(sage[field], value, "{field}");
    }
    assert_eq!(admin.get("/api/service-agents").await.unwrap().data().unwrap(), json!([sage]));
    assert_eq!(admin.get(&agent_path(&sage)).await.unwrap().data().unwrap(), sage);
    let providers = admin.get("/api/service-agents/providers").await.unwrap().data().unwrap();
    assert_eq!(
        (&providers[0]["type"], &providers[1]["type"]),
        (&json!("openai-chat"), &json!("anthropic-chat"))
    );
    assert_eq!(providers[0]["configSchema"]["required"], json!(["model"]));

    // Other users see a normal agent and nothing of its config.
    let body = json!({ "name": "Mine", "config": { "baseUrl": endpoint.url, "model": "small" } });
    for user in [&room.alice, &room.bob] {
        assert_refused(&user.get("/api/service-agents").await.unwrap(), 403);
        assert_refused(&user.get("/api/service-agents/providers").await.unwrap(), 403);
        assert_refused(&user.post("/api/service-agents", body.clone()).await.unwrap(), 403);
        for path in [agent_path(&sage), "/api/service-agents/never".to_owned()] {
            assert_refused(&user.get(&path).await.unwrap(), 403);
            assert_refused(&user.put(&path, json!({ "name": "x" })).await.unwrap(), 403);
            assert_refused(&user.delete(&path).await.unwrap(), 403);
            assert_refused(&user.post(&format!("{path}/validate"), json!({})).await.unwrap(), 403);
        }
    }
    let shared = room.bob.get("/api/agents/shared").await.unwrap().data().unwrap();
    assert_eq!((&shared[0]["id"], &shared[0]["model"]), (&sage["id"], &json!("small")));
    assert!(!shared.to_string().contains(&endpoint.url), "{shared}");
    room.add(sage["id"].as_str().unwrap()).await;
    room.say("@sage hello").await;
    assert_eq!(room.reply().await["content"], "Hello from small");

    // Unknown ids and agents that are not service agents yield 404.
    for path in ["/api/service-agents/never", "/api/service-agents/guide"] {
        assert_refused(&admin.get(path).await.unwrap(), 404);
        assert_refused(&admin.put(path, json!({ "name": "x" })).await.unwrap(), 404);
        assert_refused(&admin.delete(path).await.unwrap(), 404);
    }
    for (field, body) in [
        ("name", json!({ "config": { "model": "m" } })),
        ("config.model", json!({ "name": "n" })),
        ("config.maxTokens", json!({ "name": "n", "config": { "model": "m", "maxTokens": 0 } })),
        ("config.apiKey", json!({ "name": "n", "config": { "model": "m", "apiKey": "a\nb" } })),
        ("type", json!({ "name": "n", "type": "perplexity", "config": { "model": "m" } })),
        ("status", json!({ "name": "n", "status": "error", "config": { "model": "m" } })),
    ] {
        let answer = admin.post("/api/service-agents", body.clone()).await.unwrap();
        assert_refused(&answer, 400);
        assert!(answer.body.to_string().contains(&format!("\"{field}\"")), "{body}: {answer:?}");
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_service_agent_is_used_and_never_returned() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let settings = [allowed(&endpoint), ("PARLOR_LOG_LEVEL", "trace")];
    let mut room = Room::on(Scene::with(&settings).await).await;
    let sage = make_service_agent(&room.scene.admin, &endpoint.url, json!({})).await;
    room.add(sage["id"].as_str().unwrap()).await;
    let validate = format!("{}/validate", agent_path(&sage));
    let valid = room.scene.admin.post(&validate, json!({})).await.unwrap().data().unwrap();
    assert_eq!(valid, json!({ "valid": true }));
    let bearer = format!("Bearer {CANARY}");
    assert_eq!(endpoint.asked().await.unwrap().headers["authorization"], bearer);

    // The mask `********` keeps the stored key, but a new base URL requires the key again.
    let change =
        json!({ "config": { "apiKey": "********", "baseUrl": sage["config"]["baseUrl"], "model": "other" } });
    assert_eq!(room.scene.admin.put(&agent_path(&sage), change).await.unwrap().status, 200);
    for config in [json!({}), json!({ "apiKey": "********" })] {
        let mut config = config;
        config["baseUrl"] = json!("https://model.example/v1");
        let answer = room.scene.admin.put(&agent_path(&sage), json!({ "config": config })).await.unwrap();
        assert_refused(&answer, 400);
        assert!(answer.body.to_string().contains("config.apiKey"), "{answer:?}");
    }

    // The encrypted key survives a restart.
    room.scene.crash_and_restart().await;
    let admin = room.scene.admin.clone();
    wait_for_status(&admin, sage["id"].as_str().unwrap(), "online").await;
    let mut at_alice = crate::scene::following(&room.alice.at(room.scene.url()), &room.room).await;
    at_alice.say_and_wait(&room.room, "@Sage still there?", "1").await.unwrap();
    let reply = next(&mut at_alice, "server:message_complete").await;
    assert_eq!(reply["message"]["content"], "Hello from other");
    assert_eq!(endpoint.asked().await.unwrap().headers["authorization"], bearer);
    endpoint.respond_with(ScriptedResponse::status(401, &format!("no such key: {CANARY}")));
    let answer = admin.post(&validate, json!({})).await.unwrap().data().unwrap();
    let error = "the model's server does not accept the key: no such key: …";
    assert_eq!(answer, json!({ "valid": false, "error": error }));

    assert_eq!(admin.delete(&agent_path(&sage)).await.unwrap().status, 200);
    let audit = admin.get("/api/audit?limit=100").await.unwrap().data().unwrap().to_string();
    for action in ["service_agent_created", "service_agent_changed", "service_agent_removed"] {
        assert!(audit.contains(action), "{audit}");
    }
    let copy = tempfile::tempdir().unwrap();
    let (file, data) = (copy.path().join("copy.parlor"), room.scene.data().to_str().unwrap());
    let backup = ["backup", file.to_str().unwrap(), "--data", data];
    let output = parlor_command().args(backup).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = format!("{}{output:?}", room.scene.hub.log());
    assert!(!audit.contains(CANARY), "the key is in the audit log");
    assert!(!contains(&bytes_in(room.scene.data()), CANARY), "the key is in the data directory");
    assert!(!contains(&bytes_in(copy.path()), CANARY), "the key is in the backup");
    assert_eq!(log.lines().find(|line| line.contains(CANARY)), None, "the key is in the log");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_applies_at_once_and_does_not_affect_other_service_agents() {
    let (mut first, mut second) =
        (ModelEndpoint::start().await.unwrap(), ModelEndpoint::start().await.unwrap());
    let endpoints = format!("{},{}", allowed(&first).1, allowed(&second).1);
    let mut room = Room::on(Scene::with(&[("PARLOR_ALLOWED_ENDPOINTS", &endpoints)]).await).await;
    let admin = room.scene.admin.clone();
    let sage = make_service_agent(&admin, &first.url, json!({})).await;
    let bard = make_named(&admin, "Bard", &first.url, json!({})).await;
    let (sage_id, bard_id) = (sage["id"].as_str().unwrap(), bard["id"].as_str().unwrap());
    for agent in [sage_id, bard_id] {
        room.add(agent).await;
    }

    let resume = Arc::new(Notify::new());
    first.respond_with(ScriptedResponse::Wait("Once ".into(), resume.clone(), "upon a time.".into()));
    room.say("@Bard sing").await;
    next(&mut room.at_alice, "server:message_chunk").await;
    first.asked().await.unwrap();
    let config = json!({ "baseUrl": second.url, "apiKey": null, "model": "large" });
    let change = json!({ "name": "Oracle", "type": "anthropic-chat", "config": config });
    let changed = admin.put(&agent_path(&sage), change).await.unwrap().data().unwrap();
    assert_eq!((&changed["name"], &changed["type"]), (&json!("Oracle"), &json!("anthropic-chat")));
    assert_eq!(changed["config"].get("apiKey"), None);
    room.say("@Oracle who are you?").await;
    assert_eq!(room.reply().await["content"], "Hello from large");
    let request = second.asked().await.unwrap();
    assert_eq!((&*request.path, request.headers.get("x-api-key")), ("/v1/messages", None));
    resume.notify_one();
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], crate::process::agents::outcome(&reply)),
        (&json!("Once upon a time."), "complete")
    );
    assert_eq!(first.unseen(), 0, "the endpoint received one request");

    // An inactive service agent is offline, and online again when it is activated.
    admin.put(&agent_path(&sage), json!({ "status": "inactive" })).await.unwrap().data().unwrap();
    wait_for_status(&admin, sage_id, "offline").await;
    wait_for_status(&admin, bard_id, "online").await;
    admin.put(&agent_path(&sage), json!({ "status": "active" })).await.unwrap().data().unwrap();
    wait_for_status(&admin, sage_id, "online").await;

    // A deleted service agent posts nothing more and is a member of no room.
    second.respond_with(ScriptedResponse::Stall("I am ".into()));
    room.say("@Oracle speak").await;
    next(&mut room.at_alice, "server:message_chunk").await;
    assert_eq!(admin.delete(&agent_path(&sage)).await.unwrap().status, 200);
    assert_refused(&admin.get(&agent_path(&sage)).await.unwrap(), 404);
    assert_refused(&admin.get(&format!("/api/agents/{sage_id}")).await.unwrap(), 404);
    let members = room.alice.get(&format!("/api/rooms/{}/members", room.room)).await.unwrap();
    assert!(!members.data().unwrap().to_string().contains(sage_id));
    room.say("@Bard and you?").await;
    assert_eq!(room.reply().await["content"], "Hello from small");
    // Deleting the agent itself also deletes its service-agent config.
    assert_eq!(admin.delete(&format!("/api/agents/{bard_id}")).await.unwrap().status, 200);
    assert_eq!(admin.get("/api/service-agents").await.unwrap().data().unwrap(), json!([]));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_agents_on_private_networks_are_refused_unless_allowed() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let mut scene = Scene::with(&[allowed(&endpoint)]).await;
    let sage = make_service_agent(&scene.admin, &endpoint.url, json!({})).await;
    for url in [
        "http://localhost:11434/v1",
        "http://169.254.169.254/latest",
        "http://[::ffff:10.0.0.1]/",
        "file:///x",
    ] {
        let body = json!({ "name": "n", "config": { "baseUrl": url, "model": "m" } });
        let answer = scene.admin.post("/api/service-agents", body).await.unwrap();
        assert_refused(&answer, 400);
        assert!(answer.body.to_string().contains("config.baseUrl"), "{url}: {answer:?}");
        let change = json!({ "config": { "baseUrl": url, "apiKey": "k" } });
        assert_refused(&scene.admin.put(&agent_path(&sage), change).await.unwrap(), 400);
    }
    // An endpoint that was allowed at creation may be disallowed later.
    scene.command = scene.command.clone().env("PARLOR_ALLOWED_ENDPOINTS", "localhost:1");
    scene.crash_and_restart().await;
    let answer = scene.admin.post(&format!("{}/validate", agent_path(&sage)), json!({})).await.unwrap();
    let error = "its address is not allowed";
    assert_eq!(answer.data().unwrap(), json!({ "valid": false, "error": error }));
    wait_for_status(&scene.admin, sage["id"].as_str().unwrap(), "offline").await;
    assert_eq!(endpoint.unseen(), 0);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn daily_budgets_apply_to_service_agents() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    // The stub reports 32 tokens per answer.
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_MAX_TOKENS_PER_DAY", "30")]).await;
    let mut room = Room::on(scene).await;
    let sage = make_service_agent(&room.scene.admin, &endpoint.url, json!({})).await;
    room.add(sage["id"].as_str().unwrap()).await;
    room.say("@Sage hello").await;
    room.reply().await;
    let message = room.say("@Sage again").await;
    assert_eq!(room.deliveries(&message).await[0]["reason"], "the tokens of this day are used up");
    assert_eq!(endpoint.unseen(), 1);
    room.scene.ends_well().await;
}
