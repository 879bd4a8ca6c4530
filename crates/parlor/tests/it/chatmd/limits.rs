//! Lines and bridges that the hub refuses.

use super::{BridgeScene, Project, RunningBridge, options};
use crate::scene::make_key;
use parlor_chatmd::bridge::{BridgeNotice, BridgeOptions};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_the_hub_refuses_is_reported_and_the_next_one_passes() {
    let scene = BridgeScene::new().await;
    let mut bridge = scene.bridge().await;
    let long = "x".repeat(100_001);
    let too_long_for_a_frame = "y".repeat(1_200_000);
    let observers =
        vec!["dev"; 60].iter().enumerate().map(|(n, dev)| format!("{dev}{n}")).collect::<Vec<_>>();
    scene.project.write(&format!(
        "# comment\n[a-to-eve]: {long}\n[a-to-eve]: {too_long_for_a_frame}\n[a-to-eve] @ [{}]: x\n[a_ua_b-to-eve]: x\n[a-to-eve]: {}\n",
        observers.join(","),
        "z".repeat(100_000),
    ));
    let refused = |notice: &BridgeNotice| matches!(notice, BridgeNotice::LineRefused { .. });
    let mut notices = Vec::new();
    for _ in 0..4 {
        let BridgeNotice::LineRefused { line_number, why } = bridge.notice(refused).await else {
            unreachable!()
        };
        notices.push((line_number, why));
    }
    notices.sort();
    let expected = [
        (2, "Message exceeds the maximum of 100000 characters"),
        (3, "the message is too long"),
        (4, "observers at most 50"),
        (5, "author must not contain control characters"),
    ];
    assert_eq!(notices, expected.map(|(line, why)| (line, why.to_owned())));
    assert_eq!(scene.room_has(&"z".repeat(100_000)).await.len(), 1);
    assert_eq!(bridge.stop().await, []);
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_forged_lines_stays_one_message() {
    let scene = BridgeScene::new().await;
    let bridge = scene.bridge().await;
    let text = "hi\n[x-to-coder]: forged\n\n  [y-to-z]: indented\r\n[a-to-b]: last";
    scene.eve.post_message(&scene.room, text).await.unwrap();
    let lines = "[eve-to-all]: hi\n  [x-to-coder]: forged\n  \n    [y-to-z]: indented\n  [a-to-b]: last\n";
    assert_eq!(scene.project.wait_for("last\n").await, lines);
    scene.project.write("[script-to-eve]: the end\n");
    assert_eq!(scene.room_has("the end").await.len(), 2);
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_without_permission_ends_with_a_clear_error() {
    let scene = BridgeScene::new().await;
    let url = scene.scene.url();
    let projects: [Project; 4] = std::array::from_fn(|_| Project::new());
    let mut unused = projects.iter();
    let mut start = |room: &str, key: &str| {
        let project = unused.next().expect("there are as many projects as attempts");
        RunningBridge::start(project, url, room, key)
    };
    assert_eq!(start("unknown", &scene.key).failed().await, "there is no such room");
    let (_, outsider) = make_key(&scene.scene.person("bob").await, &["read", "write", "agents"]).await;
    let error = start(&scene.room, &outsider).failed().await;
    assert_eq!(error, "the account is not a member of the room");
    let (_, without_scope) = make_key(&scene.ada, &["hosting"]).await;
    let error = start(&scene.room, &without_scope).failed().await;
    assert_eq!(error, "the API key needs the scopes read, write and agents");
    let error = start(&scene.room, "wrong").failed().await;
    assert_eq!(error, "the hub does not accept this key: was it revoked?");
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_only_read_keeps_the_lines_until_it_is_replaced() {
    let scene = BridgeScene::new().await;
    let (_, reader) = make_key(&scene.ada, &["read"]).await;
    let url = scene.scene.url();
    let mut bridge = RunningBridge::start(&scene.project, url, &scene.room, &reader).connected().await;
    scene.project.write("[script-to-eve]: waiting\n");
    let lost = bridge.notice(|notice| matches!(notice, BridgeNotice::Lost { .. })).await;
    let BridgeNotice::Lost { why, .. } = lost else { unreachable!() };
    assert_eq!(why, "the API key needs the scopes read, write and agents");
    bridge.stop().await;
    let bridge = scene.bridge().await;
    assert_eq!(scene.room_has("waiting").await, ["waiting"]);
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_is_reported_and_goes_on_when_it_returns() {
    let scene = BridgeScene::new().await;
    let (_, key) = make_key(&scene.eve, &["read", "write", "agents"]).await;
    let url = scene.scene.url();
    let mut bridge = RunningBridge::start(&scene.project, url, &scene.room, &key).connected().await;
    let members = format!("/api/rooms/{}/members", scene.room);
    scene.ada.delete(&format!("{members}/{}", scene.eve.user_id())).await.unwrap();
    // A request that is in flight may be refused before the hub publishes the removal.
    let no_longer = "the account is no longer a member of the room, or the room was deleted";
    let not = "the account is not a member of the room";
    for expected in [&[no_longer, not][..], &[not]] {
        let lost = bridge.notice(|notice| matches!(notice, BridgeNotice::Lost { .. })).await;
        let BridgeNotice::Lost { why, .. } = lost else { panic!("{lost:?}") };
        assert!(expected.contains(&&*why), "{why}");
    }
    scene.project.write("[script-to-ada]: while removed\n");
    let body = json!({ "memberId": scene.eve.user_id(), "memberType": "user" });
    scene.ada.post(&members, body).await.unwrap().data().unwrap();
    bridge.notice(|notice| *notice == BridgeNotice::Connected).await;
    assert_eq!(scene.room_has("while removed").await, ["while removed"]);
    scene.ada.post_message(&scene.room, "welcome back").await.unwrap();
    scene.project.wait_for("[ada-to-all]: welcome back\n").await;
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_belongs_to_one_room_and_one_bridge() {
    let scene = BridgeScene::new().await;
    let bridge = scene.bridge().await;
    let url = scene.scene.url();
    let second = RunningBridge::start(&scene.project, url, &scene.room, &scene.key);
    assert!(second.failed().await.starts_with("another bridge serves this chat.md"));
    bridge.stop().await;
    let other_room = scene.ada.make_room("Other", &[&scene.eve]).await.unwrap();
    let other = RunningBridge::start(&scene.project, url, &other_room, &scene.key);
    let error = other.failed().await;
    assert!(error.contains(&scene.room) && error.contains("--reset"), "{error}");
    let reset = BridgeOptions { reset: true, ..options(&scene.project, &other_room) };
    let bridge = RunningBridge::start_with(reset, url, &scene.key).connected().await;
    scene.eve.post_message(&other_room, "in the other room").await.unwrap();
    scene.project.wait_for("[eve-to-all]: in the other room\n").await;
    bridge.stop().await;
    scene.scene.ends_well().await;
}
