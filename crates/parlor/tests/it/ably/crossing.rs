//! Signals, replies and presence that cross between Ably clients and other protocols, and the versions of the protocol.

use parlor_testkit::ably::{Ably, json as json_message, object_of, text_of};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use parlor_wire::ably::data::Data;
use parlor_wire::ably::frames::{Action, Format, PresenceMessage};
use parlor_wire::ably::presence::PresenceAction;
use serde_json::{Value, json};

use super::{chat, connect, key, project};
use crate::scene::{Scene, contents};

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_every_version_publish_receive_and_enter() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    for version in 2..=6 {
        for format in [Format::Json, Format::Msgpack] {
            let (channel, version) = (format!("v{version}-{format:?}"), version.to_string());
            let query = [("key", &*key), ("v", &*version), ("clientId", "ann")];
            let mut client = Ably::connect(scene.url(), format, &query).await.unwrap();
            client.attach(&channel).await.unwrap();
            client.say(&channel, "n", "hello").await.unwrap();
            assert_eq!(text_of(&client.messages(&channel, 1).await.unwrap()[0]), "hello");
            client.present(&channel, PresenceAction::Enter, None, Some("here")).await.unwrap();
            let entered = client.wait_on(Action::Presence, &channel).await.unwrap();
            assert_eq!(entered.presence.unwrap()[0].client_id.as_deref(), Some("ann"));
            client.close().await.unwrap();
        }
    }
    scene.ends_well().await;
}

/// A room of ann with the agent `coder` of her gateway.
async fn with_gateway(ann: &RestClient, others: &[&RestClient]) -> (String, Gateway) {
    let room = ann.make_room("kitchen", others).await.unwrap();
    let mut gateway = Gateway::connect(ann, "laptop").await.unwrap();
    gateway.register("coder", "Coder").await.unwrap();
    let member = json!({ "memberId": "coder", "memberType": "agent" });
    ann.post(&format!("/api/rooms/{room}/members"), member).await.unwrap().data().unwrap();
    (room, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reply_of_a_gateways_agent_is_typing_chunks_and_a_response() {
    let scene = Scene::start().await;
    let (ann, sue) = (scene.person("ann").await, scene.person("sue").await);
    let (room, mut gateway) = with_gateway(&ann, &[&sue]).await;
    let channel = project(&room);
    let mut viewer = connect(&sue, Format::Msgpack).await;
    viewer.attach(&channel).await.unwrap();
    let mut question = chat(&sue, "sue", &room, "@Coder please review", "question-1");
    question["executionMode"] = json!("auto");
    viewer.say_json(&channel, "message", &question).await.unwrap();
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["messageId"], "question-1");
    for text in ["Looks ", "fine."] {
        gateway.chunk(&run, "reply-1", "text", text).await.unwrap();
    }
    gateway.complete(&run, "reply-1", "Looks fine.").await.unwrap();

    let mut received: Vec<Value> = Vec::new();
    while received.last().is_none_or(|data| data["type"] != "response") {
        received.push(object_of(&viewer.messages(&channel, 1).await.unwrap()[0]));
    }
    assert_eq!(received[0]["messageId"], "question-1");
    let typing = received.iter().find(|data| data["type"] == "typing").unwrap();
    assert_eq!((&typing["responseId"], &typing["agentName"]), (&json!("reply-1"), &json!("Coder")));
    let chunks: Vec<&Value> = received.iter().filter(|data| data["type"] == "chunk").collect();
    assert!(chunks.iter().all(|data| data["messageId"] == "reply-1"), "{chunks:?}");
    let text: String = chunks.iter().map(|data| data["text"].as_str().unwrap()).collect();
    assert_eq!(text, "Looks fine.");
    let response = received.last().unwrap();
    assert_eq!((&response["messageId"], &response["text"]), (&json!("reply-1"), &json!("Looks fine.")));
    assert_eq!((&response["from"], &response["fromUsername"]), (&json!(ann.user_id()), &json!("Coder")));
    assert_eq!((&response["isAgentMessage"], &response["agentName"]), (&json!(true), &json!("Coder")));
    assert_eq!((&response["responseDepth"], &response["respondingChain"]), (&json!(1), &json!(["coder"])));
    scene.ends_well().await;
}

/// Enters a project channel with an agent of this user.
async fn enter_with(ably: &mut Ably, user: &RestClient, room: &str, agent: &str) {
    let data = json!({
        "userId": user.user_id(), "username": agent, "isAgent": true, "agentName": agent,
        "agents": [{ "agentName": agent }],
    });
    let client = Some(user.user_id());
    ably.present(&project(room), PresenceAction::Enter, client, Some(&data.to_string())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_ends_its_replies_with_done_or_error() {
    let scene = Scene::start().await;
    let (ann, sue) = (scene.person("ann").await, scene.person("sue").await);
    let room = ann.make_room("kitchen", &[&sue]).await.unwrap();
    let channel = project(&room);
    let mut bot = connect(&ann, Format::Json).await;
    bot.attach(&channel).await.unwrap();
    enter_with(&mut bot, &ann, &room, "Coder").await;
    let mut viewer = connect(&sue, Format::Json).await;
    viewer.attach(&channel).await.unwrap();
    for (kind, reply, text) in
        [("done", "reply-1", "all good"), ("error", "reply-2", "Agent error: no model")]
    {
        let question = format!("@Coder {kind}");
        sue.post_message(&room, &question).await.unwrap();
        while object_of(&bot.messages(&channel, 1).await.unwrap()[0])["text"] != *question {}
        let output = |kind: &str, id: &str, text: &str| {
            let mut data = chat(&ann, "Coder", &room, text, id);
            (data["type"], data["agentName"]) = (json!(kind), json!("Coder"));
            data["responseId"] = json!(reply);
            data
        };
        bot.say_json(&channel, "message", &output("typing", &format!("{reply}-t"), "")).await.unwrap();
        bot.say_json(&channel, "message", &output(kind, reply, text)).await.unwrap();
        let shown = match kind {
            "done" => "response",
            kind => kind,
        };
        let data = loop {
            let data = object_of(&viewer.messages(&channel, 1).await.unwrap()[0]);
            if data["type"] == shown {
                break data;
            }
        };
        assert_eq!((&data["messageId"], &data["text"]), (&json!(reply), &json!(text)), "{data}");
        assert_eq!((&data["agentName"], &data["from"]), (&json!("Coder"), &json!(ann.user_id())));
    }
    let stored = contents(&sue.history(&room).await.unwrap());
    assert_eq!(stored[..3], ["@Coder done", "all good", "@Coder error"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_end_reaches_the_clients_of_the_agents() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let (mut admin, mut bot) = (connect(&ann, Format::Json).await, connect(&bob, Format::Msgpack).await);
    bot.attach(&channel).await.unwrap();
    let mut end = chat(&ann, "ann", &room, "", "end-1");
    (end["type"], end["agentName"]) = (json!("deregister"), json!("Coder"));
    admin.say_json(&channel, "message", &end).await.unwrap();
    let data = object_of(&bot.messages(&channel, 1).await.unwrap()[0]);
    assert_eq!((&data["type"], &data["agentName"]), (&json!("deregister"), &json!("Coder")));
    assert_eq!((&data["from"], &data["fromUsername"]), (&json!(ann.user_id()), &json!("ann")));
    let mut forged = chat(&bob, "bob", &room, "", "end-2");
    forged["type"] = json!("deregister");
    let serial = bot.publish(&channel, vec![json_message("message", &forged)]).await.unwrap();
    assert_eq!(bot.refused(serial).await.unwrap().code, 40160);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_user_is_asked_to_read_the_projects_again() {
    let scene = Scene::start().await;
    let (ann, bob, sue) = (scene.person("ann").await, scene.person("bob").await, scene.person("sue").await);
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    let (mut added, mut other) = (connect(&bob, Format::Json).await, connect(&sue, Format::Json).await);
    for client in [&mut added, &mut other] {
        client.attach("jaibber:presence").await.unwrap();
    }
    let member = json!({ "memberId": bob.user_id(), "memberType": "user" });
    ann.post(&format!("/api/rooms/{room}/members"), member).await.unwrap().data().unwrap();
    let messages = added.messages("jaibber:presence", 1).await.unwrap();
    assert_eq!(messages[0].name.as_deref(), Some("refresh-projects"));
    added.attach(&project(&room)).await.unwrap();
    let rest = other.so_far().await.unwrap();
    assert!(rest.iter().all(|frame| frame.action != Action::Message), "{rest:?}");
    scene.ends_well().await;
}

fn data_of(member: &PresenceMessage<'_>) -> Value {
    let Some(Data::Text(text)) = &member.data else { panic!("{member:?}") };
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_agents_of_other_protocols_are_members_of_the_channels() {
    let scene = Scene::start().await;
    let (ann, bob, sue) = (scene.person("ann").await, scene.person("bob").await, scene.person("sue").await);
    let (room, gateway) = with_gateway(&ann, &[&bob, &sue]).await;
    let page = Client::connect(&bob).await.unwrap();
    let mut viewer = connect(&sue, Format::Json).await;
    viewer.attach(&project(&room)).await.unwrap();
    let sync = viewer.wait_on(Action::Sync, &project(&room)).await.unwrap().presence.unwrap();
    let of = |user: &RestClient| {
        let found = sync.iter().find(|member| member.client_id.as_deref() == Some(user.user_id()));
        data_of(found.unwrap_or_else(|| panic!("{sync:?}")))
    };
    assert_eq!(of(&bob), json!({ "userId": bob.user_id(), "username": "bob", "isAgent": false }));
    let agent = of(&ann);
    assert_eq!((&agent["isAgent"], &agent["agentName"]), (&json!(true), &json!("Coder")), "{agent}");
    assert_eq!(agent["agents"][0]["agentName"], "Coder");

    viewer.attach("jaibber:presence").await.unwrap();
    let sync = viewer.wait_on(Action::Sync, "jaibber:presence").await.unwrap().presence.unwrap();
    let found = sync.iter().find(|member| member.client_id.as_deref() == Some(bob.user_id())).unwrap();
    let global = json!({ "userId": bob.user_id(), "username": "bob", "projectIds": [room] });
    assert_eq!(data_of(found), global);
    drop((page, gateway));
    let mut left = Vec::new();
    while left.len() < 2 {
        let change = viewer.wait_on(Action::Presence, &project(&room)).await.unwrap().presence.unwrap();
        let gone = change.iter().filter(|member| member.action == PresenceAction::Leave);
        left.extend(gone.map(|member| member.client_id.as_deref().unwrap().to_owned()));
    }
    left.sort();
    let mut both = [ann.user_id().to_owned(), bob.user_id().to_owned()];
    both.sort();
    assert_eq!(left, both);
    scene.ends_well().await;
}
