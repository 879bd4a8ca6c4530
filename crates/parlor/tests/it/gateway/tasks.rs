//! Tasks that agents are given, report on and make.

use super::scenes::Room;
use crate::scene::{Scene, following, next};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_given_a_task_is_told_and_says_how_far_it_is() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let body = json!({ "title": "Tidy up", "description": "All of it", "assigneeId": "coder", "assigneeType": "agent" });
    let made = room.bob.post(&format!("/api/tasks/rooms/{}", room.room), body).await.unwrap().data().unwrap();
    let told = next(&mut room.at_alice, "server:task_update").await["task"].clone();
    assert_eq!((&told["id"], &told["status"]), (&made["id"], &json!("pending")));
    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["content"], &turn["senderType"]), (&json!("Tidy up\n\nAll of it"), &json!("system")));
    assert_eq!(turn["messageId"], made["id"]);

    let report = |status: &str, result: Option<&str>| {
        let mut frame = json!({ "type": "gateway:task_update", "taskId": made["id"], "status": status });
        if let Some(result) = result {
            frame["result"] = result.into();
        }
        frame
    };
    gateway.send(&report("in_progress", None)).await.unwrap();
    assert_eq!(next(&mut room.at_alice, "server:task_update").await["task"]["status"], "in_progress");
    gateway.send(&report("completed", Some("Clean"))).await.unwrap();
    let done = next(&mut room.at_alice, "server:task_update").await["task"].clone();
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &json!("Clean")));
    gateway.complete(&turn, "r", "It is tidy.").await.unwrap();
    assert_eq!(room.reply().await["content"], "It is tidy.");

    // Another gateway, even of the same person, has nothing to say about it.
    let mut other = room.gateway("g2", &["writer"]).await;
    other.send(&report("cancelled", None)).await.unwrap();
    other.wait_for_type("server:error").await.unwrap();
    let kept = room.bob.get(&format!("/api/tasks/rooms/{}", room.room)).await.unwrap().data().unwrap();
    assert_eq!(kept[0]["status"], "completed", "{kept}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_puts_a_task_on_the_list() {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let mut at_admin = following(&scene.admin, "welcome").await;
    at_admin.say_and_wait("welcome", "@guide task", "c1").await.unwrap();
    let task = next(&mut at_admin, "server:task_update").await["task"].clone();
    assert_eq!((&task["createdById"], &task["status"]), (&json!("guide"), &json!("pending")));
    scene.ends_well().await;
}
