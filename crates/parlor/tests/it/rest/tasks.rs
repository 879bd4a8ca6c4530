//! Tasks of a room over REST and their events, freezing of a room, and its answer policy.

use crate::scene::{Scene, assert_refused, following};
use parlor_testkit::agentim::Client;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

async fn next_task_update(client: &mut Client) -> Value {
    client.wait_for_type("server:task_update").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_task_is_published_to_the_room() {
    let scene = Scene::start().await;
    let (ada, bob, eve) = (scene.person("ada").await, scene.person("bob").await, scene.person("eve").await);
    let room = ada.make_room("kitchen", &[&bob]).await.unwrap();
    let mut at_bob = following(&bob, &room).await;
    let path = format!("/api/tasks/rooms/{room}");
    let created =
        ada.post(&path, json!({ "title": " Tidy up ", "dueDate": "2030-01-01T00:00:00Z" })).await.unwrap();
    assert_eq!(created.status, 201, "{created:?}");
    let created = created.data().unwrap();
    assert_eq!((&created["title"], &created["status"]), (&json!("Tidy up"), &json!("pending")));
    assert_eq!(
        next_task_update(&mut at_bob).await["task"],
        created,
        "the frame and the REST response are equal"
    );
    let task_path = format!("/api/tasks/{}", created["id"].as_str().unwrap());

    // Every member may change the status; other fields only the creator, the assignee and admins of the room.
    bob.put(&task_path, json!({ "status": "in_progress" })).await.unwrap().data().unwrap();
    assert_eq!(next_task_update(&mut at_bob).await["task"]["status"], "in_progress");
    assert_refused(&bob.put(&task_path, json!({ "title": "Mine" })).await.unwrap(), 403);
    for response in [
        eve.put(&task_path, json!({ "status": "failed" })).await,
        eve.get(&path).await,
        eve.delete(&task_path).await,
    ] {
        assert_refused(&response.unwrap(), 404);
    }
    let invalid = ada.put(&task_path, json!({ "assigneeId": eve.user_id() })).await.unwrap();
    assert_refused(&invalid, 400);
    assert_eq!(invalid.body["fields"][0]["field"], "assigneeId");
    ada.put(&task_path, json!({ "assigneeId": bob.user_id() })).await.unwrap().data().unwrap();
    assert_eq!(next_task_update(&mut at_bob).await["task"]["assigneeType"], "user");
    let completed = json!({ "status": "completed", "result": "tidy", "dueDate": null });
    let completed = bob.put(&task_path, completed).await.unwrap().data().unwrap();
    assert_eq!((&completed["result"], completed.get("dueDate")), (&json!("tidy"), None));
    assert_eq!(next_task_update(&mut at_bob).await["task"], completed);

    let ended = bob.put(&task_path, json!({ "status": "in_progress" })).await.unwrap();
    assert_refused(&ended, 409);
    assert_eq!(ended.body["code"], "HAS_ENDED");
    bob.put(&task_path, json!({ "status": "pending" })).await.unwrap().data().unwrap();
    assert_eq!(
        next_task_update(&mut at_bob).await["task"]["status"],
        "pending",
        "an ended task can be reopened"
    );
    for (user, count) in [(&ada, 1), (&bob, 1), (&eve, 0)] {
        let tasks = user.get("/api/tasks").await.unwrap().data().unwrap();
        assert_eq!(tasks.as_array().unwrap().len(), count);
    }
    assert_eq!(ada.delete(&task_path).await.unwrap().status, 200);
    let deleted = next_task_update(&mut at_bob).await;
    assert_eq!((&deleted["removed"], &deleted["task"]["status"]), (&json!(true), &json!("cancelled")));
    assert_eq!(ada.get(&path).await.unwrap().data().unwrap(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn freezing_is_published_and_only_its_author_or_an_admin_unfreezes() {
    let scene = Scene::start().await;
    let (ada, bob, cyd) = (scene.person("ada").await, scene.person("bob").await, scene.person("cyd").await);
    let room = ada.make_room("kitchen", &[&bob, &cyd]).await.unwrap();
    let mut at_cyd = following(&cyd, &room).await;
    let path = format!("/api/rooms/{room}/freeze");
    let frozen = bob.post(&path, json!({})).await.unwrap().data().unwrap();
    assert_eq!(frozen["frozenBy"], bob.user_id());
    // The creation of the room may still be published after the client has joined.
    let is_frozen =
        |frame: &Value| frame["type"] == "server:room_update" && frame["room"]["frozenAt"].is_string();
    let frame = at_cyd.wait_for(TEST_TIMEOUT, is_frozen).await.unwrap();
    assert_eq!(frame["room"]["frozenAt"], frozen["frozenAt"]);
    assert_refused(&cyd.delete(&path).await.unwrap(), 403);
    let repeated = cyd.post(&path, json!({})).await.unwrap().data().unwrap();
    assert_eq!(repeated["frozenBy"], bob.user_id(), "a second freeze keeps the first user");
    for user in [&bob, &ada] {
        let thawed = user.delete(&path).await.unwrap().data().unwrap();
        assert_eq!((thawed.get("frozenAt"), thawed.get("frozenBy")), (None, None));
        bob.post(&path, json!({})).await.unwrap().data().unwrap();
    }
    let page = scene.admin.get("/api/audit?action=room_frozen").await.unwrap().data().unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 3, "a repeated freeze writes no audit entry: {page}");

    for (body, policy, broadcast) in [
        (json!({ "broadcastMode": true }), "triage", true),
        (json!({ "policy": "all" }), "all", true),
        (json!({ "policy": "all", "broadcastMode": false }), "all", true),
        (json!({ "broadcastMode": false, "approveRole": "admin" }), "mention", false),
    ] {
        let changed = ada.put(&format!("/api/rooms/{room}"), body).await.unwrap().data().unwrap();
        assert_eq!((&changed["policy"], &changed["broadcastMode"]), (&json!(policy), &json!(broadcast)));
    }
    let wrong = ada.put(&format!("/api/rooms/{room}"), json!({ "policy": "some" })).await.unwrap();
    assert_refused(&wrong, 400);
}
