//! Tests of agent plans: each update is published to the room, and a plan is approved or rejected once.

use super::live;
use crate::gateway::scenes::Room;
use crate::scene::assert_refused;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use serde_json::{Value, json};

async fn plan(gateway: &mut Gateway, room: &str, status: &str) {
    let item = json!({ "title": "Boil water", "status": "pending" });
    let event = json!({ "kind": "plan", "summary": "Make tea", "status": status, "items": [item],
        "planText": "# Tea" });
    let frame = json!({ "type": "gateway:run_event", "agentId": "coder", "roomId": room, "event": event });
    gateway.send(&frame).await.unwrap();
}

async fn update(stream: &mut EventReader) -> Value {
    stream.wait_for(|message| message["phase"] == "plan_update").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_edited_approved_and_rejected_and_each_change_is_published() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let (mut at_bob, mut at_alice) = (live(&room.bob).await, live(&room.alice).await);
    let target = json!({ "agent_id": "coder", "session_id": room.room });
    assert_refused(&room.bob.post("/api/plan/approve", target.clone()).await.unwrap(), 404);
    room.say("@coder plan tea").await;
    let run = gateway.turn().await.unwrap();
    plan(&mut gateway, &room.room, "planned").await;
    let published = update(&mut at_bob).await;
    assert_eq!(update(&mut at_alice).await, published, "all subscribers receive the same event");
    assert_eq!((&published["text"], &published["rev"]), (&json!("Plan updated"), &json!(1)));
    let item = json!({ "title": "Boil water", "description": null, "status": "pending" });
    assert_eq!(
        published["data"]["plan"],
        json!({ "summary": "Make tea", "items": [item], "status": "planned", "plan_text": "# Tea" })
    );
    gateway.complete(&run, "r1", "This is my plan.").await.unwrap();
    at_bob.wait_for_kind("turn_complete").await.unwrap();

    // The plan survives the end of its run and a crash of the hub.
    room.scene.crash_and_restart().await;
    let (alice, bob) = (room.alice.at(room.scene.url()), room.bob.at(room.scene.url()));
    let (mut at_bob, mut at_alice) = (live(&bob).await, live(&alice).await);
    let listed = bob.get("/api/plan").await.unwrap().body;
    assert_eq!((&listed[0]["plan"], &listed[0]["rev"]), (&published["data"]["plan"], &json!(1)), "{listed}");
    let outsider = room.scene.person("stranger").await;
    assert_eq!(outsider.get("/api/plan").await.unwrap().body, json!([]));
    assert_refused(&outsider.post("/api/plan/approve", target.clone()).await.unwrap(), 404);
    let elsewhere = json!({ "agent_id": "coder", "project_root": "/etc" });
    assert_refused(&bob.post("/api/plan/approve", elsewhere).await.unwrap(), 403);

    let mut edit = target.clone();
    edit["text"] = " ".into();
    assert_refused(&bob.post("/api/plan/edit", edit.clone()).await.unwrap(), 400);
    edit["text"] = "# Green tea".into();
    assert_eq!(bob.post("/api/plan/edit", edit).await.unwrap().body, json!({ "ok": true }));
    for stream in [&mut at_bob, &mut at_alice] {
        let published = update(stream).await;
        assert_eq!(
            (&published["rev"], &published["data"]["plan"]["plan_text"]),
            (&json!(2), &json!("# Green tea"))
        );
    }
    // The room may be omitted if the agent has only one plan.
    let approved = bob.post("/api/plan/approve", json!({ "agent_id": "coder" })).await.unwrap();
    assert_eq!((approved.status.as_u16(), &approved.body), (200, &json!({ "status": "approved" })));
    assert_eq!(update(&mut at_alice).await["data"]["plan"]["status"], "approved");
    assert_refused(&alice.post("/api/plan/approve", target.clone()).await.unwrap(), 404);
    drop(gateway);
    let mut gateway = Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["content"], "The plan is approved. Carry it out.\n\n# Green tea");

    plan(&mut gateway, &room.room, "planned").await;
    assert_eq!(update(&mut at_bob).await["data"]["plan"]["status"], "approved");
    assert_eq!(update(&mut at_bob).await["rev"], 1, "the plan of a new run starts at revision 1");
    let rejected = bob.post("/api/plan/reject", target.clone()).await.unwrap();
    assert_eq!(rejected.body, json!({ "status": "rejected" }));
    assert_eq!(update(&mut at_bob).await["data"]["plan"]["status"], "rejected");
    assert_refused(&alice.post("/api/plan/approve", target).await.unwrap(), 404);
    room.scene.ends_well().await;
}
