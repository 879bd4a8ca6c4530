//! An agent that speaks the Agent Client Protocol, from the person who mentions it to its process and back.

use super::{Hosted, outcome, until_said};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, next};
use parlor_testkit::hosting::Machine;
use parlor_testkit::program::program;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn it_streams_asks_stops_and_keeps_its_session() {
    let mut room = Room::start().await;
    let place = tempfile::tempdir().unwrap();
    let sessions = place.path().join("sessions");
    std::fs::create_dir(&sessions).unwrap();
    let command = json!([program("acp-actor"), "--state", sessions]);
    let settings = format!("user = 'alice'\n[[agent]]\nname = 'actor'\nkind = 'acp'\ncommand = {command}\n");
    let machine = Machine::new(PARLOR, place.path(), &settings);
    let machine = machine.env("PARLOR_PASSWORD", PASSWORD).at(room.scene.url());
    let hosted = Hosted { place, machine };
    let mut gateway = hosted.join(&room, &["actor"]).await;

    room.say("@actor think tool stream").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("One two three."), "complete"));
    let kinds: Vec<&str> =
        reply["chunks"].as_array().unwrap().iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "tool_use", "tool_result", "text"]);

    room.say("@actor ask").await;
    let card = next(&mut room.at_alice, "server:permission_request").await;
    assert_eq!((&card["toolName"], &card["toolInput"]["command"]), (&json!("Bash"), &json!("rm -rf build")));
    let yes =
        json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": "allow" });
    room.at_alice.send(&yes).await.unwrap();
    assert_eq!(room.reply().await["content"], "answer: yes");

    room.say("@actor count deaf").await;
    until_said(&mut room, &mut String::new(), |text| text.contains("turn 3 of ")).await;
    let agent = hosted.machine.agent("actor").unwrap();
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": agent });
    room.at_alice.send(&stop).await.unwrap();
    assert_eq!(outcome(&room.reply().await), "cancelled");

    assert!(gateway.terminate().await.unwrap().success());
    let mut gateway = hosted.machine.start().await.unwrap();
    room.say("@actor count").await;
    let reply = room.reply().await;
    assert!(reply["content"].as_str().unwrap().starts_with("turn 4 of "), "{reply}");
    assert!(gateway.terminate().await.unwrap().success());
    room.scene.ends_well().await;
}
