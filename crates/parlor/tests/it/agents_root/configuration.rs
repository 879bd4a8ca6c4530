//! Configuration of agents: from the disk to the hub and back.

use super::{Root, agent, broker, logged, patterns, until};
use crate::scene::{following, next};
use serde_json::json;
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn agents_on_disk_exist_in_the_hub_and_answer() {
    let root = Root::new();
    root.write_agent(
        "lead",
        json!({ "description": "Leads", "subscriptions": ["slack/**"], "mood": [1, 2] }),
    );
    root.write_agent("lead/coder", json!({ "name": "Code Writer", "defaultModel": "haiku" }));
    root.write("lead/CLAUDE.md", "Be brief.");
    root.write("lead/sessions/side.json", r#"{"title":"Side","subscriptions":["email/*"],"createdAt":7}"#);
    let scene = root.start().await;
    let mut broker = broker(&scene).await;
    let lead = agent(&mut broker, "lead").await;
    assert_eq!((&lead["description"], &lead["mood"]), (&json!("Leads"), &json!([1, 2])), "{lead}");
    assert_eq!(patterns(&lead), ["slack/**"]);
    let side = lead["sessions"].as_array().unwrap().iter().find(|session| session["id"] == "side").unwrap();
    assert_eq!((&side["title"], &side["createdAt"]), (&json!("Side"), &json!(7)), "{side}");
    assert!(lead.get("parlor").is_none(), "the program is not shown: {lead}");
    assert_eq!(agent(&mut broker, "lead/coder").await["name"], "Code Writer");
    let main = root.wait_for_json("lead/sessions/main.json", |main| main["id"] == "main").await;
    assert_eq!(main["isDefault"], true, "the hub adds the session that every agent has: {main}");

    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let added = json!({ "memberId": "lead", "memberType": "agent" });
    scene.admin.post(&format!("/api/rooms/{room}/members"), added).await.unwrap().data().unwrap();
    let mut client = following(&scene.admin, &room).await;
    client.say_and_wait(&room, "@lead hello from the room", "1").await.unwrap();
    let reply = next(&mut client, "server:message_complete").await;
    assert!(reply["message"]["content"].as_str().unwrap().contains("hello from the room"), "{reply}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_added_edited_renamed_or_removed_on_disk_is_reflected() {
    let root = Root::new();
    let mut scene = root.start().await;
    root.write_agent("coder", json!({ "description": "First" }));
    until(&scene, "coder", |agent| agent["description"] == "First").await;
    root.write_agent("coder", json!({ "description": "Second", "subscriptions": ["a/**"] }));
    let coder = until(&scene, "coder", |agent| agent["description"] == "Second").await;
    assert_eq!(patterns(&coder), ["a/**"]);

    // Sessions change without an event. The round that reads the third description reads the session too.
    root.write("coder/sessions/side.json", r#"{"title":"Side"}"#);
    root.write_agent("coder", json!({ "description": "Third", "subscriptions": ["a/**"] }));
    let coder = until(&scene, "coder", |agent| agent["description"] == "Third").await;
    assert!(coder["sessions"].to_string().contains("Side"), "{coder}");

    fs::rename(root.path("coder"), root.path("writer")).unwrap();
    until(&scene, "writer", |agent| agent["description"] == "Third").await;
    logged(&mut scene, "is missing; its mail is kept").await;
    let mut broker = broker(&scene).await;
    assert_eq!(agent(&mut broker, "coder").await["description"], "Third", "nothing was deleted");
    // The last file that the hub writes there.
    root.wait_for_json("writer/sessions/main.json", |main| main["id"] == "main").await;
    fs::remove_dir_all(root.path("writer")).unwrap();
    scene
        .hub
        .logged(|line| (line.contains("missing") && line.contains("writer")).then_some(()))
        .await
        .unwrap();
    assert_eq!(agent(&mut broker, "writer").await["id"], "writer");

    root.write_agent("writer", json!({ "description": "Back" }));
    until(&scene, "writer", |agent| agent["description"] == "Back").await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_clients_are_written_and_leave_everything_else_in_the_file() {
    let root = Root::new();
    root.write_agent("lead", json!({ "custom": { "a": 1 }, "heartbeat": "0 9 * * *" }));
    let scene = root.start().await;
    let mut broker = broker(&scene).await;
    let config = json!({ "description": "New", "parlor": { "kind": "command", "command": ["rm"] } });
    broker.ok(json!({ "type": "agent.update", "id": "lead", "config": config })).await.unwrap();
    let file = root.wait_for_json("lead/jvAgent.json", |file| file["description"] == "New").await;
    assert_eq!(file["custom"], json!({ "a": 1 }));
    assert_eq!(file["heartbeat"], "0 9 * * *");
    assert_eq!(file["parlor"]["command"], json!(["cat"]), "clients cannot change the program");
    broker.ok(json!({ "type": "msg.sub.add", "agentId": "lead", "pattern": "email/**" })).await.unwrap();
    root.wait_for_json("lead/jvAgent.json", |file| patterns(file) == ["email/**"]).await;
    let subscribe =
        json!({ "type": "session.sub.add", "agentId": "lead", "sessionId": "side", "pattern": "x/*" });
    let subscribed = broker.ask(subscribe).await.unwrap();
    if subscribed["type"].as_str().is_some_and(|kind| kind.ends_with(".ok")) {
        root.wait_for_json("lead/sessions/side.json", |file| patterns(file) == ["x/*"]).await;
    }

    broker.create_agent("lead/helper", &["slack/**"]).await.unwrap();
    let file = root.wait_for_json("lead/helper/jvAgent.json", |file| file["id"] == "lead/helper").await;
    assert_eq!(patterns(&file), ["slack/**"]);
    broker.ok(json!({ "type": "agent.delete", "id": "lead/helper" })).await.unwrap();
    let helper = root.path("lead/helper");
    root.wait_for("lead/helper/jvAgent.json", |_| (!helper.exists()).then_some(())).await;
    let deleted = fs::read_dir(root.path(".deleted")).unwrap().next().unwrap().unwrap();
    assert!(deleted.file_name().to_string_lossy().starts_with("lead%2Fhelper-"));
    assert!(root.path("lead/jvAgent.json").exists());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_made_while_the_hub_was_stopped_are_applied_by_the_next_one() {
    let root = Root::new();
    root.write_agent("stays", json!({})).write_agent("edited", json!({})).write_agent("gone", json!({}));
    let mut scene = root.start().await;
    scene.hub.stop(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap();
    root.write_agent("edited", json!({ "description": "While stopped" }));
    fs::remove_dir_all(root.path("gone")).unwrap();
    let before = fs::read_to_string(root.path("stays/jvAgent.json")).unwrap();
    scene.hub = scene.command.start().await.unwrap();
    scene.admin = scene.admin.at(scene.hub.url());
    logged(&mut scene, "the agents root was read").await;
    let mut broker = broker(&scene).await;
    assert_eq!(agent(&mut broker, "edited").await["description"], "While stopped");
    assert_eq!(agent(&mut broker, "gone").await["id"], "gone", "missing, not deleted");
    let agents = scene.admin.get("/api/agents").await.unwrap().data().unwrap();
    let is_missing = |id: &str| {
        let listed = agents.as_array().unwrap().iter().find(|agent| agent["id"] == id);
        listed.unwrap().get("missing").cloned()
    };
    assert_eq!((is_missing("gone"), is_missing("stays")), (Some(json!(true)), None), "{agents}");
    logged(&mut scene, "is missing; its mail is kept").await;
    assert_eq!(fs::read_to_string(root.path("stays/jvAgent.json")).unwrap(), before, "not written");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_works_in_further_directories_below_the_root() {
    let root = Root::new();
    let cli = r#"read -r prompt; printf '{"type":"result","subtype":"success","result":"%s"}\n' "$*""#;
    let host = json!({ "kind": "claude", "command": ["sh", "-c", cli, "claude"] });
    root.write("shared/plan.md", "The plan.");
    std::os::unix::fs::symlink("/etc", root.path("linked")).unwrap();
    let fields = json!({ "parlor": host, "workDirs": ["../shared", "/etc", "../linked", "../none"] });
    root.write_agent("coder", fields);
    let mut scene = root.start().await;
    logged(&mut scene, "\"/etc\" in workDirs is not a directory below the agents root").await;
    let mut broker = broker(&scene).await;
    let start = json!({ "type": "session.start", "agent": "coder", "id": "main", "prompt": "go" });
    broker.ask(start).await.unwrap();
    let result = broker.wait_for_type("session.result").await.unwrap();
    let arguments = result["text"].as_str().unwrap();
    let shared = fs::canonicalize(root.path("shared")).unwrap();
    assert!(arguments.starts_with(&format!("--add-dir {} --print", shared.display())), "{arguments}");
    scene.ends_well().await;
}
