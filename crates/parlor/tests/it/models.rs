//! Models that the hub asks by itself: who may name one, what is kept of its key, and what it decides.

use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, bytes_in, contains};
use crate::service_agents::{allowed, make_service_agent};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

const CANARY: &str = "sk-canary-of-a-router-0123";

/// Where a router may be in these tests.
async fn scene(endpoint: &ModelEndpoint) -> Scene {
    Scene::with(&[allowed(endpoint), ("PARLOR_LOG_LEVEL", "trace")]).await
}

async fn make_router(person: &RestClient, url: &str, more: Value) -> Value {
    let mut body = json!({ "name": "picker", "llmBaseUrl": url, "llmApiKey": CANARY, "llmModel": "small" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = person.post("/api/routers", body).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.data().unwrap()
}

fn at(router: &Value) -> String {
    format!("/api/routers/{}", router["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_router_is_its_makers_and_its_key_is_never_shown_again() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let mut scene = scene(&endpoint).await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let own = make_router(&alice, &endpoint.url, json!({})).await;
    assert_eq!((&own["llmApiKey"], &own["scope"]), (&json!("********"), &json!("personal")));
    let global = json!({ "scope": "global" });
    let body = json!({ "name": "n", "scope": "global", "llmBaseUrl": endpoint.url, "llmModel": "m" });
    assert_refused(&alice.post("/api/routers", body).await.unwrap(), 403);
    let shared = make_router(&scene.admin, &endpoint.url, global.clone()).await;

    let names = async |person: &RestClient| -> Vec<Value> {
        let list = person.get("/api/routers").await.unwrap().data().unwrap();
        list.as_array().unwrap().iter().map(|router| router["id"].clone()).collect()
    };
    assert_eq!(names(&alice).await, [own["id"].clone(), shared["id"].clone()]);
    assert_eq!(names(&bob).await, [shared["id"].clone()]);
    // Somebody else's and none at all are told alike.
    for path in [at(&own), "/api/routers/never".to_owned()] {
        assert_refused(&bob.get(&path).await.unwrap(), 404);
        assert_refused(&bob.put(&path, json!({ "name": "x" })).await.unwrap(), 404);
        assert_refused(&bob.delete(&path).await.unwrap(), 404);
        assert_refused(&bob.post(&format!("{path}/test"), json!({})).await.unwrap(), 404);
    }
    assert_refused(&bob.put(&at(&shared), json!({ "name": "x" })).await.unwrap(), 404);
    assert_refused(&alice.put(&at(&own), global).await.unwrap(), 403);
    assert_eq!(endpoint.unseen(), 0);

    // It is used, and for its own address only.
    let test = format!("{}/test", at(&own));
    let answer = alice.post(&test, json!({})).await.unwrap().data().unwrap();
    assert_eq!(answer, json!({ "success": true }));
    assert_eq!(endpoint.asked().await.unwrap().headers["authorization"], format!("Bearer {CANARY}"));
    let elsewhere = json!({ "llmBaseUrl": "https://model.example/v1" });
    assert_refused(&alice.put(&at(&own), elsewhere).await.unwrap(), 400);
    let renamed =
        alice.put(&at(&own), json!({ "name": "other", "llmBaseUrl": own["llmBaseUrl"] })).await.unwrap();
    assert_eq!(renamed.data().unwrap()["name"], "other");

    // Sealed, it outlives a restart.
    scene.crash_and_restart().await;
    let alice = alice.at(scene.url());
    endpoint.respond_with(ScriptedResponse::status(401, &format!("no such key: {CANARY}")));
    let answer = alice.post(&test, json!({})).await.unwrap().data().unwrap();
    let words = "the model's server does not accept the key: no such key: …";
    assert_eq!(answer, json!({ "success": false, "error": words }));
    assert_eq!(endpoint.asked().await.unwrap().headers["authorization"], format!("Bearer {CANARY}"));

    let audit =
        scene.admin.at(scene.url()).get("/api/audit?limit=100").await.unwrap().data().unwrap().to_string();
    assert!(audit.contains("router_created") && audit.contains("router_changed"), "{audit}");
    let printed = scene.hub.log();
    assert!(!audit.contains(CANARY), "told to admins");
    assert!(!contains(&bytes_in(scene.data()), CANARY), "on the disk");
    assert_eq!(printed.lines().find(|line| line.contains(CANARY)), None, "in the log");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn private_networks_are_refused_unless_they_are_allowed() {
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
async fn a_model_is_tested_five_times_a_minute_at_most() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_LIMITS", "on")]).await;
    let alice = scene.person("alice").await;
    let test = format!("{}/test", at(&make_router(&alice, &endpoint.url, json!({})).await));
    for _ in 0..5 {
        assert_eq!(alice.post(&test, json!({})).await.unwrap().status, 200);
    }
    assert_refused(&alice.post(&test, json!({})).await.unwrap(), 429);
    scene.ends_well().await;
}

/// Alice's room, in which a model picks which of these agents answer.
async fn picked_room(scene: Scene, router: Option<&str>, agents: &[&str]) -> (Room, Gateway) {
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
async fn the_rooms_model_picks_who_answers_with_one_question() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = scene(&endpoint).await;
    let (mut room, mut gateway) = picked_room(scene, Some(&endpoint.url), &["anna", "bert", "carl"]).await;

    endpoint.respond_with(ScriptedResponse::say("YES 2"));
    room.say("who can bake?").await;
    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["agentId"], &turn["routingMode"]), (&json!("bert"), &json!("broadcast")));
    let asked = endpoint.asked().await.unwrap().body;
    let question: Value = serde_json::from_str(asked["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(question["message"], json!({ "from": "alice", "text": "who can bake?" }));
    assert!(!asked["messages"][0]["content"].as_str().unwrap().contains("bake"), "it is data");
    gateway.complete(&turn, "r1", "I can").await.unwrap();
    room.reply().await;

    endpoint.respond_with(ScriptedResponse::say("NO"));
    let ignored = room.say("never mind").await;
    // Called by name, nobody is asked.
    let called = room.say("@anna, @bert and @carl, hello").await;
    for _ in 0..3 {
        assert_eq!(gateway.turn().await.unwrap()["messageId"], called);
    }
    // What came before in the room was decided before.
    let reasons = room.deliveries(&ignored).await;
    assert!(reasons.iter().all(|one| one["reason"] == "it was not for this agent"), "{reasons:?}");
    assert_eq!(endpoint.unseen(), 1, "one question for each message");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_decide_everybody_answers() {
    for act in [
        ScriptedResponse::status(500, "broken"),
        ScriptedResponse::say("hm, maybe"),
        ScriptedResponse::Garbage,
        ScriptedResponse::BreakOff("YES 1".into()),
    ] {
        let endpoint = ModelEndpoint::start().await.unwrap();
        let scene = scene(&endpoint).await;
        let (mut room, mut gateway) = picked_room(scene, Some(&endpoint.url), &["anna", "bert"]).await;
        endpoint.respond_with(act);
        room.say("hello there").await;
        let mut agents = vec![gateway.turn().await.unwrap()["agentId"].clone()];
        agents.push(gateway.turn().await.unwrap()["agentId"].clone());
        agents.sort_by_key(Value::to_string);
        assert_eq!(agents, ["anna", "bert"]);
        room.scene.ends_well().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_says_nothing_in_time_decides_nothing() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_TRIAGE_TIMEOUT", "1")]).await;
    for act in [ScriptedResponse::Hang, ScriptedResponse::Stall("YES ".into())] {
        endpoint.respond_with(act);
    }
    let (mut room, mut gateway) = picked_room(scene, Some(&endpoint.url), &["anna"]).await;
    for number in 0..2 {
        let said = room.say("is anybody there?").await;
        let turn = gateway.turn().await.unwrap();
        assert_eq!((&turn["agentId"], &turn["messageId"]), (&json!("anna"), &json!(said)));
        gateway.complete(&turn, &format!("r{number}"), "I am").await.unwrap();
        room.reply().await;
    }
    assert_eq!(endpoint.unseen(), 2);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_decided_is_answered_within_the_budget_of_a_day() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::with(&[allowed(&endpoint), ("PARLOR_MAX_TURNS_PER_DAY", "1")]).await;
    for _ in 0..2 {
        endpoint.respond_with(ScriptedResponse::status(500, "broken"));
    }
    let (mut room, mut gateway) = picked_room(scene, Some(&endpoint.url), &["anna"]).await;
    room.say("is anybody there?").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "r1", "I am").await.unwrap();
    room.reply().await;
    let again = room.say("and now?").await;
    assert_eq!(room.deliveries(&again).await[0]["reason"], "the turns of this day are used up");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_pick_among_models() {
    let (mut judge, mut speaker) =
        (ModelEndpoint::start().await.unwrap(), ModelEndpoint::start().await.unwrap());
    let places = [&judge, &speaker].map(|endpoint| allowed(endpoint).1).join(",");
    let mut room = Room::on(Scene::with(&[("PARLOR_ALLOWED_ENDPOINTS", &places)]).await).await;
    let sage = make_service_agent(&room.scene.admin, &speaker.url, json!({})).await;
    room.add(sage["id"].as_str().unwrap()).await;
    let router = make_router(&room.alice, &judge.url, json!({})).await;
    let changes = json!({ "policy": "triage", "routerId": router["id"] });
    room.alice.put(&format!("/api/rooms/{}", room.room), changes).await.unwrap().data().unwrap();
    judge.respond_with(ScriptedResponse::say("NO")).respond_with(ScriptedResponse::say("YES 1"));
    let ignored = room.say("I am off").await;
    let asked = judge.asked().await.unwrap().body;
    let question: Value = serde_json::from_str(asked["messages"][1]["content"].as_str().unwrap()).unwrap();
    let known = &question["agents"][0];
    assert_eq!((&known["name"], &known["description"]), (&json!("Sage"), &json!("knows things")));
    room.say("who knows the way?").await;
    assert_eq!(room.reply().await["content"], "Hello from small");
    assert_eq!(room.deliveries(&ignored).await[0]["reason"], "it was not for this agent");
    assert_eq!(speaker.unseen(), 1);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_runs_the_hub_names_a_model_for_all_rooms() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let settings = [
        ("PARLOR_TRIAGE_URL", endpoint.url.as_str()),
        ("PARLOR_TRIAGE_MODEL", "small"),
        ("PARLOR_TRIAGE_KEY", CANARY),
        ("PARLOR_TRIAGE_API", "anthropic"),
        ("PARLOR_LOG_LEVEL", "trace"),
    ];
    let (mut room, mut gateway) = picked_room(Scene::with(&settings).await, None, &["anna", "bert"]).await;
    endpoint.respond_with(ScriptedResponse::say("YES 1"));
    room.say("anybody there").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "anna");
    let asked = endpoint.asked().await.unwrap();
    assert_eq!((&*asked.path, &*asked.headers["x-api-key"]), ("/v1/messages", CANARY));
    let printed = room.scene.hub.log();
    assert_eq!(printed.lines().find(|line| line.contains(CANARY)), None, "in the log");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_takes_only_a_router_that_its_admin_may_use() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = scene(&endpoint).await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let of_bob = make_router(&bob, &endpoint.url, json!({})).await;
    let room = format!("/api/rooms/{}", alice.make_room("kitchen", &[&bob]).await.unwrap());
    assert_refused(&alice.put(&room, json!({ "routerId": of_bob["id"] })).await.unwrap(), 404);
    assert_refused(&alice.put(&room, json!({ "routerId": "no id!" })).await.unwrap(), 400);
    let own = make_router(&alice, &endpoint.url, json!({})).await;
    let taken = alice.put(&room, json!({ "routerId": own["id"] })).await.unwrap().data().unwrap();
    assert_eq!(taken["routerId"], own["id"]);
    assert_eq!(alice.delete(&at(&own)).await.unwrap().status, 200);
    assert_eq!(alice.get(&room).await.unwrap().data().unwrap()["routerId"], Value::Null);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_removed_reads_on_through_no_model_of_their_own() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = scene(&endpoint).await;
    let (mut room, mut gateway) = picked_room(scene, None, &["anna"]).await;
    let at = format!("/api/rooms/{}", room.room);
    let of_bob = format!("{at}/members/{}", room.bob.user_id());
    assert_eq!(room.alice.put(&of_bob, json!({ "role": "admin" })).await.unwrap().status, 200);
    let router = make_router(&room.bob, &endpoint.url, json!({})).await;
    assert_eq!(room.bob.put(&at, json!({ "routerId": router["id"] })).await.unwrap().status, 200);
    assert_eq!(room.alice.delete(&of_bob).await.unwrap().status, 200);

    room.say("Bob must not hear of this").await;
    // What came before in the room was decided before.
    let called = room.say("@anna, hello").await;
    loop {
        let turn = gateway.turn().await.unwrap();
        if turn["messageId"] == called {
            break;
        }
        gateway.complete(&turn, "r1", "I hear").await.unwrap();
    }
    assert_eq!(endpoint.unseen(), 0);
    room.scene.ends_well().await;
}
