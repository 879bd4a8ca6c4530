//! A mention, from the person who types it to a program on another machine and back.

use super::{Hosted, outcome, until_said};
use crate::gateway::scenes::Room;
use parlor_testkit::events::EventReader;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_answers_who_mentions_it() {
    let mut room = Room::start().await;
    let scripts = [
        ("echo", "echo heard: >&2; cat; printf '\\033[31m red\\033[0m'"),
        ("broken", "echo so far; echo 'no more paper' >&2; exit 3"),
        ("silent", "exit 0"),
    ];
    let hosted = Hosted::new(room.scene.url(), &scripts);
    let mut gateway = hosted.join(&room, &["echo", "broken", "silent"]).await;

    room.say("the kettle is on").await;
    room.say("@echo who is there?").await;
    let mut text = String::new();
    until_said(&mut room, &mut text, |text| text.ends_with(" red")).await;
    let reply = room.reply().await;
    assert_eq!((reply["content"].as_str().unwrap(), outcome(&reply)), (&*text, "complete"));
    assert!(text.contains("\n\nUser: the kettle is on"), "it knows what was said before: {text}");
    assert!(text.contains("\n\nUser: @echo who is there?"), "{text}");

    room.say("@broken print").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("so far\n"), "failed"));
    let error = &reply["chunks"].as_array().unwrap().last().unwrap();
    assert_eq!(error["content"], "The program ended with code 3: no more paper");

    let mut told = EventReader::live(&room.alice, "").await.unwrap();
    let asked = room.say("@silent well?").await;
    told.until(|event| event["kind"] == "turn_complete").await.unwrap();
    assert_eq!(room.deliveries(&asked).await[0]["status"], "answered", "it had nothing to say");
    gateway.printed(|line| line.contains("echo").then_some(())).await.unwrap();
    assert!(gateway.terminate().await.unwrap().success());
    assert!(gateway.output().contains("asked by alice in kitchen"), "{}", gateway.output());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_ends_it_with_a_sentence_and_shows_no_secret() {
    let room = Room::start().await;
    let hosted = Hosted::new(room.scene.url(), &[("echo", "cat")]);
    let gateway_launcher = hosted.gateway_launcher.clone().env("PARLOR_PASSWORD", "Wrong-canary-1");
    let mut gateway = gateway_launcher.spawn().unwrap();
    assert!(!gateway.ended().await.unwrap().success());
    let output = gateway.output();
    assert!(output.contains("the hub did not let this gateway in"), "{output}");
    assert!(!output.contains("canary"), "{output}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_not_told_how_its_gateway_signs_in() {
    let mut room = Room::start().await;
    let hosted = Hosted::new(room.scene.url(), &[("spy", "env | grep -c ^PATH=; env | grep PARLOR_; true")]);
    let mut gateway = hosted.join(&room, &["spy"]).await;
    room.say("@spy look").await;
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("1\n"), "complete"));
    assert!(gateway.terminate().await.unwrap().success());
    room.scene.ends_well().await;
}
