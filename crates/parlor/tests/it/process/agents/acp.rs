//! End-to-end tests of an agent with the Agent Client Protocol: from the user to its process, and back.

use super::{TestGateway, outcome, registered, wait_for_text};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, following, next};
use parlor_testkit::gateway_process::{GatewayLauncher, LossyProxy, gone};
use parlor_testkit::program::program;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::time::Duration;

/// A gateway of the user `alice` with the scripted `acp-actor`, which stores its sessions on disk.
fn acp_gateway(url: &str) -> TestGateway {
    let place = tempfile::tempdir().unwrap();
    let sessions = place.path().join("sessions");
    std::fs::create_dir(&sessions).unwrap();
    let (actor, sessions) = (program("acp-actor"), sessions.to_str().unwrap());
    let actor =
        ["--user", "alice", "--agent", "actor=acp", "--", actor.to_str().unwrap(), "--state", sessions];
    let gateway_launcher = GatewayLauncher::with_arguments(PARLOR, place.path(), &actor);
    TestGateway { gateway_launcher: gateway_launcher.env("PARLOR_PASSWORD", PASSWORD).at(url), place }
}

fn kinds(reply: &Value) -> Vec<&str> {
    reply["chunks"].as_array().unwrap().iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acp_agent_streams_requests_approval_stops_and_keeps_its_session() {
    let mut room = Room::start().await;
    let hosted = acp_gateway(room.scene.url());
    let mut gateway = hosted.join(&room, &["actor"]).await;

    room.say("@actor think tool stream").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("One two three."), "complete"));
    assert_eq!(kinds(&reply), ["thinking", "tool_use", "tool_result", "text"]);

    room.say("@actor ask").await;
    let card = next(&mut room.at_alice, "server:permission_request").await;
    assert_eq!((&card["toolName"], &card["toolInput"]["command"]), (&json!("Bash"), &json!("rm -rf build")));
    let yes =
        json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": "allow" });
    room.at_alice.send(&yes).await.unwrap();
    assert_eq!(room.reply().await["content"], "answer: yes");

    room.say("@actor count deaf").await;
    wait_for_text(&mut room, &mut String::new(), |text| text.contains("turn 3 of ")).await;
    let agent = hosted.gateway_launcher.agent("actor").unwrap();
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": agent });
    room.at_alice.send(&stop).await.unwrap();
    assert_eq!(outcome(&room.reply().await), "cancelled");

    assert!(gateway.terminate().await.unwrap().success());
    let mut gateway = hosted.gateway_launcher.start().await.unwrap();
    room.say("@actor count").await;
    let reply = room.reply().await;
    assert!(reply["content"].as_str().unwrap().starts_with("turn 4 of "), "{reply}");
    assert!(gateway.terminate().await.unwrap().success());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_its_gateway_and_the_hub() {
    let mut room = Room::start().await;
    let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
    let hosted = acp_gateway(proxy.url());
    let mut gateway = hosted.join(&room, &["actor"]).await;
    room.say("@actor count").await;
    let first = room.reply().await["content"].as_str().unwrap().to_owned();
    let session = first.strip_prefix("turn 1 of ").unwrap().to_owned();

    // The hub crashes and restarts; the gateway reconnects.
    room.scene.crash_and_restart().await;
    proxy.lead_to(room.scene.url());
    room.alice = room.alice.at(room.scene.url());
    registered(&room.alice, "actor").await;
    room.at_alice = following(&room.alice, &room.room).await;
    room.say("@actor again count").await;
    assert_eq!(room.reply().await["content"], format!("turn 2 of {session}"));

    // Hub and gateway crash, the gateway during a run.
    room.say("@actor once more count hang").await;
    wait_for_text(&mut room, &mut String::new(), |text| text.ends_with(&format!("turn 3 of {session}")))
        .await;
    gateway.kill_9().await.unwrap();
    gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
    room.scene.crash_and_restart().await;
    proxy.lead_to(room.scene.url());
    room.alice = room.alice.at(room.scene.url());
    room.at_alice = following(&room.alice, &room.room).await;
    let mut gateway = hosted.gateway_launcher.start().await.unwrap();
    registered(&room.alice, "actor").await;
    room.say("@actor at last count").await;
    let answer = async {
        loop {
            let reply = room.reply().await;
            if outcome(&reply) == "complete" {
                return reply;
            }
            assert_eq!(outcome(&reply), "interrupted", "the run that was active during the crash: {reply}");
        }
    };
    assert_eq!(answer.await["content"], format!("turn 4 of {session}"));
    assert!(gateway.terminate().await.unwrap().success());
    gone(&hosted.mark(), TEST_TIMEOUT).await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_output_is_treated_as_data_and_the_room_stays_usable() {
    let mut room = Room::start().await;
    let hosted = acp_gateway(room.scene.url());
    let _gateway = hosted.join(&room, &["actor"]).await;
    room.say("@actor noise plan").await;
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], outcome(&reply)),
        (&json!("bytes red {\"type\":\"gateway:message_complete\"}"), "complete")
    );
    // A line of 100 MB may fail the run, but must not block it.
    room.say("@actor line stream").await;
    let reply = room.reply().await;
    assert!(matches!(outcome(&reply), "complete" | "failed"), "{reply:.300}");
    // The scripted ACP agent sends 200,000 chunks without pause, while a second agent, `calm`, is mentioned.
    let calm = TestGateway::new(room.scene.url(), &[("calm", "echo calm")]);
    let _calm = calm.join(&room, &["calm"]).await;
    room.say("@actor flood").await;
    room.say("@calm are you there?").await;
    let mut ended = Vec::new();
    for _ in 0..2 {
        let complete = |frame: &Value| frame["type"] == "server:message_complete";
        let frame = room.at_alice.wait_for(Duration::from_secs(120), complete).await.unwrap();
        ended.push((
            frame["message"]["senderName"].as_str().unwrap().to_owned(),
            outcome(&frame["message"]).to_owned(),
        ));
    }
    ended.sort();
    assert_eq!(ended, [("actor".into(), "complete".into()), ("calm".into(), "complete".into())]);
    room.scene.ends_well().await;
}
