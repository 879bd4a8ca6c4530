//! `parlor agent move`.

use super::{Root, agent, broker, logged, until};
use crate::scene::{Scene, parlor_command};
use serde_json::json;
use std::fs;

async fn move_agent(scene: &Scene, old: &str, new: &str) -> (bool, String) {
    let mut command = parlor_command();
    command.args(["agent", "move", old, new, "--data"]).arg(scene.data());
    let done = command.output().await.unwrap();
    let printed = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    (done.status.success(), printed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_agent_keeps_its_mail_its_sessions_and_its_rooms() {
    let root = Root::new();
    root.write_agent("old", json!({ "description": "Mover" })).write_agent("old/below", json!({}));
    root.write("old/sessions/side.json", r#"{"title":"Side","subscriptions":["slack/**"]}"#);
    let scene = root.start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let added = json!({ "memberId": "old", "memberType": "agent" });
    scene.admin.post(&format!("/api/rooms/{room}/members"), added).await.unwrap().data().unwrap();
    let mut broker = broker(&scene).await;
    for n in 0..3 {
        broker.route("old/below", "agent/old", json!({ "n": n })).await.unwrap();
    }
    broker.route("old/below", "agent/old/below", json!({ "n": "below" })).await.unwrap();

    let (moved, printed) = move_agent(&scene, "old", "team/new").await;
    assert!(moved && printed.contains("Moved old to team/new."), "{printed}");
    assert!(root.path("team/new/below/jvAgent.json").exists() && !root.path("old").exists());
    let mail = broker.receive("team/new").await.unwrap();
    let numbers: Vec<_> = mail.iter().map(|message| message["payload"]["n"].clone()).collect();
    assert_eq!(numbers, [json!(0), json!(1), json!(2)]);
    assert_eq!(broker.receive("team/new/below").await.unwrap().len(), 1);
    let new = agent(&mut broker, "team/new").await;
    assert_eq!(new["description"], "Mover");
    assert!(new["sessions"].to_string().contains("Side"), "{new}");
    let members = scene.admin.get(&format!("/api/rooms/{room}/members")).await.unwrap().data().unwrap();
    assert!(
        members.to_string().contains("team/new") && !members.to_string().contains("\"old\""),
        "{members}"
    );
    root.wait_for_json("team/new/jvAgent.json", |file| file["id"] == "team/new").await;
    let file = ".messages/agent--team%2Fnew.jsonl";
    root.wait_for(file, |content| (content.matches("\"delivered\"").count() == 3).then_some(())).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_renamed_before_is_moved_with_its_mail() {
    let root = Root::new();
    root.write_agent("old", json!({})).write_agent("sender", json!({}));
    let mut scene = root.start().await;
    let mut broker = broker(&scene).await;
    broker.route("sender", "agent/old", json!({ "n": 1 })).await.unwrap();
    let (moved, printed) = move_agent(&scene, "old", "sender").await;
    assert!(!moved && printed.contains("both old and sender exist"), "{printed}");
    let (moved, printed) = move_agent(&scene, "never", "new").await;
    assert!(!moved && printed.contains("there is no agent never"), "{printed}");
    let (moved, printed) = move_agent(&scene, "old", "../new").await;
    assert!(!moved && printed.contains("up to eight names"), "{printed}");
    fs::rename(root.path("old"), root.path("new")).unwrap();
    until(&scene, "new", |agent| agent["id"] == "new").await;
    logged(&mut scene, "is missing; its mail is kept").await;
    let (moved, printed) = move_agent(&scene, "old", "new").await;
    assert!(moved, "{printed}");
    assert_eq!(broker.receive("new").await.unwrap().len(), 1);
    assert!(agent(&mut broker, "old").await.is_null());
    scene.ends_well().await;
}
