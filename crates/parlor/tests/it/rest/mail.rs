//! Mailboxes and dead letters over REST: what the owner of an agent sees, and resending by an admin.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::Scene;

async fn read(user: &RestClient, path: &str) -> Value {
    user.get(path).await.unwrap().data().unwrap()
}

async fn letters(admin: &RestClient) -> Vec<Value> {
    read(admin, "/api/dead-letters").await["items"].as_array().unwrap().clone()
}

async fn resend(admin: &RestClient, letter: &Value) -> (u16, Value) {
    let id = letter["message"]["id"].as_str().unwrap();
    let body = if letter["mailbox"].is_null() { json!({}) } else { letter["mailbox"].clone() };
    let response = admin.post(&format!("/api/dead-letters/{id}/resend"), body).await.unwrap();
    (response.status.as_u16(), response.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_without_subscribers_is_pushed_to_those_of_today() {
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    let routed =
        broker.route("slack-bridge", "slack/team", json!({ "text": "hi", "n": 1.50 })).await.unwrap();
    assert_eq!(routed["unmatched"], true);
    let found = letters(&scene.admin).await;
    assert_eq!((found.len(), &found[0]["reason"]), (1, &json!("no_subscribers")));
    let (status, body) = resend(&scene.admin, &found[0]).await;
    assert_eq!((status, &body["code"]), (409, &json!("NO_SUBSCRIBERS")), "{body}");
    assert_eq!(letters(&scene.admin).await, found, "the refused dead letter stays");

    broker.create_agent("team/reader", &["slack/**"]).await.unwrap();
    broker.listen("team/reader").await.unwrap();
    let (status, body) = resend(&scene.admin, &found[0]).await;
    assert_eq!((status, &body["data"]["mailboxes"]), (200, &json!([{ "agentId": "team/reader" }])), "{body}");
    let pushed = broker.pushed().await.unwrap();
    assert_eq!((&pushed["id"], &pushed["path"]), (&routed["id"], &json!("slack/team")));
    assert_eq!(letters(&scene.admin).await, Vec::<Value>::new());
    let mail = read(&scene.admin, "/api/agents/team%2Freader/mail").await;
    assert_eq!((&mail["items"][0]["state"], &mail["hasMore"]), (&json!("pending"), &json!(false)));
    let received = broker.receive("team/reader").await.unwrap();
    assert_eq!(received.len(), 1, "resent once");
    let audit = read(&scene.admin, "/api/audit?action=dead_letter_resent").await;
    assert_eq!(audit["items"].as_array().unwrap().len(), 1, "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_not_acknowledged_is_pending_again_in_its_mailbox_only() {
    let scene = Scene::start().await;
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    broker.create_agent("reader", &["slack/**"]).await.unwrap();
    broker.create_agent("other", &["slack/**"]).await.unwrap();
    broker.route("slack-bridge", "slack/team", json!({})).await.unwrap();
    let lease = json!({ "type": "msg.receive", "agentId": "reader", "lease": 1 });
    let found = loop {
        broker.ok(lease.clone()).await.unwrap();
        let found = letters(&scene.admin).await;
        if !found.is_empty() {
            break found;
        }
    };
    assert_eq!(found[0]["mailbox"], json!({ "agentId": "reader" }));
    let dead = read(&scene.admin, "/api/agents/reader/mail").await;
    assert_eq!((&dead["items"][0]["state"], &dead["items"][0]["attempts"]), (&json!("dead"), &json!(5)));
    let (status, body) = resend(&scene.admin, &found[0]).await;
    assert_eq!((status, &body["data"]["mailboxes"]), (200, &json!([{ "agentId": "reader" }])), "{body}");
    for (agent, attempts) in [("reader", 0), ("other", 0)] {
        let mail = read(&scene.admin, &format!("/api/agents/{agent}/mail")).await;
        let copy = &mail["items"][0];
        assert_eq!((&copy["state"], &copy["attempts"]), (&json!("pending"), &json!(attempts)), "{agent}");
    }
    assert_eq!(resend(&scene.admin, &found[0]).await.0, 404, "the dead letter is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_reads_and_changes_sessions_and_nobody_else() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.hearer("ann", &["slack/**"]).await, scene.person("bob").await);
    let mut broker = Broker::connect(scene.url(), ann.token()).await.unwrap();
    broker.create_agent("reader", &[]).await.unwrap();
    let room = ann.make_room("replies", &[]).await.unwrap();
    let session = "/api/agents/reader/sessions/slack";
    let refused = ann.put(session, json!({ "roomId": room })).await.unwrap();
    assert_eq!(refused.status.as_u16(), 404, "the agent is not a member of the room");
    let member = json!({ "memberId": "reader", "memberType": "agent" });
    ann.post(&format!("/api/rooms/{room}/members"), member).await.unwrap().data().unwrap();
    let changes =
        json!({ "title": "Slack", "autoRun": { "enabled": true, "debounceMs": 500 }, "roomId": room });
    let changed = ann.put(session, changes).await.unwrap().data().unwrap();
    let auto_run = json!({ "enabled": true, "debounceMs": 500, "maxBatchSize": 20 });
    assert_eq!(
        (&changed["title"], &changed["autoRun"], &changed["roomId"]),
        (&json!("Slack"), &auto_run, &json!(room))
    );
    let subscribe = json!({ "type": "msg.session.sub.add", "agentId": "reader", "sessionId": "slack", "pattern": "slack/**" });
    broker.ok(subscribe).await.unwrap();
    let mut bridge = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for _ in 0..3 {
        bridge.route("slack-bridge", "slack/team", json!({})).await.unwrap();
    }
    let lease =
        json!({ "type": "msg.session.receive", "agentId": "reader", "sessionId": "slack", "lease": 60_000 });
    broker.ok(lease).await.unwrap();
    bridge.route("slack-bridge", "slack/team", json!({})).await.unwrap();

    let found = read(&ann, "/api/agents/reader/sessions").await;
    let slack =
        found["sessions"].as_array().unwrap().iter().find(|session| session["id"] == "slack").unwrap();
    assert_eq!(slack["mailbox"], json!({ "subscriptions": ["slack/**"], "pending": 1, "leased": 3 }));
    assert_eq!(found["mailbox"]["pending"], 4, "the agent's own copies");
    let first = read(&ann, "/api/agents/reader/mail?session=slack&limit=3").await;
    let states: Vec<&Value> = first["items"].as_array().unwrap().iter().map(|copy| &copy["state"]).collect();
    assert_eq!(states, ["pending", "leased", "leased"]);
    assert_eq!(first["hasMore"], true);
    let rest = read(&ann, "/api/agents/reader/mail?session=slack&limit=3&offset=3").await;
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["hasMore"]), (1, &json!(false)));
    let cleared = ann.put(session, json!({ "autoRun": null, "roomId": null })).await.unwrap().data().unwrap();
    assert_eq!(
        (&cleared["autoRun"], &cleared["roomId"], &cleared["title"]),
        (&Value::Null, &Value::Null, &json!("Slack"))
    );

    for path in ["/api/agents/reader/sessions", "/api/agents/reader/mail"] {
        assert_eq!(bob.get(path).await.unwrap().status.as_u16(), 404, "{path}");
    }
    assert_eq!(bob.put(session, json!({})).await.unwrap().status.as_u16(), 404);
    assert_eq!(bob.get("/api/dead-letters").await.unwrap().status.as_u16(), 403);
    assert_eq!(bob.delete("/api/dead-letters").await.unwrap().status.as_u16(), 403);
}
