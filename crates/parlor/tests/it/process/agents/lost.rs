//! Tests of killed gateways and lost connections during runs: each reply ends exactly once.

use super::{TestGateway, outcome, wait_for_text};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, following, so_far};
use parlor_testkit::gateway_process::{LossyProxy, gone};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::Value;

/// Prints a line every 20 milliseconds, so that there is always a chunk in flight.
const COUNTING: &str = "i=0; while [ $i -lt LINES ]; do echo \"line $i\"; i=$((i+1)); sleep 0.02; done";

fn counting(lines: usize) -> String {
    COUNTING.replace("LINES", &lines.to_string())
}

fn counted(lines: usize) -> String {
    (0..lines).map(|line| format!("line {line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_each_of_50_gateway_kills_the_reply_ends_once_and_no_process_is_left() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "30")]).await).await;
    let hosted = TestGateway::new(room.scene.url(), &[("counter", &counting(100_000))]);
    let mut gateway = hosted.join(&room, &["counter"]).await;
    for round in 0..50 {
        room.say(&format!("@counter round {round}")).await;
        let mut text = String::new();
        wait_for_text(&mut room, &mut text, |text| text.lines().count() > round % 5).await;
        gateway.kill_9().await.unwrap();
        gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
        gateway = hosted.gateway_launcher.start().await.unwrap();
        let reply = room.reply().await;
        assert_eq!(outcome(&reply), "interrupted", "{reply}");
        let text = reply["content"].as_str().unwrap();
        assert!(counted(text.lines().count() + 1).starts_with(text), "{text}");
        // Chunks of this reply that were not read must not count for the next one.
        so_far(&mut room.at_alice).await;
    }
    let replies = |message: &&Value| message["senderType"] == "agent";
    assert_eq!(room.bob.history(&room.room).await.unwrap().iter().filter(replies).count(), 50);
    drop(gateway);
    gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_connection_losses_neither_lose_nor_duplicate_text() {
    const LINES: usize = 1100;
    let mut room = Room::start().await;
    let mut lines = Vec::new();
    for number in 0..5 {
        let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
        let name = format!("counter{number}");
        let hosted = TestGateway::new(proxy.url(), &[(&name, &counting(LINES))]);
        let gateway = hosted.join(&room, &[&name]).await;
        lines.push((name, proxy, hosted, gateway));
    }
    let mentions: Vec<String> = lines.iter().map(|(name, ..)| format!("@{name}")).collect();
    let mut at_bob = following(&room.bob, &room.room).await;
    room.say(&mentions.join(" ")).await;
    let mut received = 0;
    for round in 1..=10 {
        // About two seconds of output of all agents together between two cuts.
        while received < round * 5 * 100 {
            let chunk = crate::scene::next(&mut at_bob, "server:message_chunk").await;
            received += chunk["chunk"]["content"].as_str().unwrap().lines().count();
        }
        for (_, proxy, ..) in &lines {
            proxy.cut();
        }
    }
    for _ in &lines {
        let reply = room.reply().await;
        assert_eq!(outcome(&reply), "complete");
        assert_eq!(reply["content"].as_str().unwrap(), counted(LINES));
    }
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.iter().filter(|message| message["senderType"] == "agent").count(), 5);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_finished_while_disconnected_is_delivered_once_by_the_next_gateway_process() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "60")]).await).await;
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let script = format!("echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done", go.display());
    let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
    let hosted = TestGateway::new(proxy.url(), &[("waiter", &script)]);
    let mut gateway = hosted.join(&room, &["waiter"]).await;
    room.say("@waiter go").await;
    wait_for_text(&mut room, &mut String::new(), |text| text.contains("begun")).await;
    let url = proxy.url().to_owned();
    proxy.cut();
    drop(proxy);
    std::fs::write(&go, "").unwrap();
    gateway.printed(|line| line.contains("answered").then_some(())).await.unwrap();
    gateway.kill_9().await.unwrap();
    // A new gateway process with the same data directory connects directly instead of through the proxy.
    let gateway_launcher = hosted.gateway_launcher.clone().at(room.scene.url());
    assert_ne!(url, room.scene.url());
    let mut again = gateway_launcher.start().await.unwrap();
    let reply = room.reply().await;
    assert_eq!((reply["content"].as_str().unwrap(), outcome(&reply)), ("begun\ndone\n", "complete"));
    again.kill_9().await.unwrap();
    let _third = gateway_launcher.start().await.unwrap();
    room.say("anything else?").await;
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.iter().filter(|message| message["senderType"] == "agent").count(), 1);
    room.scene.ends_well().await;
}
