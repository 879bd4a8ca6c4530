//! Routers, the model endpoints that the hub calls for triage: who may create and use them, how their API key
//! is protected, and how their answers select agents.

use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, bytes_in, contains};
use crate::service_agents::{allowed, make_service_agent};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

const CANARY: &str = "sk-canary-of-a-router-0123";

/// A hub that allows this endpoint, with trace logging so that a leaked key would be found in the log.
async fn scene(endpoint: &ModelEndpoint) -> Scene {
    Scene::with(&[allowed(endpoint), ("PARLOR_LOG_LEVEL", "trace")]).await
}

async fn make_router(user: &RestClient, url: &str, extra: Value) -> Value {
    let mut body = json!({ "name": "picker", "llmBaseUrl": url, "llmApiKey": CANARY, "llmModel": "small" });
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let answer = user.post("/api/routers", body).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.data().unwrap()
}

fn router_path(router: &Value) -> String {
    format!("/api/routers/{}", router["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_router_is_private_to_its_creator_and_its_key_is_never_returned() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let mut scene = scene(&endpoint).await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let own = make_router(&alice, &endpoint.url, json!({})).await;
    assert_eq!((&own["llmApiKey"], &own["scope"]), (&json!("********"), &json!("personal")));
    let global = json!({ "scope": "global" });
    let body = json!({ "name": "n", "scope": "global", "llmBaseUrl": endpoint.url, "llmModel": "m" });
    assert_refused(&alice.post("/api/routers", body).await.unwrap(), 403);
    let shared = make_router(&scene.admin, &endpoint.url, global.clone()).await;

    let router_ids = async |user: &RestClient| -> Vec<Value> {
        let list = user.get("/api/routers").await.unwrap().data().unwrap();
        list.as_array().unwrap().iter().map(|router| router["id"].clone()).collect()
    };
    assert_eq!(router_ids(&alice).await, [own["id"].clone(), shared["id"].clone()]);
    assert_eq!(router_ids(&bob).await, [shared["id"].clone()]);
    // A router of another user and an unknown one yield the same refusal.
    for path in [router_path(&own), "/api/routers/never".to_owned()] {
        assert_refused(&bob.get(&path).await.unwrap(), 404);
        assert_refused(&bob.put(&path, json!({ "name": "x" })).await.unwrap(), 404);
        assert_refused(&bob.delete(&path).await.unwrap(), 404);
        assert_refused(&bob.post(&format!("{path}/test"), json!({})).await.unwrap(), 404);
    }
    assert_refused(&bob.put(&router_path(&shared), json!({ "name": "x" })).await.unwrap(), 404);
    assert_refused(&alice.put(&router_path(&own), global).await.unwrap(), 403);
    assert_eq!(endpoint.unseen(), 0);

    // The key is sent to its own base URL only: changing the URL requires the key again.
    let test = format!("{}/test", router_path(&own));
    let answer = alice.post(&test, json!({})).await.unwrap().data().unwrap();
    assert_eq!(answer, json!({ "success": true }));
    assert_eq!(endpoint.asked().await.unwrap().headers["authorization"], format!("Bearer {CANARY}"));
    let other_url = json!({ "llmBaseUrl": "https://model.example/v1" });
    assert_refused(&alice.put(&router_path(&own), other_url).await.unwrap(), 400);
    let renamed = alice
        .put(&router_path(&own), json!({ "name": "other", "llmBaseUrl": own["llmBaseUrl"] }))
        .await
        .unwrap();
    assert_eq!(renamed.data().unwrap()["name"], "other");

    // The encrypted key survives a restart.
    scene.crash_and_restart().await;
    let alice = alice.at(scene.url());
    endpoint.respond_with(ScriptedResponse::status(401, &format!("no such key: {CANARY}")));
    let answer = alice.post(&test, json!({})).await.unwrap().data().unwrap();
    let error = "the model's server does not accept the key: no such key: …";
    assert_eq!(answer, json!({ "success": false, "error": error }));
    assert_eq!(endpoint.asked().await.unwrap().headers["authorization"], format!("Bearer {CANARY}"));

    let audit =
        scene.admin.at(scene.url()).get("/api/audit?limit=100").await.unwrap().data().unwrap().to_string();
    assert!(audit.contains("router_created") && audit.contains("router_changed"), "{audit}");
    let log = scene.hub.log();
    assert!(!audit.contains(CANARY), "the key is in the audit log");
    assert!(!contains(&bytes_in(scene.data()), CANARY), "the key is in the data directory");
    assert_eq!(log.lines().find(|line| line.contains(CANARY)), None, "the key is in the log");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routers_on_private_networks_are_refused_unless_allowed() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::start().await;
    let alice = scene.person("alice").await;
    for url in [
        endpoint.url.as_str(),
        "http://localhost:11434/v1",
        "http://169.254.169.254/latest",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "https://user:word@model.example/",
        "nonsense",
    ] {
        let body = json!({ "name": "n", "llmBaseUrl": url, "llmModel": "m" });
        let answer = alice.post("/api/routers", body).await.unwrap();
        assert_refused(&answer, 400);
        assert!(answer.body.to_string().contains("llmBaseUrl"), "{url}: {answer:?}");
    }
    assert_eq!(alice.get("/api/routers").await.unwrap().data().unwrap(), json!([]));
    assert_eq!(endpoint.unseen(), 0);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn router_tests_are_limited_to_five_per_minute() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_LIMITS", "on")]).await;
    let alice = scene.person("alice").await;
    let test = format!("{}/test", router_path(&make_router(&alice, &endpoint.url, json!({})).await));
    for _ in 0..5 {
        assert_eq!(alice.post(&test, json!({})).await.unwrap().status, 200);
    }
    assert_refused(&alice.post(&test, json!({})).await.unwrap(), 429);
    scene.ends_well().await;
}

/// A room of Alice with the policy `triage` and these agents. `router` is the URL of its model endpoint.
async fn room_with_triage(scene: Scene, router: Option<&str>, agents: &[&str]) -> (Room, Gateway) {
    let room = Room::on(scene).await;
    let gateway = room.gateway("g1", agents).await;
    let mut changes = json!({ "policy": "triage" });
    if let Some(url) = router {
        changes["routerId"] = make_router(&room.alice, url, json!({})).await["id"].clone();
    }
    let changed = room.alice.put(&format!("/api/rooms/{}", room.room), changes.clone()).await.unwrap();
    assert_eq!(changed.status, 200, "{changed:?}");
    if router.is_some() {
        assert_eq!(changed.data().unwrap()["routerId"], changes["routerId"]);
    }
    (room, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_router_of_a_room_picks_the_answering_agents_with_one_request() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = scene(&endpoint).await;
    let (mut room, mut gateway) =
        room_with_triage(scene, Some(&endpoint.url), &["anna", "bert", "carl"]).await;

    endpoint.respond_with(ScriptedResponse::say("YES 2"));
    room.say("who can bake?").await;
    let run = gateway.turn().await.unwrap();
    assert_eq!((&run["agentId"], &run["routingMode"]), (&json!("bert"), &json!("broadcast")));
    let request = endpoint.asked().await.unwrap().body;
    let question: Value = serde_json::from_str(request["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(question["message"], json!({ "from": "alice", "text": "who can bake?" }));
    assert!(
        !request["messages"][0]["content"].as_str().unwrap().contains("bake"),
        "the message is data and not part of the instructions"
    );
    gateway.complete(&run, "r1", "I can").await.unwrap();
    room.reply().await;

    endpoint.respond_with(ScriptedResponse::say("NO"));
    let ignored = room.say("never mind").await;
    // An addressed message needs no triage.
    let addressed = room.say("@anna, @bert and @carl, hello").await;
    for _ in 0..3 {
        assert_eq!(gateway.turn().await.unwrap()["messageId"], addressed);
    }
    // Triage decides the messages of a room in order, so the earlier message has been decided.
    let deliveries = room.deliveries(&ignored).await;
    assert!(
        deliveries.iter().all(|delivery| delivery["reason"] == "it was not for this agent"),
        "{deliveries:?}"
    );
    assert_eq!(endpoint.unseen(), 1, "one triage request per message");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_agents_answer_when_triage_fails() {
    for response in [
        ScriptedResponse::status(500, "broken"),
        ScriptedResponse::say("hm, maybe"),
        ScriptedResponse::Garbage,
        ScriptedResponse::BreakOff("YES 1".into()),
    ] {
        let endpoint = ModelEndpoint::start().await.unwrap();
        let scene = scene(&endpoint).await;
        let (mut room, mut gateway) = room_with_triage(scene, Some(&endpoint.url), &["anna", "bert"]).await;
        endpoint.respond_with(response);
        room.say("hello there").await;
        let mut agents = vec![gateway.turn().await.unwrap()["agentId"].clone()];
        agents.push(gateway.turn().await.unwrap()["agentId"].clone());
        agents.sort_by_key(Value::to_string);
        assert_eq!(agents, ["anna", "bert"]);
        room.scene.ends_well().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_agents_answer_when_triage_times_out() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_TRIAGE_TIMEOUT", "1")]).await;
    for response in [ScriptedResponse::Hang, ScriptedResponse::Stall("YES ".into())] {
        endpoint.respond_with(response);
    }
    let (mut room, mut gateway) = room_with_triage(scene, Some(&endpoint.url), &["anna"]).await;
    for number in 0..2 {
        let message = room.say("is anybody there?").await;
        let run = gateway.turn().await.unwrap();
        assert_eq!((&run["agentId"], &run["messageId"]), (&json!("anna"), &json!(message)));
        gateway.complete(&run, &format!("r{number}"), "I am").await.unwrap();
        room.reply().await;
    }
    assert_eq!(endpoint.unseen(), 2);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_after_failed_triage_count_against_the_daily_budget() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_MAX_TURNS_PER_DAY", "1")]).await;
    for _ in 0..2 {
        endpoint.respond_with(ScriptedResponse::status(500, "broken"));
    }
    let (mut room, mut gateway) = room_with_triage(scene, Some(&endpoint.url), &["anna"]).await;
    room.say("is anybody there?").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, "r1", "I am").await.unwrap();
    room.reply().await;
    let message = room.say("and now?").await;
    assert_eq!(room.deliveries(&message).await[0]["reason"], "the turns of this day are used up");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn triage_picks_among_service_agents() {
    let (mut triage_model, mut agent_model) =
        (ModelEndpoint::start().await.unwrap(), ModelEndpoint::start().await.unwrap());
    let endpoints = [&triage_model, &agent_model].map(|endpoint| allowed(endpoint).1).join(",");
    let mut room = Room::on(Scene::with(&[("PARLOR_ALLOWED_ENDPOINTS", &endpoints)]).await).await;
    let sage = make_service_agent(&room.scene.admin, &agent_model.url, json!({})).await;
    room.add(sage["id"].as_str().unwrap()).await;
    let router = make_router(&room.alice, &triage_model.url, json!({})).await;
    let changes = json!({ "policy": "triage", "routerId": router["id"] });
    room.alice.put(&format!("/api/rooms/{}", room.room), changes).await.unwrap().data().unwrap();
    triage_model.respond_with(ScriptedResponse::say("NO")).respond_with(ScriptedResponse::say("YES 1"));
    let ignored = room.say("I am off").await;
    let request = triage_model.asked().await.unwrap().body;
    let question: Value = serde_json::from_str(request["messages"][1]["content"].as_str().unwrap()).unwrap();
    let agent = &question["agents"][0];
    assert_eq!((&agent["name"], &agent["description"]), (&json!("Sage"), &json!("knows things")));
    room.say("who knows the way?").await;
    assert_eq!(room.reply().await["content"], "Hello from small");
    assert_eq!(room.deliveries(&ignored).await[0]["reason"], "it was not for this agent");
    assert_eq!(agent_model.unseen(), 1);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_configures_a_triage_model_for_all_rooms() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let settings = [
        ("PARLOR_TRIAGE_URL", endpoint.url.as_str()),
        ("PARLOR_TRIAGE_MODEL", "small"),
        ("PARLOR_TRIAGE_KEY", CANARY),
        ("PARLOR_TRIAGE_API", "anthropic"),
        ("PARLOR_LOG_LEVEL", "trace"),
    ];
    let (mut room, mut gateway) =
        room_with_triage(Scene::with(&settings).await, None, &["anna", "bert"]).await;
    endpoint.respond_with(ScriptedResponse::say("YES 1"));
    room.say("anybody there").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "anna");
    let request = endpoint.asked().await.unwrap();
    assert_eq!((&*request.path, &*request.headers["x-api-key"]), ("/v1/messages", CANARY));
    let log = room.scene.hub.log();
    assert_eq!(log.lines().find(|line| line.contains(CANARY)), None, "the key is in the log");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_accepts_only_a_router_that_its_admin_may_use() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = scene(&endpoint).await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let router_of_bob = make_router(&bob, &endpoint.url, json!({})).await;
    let room = format!("/api/rooms/{}", alice.make_room("kitchen", &[&bob]).await.unwrap());
    assert_refused(&alice.put(&room, json!({ "routerId": router_of_bob["id"] })).await.unwrap(), 404);
    assert_refused(&alice.put(&room, json!({ "routerId": "no id!" })).await.unwrap(), 400);
    let own = make_router(&alice, &endpoint.url, json!({})).await;
    let updated = alice.put(&room, json!({ "routerId": own["id"] })).await.unwrap().data().unwrap();
    assert_eq!(updated["routerId"], own["id"]);
    assert_eq!(alice.delete(&router_path(&own)).await.unwrap().status, 200);
    assert_eq!(alice.get(&room).await.unwrap().data().unwrap()["routerId"], Value::Null);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_router_of_a_removed_member_receives_no_messages() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = scene(&endpoint).await;
    let (mut room, mut gateway) = room_with_triage(scene, None, &["anna"]).await;
    let room_path = format!("/api/rooms/{}", room.room);
    let membership_path = format!("{room_path}/members/{}", room.bob.user_id());
    assert_eq!(room.alice.put(&membership_path, json!({ "role": "admin" })).await.unwrap().status, 200);
    let router = make_router(&room.bob, &endpoint.url, json!({})).await;
    assert_eq!(room.bob.put(&room_path, json!({ "routerId": router["id"] })).await.unwrap().status, 200);
    assert_eq!(room.alice.delete(&membership_path).await.unwrap().status, 200);

    room.say("Bob must not hear of this").await;
    // Triage decides the messages of a room in order, so the earlier message has been decided.
    let addressed = room.say("@anna, hello").await;
    loop {
        let run = gateway.turn().await.unwrap();
        if run["messageId"] == addressed {
            break;
        }
        gateway.complete(&run, "r1", "I hear").await.unwrap();
    }
    assert_eq!(endpoint.unseen(), 0);
    room.scene.ends_well().await;
}
