//! Tests of missions, per-agent overrides and idle prompts over REST and the event stream.

use super::live;
use super::roots::{set_root, with_project_root};
use crate::gateway::scenes::Room;
use crate::scene::assert_refused;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::{Value, json};

async fn delete_with_body(user: &RestClient, path: &str, body: Value) -> RestResponse {
    RestResponse::of(user.request(Method::DELETE, path).json(&body)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_is_set_shown_replaced_and_ended_by_admins_of_the_room() {
    let room = Room::start().await;
    room.gateway("g1", &["coder"]).await;
    let of_room = format!("?session_id={}", room.room);
    let path = format!("/api/mission{of_room}");
    assert_eq!(room.bob.get(&path).await.unwrap().body, json!({ "active": false }));
    let mission = |text: &str, interval: u32| {
        let agents = json!([{ "id": "coder", "idle_prompt": "Look", "idle_interval_secs": interval }]);
        json!({ "session_id": room.room, "text": text, "agents": agents })
    };
    let outsider = room.scene.person("stranger").await;
    assert_refused(&room.bob.post("/api/mission", mission("Tea", 60)).await.unwrap(), 403);
    assert_refused(&outsider.post("/api/mission", mission("Tea", 60)).await.unwrap(), 404);
    assert_refused(&outsider.get(&path).await.unwrap(), 404);
    assert_refused(&room.alice.post("/api/mission", json!({ "text": "Tea" })).await.unwrap(), 400);
    assert_refused(&room.alice.post("/api/mission", mission(" ", 60)).await.unwrap(), 400);
    assert_refused(&room.alice.get("/api/mission?project_root=/etc").await.unwrap(), 403);
    let refused = room.alice.post("/api/mission", mission("Tea", 29)).await.unwrap();
    assert_refused(&refused, 400);
    assert_eq!(refused.body["fields"][0]["field"], "idle_interval_secs", "{refused:?}");

    let mut at_bob = live(&room.bob).await;
    for text in ["Tea", "Cake"] {
        let set = room.alice.post("/api/mission", mission(text, 60)).await.unwrap();
        assert_eq!((set.status.as_u16(), &set.body), (200, &json!({ "ok": true })), "{set:?}");
        at_bob.wait_for(|event| event["kind"] == "run" && event["phase"] == "sync").await.unwrap();
    }
    let shown = room.bob.get(&path).await.unwrap().body;
    let agents = json!([{ "id": "coder", "idle_prompt": "Look", "idle_interval_secs": 60 }]);
    assert_eq!((&shown["text"], &shown["active"], &shown["agents"]), (&json!("Cake"), &json!(true), &agents));
    assert_eq!(
        (&shown["session_id"], &shown["project_root"], &shown["created_by"]),
        (&json!(room.room), &Value::Null, &json!(room.alice.user_id()))
    );
    let listed = room.bob.get(&format!("/api/missions{of_room}")).await.unwrap().body;
    let texts: Vec<&Value> =
        listed["missions"].as_array().unwrap().iter().map(|mission| &mission["text"]).collect();
    assert_eq!(texts, ["Cake", "Tea"]);
    assert!(listed["missions"][1]["ended_at"].is_i64() && listed["missions"][0]["ended_at"].is_null());

    assert_refused(
        &delete_with_body(&room.bob, "/api/mission", json!({ "session_id": room.room })).await,
        403,
    );
    let ended = delete_with_body(&room.alice, "/api/mission", json!({ "session_id": room.room })).await;
    assert_eq!(ended.body, json!({ "ok": true }), "{ended:?}");
    assert_refused(&room.alice.delete(&path).await.unwrap(), 404);
    assert_eq!(room.bob.get(&path).await.unwrap().body, json!({ "active": false }));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_overrides_are_set_by_room_admins_and_agent_defaults_by_the_owner() {
    let room = Room::start().await;
    room.gateway("g1", &["coder"]).await;
    let here = format!("/api/agent-override?agent_id=coder&session_id={}", room.room);
    let own = "/api/agent-override?agent_id=coder";
    let no_override = json!({ "agent_id": "coder", "idle_prompt": null, "idle_interval_secs": null });
    for path in [&*here, own] {
        assert_eq!(room.bob.get(path).await.unwrap().body, no_override);
    }
    let body = json!({ "agent_id": "coder", "session_id": room.room, "idle_prompt": "Go on" });
    assert_refused(&room.bob.post("/api/agent-override", body.clone()).await.unwrap(), 403);
    assert_eq!(room.alice.post("/api/agent-override", body).await.unwrap().body, json!({ "ok": true }));
    let own_body = json!({ "agent_id": "coder", "idle_interval_secs": 45 });
    assert_refused(&room.bob.post("/api/agent-override", own_body.clone()).await.unwrap(), 404);
    assert_eq!(room.alice.post("/api/agent-override", own_body).await.unwrap().body, json!({ "ok": true }));
    let empty_override = json!({ "agent_id": "coder", "session_id": room.room });
    assert_refused(&room.alice.post("/api/agent-override", empty_override).await.unwrap(), 400);
    let unknown_agent = json!({ "agent_id": "nobody", "session_id": room.room, "idle_prompt": "Go on" });
    assert_refused(&room.alice.post("/api/agent-override", unknown_agent).await.unwrap(), 404);
    assert_eq!(room.bob.get(&here).await.unwrap().body["idle_prompt"], "Go on");
    assert_eq!(room.bob.get(own).await.unwrap().body["idle_interval_secs"], 45);
    let outsider = room.scene.person("stranger").await;
    for path in [&*here, own] {
        assert_refused(&outsider.get(path).await.unwrap(), 404);
    }
    assert_refused(&room.bob.delete(&here).await.unwrap(), 403);
    assert_eq!(room.alice.delete(&here).await.unwrap().body, json!({ "ok": true }));
    assert_refused(&room.alice.delete(&here).await.unwrap(), 404);
    assert_eq!(room.bob.get(&here).await.unwrap().body, no_override);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_of_a_project_root_is_published_in_all_its_rooms_and_ends_when_its_room_leaves() {
    let (room, _folders, root) = with_project_root().await;
    // The gateway disconnects at once, so the agent is offline and is never prompted.
    room.gateway("g1", &["coder"]).await;
    let (admin, carol) = (&room.scene.admin, room.scene.person("carol").await);
    let other = room.bob.make_room("study", &[&carol, admin]).await.unwrap();
    let set =
        admin.put(&format!("/api/rooms/{other}/project-root"), json!({ "projectRoot": root })).await.unwrap();
    assert_eq!(set.status, 200, "{set:?}");
    set_root(&room, &*root).await.data().unwrap();
    let mut at_carol = live(&carol).await;
    let is_sync = |event: &Value| event["phase"] == "sync" && event["session_id"] == *other;
    let mission = json!({ "session_id": room.room, "text": "Tea", "agents": [{ "id": "coder" }] });
    assert_eq!(room.alice.post("/api/mission", mission.clone()).await.unwrap().body, json!({ "ok": true }));
    at_carol.wait_for(is_sync).await.unwrap();
    let of_other = format!("/api/mission?session_id={other}");
    let seen_by_carol = carol.get(&of_other).await.unwrap().body;
    assert_eq!(seen_by_carol["text"], "Tea");
    // Carol is no member of the mission's own room: the answer names her room and no agents.
    assert_eq!((&seen_by_carol["session_id"], &seen_by_carol["agents"]), (&json!(other), &json!([])));
    let seen_by_bob = room.bob.get(&of_other).await.unwrap().body;
    assert_eq!(
        (&seen_by_bob["session_id"], &seen_by_bob["agents"][0]["id"]),
        (&json!(room.room), &json!("coder"))
    );

    // The override applies to every room of the project root, so a room admin of one of them may not set it.
    let member = format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id());
    assert_eq!(room.alice.put(&member, json!({ "role": "admin" })).await.unwrap().status, 200);
    let body = json!({ "agent_id": "coder", "session_id": room.room, "idle_interval_secs": 50 });
    assert_refused(&room.bob.post("/api/agent-override", body.clone()).await.unwrap(), 403);
    for user in [&room.alice, admin] {
        assert_eq!(user.post("/api/agent-override", body.clone()).await.unwrap().body, json!({ "ok": true }));
        at_carol.wait_for(is_sync).await.unwrap();
    }

    for (root, active) in [(Value::Null, false), (root.clone().into(), false)] {
        set_root(&room, root.clone()).await.data().unwrap();
        for room in [&room.room, &other] {
            let path = format!("/api/mission?session_id={room}");
            let shown = admin.get(&path).await.unwrap().body;
            assert_eq!(
                shown["active"], active,
                "with project root {root} the mission has ended and stays ended: {shown}"
            );
        }
        if root.is_null() {
            at_carol.wait_for(is_sync).await.unwrap();
        }
    }
    // A mission of the room alone ends as well when the project root changes, and stays ended.
    set_root(&room, Value::Null).await.data().unwrap();
    assert_eq!(room.alice.post("/api/mission", mission).await.unwrap().body, json!({ "ok": true }));
    set_root(&room, &*root).await.data().unwrap();
    set_root(&room, Value::Null).await.data().unwrap();
    let path = format!("/api/mission?session_id={}", room.room);
    assert_eq!(room.bob.get(&path).await.unwrap().body, json!({ "active": false }));

    let audited = async |action: &str| {
        let page = admin.get(&format!("/api/audit?action={action}")).await.unwrap().data().unwrap();
        page["items"].as_array().unwrap().clone()
    };
    for (action, times) in [("mission_set", 2), ("mission_ended", 2), ("override_set", 2)] {
        let items = audited(action).await;
        assert_eq!(items.len(), times, "{action}: {items:?}");
        assert!(
            !format!("{items:?}").contains("Tea"),
            "the audit log does not contain the text of a mission: {items:?}"
        );
    }
    let first = &audited("mission_set").await[1];
    assert_eq!((&first["subject"]["id"], &first["actor"]["name"]), (&json!(room.room), &json!("alice")));
    assert!(first["detail"].as_str().unwrap().ends_with(&root), "{first}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_prompt_is_published_and_not_repeated_after_a_restart() {
    let (mut room, _folders, root) = with_project_root().await;
    set_root(&room, &*root).await.data().unwrap();
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = live(&room.bob).await;
    let agents = json!([{ "id": "coder", "idle_prompt": "Look at the kettle" }]);
    let body = json!({ "project_root": root, "text": "Tea", "agents": agents });
    let set = room.alice.post("/api/mission", body).await.unwrap();
    assert_eq!(set.body, json!({ "ok": true }), "{set:?}");
    let mission = room.bob.get(&format!("/api/mission?project_root={root}")).await.unwrap().body;
    assert_eq!((&mission["project_root"], &mission["session_id"]), (&json!(root), &json!(room.room)));

    let event = at_bob.wait_for(|event| event["data"]["status"] == "idle_prompt_triggered").await.unwrap();
    let fields =
        (&event["kind"], &event["phase"], &event["text"], &event["agent_id"], &event["project_root"]);
    let expected = ("activity", "doing", "Idle prompt triggered", "coder", &*root);
    let expected = [expected.0, expected.1, expected.2, expected.3, expected.4].map(Value::from);
    assert_eq!([fields.0, fields.1, fields.2, fields.3, fields.4].map(Clone::clone), expected);
    assert_eq!(event["data"]["mission_id"], mission["id"]);
    let prompt = at_bob.wait_for_kind("message").await.unwrap();
    assert_eq!(prompt["text"], "Mission: Tea\n\nLook at the kettle");
    assert_eq!(
        (&prompt["data"]["to"], &prompt["data"]["sender_id"]),
        (&json!("coder"), &json!(room.alice.user_id()))
    );
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["content"], "Mission: Tea\n\nLook at the kettle");
    gateway.complete(&run, "m1", "It is warm.").await.unwrap();
    at_bob.wait_for_kind("turn_complete").await.unwrap();

    drop(gateway);
    room.scene.crash_and_restart().await;
    let (alice, bob) = (room.alice.at(room.scene.url()), room.bob.at(room.scene.url()));
    let mut at_bob = live(&bob).await;
    let mut gateway = Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    // A room change triggers a scan for idle agents at once, so a repeated prompt would precede this message.
    alice.put(&format!("/api/rooms/{}", room.room), json!({ "name": "pantry" })).await.unwrap();
    alice.post_message(&room.room, "@coder hello").await.unwrap();
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["content"], "@coder hello", "no idle prompt precedes the message");
    gateway.complete(&run, "m2", "Hello.").await.unwrap();
    let events = at_bob.until(|event| event["kind"] == "turn_complete").await.unwrap();
    assert!(events.iter().all(|event| event["data"]["status"] != "idle_prompt_triggered"), "{events:?}");
    let mission = bob.get(&format!("/api/mission?session_id={}", room.room)).await.unwrap().body;
    assert_eq!((&mission["active"], &mission["prompts"]), (&json!(true), &json!(1)));
    room.scene.ends_well().await;
}
