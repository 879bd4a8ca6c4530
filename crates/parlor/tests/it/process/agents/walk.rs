//! End-to-end tests of a mention: from the user to a program on a gateway, and back.

use super::{TestGateway, outcome, wait_for_text};
use crate::gateway::scenes::Room;
use parlor_testkit::events::EventReader;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_answers_a_mention() {
    let mut room = Room::start().await;
    let scripts = [
        ("echo", "echo heard: >&2; cat; printf '\\033[31m red\\033[0m'"),
        ("broken", "echo so far; echo 'no more paper' >&2; exit 3"),
        ("silent", "exit 0"),
    ];
    let hosted = TestGateway::new(room.scene.url(), &scripts);
    let mut gateway = hosted.join(&room, &["echo", "broken", "silent"]).await;

    room.say("the kettle is on").await;
    room.say("@echo who is there?").await;
    let mut text = String::new();
    wait_for_text(&mut room, &mut text, |text| text.ends_with(" red")).await;
    let reply = room.reply().await;
    assert_eq!((reply["content"].as_str().unwrap(), outcome(&reply)), (&*text, "complete"));
    assert!(text.contains("\n\nUser: the kettle is on"), "the prompt contains earlier messages: {text}");
    assert!(text.contains("\n\nUser: @echo who is there?"), "{text}");

    room.say("@broken print").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("so far\n"), "failed"));
    let error = &reply["chunks"].as_array().unwrap().last().unwrap();
    assert_eq!(error["content"], "The program exited with code 3: no more paper");

    let mut events = EventReader::live(&room.alice, "").await.unwrap();
    let message = room.say("@silent well?").await;
    events.until(|event| event["kind"] == "turn_complete").await.unwrap();
    assert_eq!(room.deliveries(&message).await[0]["status"], "answered", "an empty reply is an answer");
    gateway.printed(|line| line.contains("echo").then_some(())).await.unwrap();
    assert!(gateway.terminate().await.unwrap().success());
    assert!(gateway.output().contains("asked by alice in kitchen"), "{}", gateway.output());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_ends_the_gateway_with_an_error_without_the_password() {
    let room = Room::start().await;
    let hosted = TestGateway::new(room.scene.url(), &[("echo", "cat")]);
    let gateway_launcher = hosted.gateway_launcher.clone().env("PARLOR_PASSWORD", "Wrong-canary-1");
    let mut gateway = gateway_launcher.spawn().unwrap();
    assert!(!gateway.ended().await.unwrap().success());
    let output = gateway.output();
    assert!(output.contains("the hub rejected this gateway"), "{output}");
    assert!(!output.contains("canary"), "{output}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_does_not_inherit_the_credentials_of_its_gateway() {
    let mut room = Room::start().await;
    let hosted =
        TestGateway::new(room.scene.url(), &[("spy", "env | grep -c ^PATH=; env | grep PARLOR_; true")]);
    let mut gateway = hosted.join(&room, &["spy"]).await;
    room.say("@spy look").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("1\n"), "complete"));
    assert!(gateway.terminate().await.unwrap().success());
    room.scene.ends_well().await;
}
