//! What the hub refuses: hostile files, a second hub on one root, and a root that does not exist.

use super::{Root, agent, broker, logged, until};
use crate::scene::Scene;
use parlor_testkit::hub::{HubCommand, Topology};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_and_invalid_files_are_reported_and_change_nothing() {
    let outside = Root::new();
    outside.write_agent("stolen", json!({})).write("sessions/s.json", "{}").write("agent--x.jsonl", "{}\n");
    let root = Root::new();
    root.write_agent("ok", json!({ "description": "Valid" }));
    let mut scene = root.start().await;
    let cases = [
        ("bad name", "not the name of an agent"),
        ("escape", "its field id is not the id of an agent"),
        ("copy", "its field id is ok, which is another folder"),
        ("linked", "it is a symbolic link, which is not followed"),
        ("broken", "it is not valid JSON"),
        ("program", "the field parlor must be an object"),
        ("kind", "is not an agent kind"),
        ("option", "defaultModel is not the name of a model"),
        ("turns", "autoRun"),
    ];
    symlink(outside.path("stolen"), root.path("linked")).unwrap();
    fs::create_dir(root.path("link-file")).unwrap();
    symlink(outside.path("stolen/jvAgent.json"), root.path("link-file/jvAgent.json")).unwrap();
    root.write("bad name/jvAgent.json", "{}")
        .write("escape/jvAgent.json", r#"{"id":"../../etc"}"#)
        .write("copy/jvAgent.json", r#"{"id":"ok"}"#)
        .write("broken/jvAgent.json", "{\"id\":")
        .write("program/jvAgent.json", r#"{"parlor":"rm"}"#)
        .write("kind/jvAgent.json", r#"{"parlor":{"kind":"martian"}}"#)
        .write("option/jvAgent.json", r#"{"defaultModel":"--dangerously-skip-permissions"}"#)
        .write_agent("turns", json!({ "autoRun": 7 }));
    for (path, reason) in cases {
        let found =
            scene.hub.logged(|line| (line.contains(path) && line.contains(reason)).then_some(())).await;
        found.unwrap_or_else(|_| panic!("{path}: {reason}\n{}", scene.hub.log()));
    }
    logged(&mut scene, "jvAgent.json is not used: it is a symbolic link").await;
    // An edit that is not valid leaves the agent as it was.
    root.write("ok/jvAgent.json", "{\"description\": \"Half");
    scene.hub.logged(|line| (line.contains("/ok/") && line.contains("JSON")).then_some(())).await.unwrap();
    let mut broker = broker(&scene).await;
    assert_eq!(agent(&mut broker, "ok").await["description"], "Valid");
    let all = broker.ask(json!({ "type": "agent.list" })).await.unwrap();
    let ids: Vec<_> = all["agents"].as_array().unwrap().iter().map(|agent| agent["id"].clone()).collect();
    assert!(ids.iter().all(|id| id == "ok" || id == "guide"), "{ids:?}");
    root.write_agent("ok", json!({ "description": "Valid again" }));
    until(&scene, "ok", |agent| agent["description"] == "Valid again").await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_hub_uses_a_root_and_the_root_must_exist() {
    let root = Root::new();
    let scene = root.start().await;
    let started = async |path: &str| {
        let data = tempfile::tempdir().unwrap();
        let command = HubCommand::new(Topology::InProcess, data.path()).env("PARLOR_AGENTS_ROOT", path);
        format!("{:#}", command.start().await.err().expect("the hub does not start"))
    };
    let second = started(root.path("").to_str().unwrap()).await;
    assert!(second.contains("another hub uses the agents root"), "{second}");
    let missing = started(root.path("never").to_str().unwrap()).await;
    assert!(missing.contains("cannot open the agents root"), "{missing}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_disappears_makes_no_agent_missing() {
    let above = Root::new();
    let root = above.path("root");
    fs::create_dir(&root).unwrap();
    above.write_agent("root/coder", json!({}));
    above.write("root/coder/jvAgent.json", r#"{"parlor":{"kind":"command","command":["cat"]}}"#);
    let mut scene = Scene::with(&[("PARLOR_AGENTS_ROOT", root.to_str().unwrap())]).await;
    logged(&mut scene, "the agents root was read").await;
    fs::rename(&root, above.path("elsewhere")).unwrap();
    fs::create_dir(&root).unwrap();
    let mut broker = broker(&scene).await;
    broker.create_agent("new", &[]).await.unwrap();
    logged(&mut scene, "another directory has taken the place of").await;
    assert!(!scene.hub.log().contains("is missing; its mail is kept"));
    assert!(!root.join("new").exists(), "nothing is written to the other directory");
    scene.ends_well().await;
}
