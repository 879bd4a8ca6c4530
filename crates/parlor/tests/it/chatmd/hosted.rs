//! Bridges that the hub itself runs, from `[[chatmd]]` in its settings file.

use super::Project;
use crate::scene::{Scene, contents};
use parlor_testkit::socket::TEST_TIMEOUT;

fn config(project: &Project, room: &str, account: &str) -> String {
    let directory = project.path().display();
    format!("[[chatmd]]\ndir = \"{directory}\"\nroom = \"{room}\"\naccount = \"{account}\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_connects_the_files_of_its_settings() {
    let mut scene = Scene::start().await;
    let (ada, eve) = (scene.person("ada").await, scene.person("eve").await);
    let room = ada.make_room("Workshop", &[&eve]).await.unwrap();
    let project = Project::new();
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("parlor.toml");
    std::fs::write(&file, config(&project, &room, "ada")).unwrap();
    scene.command = scene.command.clone().env("PARLOR_CONFIG", file.to_str().unwrap());
    let connected = |line: &str| line.contains("chat.md: connected").then_some(());
    for round in 0..3 {
        match round {
            1 => scene.hub.stop(TEST_TIMEOUT).await.unwrap(),
            _ => scene.hub.crash().await.unwrap(),
        }
        scene.assert_never_panicked();
        project.write(&format!("[script-to-eve]: line {round} while stopped\n"));
        scene.hub = scene.command.start().await.unwrap();
        scene.hub.logged(connected).await.unwrap();
        let eve = eve.at(scene.url());
        eve.post_message(&room, &format!("message {round}")).await.unwrap();
        project.wait_for(&format!("[eve-to-all]: message {round}\n")).await;
        project.write(&format!("[script-to-eve]: line {round} while running\n"));
        let mut reader = crate::scene::following(&eve, &room).await;
        while !contents(&eve.history(&room).await.unwrap()).contains(&format!("line {round} while running")) {
            crate::scene::heard(&mut reader).await;
        }
    }
    let mut history = contents(&eve.at(scene.url()).history(&room).await.unwrap());
    history.sort();
    // The bridge starts at the end of the file when it runs for the first time.
    let expected = [
        "line 0 while running",
        "line 1 while running",
        "line 1 while stopped",
        "line 2 while running",
        "line 2 while stopped",
        "message 0",
        "message 1",
        "message 2",
    ];
    assert_eq!(history, expected);
    assert_eq!(project.content().matches("[eve-to-all]: message").count(), 3, "{}", project.content());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_directory_account_or_membership_is_retried() {
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("parlor.toml");
    let project = Project::new();
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("Workshop", &[]).await.unwrap();
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    std::fs::write(&file, config(&project, &room, "later")).unwrap();
    scene.command = scene.command.clone().env("PARLOR_CONFIG", file.to_str().unwrap());
    scene.hub = scene.command.start().await.unwrap();
    scene.admin = scene.admin.at(scene.hub.url());
    let contains = |text: &'static str| move |line: &str| line.contains(text).then_some(());
    scene.hub.logged(contains("there is no account later")).await.unwrap();
    let later = scene.person("later").await;
    scene.hub.logged(contains("the account is not a member of the room")).await.unwrap();
    let body = serde_json::json!({ "memberId": later.user_id(), "memberType": "user" });
    scene.admin.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    scene.hub.logged(contains("chat.md: connected")).await.unwrap();
    scene.admin.post_message(&room, "hello").await.unwrap();
    project.wait_for("[admin-to-all]: hello\n").await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_whose_account_leaves_the_room_continues_when_the_account_returns() {
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("parlor.toml");
    let project = Project::new();
    let mut scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = scene.admin.make_room("Workshop", &[&ada]).await.unwrap();
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    std::fs::write(&file, config(&project, &room, "ada")).unwrap();
    scene.command = scene.command.clone().env("PARLOR_CONFIG", file.to_str().unwrap());
    scene.hub = scene.command.start().await.unwrap();
    scene.admin = scene.admin.at(scene.hub.url());
    let contains = |text: &'static str| move |line: &str| line.contains(text).then_some(());
    scene.hub.logged(contains("chat.md: connected")).await.unwrap();
    scene.admin.post_message(&room, "before").await.unwrap();
    project.wait_for("[admin-to-all]: before\n").await;
    scene.admin.delete(&format!("/api/rooms/{room}/members/{}", ada.user_id())).await.unwrap();
    scene.hub.logged(contains("the account is not a member of the room")).await.unwrap();
    scene.admin.post_message(&room, "while away").await.unwrap();
    let body = serde_json::json!({ "memberId": ada.user_id(), "memberType": "user" });
    scene.admin.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    scene.admin.post_message(&room, "after").await.unwrap();
    project.wait_for("[admin-to-all]: after\n").await;
    let content = project.content();
    for text in ["before", "while away", "after"] {
        assert_eq!(content.matches(&format!("[admin-to-all]: {text}\n")).count(), 1, "{content}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_entry_prevents_the_start() {
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("parlor.toml");
    std::fs::write(&file, "[[chatmd]]\ndir = '/srv/x'\nroom = 'r'\nuser = 'ada'\n").unwrap();
    let mut scene = Scene::start().await;
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    let command = scene.command.clone().env("PARLOR_CONFIG", file.to_str().unwrap());
    let error = format!("{:#}", command.start().await.err().unwrap());
    assert!(error.contains("user"), "{error}");
}
