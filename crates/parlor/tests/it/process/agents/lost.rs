//! Gateways that are killed and connections that are cut while agents speak: each reply ends exactly once.

use super::{Hosted, outcome, until_said};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, following};
use parlor_testkit::gateway_process::{LossyProxy, gone};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::Value;

/// Says a line every few milliseconds, so that there is always something on its way.
const COUNTING: &str = "i=0; while [ $i -lt LINES ]; do echo \"line $i\"; i=$((i+1)); sleep 0.02; done";

fn counting(lines: usize) -> String {
    COUNTING.replace("LINES", &lines.to_string())
}

fn counted(lines: usize) -> String {
    (0..lines).map(|line| format!("line {line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_killed_fifty_times_ends_every_reply_once_and_leaves_nothing_behind() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "30")]).await).await;
    let hosted = Hosted::new(room.scene.url(), &[("counter", &counting(100_000))]);
    let mut gateway = hosted.join(&room, &["counter"]).await;
    for round in 0..50 {
        room.say(&format!("@counter round {round}")).await;
        let mut text = String::new();
        until_said(&mut room, &mut text, |text| text.lines().count() > round % 5).await;
        gateway.kill_9().await.unwrap();
        gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
        gateway = hosted.gateway_launcher.start().await.unwrap();
        let reply = room.reply().await;
        assert_eq!(outcome(&reply), "interrupted", "{reply}");
        let said = reply["content"].as_str().unwrap();
        assert!(counted(said.lines().count() + 1).starts_with(said), "{said}");
    }
    let replies = |message: &&Value| message["senderType"] == "agent";
    assert_eq!(room.bob.history(&room.room).await.unwrap().iter().filter(replies).count(), 50);
    drop(gateway);
    gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_cut_fifty_times_loses_nothing_and_says_nothing_twice() {
    const LINES: usize = 1100;
    let mut room = Room::start().await;
    let mut lines = Vec::new();
    for number in 0..5 {
        let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
        let name = format!("counter{number}");
        let hosted = Hosted::new(proxy.url(), &[(&name, &counting(LINES))]);
        let gateway = hosted.join(&room, &[&name]).await;
        lines.push((name, proxy, hosted, gateway));
    }
    let asked: Vec<String> = lines.iter().map(|(name, ..)| format!("@{name}")).collect();
    let mut at_bob = following(&room.bob, &room.room).await;
    room.say(&asked.join(" ")).await;
    let mut heard = 0;
    for round in 1..=10 {
        // Two seconds of counting between two cuts, whoever it is that is heard.
        while heard < round * 5 * 100 {
            let chunk = crate::scene::next(&mut at_bob, "server:message_chunk").await;
            heard += chunk["chunk"]["content"].as_str().unwrap().lines().count();
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
async fn what_was_finished_while_the_hub_was_away_is_said_once_even_by_another_process() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "60")]).await).await;
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let script = format!("echo begun; while [ ! -e {} ]; do sleep 0.02; done; echo done", go.display());
    let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
    let hosted = Hosted::new(proxy.url(), &[("waiter", &script)]);
    let mut gateway = hosted.join(&room, &["waiter"]).await;
    room.say("@waiter go").await;
    until_said(&mut room, &mut String::new(), |text| text.contains("begun")).await;
    let url = proxy.url().to_owned();
    proxy.cut();
    drop(proxy);
    std::fs::write(&go, "").unwrap();
    gateway.printed(|line| line.contains("answered").then_some(())).await.unwrap();
    gateway.kill_9().await.unwrap();
    // Another process, another way to the hub, the same data.
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
