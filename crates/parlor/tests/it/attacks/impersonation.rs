//! Attacks over the broker: routing messages under a foreign sender and reading the mailboxes of other users.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, make_key};

/// Starts a hub with two users who own one agent each; both agents subscribe to `slack/**`.
async fn two_owners() -> (Scene, RestClient, RestClient, Broker, Broker) {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.hearer("ada", &["slack/**"]).await, scene.hearer("bob", &["slack/**"]).await);
    let mut ada_agents = Broker::connect(scene.url(), ada.token()).await.unwrap();
    let mut bob_agents = Broker::connect(scene.url(), bob.token()).await.unwrap();
    ada_agents.create_agent("ada-helper", &["slack/**"]).await.unwrap();
    bob_agents.create_agent("bob-helper", &["slack/**"]).await.unwrap();
    (scene, ada, bob, ada_agents, bob_agents)
}

fn route(from: &str, path: &str) -> Value {
    json!({ "type": "msg.route", "from": from, "path": path, "payload": { "text": "a forgery" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn routing_under_a_foreign_sender_is_refused_and_stores_nothing() {
    let (scene, ada, bob, mut ada_agents, mut bob_agents) = two_owners().await;
    let room = ada.make_room("ada's", &[]).await.unwrap();
    let before = rows(&scene);
    for from in [
        "ada-helper",
        "ada",
        ada.user_id(),
        "admin",
        scene.admin.user_id(),
        bob.user_id(),
        "slack-bridge",
        "no-such-agent",
        "system",
        "../ada-helper",
        "bob-helper/",
    ] {
        for path in ["slack/team/general", "agent/bob-helper", &format!("room/{room}")] {
            let reply = bob_agents.ask(route(from, path)).await.unwrap();
            assert_eq!(reply["type"], "msg.route.error", "{from} to {path}: {reply}");
            assert_eq!(
                reply["error"], "Agent not found",
                "{from} to {path}: same answer as for an unknown agent"
            );
        }
    }
    assert_eq!(rows(&scene), before, "no message, no dead letter, no mail");
    assert_eq!(ada_agents.receive("ada-helper").await.unwrap(), Vec::<Value>::new());
    assert_eq!(bob_agents.receive("bob-helper").await.unwrap(), Vec::<Value>::new());
}

/// Row counts of messages, dead letters, deliveries and the log.
fn rows(scene: &Scene) -> Vec<i64> {
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    let count = |table: &str| {
        database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    ["messages", "dead_letters", "deliveries", "log"].into_iter().map(count).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_route_to_a_room_of_which_it_is_no_member() {
    let (scene, ada, _, _, mut bob_agents) = two_owners().await;
    let room = ada.make_room("ada's", &[]).await.unwrap();
    let before = rows(&scene);
    let reply = bob_agents.ask(route("bob-helper", &format!("room/{room}"))).await.unwrap();
    assert_eq!(reply["type"], "msg.route.error", "{reply}");
    assert_eq!(rows(&scene), before);
    assert_eq!(ada.history(&room).await.unwrap(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_needs_the_sources_scope_and_cannot_use_the_id_of_a_user_or_agent() {
    let (scene, ada, bob, mut ada_agents, _) = two_owners().await;
    let (_, agents_only) = make_key(&bob, &["read", "write", "agents"]).await;
    let mut unscoped = Broker::connect(scene.url(), &agents_only).await.unwrap();
    let reply = unscoped.ask(route("slack-bridge", "slack/team/general")).await.unwrap();
    assert_eq!(reply["error"], "Agent not found", "{reply}");

    let body = json!({ "name": "a bridge", "scopes": ["sources"] });
    let refused = bob.post("/api/keys", body).await.unwrap();
    assert_eq!(refused.status, 403, "only admins may create keys with the `sources` scope: {refused:?}");
    let (_, sources) = make_key(&scene.admin, &["sources"]).await;
    let mut bridge = Broker::connect(scene.url(), &sources).await.unwrap();
    let before = rows(&scene);
    let taken_ids =
        [ada.user_id(), "ada", "ADA", bob.user_id(), scene.admin.user_id(), "ada-helper", "bob-helper"];
    for from in taken_ids {
        let reply = bridge.ask(route(from, "slack/team/general")).await.unwrap();
        assert_eq!(reply["type"], "msg.route.error", "{from}: {reply}");
    }
    assert_eq!(rows(&scene), before);
    bridge.route("slack-bridge", "slack/team/general", json!({ "text": "hello" })).await.unwrap();
    let mail = ada_agents.receive("ada-helper").await.unwrap();
    assert_eq!(mail.len(), 1, "{mail:?}");
    assert_eq!((&mail[0]["from"], &mail[0]["payload"]["text"]), (&json!("slack-bridge"), &json!("hello")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_take_the_id_of_a_user_or_another_agent() {
    let (scene, ada, _, _, mut bob_agents) = two_owners().await;
    for id in [ada.user_id(), scene.admin.user_id(), "ada-helper"] {
        let reply = bob_agents.ask(json!({ "type": "agent.create", "id": id })).await.unwrap();
        assert_eq!(reply["type"], "agent.create.error", "{id}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_id_used_by_one_sender_does_not_suppress_the_message_of_another() {
    let (scene, _, _, mut ada_agents, mut bob_agents) = two_owners().await;
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let mut bridge = Broker::connect(scene.url(), &key).await.unwrap();
    let mut forged = route("bob-helper", "slack/team/general");
    forged["source"] = json!("slack");
    forged["externalId"] = json!("1700000000.1");
    bob_agents.ok(forged).await.unwrap();
    let genuine = json!({ "type": "msg.route", "from": "slack-bridge", "path": "slack/team/general",
        "payload": { "text": "the true one" }, "source": "slack", "externalId": "1700000000.1" });
    bridge.ok(genuine.clone()).await.unwrap();
    let retried = bridge.ok(genuine).await.unwrap();
    assert_eq!(retried["delivered"], true, "a retry is still recognised: {retried}");
    let mail = ada_agents.receive("ada-helper").await.unwrap();
    let texts: Vec<&Value> = mail.iter().map(|message| &message["payload"]["text"]).collect();
    assert_eq!(texts.iter().filter(|text| **text == "the true one").count(), 1, "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_agent_and_an_unknown_agent_yield_the_same_error() {
    let (scene, _, bob, mut ada_agents, mut bob_agents) = two_owners().await;
    ada_agents.route("ada-helper", "agent/ada-helper", json!({ "text": "a note to self" })).await.unwrap();
    let (_, no_agents) = make_key(&bob, &["read", "write"]).await;
    let mut no_agents = Broker::connect(scene.url(), &no_agents).await.unwrap();
    for kind in ["msg.receive", "msg.listen"] {
        let request = |id: &str| json!({ "type": kind, "agentId": id });
        let mut answers = Vec::new();
        for id in ["ada-helper", "nobody-has-this"] {
            let mut reply = bob_agents.ask(request(id)).await.unwrap();
            reply.as_object_mut().unwrap().remove("reqId");
            assert_eq!(reply["type"], format!("{kind}.error"), "{reply}");
            // The error may repeat the requested id, but reveals nothing else about the agent.
            answers.push(reply.to_string().replace(id, "…"));
        }
        assert_eq!(answers[0], answers[1]);
        let reply = no_agents.ask(request("bob-helper")).await.unwrap();
        assert_eq!(reply["type"], format!("{kind}.error"), "an API key without the `agents` scope: {reply}");
    }
    // Bob's attempts consumed no mail of Ada, and none is pushed to him.
    let mail = ada_agents.receive("ada-helper").await.unwrap();
    assert_eq!(mail.len(), 1, "{mail:?}");
    bob_agents.listen("bob-helper").await.unwrap();
    ada_agents.route("ada-helper", "agent/ada-helper", json!({ "text": "another" })).await.unwrap();
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let mut bridge = Broker::connect(scene.url(), &key).await.unwrap();
    bridge.route("slack-bridge", "slack/x", json!({ "text": "for both" })).await.unwrap();
    assert_eq!(
        bob_agents.pushed().await.unwrap()["payload"]["text"],
        "for both",
        "no mail of another agent was pushed before"
    );
}
