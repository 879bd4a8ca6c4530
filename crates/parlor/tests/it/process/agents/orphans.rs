//! Tests that no process started by an agent outlives the run or the gateway.

use super::{TestGateway, outcome, wait_for_text};
use crate::gateway::scenes::Room;
use parlor_testkit::gateway_process::{gone, processes};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::json;

/// Starts children in separate sessions, ignores SIGTERM, SIGINT and SIGHUP, and never ends.
const STUBBORN: &str = "
trap '' TERM INT HUP
setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 100; done' \"$0\" &
(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 100; done' \"$0\" &)
echo up
while :; do sleep 100; done
";

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_whole_process_tree() {
    let mut room = Room::start().await;
    let hosted = TestGateway::new(room.scene.url(), &[("stubborn", STUBBORN), ("next", "echo here")]);
    let _gateway = hosted.join(&room, &["stubborn", "next"]).await;
    room.say("@stubborn go").await;
    wait_for_text(&mut room, &mut String::new(), |text| text.contains("up")).await;
    let script = hosted.place.path().join("stubborn.sh").display().to_string();
    assert!(processes(&script).len() >= 4, "{:?}", processes(&script));
    let agent = hosted.gateway_launcher.agent("stubborn").unwrap();
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": agent });
    room.at_alice.send(&stop).await.unwrap();
    gone(&script, TEST_TIMEOUT).await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("up\n"), "cancelled"));
    room.say("@next still there?").await;
    assert_eq!(room.reply().await["content"], "here\n");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_a_killed_gateway_end() {
    let mut room = Room::start().await;
    let hosted = TestGateway::new(room.scene.url(), &[("stubborn", STUBBORN)]);
    let mut gateway = hosted.join(&room, &["stubborn"]).await;
    room.say("@stubborn go").await;
    wait_for_text(&mut room, &mut String::new(), |text| text.contains("up")).await;
    gateway.kill_9().await.unwrap();
    gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn background_processes_of_a_program_end_with_it() {
    let mut room = Room::start().await;
    let leaves = "(setsid sh -c 'while :; do sleep 100; done' \"$0\" &) ; echo done";
    let hosted = TestGateway::new(room.scene.url(), &[("leaver", leaves)]);
    let _gateway = hosted.join(&room, &["leaver"]).await;
    room.say("@leaver go").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("done\n"), "complete"));
    let script = hosted.place.path().join("leaver.sh").display().to_string();
    gone(&script, TEST_TIMEOUT).await.unwrap();
    room.scene.ends_well().await;
}
