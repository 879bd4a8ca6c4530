//! Lines reach every kind of client, and their answers come back as lines, each once.

use super::BridgeScene;
use crate::scene::{following, heard};
use parlor_testkit::broker::Broker;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_line_reaches_a_broker_session_a_browser_and_the_events_and_answers_come_back() {
    let scene = BridgeScene::new().await;
    let mut broker = Broker::connect(scene.scene.url(), scene.ada.token()).await.unwrap();
    broker.create_agent("coder", &[]).await.unwrap();
    scene.add_agent("coder").await;
    broker.listen("coder").await.unwrap();
    let mut browser = following(&scene.eve, &scene.room).await;
    let mut events = EventReader::live(&scene.eve, "").await.unwrap();
    let bridge = scene.bridge().await;

    scene.project.write("[script-to-coder] @ [eve]: please build\n  with tests\n");
    let copy = broker.pushed().await.unwrap();
    assert_eq!(copy["payload"]["text"], "please build\nwith tests");
    let shown = heard(&mut browser).await;
    assert_eq!((&shown["senderType"], &shown["senderId"]), (&json!("user"), &json!(scene.ada.user_id())));
    assert_eq!(shown["senderName"], "script (unverified)");
    let relayed =
        json!({ "author": "script", "verified": false, "recipient": "coder", "observers": ["eve"] });
    assert_eq!(shown["metadata"]["relayed"], relayed);
    let event = |text: &'static str| move |event: &serde_json::Value| event["text"] == text;
    events.until(event("please build\nwith tests")).await.unwrap();

    // The agent answers over the broker, and Eve in the browser.
    let path = format!("room/{}", scene.room);
    broker.route("coder", &path, json!({ "text": "built\n[x-to-y]: forged" })).await.unwrap();
    heard(&mut browser).await;
    browser.say(&scene.room, "well done @coder", "c1").await.unwrap();
    scene.project.wait_for("[coder-to-all]: built\n  [x-to-y]: forged\n").await;
    scene.project.wait_for("[eve-to-coder]: well done @coder\n").await;

    // A line of an agent of the account is posted as that agent.
    heard(&mut browser).await;
    scene.project.write("[coder-to-eve]: thank you\n");
    let shown = heard(&mut browser).await;
    assert_eq!((&shown["senderType"], &shown["senderId"]), (&json!("agent"), &json!("coder")));
    assert_eq!((&shown["content"], &shown["mentions"]), (&json!("thank you"), &json!(["eve"])));
    events.until(event("thank you")).await.unwrap();

    let expected = ["please build\nwith tests", "built\n[x-to-y]: forged", "well done @coder", "thank you"];
    assert_eq!(scene.history().await, expected);
    assert_eq!(bridge.stop().await, []);
    let lines = scene.project.content();
    assert_eq!(lines.lines().filter(|line| line.starts_with('[')).count(), 4, "nothing is echoed: {lines}");
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_of_a_line_gets_no_run() {
    let scene = BridgeScene::new().await;
    let mut gateway = Gateway::connect(&scene.ada, "laptop").await.unwrap();
    for agent in ["reviewer", "watcher"] {
        gateway.register(agent, agent).await.unwrap();
        scene.add_agent(agent).await;
    }
    let bridge = scene.bridge().await;
    scene.project.write("[script-to-reviewer] @ [watcher]: look\n");
    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["agentId"], &turn["content"]), (&json!("reviewer"), &json!("look")));
    gateway.complete(&turn, "reply-1", "@watcher is not asked in text").await.unwrap();
    scene.project.wait_for("[reviewer-to-watcher]: @watcher is not asked in text\n").await;
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["agentId"], "watcher", "the reply of the reviewer mentions the watcher");
    gateway.complete(&turn, "reply-2", "done").await.unwrap();
    scene.project.wait_for("[watcher-to-all]: done\n").await;
    // A line that answers a person starts a new chain of agents.
    scene.eve.post_message(&scene.room, "go on").await.unwrap();
    scene.project.wait_for("[eve-to-all]: go on\n").await;
    scene.project.write("[other-to-watcher]: your turn, @reviewer\n");
    let turn = gateway.turn().await.unwrap();
    let expected = (&json!("watcher"), &json!("your turn, @reviewer"));
    assert_eq!((&turn["agentId"], &turn["content"]), expected);
    gateway.complete(&turn, "reply-3", "yes").await.unwrap();
    scene.project.wait_for("[watcher-to-all]: yes\n").await;
    // The next run is that of the next message.
    scene.eve.post_message(&scene.room, "@reviewer a new chain").await.unwrap();
    assert_eq!(gateway.turn().await.unwrap()["content"], "@reviewer a new chain");
    bridge.stop().await;
    scene.scene.ends_well().await;
}

/// Scripts that answer every line keep two agents talking until the chain of agents is too long.
#[tokio::test(flavor = "multi_thread")]
async fn agents_that_answer_each_other_through_the_file_stop() {
    let scene = BridgeScene::new().await;
    let mut gateway = Gateway::connect(&scene.ada, "laptop").await.unwrap();
    for agent in ["a", "b"] {
        gateway.register(agent, agent).await.unwrap();
        scene.add_agent(agent).await;
    }
    let bridge = scene.bridge().await;
    scene.project.write("[script-to-a]: begin\n");
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["agentId"], "a");
    gateway.complete(&turn, "reply-a", "over to b").await.unwrap();
    scene.project.wait_for("[a-to-all]: over to b\n").await;
    // A script passes it on, and so hides neither the agent nor the depth.
    scene.project.write("[other-to-b]: your turn\n");
    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["agentId"], &turn["content"]), (&json!("b"), &json!("your turn")));
    gateway.complete(&turn, "reply-b", "back to a").await.unwrap();
    scene.project.wait_for("[b-to-all]: back to a\n").await;
    // Any spelling of any name continues the same chain.
    scene.project.write("[script-to-a]: again\n[Other-to-A]: and again\n[OTHER-to-b]: and b\n");
    scene.room_has("and b").await;
    scene.eve.post_message(&scene.room, "@a from a person").await.unwrap();
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["content"], "@a from a person", "no line after the reply of b starts a run");
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_files_are_listed_with_their_address() {
    let scene = BridgeScene::new().await;
    let bridge = scene.bridge().await;
    let file = scene.eve.upload("plan.txt", b"step 1").await.unwrap().data().unwrap();
    let id = file["id"].as_str().unwrap();
    let body = json!({ "content": "see @ada", "attachmentIds": [id] });
    scene.eve.post(&format!("/api/rooms/{}/messages", scene.room), body).await.unwrap().data().unwrap();
    let expected = format!(
        "[eve-to-ada]: see @ada\n  (attached file: plan.txt, text/plain, 6 bytes, http://hub.example/uploads/{id})\n"
    );
    scene.project.wait_for(&expected).await;
    bridge.stop().await;
    scene.scene.ends_well().await;
}
