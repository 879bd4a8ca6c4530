//! The mirror of mail in `.messages`.

use super::{Root, broker, logged};
use parlor_testkit::broker::Broker;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

/// The last line of each message, and the number of lines of each.
fn messages(content: &str) -> HashMap<String, (Value, usize)> {
    let mut found: HashMap<String, (Value, usize)> = HashMap::new();
    for line in content.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let entry = found.entry(line["id"].as_str().unwrap().to_owned()).or_insert((Value::Null, 0));
        *entry = (line, entry.1 + 1);
    }
    found
}

fn are_delivered(content: &str, count: usize) -> Option<HashMap<String, (Value, usize)>> {
    if !content.ends_with('\n') {
        return None;
    }
    let found = messages(content);
    (found.len() == count && found.values().all(|(line, _)| line["status"] == "delivered")).then_some(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_thousand_messages_are_neither_lost_nor_repeated() {
    const COUNT: usize = 3000;
    let root = Root::new();
    root.write_agent("sender", json!({})).write_agent("team/receiver", json!({}));
    let scene = root.start().await;
    let (mut sender, mut receiver) = (broker(&scene).await, broker(&scene).await);
    let send = async {
        for n in 0..COUNT {
            sender.route("sender", "agent/team/receiver", json!({ "n": n })).await.unwrap();
        }
    };
    let receive = async {
        let mut numbers = Vec::new();
        receiver.listen("team/receiver").await.unwrap();
        while numbers.len() < COUNT {
            let mail = receiver.receive("team/receiver").await.unwrap();
            if mail.is_empty() {
                receiver.pushed().await.unwrap();
            }
            numbers.extend(mail.iter().map(|message| message["payload"]["n"].as_u64().unwrap() as usize));
        }
        numbers
    };
    let ((), numbers) = tokio::join!(send, receive);
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>(), "in order, each once");

    let file = ".messages/agent--team%2Freceiver.jsonl";
    let mirrored = root.wait_for(file, |content| are_delivered(content, COUNT)).await;
    let numbers: BTreeSet<u64> =
        mirrored.values().map(|(line, _)| line["payload"]["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), COUNT);
    assert!(mirrored.values().all(|(_, lines)| *lines <= 2), "at most one line per status");
    let history = json!({ "type": "msg.history", "agentId": "team/receiver", "limit": COUNT });
    let stored = sender.ok(history).await.unwrap();
    let states: BTreeMap<String, Value> = stored["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["id"].as_str().unwrap().to_owned(), message["status"].clone()))
        .collect();
    assert!(states.values().all(|status| status == "delivered") && !states.is_empty());
    assert!(states.keys().all(|id| mirrored.contains_key(id)));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mirror_continues_after_a_crash_without_a_gap_or_a_repetition() {
    let root = Root::new();
    root.write_agent("a", json!({}));
    let mut scene = root.start().await;
    let mut connection = broker(&scene).await;
    for n in 0..50 {
        connection.route("a", "agent/a", json!({ "n": n })).await.unwrap();
    }
    scene.crash_and_restart().await;
    let mut connection = broker(&scene).await;
    for n in 50..60 {
        connection.route("a", "agent/a", json!({ "n": n })).await.unwrap();
    }
    take_all(&mut connection, "a", 60).await;
    let lines = root.wait_for(".messages/agent--a.jsonl", |content| are_delivered(content, 60)).await;
    assert!(lines.values().all(|(_, lines)| *lines <= 2));
    scene.ends_well().await;
}

async fn take_all(broker: &mut Broker, agent: &str, count: usize) -> Vec<Value> {
    let mut all = Vec::new();
    while all.len() < count {
        let mail = broker.receive(agent).await.unwrap();
        assert!(!mail.is_empty(), "{} of {count}", all.len());
        all.extend(mail);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_older_program_are_imported_once_and_continued() {
    let root = Root::new();
    root.write_agent("a", json!({})).write_agent("researcher/analyzer", json!({}));
    let line = |id: &str, status: &str| {
        json!({ "id": id, "from": "slack", "path": "slack/acme/ann", "command": "slack.message",
            "payload": { "text": id }, "status": status, "timestamp": 1_708_900_000_000_u64, "source": "slack",
            "externalId": null, "_deliveredTo": "a" })
        .to_string()
    };
    let old = [line("m1", "delivered"), "{corrupt".into(), line("m2", "pending"), line("m3", "pending")];
    root.write(".messages/agent--a.jsonl", &(old.join("\n") + "\n"));
    root.write(".messages/agent--researcher--analyzer.jsonl", &(line("m4", "pending") + "\n"));
    root.write(".messages/agent--unknown.jsonl", &(line("m5", "pending") + "\n"));
    let mut scene = root.start().await;
    logged(&mut scene, "1 lines were not imported; the first is line 2").await;
    logged(&mut scene, "its agent does not exist").await;
    let mut connection = broker(&scene).await;
    let received = connection.receive("a").await.unwrap();
    let ids: Vec<_> = received.iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m2", "m3"]);
    assert_eq!(received[0]["timestamp"], 1_708_900_000_000_u64);
    assert_eq!(connection.receive("researcher/analyzer").await.unwrap().len(), 1);
    let history = json!({ "type": "msg.history", "agentId": "a" });
    assert_eq!(connection.ok(history.clone()).await.unwrap()["messages"].as_array().unwrap().len(), 3);

    connection.route("a", "agent/a", json!({ "n": 1 })).await.unwrap();
    let file = ".messages/agent--a.jsonl";
    let is_mirrored = |content: &str| {
        let of = |id: &str| content.matches(&format!("\"id\":\"{id}\"")).count();
        (content.contains("\"n\":1") && (of("m1"), of("m2"), of("m3")) == (1, 2, 2))
            .then(|| content.to_owned())
    };
    let content = root.wait_for(file, is_mirrored).await;
    assert!(content.starts_with(&old.join("\n")), "only appended to");
    let analyzer = ".messages/agent--researcher%2Fanalyzer.jsonl";
    root.wait_for(analyzer, |content| content.contains("\"delivered\"").then_some(())).await;

    scene.crash_and_restart().await;
    logged(&mut scene, "the agents root was read").await;
    let mut connection = broker(&scene).await;
    assert_eq!(connection.ok(history).await.unwrap()["messages"].as_array().unwrap().len(), 4, "not again");
    assert_eq!(fs::read_to_string(root.path(file)).unwrap(), content, "nothing is appended again");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_place_of_the_messages_is_not_followed() {
    let (root, outside) = (Root::new(), Root::new());
    root.write_agent("a", json!({}));
    outside.write("x", "");
    std::os::unix::fs::symlink(outside.path("x"), root.path("link")).unwrap();
    fs::create_dir(root.path(".messages")).unwrap();
    std::os::unix::fs::symlink(outside.path("x"), root.path(".messages/agent--a.jsonl")).unwrap();
    let mut scene =
        crate::scene::Scene::with(&[("PARLOR_AGENTS_ROOT", root.path("").to_str().unwrap())]).await;
    scene
        .hub
        .logged(|line| (line.contains("agent--a.jsonl") && line.contains("symbolic link")).then_some(()))
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(outside.path("x")).unwrap(), "");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_no_mailbox_received_are_imported_once_and_continued() {
    let root = Root::new();
    root.write_agent("a", json!({}));
    let old = json!({ "id": "u1", "from": "slack", "path": "slack/old", "command": "say", "payload": { "n": 1 },
        "source": "slack", "externalId": null, "reason": "no_subscribers", "timestamp": 1_708_900_000_000_u64 });
    root.write(".messages/broker-unmatched.jsonl", &format!("{old}\n{{corrupt\n"));
    let mut scene = root.start().await;
    logged(&mut scene, "1 lines were not imported; the first is line 2").await;
    let file = ".messages/broker-unmatched.jsonl";
    let lines = |count: usize| {
        move |content: &str| {
            let lines = content.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let lines: Vec<Value> = lines.collect();
            (content.ends_with('\n') && lines.len() == count).then_some(lines)
        }
    };
    let unmatched = async |broker: &mut Broker| {
        let answer = broker.ask(json!({ "type": "msg.unmatched" })).await.unwrap();
        let messages = answer["messages"].as_array().unwrap().iter();
        messages.map(|message| message["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut connection = broker(&scene).await;
    assert_eq!(unmatched(&mut connection).await, ["slack/old"]);
    connection.route("slack", "slack/new", json!({ "n": 2 })).await.unwrap();
    let found = root.wait_for(file, lines(2)).await;
    assert_eq!(
        json!([found[1]["path"], found[1]["payload"], found[1]["reason"], found[1]["from"]]),
        json!(["slack/new", { "n": 2 }, "no_subscribers", "slack"])
    );

    scene.crash_and_restart().await;
    let mut connection = broker(&scene).await;
    connection.route("slack", "slack/newer", json!({})).await.unwrap();
    let found = root.wait_for(file, lines(3)).await;
    assert_eq!(found[2]["path"], "slack/newer", "nothing is repeated: {found:?}");
    assert_eq!(unmatched(&mut connection).await, ["slack/newer", "slack/new", "slack/old"]);
    scene.ends_well().await;
}
