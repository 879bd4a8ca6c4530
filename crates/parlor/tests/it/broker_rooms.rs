//! Rooms over the broker protocol: relayed messages, and programs that follow a room.

use parlor_testkit::broker::Broker;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, following, heard, make_key};

async fn connect(user: &RestClient) -> Broker {
    Broker::connect(user.url(), user.token()).await.unwrap()
}

async fn add_agent(owner: &RestClient, room: &str, agent: &str) {
    let body = json!({ "memberId": agent, "memberType": "agent" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
}

fn relay(room: &str, author: &str, recipient: Option<&str>, text: &str) -> Value {
    let mut frame =
        json!({ "type": "msg.relay", "roomId": room, "author": author, "text": text, "source": "chatmd" });
    if let Some(recipient) = recipient {
        frame["recipient"] = json!(recipient);
    }
    frame
}

/// Asserts that the hub refuses this request with this sentence.
async fn refused(broker: &mut Broker, frame: Value, sentence: &str) {
    let reply = broker.ask(frame.clone()).await.unwrap();
    assert_eq!(reply["error"], sentence, "{frame} got {reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relayed_message_is_posted_as_the_accounts_agent_or_labelled_as_unverified() {
    let scene = Scene::start().await;
    let (ada, eve) = (scene.person("ada").await, scene.person("eve").await);
    let room = ada.make_room("Workshop", &[&eve]).await.unwrap();
    let mut broker = connect(&ada).await;
    broker.create_agent("coder", &[]).await.unwrap();
    broker.create_agent("outside", &[]).await.unwrap();
    connect(&eve).await.create_agent("evebot", &[]).await.unwrap();
    add_agent(&ada, &room, "coder").await;
    let mut eves = following(&eve, &room).await;

    broker.ok(relay(&room, "coder", Some("eve"), "done")).await.unwrap();
    let message = heard(&mut eves).await;
    assert_eq!((&message["senderType"], &message["senderId"]), (&json!("agent"), &json!("coder")));
    assert_eq!((&message["senderName"], &message["content"]), (&json!("coder"), &json!("done")));
    assert_eq!(message["mentions"], json!(["eve"]));
    let relayed = json!({ "author": "coder", "verified": true, "recipient": "eve", "observers": [] });
    assert_eq!(message["metadata"]["relayed"], relayed);

    // An agent outside the room, an agent of another user and a user are names without proof.
    for author in ["outside", "evebot", "eve", "ada", "stranger"] {
        broker.ok(relay(&room, author, None, "hello @eve")).await.unwrap();
        let message = heard(&mut eves).await;
        assert_eq!((&message["senderType"], &message["senderId"]), (&json!("user"), &json!(ada.user_id())));
        assert_eq!(message["senderName"], format!("{author} (unverified)"));
        assert_eq!(message["mentions"], json!([]), "a name in the text addresses nobody");
        let relayed = json!({ "author": author, "verified": false, "observers": [] });
        assert_eq!(message["metadata"]["relayed"], relayed);
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relayed_message_survives_a_restart_with_its_author_and_a_retry_returns_it() {
    let mut scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = ada.make_room("Workshop", &[]).await.unwrap();
    let mut frame = relay(&room, "stranger", Some("nobody"), "first");
    frame["externalId"] = json!("file:0");
    frame["observers"] = json!(["eve"]);
    let first = connect(&ada).await.ok(frame.clone()).await.unwrap();
    scene.crash_and_restart().await;
    let ada = ada.at(scene.url());
    let mut broker = connect(&ada).await;
    let again = broker.ok(frame.clone()).await.unwrap();
    assert_eq!((&again["id"], &again["position"]), (&first["id"], &first["position"]));
    frame["text"] = json!("second");
    let other = broker.ok(frame).await.unwrap();
    assert_ne!(other["id"], first["id"], "another text with the same id is another message");
    let history = ada.history(&room).await.unwrap();
    assert_eq!(history.len(), 2);
    let relayed =
        json!({ "author": "stranger", "verified": false, "recipient": "nobody", "observers": ["eve"] });
    assert_eq!(history[0]["metadata"]["relayed"], relayed);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipient_gets_a_run_and_an_observer_only_a_copy() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = ada.make_room("Workshop", &[]).await.unwrap();
    let mut gateway = Gateway::connect(&ada, "laptop").await.unwrap();
    for agent in ["reviewer", "watcher"] {
        gateway.register(agent, agent).await.unwrap();
        add_agent(&ada, &room, agent).await;
    }
    let mut broker = connect(&ada).await;
    broker.listen("watcher").await.unwrap();
    let mut frame = relay(&room, "coder", Some("reviewer"), "please review");
    frame["observers"] = json!(["watcher", "reviewer", "stranger"]);
    broker.ok(frame).await.unwrap();
    let copy = broker.pushed().await.unwrap();
    assert_eq!(copy["payload"]["text"], "please review");
    assert_eq!(copy["payload"]["relayed"]["observers"], json!(["watcher", "reviewer", "stranger"]));
    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["agentId"], &turn["content"]), (&json!("reviewer"), &json!("please review")));
    gateway.complete(&turn, "reply-1", "done").await.unwrap();
    // The next run is that of the next message: the copy started none.
    broker.ok(relay(&room, "coder", Some("watcher"), "your turn")).await.unwrap();
    let turn = gateway.turn().await.unwrap();
    assert_eq!((&turn["agentId"], &turn["content"]), (&json!("watcher"), &json!("your turn")));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relayed_answer_continues_the_chain_of_the_message_that_it_answers() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = ada.make_room("Workshop", &[]).await.unwrap();
    let mut gateway = Gateway::connect(&ada, "laptop").await.unwrap();
    for agent in ["reviewer", "tester"] {
        gateway.register(agent, agent).await.unwrap();
        add_agent(&ada, &room, agent).await;
    }
    let mut broker = connect(&ada).await;
    broker.ok(relay(&room, "script", Some("reviewer"), "first")).await.unwrap();
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "reply-1", "done").await.unwrap();
    gateway.settled().await.unwrap();

    // Through another author outside the hub, which does not hide the chain.
    let mut frame = relay(&room, "script", Some("another-script"), "pass it on");
    frame["continues"] = json!("reply-1");
    let passed_on = broker.ok(frame).await.unwrap();
    let mut frame = relay(&room, "another-script", Some("reviewer"), "again");
    frame["continues"] = passed_on["id"].clone();
    broker.ok(frame).await.unwrap();
    let mut frame = relay(&room, "another-script", Some("tester"), "someone else");
    frame["continues"] = json!("reply-1");
    broker.ok(frame).await.unwrap();
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["content"], "someone else", "the reviewer has already spoken in this chain");
    assert_eq!(turn["depth"], 2, "the reviewer and an author outside the hub are before the tester");
    gateway.complete(&turn, "reply-2", "done").await.unwrap();
    gateway.settled().await.unwrap();

    let mut frame = relay(&room, "script", Some("reviewer"), "too deep");
    frame["continues"] = json!("reply-2");
    broker.ok(frame).await.unwrap();
    broker.ok(relay(&room, "script", Some("reviewer"), "a new chain")).await.unwrap();
    assert_eq!(gateway.turn().await.unwrap()["content"], "a new chain");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_is_refused_without_membership_scope_or_valid_fields() {
    let scene = Scene::start().await;
    let (ada, eve) = (scene.person("ada").await, scene.person("eve").await);
    let room = ada.make_room("Workshop", &[]).await.unwrap();
    let mut owner = connect(&ada).await;
    owner.create_agent("coder", &[]).await.unwrap();
    add_agent(&ada, &room, "coder").await;
    let good = relay(&room, "coder", None, "hello");
    refused(&mut connect(&eve).await, good.clone(), "Not a member of this room").await;
    refused(&mut owner, relay("unknown", "coder", None, "hello"), "Not found").await;

    let (_, reader) = make_key(&ada, &["read"]).await;
    let mut reader = Broker::connect(ada.url(), &reader).await.unwrap();
    refused(&mut reader, good.clone(), "Not allowed").await;
    let (_, writer) = make_key(&ada, &["read", "write"]).await;
    let mut writer = Broker::connect(ada.url(), &writer).await.unwrap();
    refused(&mut writer, good.clone(), "Not allowed").await;
    writer.ok(relay(&room, "stranger", None, "a label needs no scope for agents")).await.unwrap();

    let with = |field: &str, value: Value| {
        let mut frame = good.clone();
        frame[field] = value;
        frame
    };
    let too_long = "x".repeat(100_001);
    for (frame, sentence) in [
        (with("text", json!(" ")), "text must not be empty"),
        (with("text", json!(too_long)), "Message exceeds the maximum of 100000 characters"),
        (with("author", json!("")), "author must not be empty"),
        (with("author", json!("a\nb")), "author must not contain control characters"),
        (with("author", json!(7)), "a field must be a string"),
        (with("observers", json!(vec!["x"; 51])), "observers at most 50"),
        (with("continues", json!("../x")), "continues must be the id of a message"),
        (with("externalId", json!("")), "externalId must have 1 to 500 characters"),
    ] {
        refused(&mut owner, frame, sentence).await;
    }
    assert_eq!(ada.history(&room).await.unwrap().len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_follows_a_room_from_a_position_without_gap_or_repeat() {
    let scene = Scene::start().await;
    let (ada, eve) = (scene.person("ada").await, scene.person("eve").await);
    let room = ada.make_room("Workshop", &[&eve]).await.unwrap();
    for number in 1..=5 {
        ada.post_message(&room, &format!("before {number}")).await.unwrap();
    }
    let mut broker = connect(&ada).await;
    let listening = broker.ok(json!({ "type": "msg.room.listen", "roomId": room })).await.unwrap();
    let mut names: Vec<&str> =
        listening["members"].as_array().unwrap().iter().map(|m| m["handle"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ada", "eve"]);

    eve.post_message(&room, "live for @ada").await.unwrap();
    let pushed = broker.wait_for_type("msg.room.push").await.unwrap();
    assert_eq!(pushed["roomId"], room);
    let live = &pushed["message"];
    assert_eq!((&live["text"], &live["senderName"]), (&json!("live for @ada"), &json!("eve")));
    assert_eq!(live["mentions"][0]["id"], ada.user_id());
    assert!(live["externalId"].is_null() && live.get("relayed").is_none(), "{live}");

    let mut read = Vec::new();
    let mut after = Value::Null;
    loop {
        let mut frame = json!({ "type": "msg.room.history", "roomId": room, "limit": 2 });
        if !after.is_null() {
            frame["after"] = after.clone();
        }
        let page = broker.ok(frame).await.unwrap();
        let messages = page["messages"].as_array().unwrap();
        let Some(last) = messages.last() else { break };
        after = last["position"].clone();
        read.extend(messages.iter().map(|message| message["text"].as_str().unwrap().to_owned()));
    }
    assert_eq!(read, ["before 1", "before 2", "before 3", "before 4", "before 5", "live for @ada"]);
    assert_eq!(after, live["position"]);

    for (after, sentence) in
        [("00000000-1", "The position is no longer known"), ("never", "after must be a position")]
    {
        let frame = json!({ "type": "msg.room.history", "roomId": room, "after": after });
        refused(&mut broker, frame, sentence).await;
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_learns_of_new_members_and_of_a_lost_room() {
    let scene = Scene::start().await;
    let (ada, eve) = (scene.person("ada").await, scene.person("eve").await);
    let room = ada.make_room("Workshop", &[&eve]).await.unwrap();
    let mut broker = connect(&eve).await;
    // A connection that follows no room receives no frame of this extension.
    let mut other = connect(&eve).await;
    let listen = json!({ "type": "msg.room.listen", "roomId": room });
    broker.ok(listen.clone()).await.unwrap();
    connect(&ada).await.create_agent("coder", &[]).await.unwrap();
    add_agent(&ada, &room, "coder").await;
    assert_eq!(broker.wait_for_type("msg.room.changed").await.unwrap()["roomId"], room);
    let members = broker.ok(json!({ "type": "msg.room.members", "roomId": room })).await.unwrap();
    let agent = json!({ "id": "coder", "type": "agent", "name": "coder", "handle": "coder" });
    assert!(members["members"].as_array().unwrap().contains(&agent), "{members}");

    ada.delete(&format!("/api/rooms/{room}/members/{}", eve.user_id())).await.unwrap();
    assert_eq!(broker.wait_for_type("msg.room.lost").await.unwrap()["roomId"], room);
    refused(&mut broker, listen.clone(), "Not a member of this room").await;
    refused(&mut broker, json!({ "type": "msg.room.history", "roomId": room }), "Not a member of this room")
        .await;
    refused(&mut broker, json!({ "type": "msg.room.listen", "roomId": "unknown" }), "Not found").await;

    let deleted = ada.make_room("Short-lived", &[&eve]).await.unwrap();
    broker.ok(json!({ "type": "msg.room.listen", "roomId": deleted })).await.unwrap();
    ada.delete(&format!("/api/rooms/{deleted}")).await.unwrap();
    assert_eq!(broker.wait_for_type("msg.room.lost").await.unwrap()["roomId"], deleted);
    other.send(&json!({ "type": "ping", "reqId": 1 })).await.unwrap();
    let next = other.frame(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap();
    assert_eq!(next, json!({ "type": "pong", "reqId": 1 }));
    scene.ends_well().await;
}
