//! Tasks of a room, and how everyone in it learns of them.

use crate::scene::{Scene, assert_refused, following};
use parlor_testkit::agentim::Client;
use serde_json::{Value, json};

async fn update(client: &mut Client) -> Value {
    client.wait_for_type("server:task_update").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_task_is_told_to_the_room() {
    let scene = Scene::start().await;
    let (ada, bob, eve) = (scene.person("ada").await, scene.person("bob").await, scene.person("eve").await);
    let room = ada.make_room("kitchen", &[&bob]).await.unwrap();
    let mut at_bob = following(&bob, &room).await;
    let path = format!("/api/tasks/rooms/{room}");
    let made =
        ada.post(&path, json!({ "title": " Tidy up ", "dueDate": "2030-01-01T00:00:00Z" })).await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.data().unwrap();
    assert_eq!((&made["title"], &made["status"]), (&json!("Tidy up"), &json!("pending")));
    assert_eq!(update(&mut at_bob).await["task"], made, "a frame and REST tell the same");
    let one = format!("/api/tasks/{}", made["id"].as_str().unwrap());

    // How far it is, anybody in the room says; the rest is for who made it, who has it, and admins.
    bob.put(&one, json!({ "status": "in_progress" })).await.unwrap().data().unwrap();
    assert_eq!(update(&mut at_bob).await["task"]["status"], "in_progress");
    assert_refused(&bob.put(&one, json!({ "title": "Mine" })).await.unwrap(), 403);
    for outside in
        [eve.put(&one, json!({ "status": "failed" })).await, eve.get(&path).await, eve.delete(&one).await]
    {
        assert_refused(&outside.unwrap(), 404);
    }
    let strange = ada.put(&one, json!({ "assigneeId": eve.user_id() })).await.unwrap();
    assert_refused(&strange, 400);
    assert_eq!(strange.body["fields"][0]["field"], "assigneeId");
    ada.put(&one, json!({ "assigneeId": bob.user_id() })).await.unwrap().data().unwrap();
    assert_eq!(update(&mut at_bob).await["task"]["assigneeType"], "user");
    let done = json!({ "status": "completed", "result": "tidy", "dueDate": null });
    let done = bob.put(&one, done).await.unwrap().data().unwrap();
    assert_eq!((&done["result"], done.get("dueDate")), (&json!("tidy"), None));
    assert_eq!(update(&mut at_bob).await["task"], done);

    let over = bob.put(&one, json!({ "status": "in_progress" })).await.unwrap();
    assert_refused(&over, 409);
    assert_eq!(over.body["code"], "HAS_ENDED");
    bob.put(&one, json!({ "status": "pending" })).await.unwrap().data().unwrap();
    assert_eq!(update(&mut at_bob).await["task"]["status"], "pending", "opened again");
    for (person, count) in [(&ada, 1), (&bob, 1), (&eve, 0)] {
        let own = person.get("/api/tasks").await.unwrap().data().unwrap();
        assert_eq!(own.as_array().unwrap().len(), count);
    }
    assert_eq!(ada.delete(&one).await.unwrap().status, 200);
    let gone = update(&mut at_bob).await;
    assert_eq!((&gone["removed"], &gone["task"]["status"]), (&json!(true), &json!("cancelled")));
    assert_eq!(ada.get(&path).await.unwrap().data().unwrap(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_room_is_told_and_thawed_by_who_may() {
    let scene = Scene::start().await;
    let (ada, bob, cyd) = (scene.person("ada").await, scene.person("bob").await, scene.person("cyd").await);
    let room = ada.make_room("kitchen", &[&bob, &cyd]).await.unwrap();
    let mut at_cyd = following(&cyd, &room).await;
    let path = format!("/api/rooms/{room}/freeze");
    let frozen = bob.post(&path, json!({})).await.unwrap().data().unwrap();
    assert_eq!(frozen["frozenBy"], bob.user_id());
    let told = at_cyd.wait_for_type("server:room_update").await.unwrap();
    assert_eq!(told["room"]["frozenAt"], frozen["frozenAt"]);
    assert_refused(&cyd.delete(&path).await.unwrap(), 403);
    let again = cyd.post(&path, json!({})).await.unwrap().data().unwrap();
    assert_eq!(again["frozenBy"], bob.user_id(), "it was frozen before");
    for who in [&bob, &ada] {
        let thawed = who.delete(&path).await.unwrap().data().unwrap();
        assert_eq!((thawed.get("frozenAt"), thawed.get("frozenBy")), (None, None));
        bob.post(&path, json!({})).await.unwrap().data().unwrap();
    }
    let page = scene.admin.get("/api/audit?action=room_frozen").await.unwrap().data().unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 3, "who only repeats it changes nothing: {page}");

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
