//! Tasks that are assigned to agents, updated by their gateway, or created by agents.

use super::scenes::Room;
use crate::scene::{Scene, following, next};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn an_assigned_task_starts_a_run_and_the_agent_reports_its_progress() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let body = json!({ "title": "Tidy up", "description": "All of it", "assigneeId": "coder", "assigneeType": "agent" });
    let created =
        room.bob.post(&format!("/api/tasks/rooms/{}", room.room), body).await.unwrap().data().unwrap();
    let announced = next(&mut room.at_alice, "server:task_update").await["task"].clone();
    assert_eq!((&announced["id"], &announced["status"]), (&created["id"], &json!("pending")));
    let run = gateway.turn().await.unwrap();
    assert_eq!((&run["content"], &run["senderType"]), (&json!("Tidy up\n\nAll of it"), &json!("system")));
    assert_eq!(run["messageId"], created["id"]);

    let report = |status: &str, result: Option<&str>| {
        let mut frame = json!({ "type": "gateway:task_update", "taskId": created["id"], "status": status });
        if let Some(result) = result {
            frame["result"] = result.into();
        }
        frame
    };
    gateway.send(&report("in_progress", None)).await.unwrap();
    assert_eq!(next(&mut room.at_alice, "server:task_update").await["task"]["status"], "in_progress");
    gateway.send(&report("completed", Some("Clean"))).await.unwrap();
    let completed = next(&mut room.at_alice, "server:task_update").await["task"].clone();
    assert_eq!((&completed["status"], &completed["result"]), (&json!("completed"), &json!("Clean")));
    gateway.complete(&run, "r", "It is tidy.").await.unwrap();
    assert_eq!(room.reply().await["content"], "It is tidy.");

    // Another gateway may not update the task, even if it belongs to the same user.
    let mut other = room.gateway("g2", &["writer"]).await;
    other.send(&report("cancelled", None)).await.unwrap();
    other.wait_for_type("server:error").await.unwrap();
    let tasks = room.bob.get(&format!("/api/tasks/rooms/{}", room.room)).await.unwrap().data().unwrap();
    assert_eq!(tasks[0]["status"], "completed", "{tasks}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_creates_a_task() {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let mut at_admin = following(&scene.admin, "welcome").await;
    at_admin.say_and_wait("welcome", "@guide task", "c1").await.unwrap();
    let task = next(&mut at_admin, "server:task_update").await["task"].clone();
    assert_eq!((&task["createdById"], &task["status"]), (&json!("guide"), &json!("pending")));
    scene.ends_well().await;
}
