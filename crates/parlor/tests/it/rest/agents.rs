//! Agents and gateways as people manage them.

use crate::scene::{Scene, assert_refused};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

async fn told(person: &RestClient, path: &str) -> Value {
    person.get(path).await.unwrap().data().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_shared_with_nobody_with_some_or_with_all() {
    let scene = Scene::start().await;
    let (alice, bob, cyd) =
        (scene.person("alice").await, scene.person("bob").await, scene.person("cyd").await);
    let made =
        alice.post("/api/agents", json!({ "id": "coder", "name": "Coder", "type": "own" })).await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let mut gateway = Gateway::connect(&alice, "laptop").await.unwrap();
    gateway.register("coder", "Coder").await.unwrap();
    let own = told(&alice, "/api/agents").await;
    assert_eq!((&own[0]["type"], &own[0]["status"]), (&json!("claude-code"), &json!("online")), "{own}");
    assert_eq!((&own[0]["workingDirectory"], &own[0]["gatewayId"]), (&json!("/tmp"), &json!("laptop")));
    assert!(own[0]["deviceInfo"]["hostname"].is_string(), "{own}");
    for other in [&bob, &cyd] {
        assert_eq!(told(other, "/api/agents/shared").await, json!([]));
        assert_refused(&other.get("/api/agents/coder").await.unwrap(), 404);
    }

    let room = bob.make_room("bob's", &[]).await.unwrap();
    let bring = json!({ "memberId": "coder", "memberType": "agent" });
    let path = format!("/api/rooms/{room}/members");
    assert_refused(&bob.post(&path, bring.clone()).await.unwrap(), 404);
    let list = json!({ "visibility": "whitelist", "visibilityList": [bob.user_id()] });
    let changed = alice.put("/api/agents/coder", list).await.unwrap().data().unwrap();
    assert_eq!(changed["visibilityList"], json!([bob.user_id()]));
    let shared = told(&bob, "/api/agents/shared").await;
    assert_eq!((&shared[0]["id"], &shared[0]["ownerName"]), (&json!("coder"), &json!("alice")), "{shared}");
    for hidden in ["workingDirectory", "gatewayId"] {
        assert_eq!(shared[0][hidden], Value::Null, "where it runs is its owner's business: {shared}");
    }
    assert_eq!((shared[0].get("deviceInfo"), &shared[0]["visibilityList"]), (None, &json!([])), "{shared}");
    assert_eq!(told(&cyd, "/api/agents/shared").await, json!([]));
    assert_eq!(bob.post(&path, bring).await.unwrap().status, 201);

    alice.put("/api/agents/coder", json!({ "visibility": "all" })).await.unwrap().data().unwrap();
    assert_eq!(told(&cyd, "/api/agents/coder").await["name"], "Coder");
    alice.put("/api/agents/coder", json!({ "visibility": "private" })).await.unwrap().data().unwrap();
    assert_refused(&cyd.get("/api/agents/coder").await.unwrap(), 404);
    assert_eq!(told(&bob, "/api/agents/coder").await["id"], "coder", "they share a room");
    for (body, field) in [
        (json!({ "visibility": "some" }), "visibility"),
        (json!({ "visibility": "whitelist" }), "visibilityList"),
        (json!({ "visibilityList": ["no id"] }), "visibilityList"),
    ] {
        let refused = alice.put("/api/agents/coder", body).await.unwrap();
        assert_refused(&refused, 400);
        assert_eq!(refused.body["fields"][0]["field"], field);
    }
    for other in [&bob, &cyd] {
        assert_refused(&other.put("/api/agents/coder", json!({ "name": "Mine" })).await.unwrap(), 404);
        assert_refused(&other.delete("/api/agents/coder").await.unwrap(), 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_removed_with_the_agents_it_hosts() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let mut gateway = Gateway::connect(&alice, "laptop").await.unwrap();
    gateway.register("coder", "Coder").await.unwrap();
    alice.post("/api/agents", json!({ "id": "other", "name": "Other" })).await.unwrap().data().unwrap();
    let list = told(&alice, "/api/agents/gateways/list").await;
    assert_eq!((&list[0]["id"], &list[0]["online"]), (&json!("laptop"), &json!(true)), "{list}");
    assert_eq!(told(&bob, "/api/agents/gateways/list").await, json!([]));
    assert_refused(&bob.delete("/api/agents/gateways/laptop").await.unwrap(), 404);
    assert_eq!(alice.delete("/api/agents/gateways/laptop").await.unwrap().status, 200);
    assert_eq!(told(&alice, "/api/agents/gateways/list").await, json!([]));
    let left = told(&alice, "/api/agents").await;
    assert_eq!((left.as_array().unwrap().len(), &left[0]["id"]), (1, &json!("other")), "{left}");
}
