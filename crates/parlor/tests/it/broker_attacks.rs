//! Attacks on the broker: expensive patterns, ambiguous ids, forged senders and agents, reading foreign mail.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, make_key};

const NO_MAIL: Vec<Value> = Vec::new();

/// A hub with two users, their agents, and an external source.
struct TwoOwners {
    scene: Scene,
    ada: RestClient,
    bob: RestClient,
    /// Ada's connection, with her agents `ada-1` and `ada-2`.
    at_ada: Broker,
    /// Bob's connection, with his agent `bob-1`.
    at_bob: Broker,
    /// Connection of an external source, with an API key of the scope `sources`.
    bridge: Broker,
}

async fn two_owners() -> TwoOwners {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.hearer("ada", &["**"]).await, scene.hearer("bob", &["**"]).await);
    let mut at_ada = Broker::connect(scene.url(), ada.token()).await.unwrap();
    let mut at_bob = Broker::connect(scene.url(), bob.token()).await.unwrap();
    at_ada.create_agent("ada-1", &["slack/**"]).await.unwrap();
    at_ada.create_agent("ada-2", &[]).await.unwrap();
    at_bob.create_agent("bob-1", &[]).await.unwrap();
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let bridge = Broker::connect(scene.url(), &key).await.unwrap();
    TwoOwners { scene, ada, bob, at_ada, at_bob, bridge }
}

/// Sends a frame, asserts that the reply is the error of its type, and returns the error message.
async fn refusal(broker: &mut Broker, frame: Value) -> String {
    let reply = broker.ask(frame.clone()).await.unwrap();
    assert_eq!(reply["type"], format!("{}.error", frame["type"].as_str().unwrap()), "{frame:.200}: {reply}");
    reply["error"].as_str().unwrap().to_owned()
}

/// Adds an agent to a room, as the owner of both.
async fn add_agent(owner: &RestClient, room: &str, agent: &str) {
    let body = json!({ "memberId": agent, "memberType": "agent" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn expensive_or_malformed_patterns_are_refused_in_every_frame() {
    let TwoOwners { scene, mut at_ada, .. } = two_owners().await;
    let patterns = [
        "**/**/**".to_owned(),
        "**/a/".repeat(12) + "b",
        "a/".repeat(33),
        "x".repeat(1025),
        String::new(),
        "///".to_owned(),
        "a\nb".to_owned(),
        "a\0".to_owned(),
    ];
    for pattern in &patterns {
        for frame in [
            json!({ "type": "msg.sub.add", "agentId": "ada-1", "pattern": pattern }),
            json!({ "type": "msg.session.sub.add", "agentId": "ada-1", "sessionId": "s", "pattern": pattern }),
            json!({ "type": "msg.sub.remove", "agentId": "ada-1", "pattern": pattern }),
            json!({ "type": "agent.create", "id": "bomber", "config": { "subscriptions": [pattern] } }),
        ] {
            refusal(&mut at_ada, frame).await;
        }
    }
    let reply = at_ada.ask(json!({ "type": "agent.get", "id": "ada-1" })).await.unwrap();
    assert_eq!(reply["agent"]["sessions"].as_array().unwrap().len(), 1, "no session was created: {reply}");
    let frame = json!({ "type": "agent.get", "id": "bomber" });
    assert_eq!(refusal(&mut at_ada, frame).await, "Agent not found: bomber");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wildcards_in_the_path_of_a_source_are_plain_text() {
    let TwoOwners { scene, mut at_ada, mut at_bob, mut bridge, .. } = two_owners().await;
    at_bob.create_agent("bob-all", &["**"]).await.unwrap();
    for path in ["**", "*", "slack/../**", "agent/**", "agent/*", "*/*", "room/*", "**/**/**/**", "/**/"] {
        let reply = bridge.route("webhook", path, json!({ "text": "to all?" })).await.unwrap();
        let reached = usize::from(!path.starts_with("agent"));
        let mail = at_bob.receive("bob-all").await.unwrap();
        assert_eq!(mail.len(), reached, "{path} reaches only the agent subscribed to `**`: {reply}");
        for message in mail {
            assert_eq!(message["path"], path.trim_matches('/'));
        }
        assert_eq!(at_bob.receive("bob-1").await.unwrap(), NO_MAIL, "{path}");
        let received = at_ada.receive("ada-1").await.unwrap().len();
        assert_eq!(received, usize::from(path.starts_with("slack")), "{path}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_receives_only_source_paths_that_an_admin_allows_its_owner() {
    let TwoOwners { scene, mut at_ada, mut bridge, .. } = two_owners().await;
    let eve = scene.person("eve").await;
    let mut at_eve = Broker::connect(scene.url(), eve.token()).await.unwrap();
    at_eve.create_agent("ears", &["**", "slack/**", "slack/team/#board", "*/*/*"]).await.unwrap();
    let all_paths = json!({ "hears": ["**"] });
    assert_eq!(
        eve.put(&format!("/api/users/{}", eve.user_id()), all_paths.clone()).await.unwrap().status,
        403
    );
    let reply = bridge.route("slack-bridge", "slack/team/#board", json!({})).await.unwrap();
    assert_eq!(reply["deliveredTo"], json!(["ada-1"]));
    assert_eq!(at_eve.receive("ears").await.unwrap(), NO_MAIL);
    let path = format!("/api/users/{}", eve.user_id());
    for invalid in [json!(["**/**/**"]), json!([""]), json!(vec!["x"; 101]), json!("**"), json!([7])] {
        let refused = scene.admin.put(&path, json!({ "hears": invalid })).await.unwrap();
        assert_eq!(refused.status, 400, "{invalid}: {refused:?}");
    }
    scene.admin.put(&path, json!({ "hears": ["slack/*/#lunch"] })).await.unwrap().data().unwrap();
    for channel in ["#board", "#lunch"] {
        bridge.route("slack-bridge", &format!("slack/team/{channel}"), json!({})).await.unwrap();
    }
    let mail = at_eve.receive("ears").await.unwrap();
    assert_eq!(mail.iter().map(|message| &message["path"]).collect::<Vec<_>>(), ["slack/team/#lunch"]);
    assert_eq!(at_ada.receive("ada-1").await.unwrap().len(), 3, "Ada may receive every path");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wildcards_in_the_path_of_an_agent_reach_only_agents_that_it_may_address() {
    let TwoOwners { scene, mut at_ada, mut at_bob, .. } = two_owners().await;
    for path in ["**", "*/ada-2", "slack/**", "room/*", "room/**", "**/agent/bob-1", "*"] {
        let frame = json!({ "type": "msg.route", "from": "ada-1", "path": path, "payload": { "text": "x" } });
        let sentence = refusal(&mut at_ada, frame).await;
        assert_eq!(sentence, "path may contain wildcards only below agent/", "{path}");
    }
    for path in ["agent/*", "agent/**", "agent/**/**", &format!("agent/{}", "**/".repeat(31))] {
        let reply = at_ada.route("ada-1", path, json!({})).await.unwrap();
        assert_eq!(reply["deliveredTo"], json!(["ada-2"]), "{path}");
    }
    for path in ["agent/**/bob-1", "agent/bob-1/**", "agent/*/*"] {
        let reply = at_ada.route("ada-1", path, json!({})).await.unwrap();
        assert_eq!(reply["unmatched"], true, "{path}: {reply}");
    }
    assert_eq!(at_bob.receive("bob-1").await.unwrap(), NO_MAIL);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worst_case_patterns_and_paths_are_matched_quickly() {
    let TwoOwners { scene, mut at_ada, mut bridge, .. } = two_owners().await;
    // Each pattern is a separate path through the routing index, and all of them almost match.
    let hostile = |number: u32| {
        let middle: Vec<&str> = (0..10).map(|bit| if number >> bit & 1 == 1 { "*" } else { "a" }).collect();
        format!("**/{}/**/{}/b", middle.join("/"), middle.join("/"))
    };
    let patterns: Vec<String> = (0..300).map(hostile).collect();
    for (number, patterns) in patterns.chunks(100).enumerate() {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        at_ada.create_agent(&format!("bomber-{number}"), &patterns).await.unwrap();
    }
    let path = vec!["a"; 32].join("/");
    for _ in 0..5 {
        let reply = bridge.route("webhook", &path, json!({})).await.unwrap();
        assert_eq!(reply["unmatched"], true);
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_ids_are_refused_in_every_frame_without_effect() {
    let TwoOwners { scene, mut at_ada, .. } = two_owners().await;
    let long = "x".repeat(65);
    let hostile =
        ["../../../escape", "..", ".", "", "a:b", "a b", "a\nb", "a\0", "é", "*", "**", "a\\b", &long];
    for id in hostile.into_iter().chain(["a/b", "ada-1:main"]) {
        for verb in ["receive", "listen", "history", "sub.list", "sub.add", "sub.remove"] {
            let kind = format!("msg.session.{verb}");
            let frame = json!({ "type": kind, "agentId": "ada-1", "sessionId": id, "pattern": "x/y" });
            assert_eq!(refusal(&mut at_ada, frame).await, format!("Invalid session ID: {id}"));
        }
        let ack = json!({ "type": "msg.ack", "agentId": "ada-1", "sessionId": id, "messageIds": [] });
        refusal(&mut at_ada, ack).await;
        let ack = json!({ "type": "msg.ack", "agentId": "ada-1", "messageIds": [id] });
        assert_eq!(refusal(&mut at_ada, ack).await, "messageIds must be ids of messages");
    }
    for id in hostile.into_iter().chain(["a//b", "/a", "a/", "a/../b", "1/2/3/4/5/6/7/8/9"]) {
        for verb in ["get", "create", "update", "delete"] {
            let frame = json!({ "type": format!("agent.{verb}"), "id": id, "config": {} });
            assert_eq!(refusal(&mut at_ada, frame).await, format!("Invalid agent ID: {id}"));
        }
        for verb in ["receive", "listen", "history", "sub.list", "sub.add", "sub.remove"] {
            for prefix in ["msg", "msg.session"] {
                let kind = format!("{prefix}.{verb}");
                let frame = json!({ "type": kind, "agentId": id, "sessionId": "main", "pattern": "x" });
                assert_eq!(refusal(&mut at_ada, frame).await, format!("Invalid agent ID: {id}"));
            }
        }
        let send = json!({ "type": "msg.send", "from": "ada-1", "to": id });
        refusal(&mut at_ada, send).await;
    }
    let reply = at_ada.ask(json!({ "type": "agent.get", "id": "ada-1" })).await.unwrap();
    assert_eq!(reply["agent"]["sessions"].as_array().unwrap().len(), 1, "{reply}");
    let names: Vec<_> =
        std::fs::read_dir(scene.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("escape")), "{names:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mailboxes_with_ambiguous_joined_names_stay_separate() {
    let TwoOwners { scene, mut at_ada, mut bridge, .. } = two_owners().await;
    let mailboxes = [("x", "y--z"), ("x--y", "z"), ("x/y", "z"), ("x", "y-z"), ("x--y--z", "main")];
    for agent in ["x", "x--y", "x/y", "x--y--z"] {
        at_ada.create_agent(agent, &[]).await.unwrap();
    }
    for (number, (agent, session)) in mailboxes.into_iter().enumerate() {
        let frame = json!({ "type": "msg.session.sub.add", "agentId": agent, "sessionId": session, "pattern": format!("n/{number}") });
        at_ada.ok(frame).await.unwrap();
    }
    for (number, (agent, session)) in mailboxes.into_iter().enumerate() {
        let reply = bridge.route("webhook", &format!("n/{number}"), json!({ "n": number })).await.unwrap();
        assert_eq!(reply["deliveredToSessions"], json!([{ "agentId": agent, "sessionId": session }]));
    }
    for (number, (agent, session)) in mailboxes.into_iter().enumerate() {
        let frame = json!({ "type": "msg.session.receive", "agentId": agent, "sessionId": session });
        let reply = at_ada.ok(frame).await.unwrap();
        let received: Vec<&Value> =
            reply["messages"].as_array().unwrap().iter().map(|message| &message["payload"]["n"]).collect();
        assert_eq!(received, [number], "{agent}:{session}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_sender_is_refused_by_send_broadcast_and_route_alike() {
    let TwoOwners { scene, ada, mut at_ada, mut at_bob, .. } = two_owners().await;
    let forged = [
        "ada-1",
        "agent/ada-1",
        "agent/bob-1",
        "agent/bob-1/session/main",
        "bob-1:main",
        "ada",
        ada.user_id(),
        "admin",
        "system/heartbeat",
        "slack-bridge",
        "*",
    ];
    for from in forged {
        for frame in [
            json!({ "type": "msg.send", "from": from, "to": "ada-2" }),
            json!({ "type": "msg.broadcast", "from": from }),
            json!({ "type": "msg.route", "from": from, "path": "agent/ada-2" }),
            json!({ "type": "msg.route", "from": from, "path": "slack/team/general" }),
        ] {
            assert_eq!(refusal(&mut at_bob, frame).await, "Agent not found", "{from}");
        }
    }
    for agent in ["ada-1", "ada-2"] {
        assert_eq!(at_ada.receive(agent).await.unwrap(), NO_MAIL);
    }
    let mut admin = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    let letters = admin.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
    assert_eq!(letters["messages"], json!([]), "a forged message leaves no dead letter");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_agent_id_yields_the_same_error_as_an_unknown_one() {
    let TwoOwners { scene, mut at_ada, mut at_bob, .. } = two_owners().await;
    let sent = at_ada.route("ada-2", "agent/ada-1", json!({ "text": "private" })).await.unwrap();
    let frames = |id: &str| {
        let mut frames = Vec::new();
        for verb in ["receive", "listen", "history", "sub.list", "sub.add", "sub.remove"] {
            for prefix in ["msg", "msg.session"] {
                let kind = format!("{prefix}.{verb}");
                frames.push(
                    json!({ "type": kind, "agentId": id, "sessionId": "main", "pattern": "**", "lease": 1 }),
                );
            }
        }
        let config = json!({ "name": "mine", "owner": "bob" });
        for verb in ["get", "update", "delete"] {
            frames.push(json!({ "type": format!("agent.{verb}"), "id": id, "config": config }));
        }
        frames.push(json!({ "type": "msg.ack", "agentId": id, "messageIds": [sent["id"]] }));
        frames
    };
    for (forged, missing) in frames("ada-1").into_iter().zip(frames("nobody")) {
        assert_eq!(refusal(&mut at_bob, forged).await, "Agent not found: ada-1");
        assert_eq!(refusal(&mut at_bob, missing).await, "Agent not found: nobody");
    }
    // Bob cannot acknowledge Ada's mail through his own mailbox, nor create an agent below hers.
    let ack = json!({ "type": "msg.ack", "agentId": "bob-1", "messageIds": [sent["id"]] });
    assert_eq!(at_bob.ok(ack).await.unwrap()["acknowledged"], 0);
    refusal(&mut at_bob, json!({ "type": "agent.create", "id": "ada-1/below" })).await;
    let listed = at_bob.ask(json!({ "type": "agent.list" })).await.unwrap();
    let ids: Vec<&Value> = listed["agents"].as_array().unwrap().iter().map(|agent| &agent["id"]).collect();
    assert_eq!(ids, ["bob-1"]);
    let reply = at_ada.ask(json!({ "type": "agent.get", "id": "ada-1" })).await.unwrap();
    assert_eq!(reply["agent"]["name"], "ada-1", "{reply}");
    let config = json!({ "id": "ada-9", "owner": "bob", "name": "first" });
    let reply = at_ada.ok(json!({ "type": "agent.update", "id": "ada-1", "config": config })).await.unwrap();
    assert_eq!((&reply["agent"]["id"], &reply["agent"]["name"]), (&json!("ada-1"), &json!("first")));
    assert_eq!(at_ada.receive("ada-1").await.unwrap().len(), 1, "Ada's mail was not consumed");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_subscription_receives_messages_between_other_agents() {
    let TwoOwners { scene, ada, bob, mut at_ada, mut at_bob, mut bridge } = two_owners().await;
    let private = ada.make_room("ada's", &[]).await.unwrap();
    let common = bob.make_room("common", &[&ada]).await.unwrap();
    let room = format!("room/{private}");
    add_agent(&ada, &private, "ada-1").await;
    // A common room makes Bob's agent reachable for Ada, but does not let it read her mail.
    add_agent(&bob, &common, "bob-1").await;
    let listed = at_ada.ask(json!({ "type": "agent.list" })).await.unwrap();
    let reply = at_ada.ask(json!({ "type": "agent.get", "id": "bob-1" })).await.unwrap();
    assert_eq!((&reply["type"], &reply["agent"]["id"]), (&json!("agent.get.result"), &json!("bob-1")));
    assert!(
        listed["agents"].as_array().unwrap().contains(&reply["agent"]),
        "the agent equals its entry in the list: {reply}"
    );
    let patterns = ["**", "*/*", "agent/**", "agent/*", "agent/ada-1", "agent/ada-2", "room/*", "room/**"];
    for pattern in patterns {
        for kind in ["msg.sub.add", "msg.session.sub.add"] {
            let frame = json!({ "type": kind, "agentId": "bob-1", "sessionId": "ears", "pattern": pattern });
            at_bob.ok(frame).await.unwrap();
        }
    }
    for kind in ["msg.sub.add", "msg.session.sub.add"] {
        let frame = json!({ "type": kind, "agentId": "bob-1", "sessionId": "ears", "pattern": room });
        assert_eq!(refusal(&mut at_bob, frame).await, "Not a member of this room");
    }
    let config = json!({ "subscriptions": ["**", room] });
    let frame = json!({ "type": "agent.create", "id": "bob-2", "config": config });
    assert_eq!(refusal(&mut at_bob, frame).await, "Not a member of this room");
    at_bob.create_agent("bob-2", &["agent/ada-1", "**"]).await.unwrap();
    for agent in ["bob-1", "bob-2"] {
        at_bob.listen(agent).await.unwrap();
    }

    at_ada.route("ada-1", "agent/ada-2", json!({ "text": "between us" })).await.unwrap();
    at_ada.ok(json!({ "type": "msg.send", "from": "ada-2", "to": "ada-1" })).await.unwrap();
    bridge.route("webhook", "agent/ada-1", json!({ "text": "for ada" })).await.unwrap();
    at_ada.route("ada-1", &room, json!({ "text": "in her room" })).await.unwrap();
    ada.post_message(&private, "in her room too").await.unwrap();
    // A custom path of Ada's agent reaches only agents that share a room with her.
    let reply = at_ada.route("ada-1", "notes/today", json!({})).await.unwrap();
    assert_eq!(
        reply["deliveredTo"],
        json!(["bob-1"]),
        "only the agent that shares a room with Ada receives it"
    );
    let push = at_bob.pushed().await.unwrap();
    assert_eq!(push["path"], "notes/today", "no other message was pushed before");
    let mail = at_bob.receive("bob-1").await.unwrap();
    let paths: Vec<&Value> = mail.iter().map(|message| &message["path"]).collect();
    assert_eq!(paths, ["notes/today"]);
    assert_eq!(at_bob.receive("bob-2").await.unwrap(), NO_MAIL);
    let frame = json!({ "type": "msg.session.receive", "agentId": "bob-1", "sessionId": "ears" });
    assert_eq!(at_bob.ok(frame).await.unwrap()["messages"].as_array().unwrap().len(), 1);
    assert_eq!(at_ada.receive("ada-1").await.unwrap().len(), 2);
    assert_eq!(at_ada.receive("ada-2").await.unwrap().len(), 1);
    scene.ends_well().await;
}
