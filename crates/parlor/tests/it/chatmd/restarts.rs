//! Restarts of the bridge and of the hub: every line and every message passes once.

use super::{BridgeScene, RunningBridge, options};
use crate::scene::{following, heard};
use parlor_chatmd::bridge::{BridgeNotice, BridgeOptions};
use parlor_testkit::gateway_process::LossyProxy;
use std::collections::BTreeSet;

/// Checks that the texts are exactly these, each once.
#[track_caller]
fn assert_once(texts: Vec<String>, expected: impl IntoIterator<Item = String>) {
    let unique: BTreeSet<String> = texts.iter().cloned().collect();
    assert_eq!(unique.len(), texts.len(), "repeated: {texts:?}");
    assert_eq!(unique, expected.into_iter().collect());
}

/// Texts of the lines with this sender.
fn lines_of(content: &str, sender: &str) -> Vec<String> {
    let start = format!("[{sender}-to-all]: ");
    content.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_bridge_goes_on_without_gap_or_repeat() {
    let scene = BridgeScene::new().await;
    scene.project.write("[script-to-all]: before the first start\n");
    let mut browser = following(&scene.eve, &scene.room).await;
    scene.eve.post_message(&scene.room, "message before the first start").await.unwrap();
    // A message that the hub has not delivered yet would count as new.
    heard(&mut browser).await;
    let mut expected_lines = Vec::new();
    for round in 0..3 {
        let bridge = scene.bridge().await;
        scene.project.write(&format!("[script-to-all]: line {round} while running\n"));
        scene.eve.post_message(&scene.room, &format!("message {round} while running")).await.unwrap();
        scene.room_has(&format!("line {round} while running")).await;
        scene.project.wait_for(&format!("message {round} while running\n")).await;
        bridge.stop().await;
        scene.project.write(&format!("[script-to-all]: line {round} while stopped\n"));
        scene.eve.post_message(&scene.room, &format!("message {round} while stopped")).await.unwrap();
        for state in ["running", "stopped"] {
            expected_lines.push(format!("{round} while {state}"));
        }
    }
    let bridge = scene.bridge().await;
    scene.room_has("line 2 while stopped").await;
    scene.project.wait_for("message 2 while stopped\n").await;
    bridge.stop().await;
    let content = scene.project.content();
    assert_once(lines_of(&content, "eve"), expected_lines.iter().map(|line| format!("message {line}")));
    let relayed = scene.history().await.into_iter().filter(|text| text.starts_with("line"));
    assert_once(relayed.collect(), expected_lines.iter().map(|line| format!("line {line}")));
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_the_room_is_written_on_request() {
    let scene = BridgeScene::new().await;
    let count = 150;
    for number in 0..count {
        scene.eve.post_message(&scene.room, &format!("earlier {number}")).await.unwrap();
    }
    let with_history = BridgeOptions { history: true, ..options(&scene.project, &scene.room) };
    let start = || RunningBridge::start_with(with_history.clone(), scene.scene.url(), &scene.key);
    let bridge = start().connected().await;
    let content = scene.project.wait_for(&format!("earlier {}\n", count - 1)).await;
    bridge.stop().await;
    let expected: Vec<String> = (0..count).map(|number| format!("earlier {number}")).collect();
    assert_eq!(lines_of(&content, "eve"), expected, "in the order of the room");
    let bridge = start().connected().await;
    scene.eve.post_message(&scene.room, "later").await.unwrap();
    let content = scene.project.wait_for("later\n").await;
    assert_eq!(lines_of(&content, "eve").len(), count + 1, "the history is written once");
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_hub_gets_every_line_once() {
    let mut scene = BridgeScene::new().await;
    let proxy = LossyProxy::to(scene.scene.url()).await.unwrap();
    let start = || RunningBridge::start(&scene.project, proxy.url(), &scene.room, &scene.key);
    let mut bridge = start().connected().await;
    let mut expected = Vec::new();
    for round in 0..3 {
        for number in 0..40 {
            scene.project.write(&format!("[script-to-x{number}]: line {round}.{number}\n"));
            expected.push(format!("line {round}.{number}"));
        }
        // The hub crashes while lines are in flight.
        scene.room_has(&format!("line {round}.0")).await;
        scene.scene.crash_and_restart().await;
        (scene.ada, scene.eve) = (scene.ada.at(scene.scene.url()), scene.eve.at(scene.scene.url()));
        proxy.lead_to(scene.scene.url());
        bridge.notice(|notice| *notice == BridgeNotice::Connected).await;
        scene.eve.post_message(&scene.room, &format!("message {round}")).await.unwrap();
    }
    scene.project.wait_for("message 2\n").await;
    scene.room_has("line 2.39").await;
    bridge.stop().await;
    let relayed = scene.history().await.into_iter().filter(|text| text.starts_with("line"));
    assert_eq!(relayed.collect::<Vec<_>>(), expected, "in the order of the file");
    let content = scene.project.content();
    assert_eq!(lines_of(&content, "eve"), ["message 0", "message 1", "message 2"]);
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connections_in_either_direction_lose_and_repeat_nothing() {
    let scene = BridgeScene::new().await;
    let proxy = LossyProxy::to(scene.scene.url()).await.unwrap();
    let start = || RunningBridge::start(&scene.project, proxy.url(), &scene.room, &scene.key);
    let mut bridge = start().connected().await;
    let rounds = 3;
    for round in 0..rounds {
        match round {
            // Lines reach the hub, but their answers are lost.
            0 => proxy.lose_what_is_heard(),
            1 => proxy.lose_what_is_said(),
            _ => {}
        }
        scene.project.write(&format!("[script-to-all]: line {round}\n"));
        scene.eve.post_message(&scene.room, &format!("message {round}")).await.unwrap();
        if round == 0 {
            scene.room_has(&format!("line {round}")).await;
        }
        proxy.lead_to(scene.scene.url());
        bridge.notice(|notice| *notice == BridgeNotice::Connected).await;
    }
    scene.room_has(&format!("line {}", rounds - 1)).await;
    let content = scene.project.wait_for(&format!("message {}\n", rounds - 1)).await;
    bridge.stop().await;
    assert_once(lines_of(&content, "eve"), (0..rounds).map(|round| format!("message {round}")));
    let relayed = scene.history().await.into_iter().filter(|text| text.starts_with("line"));
    assert_once(relayed.collect(), (0..rounds).map(|round| format!("line {round}")));
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_file_is_followed_by_its_successor() {
    let scene = BridgeScene::new().await;
    let bridge = scene.bridge().await;
    let workplace = parlor_chatmd::Workplace::open(scene.project.path()).unwrap();
    for round in 0..3 {
        scene.project.write(&format!("[script-to-all]: line {round}\n"));
        scene.eve.post_message(&scene.room, &format!("message {round}")).await.unwrap();
        scene.project.wait_for(&format!("message {round}\n")).await;
        parlor_chatmd::archive(&workplace, "2026-01-01").unwrap().unwrap();
    }
    scene.project.write("[script-to-all]: line 3\n");
    scene.room_has("line 3").await;
    bridge.stop().await;
    let relayed = scene.history().await.into_iter().filter(|text| text.starts_with("line"));
    assert_eq!(relayed.collect::<Vec<_>>(), ["line 0", "line 1", "line 2", "line 3"]);
    assert_eq!(scene.history().await.len(), 7, "no message of the room came back");
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_an_editor_saved_is_not_relayed_again() {
    let scene = BridgeScene::new().await;
    let bridge = scene.bridge().await;
    let workplace = scene.project.path().join(".workplace");
    let (chat, saved) = (workplace.join("chat.md"), workplace.join("saved"));
    let save = |added: &str| {
        std::fs::write(&saved, scene.project.content() + added).unwrap();
        std::fs::rename(&saved, &chat).unwrap();
    };
    scene.project.write("[script-to-all]: line 0\n");
    scene.room_has("line 0").await;
    scene.eve.post_message(&scene.room, "message 0").await.unwrap();
    scene.project.wait_for("message 0\n").await;
    save("");
    scene.project.write("[script-to-all]: line 1\n");
    scene.room_has("line 1").await;
    bridge.stop().await;
    save("[script-to-all]: line 2\n");
    let bridge = scene.bridge().await;
    scene.room_has("line 2").await;
    bridge.stop().await;
    assert_eq!(scene.history().await, ["line 0", "message 0", "line 1", "line 2"]);
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_files_share_a_room() {
    let scene = BridgeScene::new().await;
    let other = super::Project::new();
    let first = scene.bridge().await;
    let second = RunningBridge::start(&other, scene.scene.url(), &scene.room, &scene.key).connected().await;
    scene.project.write("[coder-to-all]: from the first file\n");
    other.wait_for("[ada__coder-to-all]: from the first file\n").await;
    other.write("[tester-to-ada__coder] @ [eve]: from the second file\n");
    scene.project.wait_for("[ada__tester-to-ada__coder] @ [eve]: from the second file\n").await;
    first.stop().await;
    second.stop().await;
    assert_eq!(scene.history().await, ["from the first file", "from the second file"]);
    assert_eq!(scene.project.content().lines().count(), 2);
    assert_eq!(other.content().lines().count(), 2);
    scene.scene.ends_well().await;
}
