//! Access control of the event stream: authentication, filters, and events that a user may not see.

use super::{filtered, live, resumed, texts};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, following, make_key};
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_or_a_ticket_opens_the_stream_and_a_ticket_only_once() {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    assert_refused(&outsider.get("/api/events").await.unwrap(), 401);
    assert_refused(&outsider.get("/api/events?ticket=plt_wrong").await.unwrap(), 401);
    assert_refused(&outsider.post("/api/events/ticket", json!({})).await.unwrap(), 401);
    let issued = scene.admin.post("/api/events/ticket", json!({})).await.unwrap();
    assert_eq!(issued.status, 200, "{issued:?}");
    assert_eq!(issued.body["expires_in"], 30);
    let query = format!("?ticket={}", issued.body["ticket"].as_str().unwrap());
    EventReader::open(&outsider, &query, None).await.unwrap();
    assert_refused(&outsider.get(&format!("/api/events{query}")).await.unwrap(), 401);
    let (_, write_only_key) = make_key(&scene.admin, &["write"]).await;
    assert_refused(&scene.admin.with_token(&write_only_key).get("/api/events").await.unwrap(), 403);
    for (query, status) in [
        ("?since=yesterday", 400),
        ("?session_id=nowhere", 404),
        ("?session_id=a%20b", 404),
        ("?project_root=/etc", 403),
    ] {
        assert_refused(&scene.admin.get(&format!("/api/events{query}")).await.unwrap(), status);
    }
    scene.ends_well().await;
}

/// Posts a message in a room and triggers every other event that a user can cause there; all contain
/// `canary`.
async fn trigger_user_events(user: &RestClient, room: &str, canary: &str) {
    let message = user.post_message(room, canary).await.unwrap();
    let id = message["id"].as_str().unwrap();
    let ok = |answer: parlor_testkit::rest::RestResponse| assert!(answer.status.is_success(), "{answer:?}");
    ok(user.put(&format!("/api/messages/{id}"), json!({ "content": format!("{canary}!") })).await.unwrap());
    ok(user.post(&format!("/api/messages/{id}/reactions"), json!({ "emoji": "👍" })).await.unwrap());
    ok(user.post(&format!("/api/messages/{id}/pin"), json!({})).await.unwrap());
    ok(user.delete(&format!("/api/messages/{id}/pin")).await.unwrap());
    ok(user.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap());
    ok(user.post(&format!("/api/messages/rooms/{room}/read"), json!({})).await.unwrap());
    ok(user.post(&format!("/api/tasks/rooms/{room}"), json!({ "title": canary })).await.unwrap());
    ok(user.put(&format!("/api/rooms/{room}"), json!({ "name": canary })).await.unwrap());
    let mut client = following(user, room).await;
    client.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    client.say_and_wait(room, &format!("{canary} again"), canary).await.unwrap();
    ok(user.delete(&format!("/api/messages/{id}")).await.unwrap());
}

/// A22, for events that users cause in a room.
#[tokio::test(flavor = "multi_thread")]
async fn a22_events_of_a_room_reach_no_other_users_and_no_removed_members() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let secret = alice.make_room("CANARY-room", &[]).await.unwrap();
    let shared = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let mut at_bob = live(&bob).await;
    trigger_user_events(&alice, &secret, "CANARY-1").await;
    alice.post_message(&shared, "before").await.unwrap();
    let mut events = at_bob.until(|message| message["text"] == "before").await.unwrap();
    alice.delete(&format!("/api/rooms/{shared}/members/{}", bob.user_id())).await.unwrap();
    let removed = |message: &Value| message["kind"] == "room" && message["phase"] == "removed";
    events.extend(at_bob.until(removed).await.unwrap());
    let position = at_bob.position.clone().unwrap();
    trigger_user_events(&alice, &shared, "CANARY-2").await;
    let own = bob.make_room("own", &[]).await.unwrap();
    bob.post_message(&own, "the end").await.unwrap();
    let end = |message: &Value| message["text"] == "the end";
    events.extend(at_bob.until(end).await.unwrap());
    let replayed = resumed(&bob, &position).await.until(end).await.unwrap();
    for (mode, events) in [("live", events), ("resumed", replayed)] {
        let found = events.iter().find(|message| message.to_string().contains("CANARY"));
        assert!(found.is_none(), "{mode}: {found:?}");
        assert_eq!(texts(&events).last(), Some(&"the end"), "events of a newly created room are delivered");
    }
    scene.ends_well().await;
}

/// A22, after a sign-out and after the revocation of an API key.
#[tokio::test(flavor = "multi_thread")]
async fn a22_a_signed_out_user_receives_no_more_events() {
    let scene = Scene::start().await;
    let alice = scene.person("alice").await;
    let room = alice.make_room("kitchen", &[&scene.admin]).await.unwrap();
    let (id, key) = make_key(&alice, &["read"]).await;
    let mut by_key = live(&alice.with_token(&key)).await;
    let mut at_alice = live(&alice).await;
    alice.delete(&format!("/api/keys/{id}")).await.unwrap();
    while let Some(message) = by_key.next(TEST_TIMEOUT).await.expect("the stream ends before the timeout") {
        assert_ne!(message["kind"], "message");
    }
    alice.post("/api/auth/logout", json!({})).await.unwrap();
    scene.admin.post_message(&room, "CANARY").await.unwrap();
    while let Some(message) = at_alice.next(TEST_TIMEOUT).await.expect("the stream ends before the timeout") {
        assert_ne!(message["kind"], "message");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_by_room_excludes_events_of_other_rooms() {
    let scene = Scene::start().await;
    let first = scene.admin.make_room("one", &[]).await.unwrap();
    let second = scene.admin.make_room("two", &[]).await.unwrap();
    let position = live(&scene.admin).await.position.clone().unwrap();
    let mut stream = filtered(&scene.admin, &format!("?session_id={second}"), Some(&position)).await;
    scene.admin.post_message(&first, "not this").await.unwrap();
    scene.admin.make_room("three", &[]).await.unwrap();
    scene.admin.post_message(&second, "this").await.unwrap();
    let events = stream.until(|message| message["kind"] == "message").await.unwrap();
    assert!(events.iter().all(|message| message["session_id"] == *second), "{events:?}");
    assert_eq!(texts(&events), ["this"]);
    scene.ends_well().await;
}

/// Executes a run that publishes every kind of event of an agent; all contain `canary`.
async fn trigger_run_events(room: &mut Room, gateway: &mut Gateway, canary: &str) {
    room.say(&format!("@coder {canary}")).await;
    let run = gateway.turn().await.unwrap();
    let frame_of = |kind: &str, mut frame: Value| {
        frame["type"] = kind.into();
        frame["agentId"] = "coder".into();
        frame["roomId"] = run["roomId"].clone();
        frame
    };
    let option = |label: &str| json!({ "label": label });
    let question = json!({ "question": canary, "header": canary, "multiSelect": false,
        "options": [option("a"), option("b")] });
    for event in [
        json!({ "kind": "status", "status": "working", "detail": canary }),
        json!({ "kind": "plan", "summary": canary, "status": "planned", "items": [] }),
        json!({ "kind": "question", "questionId": canary, "questions": [question] }),
        json!({ "kind": "usage", "context": { "stage": canary, "messageCount": 1, "charCount": 1,
            "estimatedTokens": 1 } }),
        json!({ "kind": "subagent", "subagentId": canary, "phase": "spawned", "task": canary }),
        json!({ "kind": "subagent", "subagentId": canary, "phase": "result", "outcome": "complete" }),
        json!({ "kind": "changes", "truncatedCount": 0, "files": [{ "path": canary, "summary": canary }] }),
        json!({ "kind": "tool_progress", "tool": "t", "line": canary, "stream": "stdout" }),
        json!({ "kind": "model_fallback", "preferredModel": canary, "actualModel": "b", "reason": "r" }),
        json!({ "kind": "task", "title": canary }),
    ] {
        gateway.send(&frame_of("gateway:run_event", json!({ "event": event }))).await.unwrap();
    }
    gateway.send(&frame_of("gateway:terminal_data", json!({ "data": canary }))).await.unwrap();
    let permission = json!({ "requestId": format!("p-{canary}"), "toolName": canary, "toolInput": {} });
    gateway.send(&frame_of("gateway:permission_request", permission)).await.unwrap();
    let reply = format!("r-{canary}");
    gateway.chunk(&run, &reply, "thinking", canary).await.unwrap();
    gateway.chunk(&run, &reply, "tool_use", canary).await.unwrap();
    gateway.chunk(&run, &reply, "text", canary).await.unwrap();
    gateway.settled().await.unwrap();
    // A queued run publishes queue events.
    room.say(&format!("@coder {canary} again")).await;
    gateway.complete(&run, &reply, canary).await.unwrap();
    let next = gateway.turn().await.unwrap();
    gateway.complete(&next, &format!("{reply}-2"), canary).await.unwrap();
    gateway.settled().await.unwrap();
}

/// A22, for events of runs.
#[tokio::test(flavor = "multi_thread")]
async fn a22_events_of_runs_reach_no_other_users_and_no_removed_members() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let eve = room.scene.person("eve").await;
    let (mut at_eve, mut at_bob) = (live(&eve).await, live(&room.bob).await);
    trigger_run_events(&mut room, &mut gateway, "CANARY-1").await;
    let events = at_bob.until(|message| message["kind"] == "turn_complete").await.unwrap();
    let kinds: BTreeSet<(&str, Option<&str>)> =
        events.iter().map(|m| (m["kind"].as_str().unwrap(), m["phase"].as_str())).collect();
    for kind in [
        ("activity", Some("doing")),
        ("run", Some("plan_update")),
        ("ask_user", None),
        ("ask_user", Some("resolved")),
        ("run", Some("context_usage")),
        ("run", Some("subagent_spawned")),
        ("run", Some("subagent_result")),
        ("run", Some("change_report")),
        ("tool_progress", None),
        ("model_fallback", None),
        ("task", Some("changed")),
        ("terminal", None),
        ("approval", Some("asked")),
        ("token", None),
        ("content_block", Some("start")),
        ("text_segment", None),
        ("run", Some("outcome")),
        ("turn_complete", None),
    ] {
        assert!(kinds.contains(&kind), "a member receives {kind:?}: {kinds:?}");
    }
    room.alice.delete(&format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id())).await.unwrap();
    let removed = |message: &Value| message["kind"] == "room" && message["phase"] == "removed";
    at_bob.wait_for(removed).await.unwrap();
    trigger_run_events(&mut room, &mut gateway, "CANARY-2").await;
    for (user, stream) in [(&eve, &mut at_eve), (&room.bob, &mut at_bob)] {
        let own = user.make_room("own", &[]).await.unwrap();
        user.post_message(&own, "the end").await.unwrap();
        let events = stream.until(|message| message["text"] == "the end").await.unwrap();
        let foreign =
            |message: &&Value| message.to_string().contains("CANARY") || message["session_id"] == *room.room;
        assert_eq!(events.iter().find(foreign), None);
    }
    room.scene.ends_well().await;
}
