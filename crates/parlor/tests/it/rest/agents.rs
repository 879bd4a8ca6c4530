//! Agents and gateways over REST: visibility of an agent, and deletion of a gateway.

use crate::scene::{Scene, assert_refused};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

async fn get_data(user: &RestClient, path: &str) -> Value {
    user.get(path).await.unwrap().data().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn visibility_decides_which_users_see_an_agent() {
    let scene = Scene::start().await;
    let (alice, bob, cyd) =
        (scene.person("alice").await, scene.person("bob").await, scene.person("cyd").await);
    let created =
        alice.post("/api/agents", json!({ "id": "coder", "name": "Coder", "type": "own" })).await.unwrap();
    assert_eq!(created.status, 201, "{created:?}");
    let mut gateway = Gateway::connect(&alice, "laptop").await.unwrap();
    gateway.register("coder", "Coder").await.unwrap();
    let agents = get_data(&alice, "/api/agents").await;
    assert_eq!(
        (&agents[0]["type"], &agents[0]["status"]),
        (&json!("claude-code"), &json!("online")),
        "{agents}"
    );
    assert_eq!((&agents[0]["workingDirectory"], &agents[0]["gatewayId"]), (&json!("/tmp"), &json!("laptop")));
    assert!(agents[0]["deviceInfo"]["hostname"].is_string(), "{agents}");
    for other in [&bob, &cyd] {
        assert_eq!(get_data(other, "/api/agents/shared").await, json!([]));
        assert_refused(&other.get("/api/agents/coder").await.unwrap(), 404);
    }

    let room = bob.make_room("bob's", &[]).await.unwrap();
    let member = json!({ "memberId": "coder", "memberType": "agent" });
    let path = format!("/api/rooms/{room}/members");
    assert_refused(&bob.post(&path, member.clone()).await.unwrap(), 404);
    let whitelist = json!({ "visibility": "whitelist", "visibilityList": [bob.user_id()] });
    let changed = alice.put("/api/agents/coder", whitelist).await.unwrap().data().unwrap();
    assert_eq!(changed["visibilityList"], json!([bob.user_id()]));
    let shared = get_data(&bob, "/api/agents/shared").await;
    assert_eq!((&shared[0]["id"], &shared[0]["ownerName"]), (&json!("coder"), &json!("alice")), "{shared}");
    for hidden in ["workingDirectory", "gatewayId"] {
        assert_eq!(shared[0][hidden], Value::Null, "only the owner sees where the agent runs: {shared}");
    }
    assert_eq!((shared[0].get("deviceInfo"), &shared[0]["visibilityList"]), (None, &json!([])), "{shared}");
    assert_eq!(get_data(&cyd, "/api/agents/shared").await, json!([]));
    assert_eq!(bob.post(&path, member).await.unwrap().status, 201);

    alice.put("/api/agents/coder", json!({ "visibility": "all" })).await.unwrap().data().unwrap();
    assert_eq!(get_data(&cyd, "/api/agents/coder").await["name"], "Coder");
    alice.put("/api/agents/coder", json!({ "visibility": "private" })).await.unwrap().data().unwrap();
    assert_refused(&cyd.get("/api/agents/coder").await.unwrap(), 404);
    assert_eq!(get_data(&bob, "/api/agents/coder").await["id"], "coder", "Bob shares a room with the agent");
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
async fn deleting_a_gateway_deletes_the_agents_it_hosts() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let mut gateway = Gateway::connect(&alice, "laptop").await.unwrap();
    gateway.register("coder", "Coder").await.unwrap();
    alice.post("/api/agents", json!({ "id": "other", "name": "Other" })).await.unwrap().data().unwrap();
    let gateways = get_data(&alice, "/api/agents/gateways/list").await;
    assert_eq!((&gateways[0]["id"], &gateways[0]["online"]), (&json!("laptop"), &json!(true)), "{gateways}");
    assert_eq!(get_data(&bob, "/api/agents/gateways/list").await, json!([]));
    assert_refused(&bob.delete("/api/agents/gateways/laptop").await.unwrap(), 404);
    assert_eq!(alice.delete("/api/agents/gateways/laptop").await.unwrap().status, 200);
    assert_eq!(get_data(&alice, "/api/agents/gateways/list").await, json!([]));
    let remaining = get_data(&alice, "/api/agents").await;
    assert_eq!(
        (remaining.as_array().unwrap().len(), &remaining[0]["id"]),
        (1, &json!("other")),
        "{remaining}"
    );
}
