//! Agents that an Ably connection hosts: mentions from other protocols, streamed replies, chains and stops.

use parlor_testkit::ably::{Ably, json as json_message, object_of};
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use parlor_wire::ably::data::Data;
use parlor_wire::ably::frames::{Format, Frame, Message};
use parlor_wire::ably::presence::PresenceAction;
use serde_json::{Value, json};

use super::{chat, connect, project, texts};
use crate::scene::{Scene, contents, following, heard};

/// A connection that hosts one agent in one room, as the Jaibber SDK does.
struct Bot {
    ably: Ably,
    user: String,
    agent: &'static str,
    room: String,
}

impl Bot {
    async fn enter(user: &RestClient, agent: &'static str, room: &str) -> Self {
        let mut ably = connect(user, Format::Msgpack).await;
        ably.attach(&project(room)).await.unwrap();
        let data = presence(user, agent);
        let channel = project(room);
        let client = Some(user.user_id());
        ably.present(&channel, PresenceAction::Enter, client, Some(&data.to_string())).await.unwrap();
        Self { ably, user: user.user_id().to_owned(), agent, room: room.to_owned() }
    }

    fn payload(&self, kind: &str, id: &str, text: &str) -> Value {
        json!({
            "from": self.user, "fromUsername": self.agent, "projectId": self.room, "text": text,
            "messageId": id, "type": kind, "agentName": self.agent,
        })
    }

    async fn send(&mut self, payload: &Value) {
        self.ably.say_json(&project(&self.room), "message", payload).await.unwrap();
    }

    async fn typing(&mut self, reply: &str) {
        let mut payload = self.payload("typing", &format!("{reply}-typing"), "");
        payload["responseId"] = json!(reply);
        self.send(&payload).await;
    }

    async fn chunk(&mut self, reply: &str, text: &str) {
        let payload = self.payload("chunk", reply, text);
        self.send(&payload).await;
    }

    /// The complete reply, without any claim about its chain.
    async fn respond(&mut self, reply: &str, text: &str) {
        let mut payload = self.payload("response", reply, text);
        payload["isAgentMessage"] = json!(true);
        self.send(&payload).await;
    }

    /// Waits for the next message with this text.
    async fn wait_for(&mut self, text: &str) {
        loop {
            let messages = self.ably.messages(&project(&self.room), 1).await.unwrap();
            if object_of(&messages[0])["text"] == text {
                return;
            }
        }
    }
}

fn presence(user: &RestClient, agent: &str) -> Value {
    json!({
        "userId": user.user_id(), "username": agent, "isAgent": true, "agentName": agent,
        "agentInstructions": "be nice", "agents": [{ "agentName": agent, "agentInstructions": "be nice" }],
    })
}

/// Adds a user to a room as an admin, who may add agents.
async fn add_admin(owner: &RestClient, room: &str, user: &RestClient) {
    let body = json!({ "memberId": user.user_id(), "memberType": "user", "role": "admin" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
}

fn kinds(messages: &[Message<'_>]) -> Vec<(String, String)> {
    let word = |data: &Value, name: &str| data[name].as_str().unwrap_or_default().to_owned();
    messages.iter().map(object_of).map(|data| (word(&data, "type"), word(&data, "text"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_is_answered_by_an_agent_of_an_ably_connection() {
    let scene = Scene::start().await;
    let (ann, bob, sue) = (scene.person("ann").await, scene.person("bob").await, scene.person("sue").await);
    let room = ann.make_room("kitchen", &[&sue]).await.unwrap();
    add_admin(&ann, &room, &bob).await;
    let channel = project(&room);
    let mut bot = Bot::enter(&bob, "Coder", &room).await;
    let mut page = following(&ann, &room).await;
    let mut events = EventReader::live(&sue, "").await.unwrap();
    let mut viewer = connect(&sue, Format::Json).await;
    viewer.attach(&channel).await.unwrap();

    page.say(&room, "@coder please help", "m1").await.unwrap();
    bot.wait_for("@coder please help").await;
    bot.typing("reply-1").await;
    bot.chunk("reply-1", "Hello ").await;
    bot.chunk("reply-1", "ann").await;
    bot.respond("reply-1", "Hello ann").await;

    let mut streamed = String::new();
    let reply = loop {
        let frame = page.frame(TEST_TIMEOUT).await.unwrap();
        if frame["type"] == "server:message_chunk" {
            streamed += frame["chunk"]["content"].as_str().unwrap();
        } else if frame["message"]["id"] == "reply-1" {
            break frame["message"].clone();
        }
    };
    assert_eq!((&reply["content"], streamed.as_str()), (&json!("Hello ann"), "Hello ann"));
    assert_eq!((&reply["senderType"], &reply["senderName"]), (&json!("agent"), &json!("Coder")));
    let event = events.wait_for(|event| event["text"] == "Hello ann").await.unwrap();
    assert!(!event["kind"].is_null(), "{event}");

    let mut received = Vec::new();
    while !received.last().is_some_and(|message| object_of(message)["type"] == "response") {
        received.extend(viewer.messages(&channel, 1).await.unwrap());
    }
    let kinds = kinds(&received);
    assert_eq!(kinds[..2], [("message".into(), "@coder please help".into()), ("typing".into(), "".into())]);
    let text: String =
        kinds.iter().filter(|(kind, _)| kind == "chunk").map(|(_, text)| text.as_str()).collect();
    assert_eq!(text, "Hello ann");
    let data = object_of(received.last().unwrap());
    assert_eq!((&data["from"], &data["messageId"]), (&json!(bob.user_id()), &json!("reply-1")));
    assert_eq!((&data["responseDepth"], &data["respondingChain"]), (&json!(1), &json!(["coder"])));
    for message in received.iter().filter(|message| object_of(message)["agentName"] == "Coder") {
        assert_eq!(message.connection_id.as_deref(), Some(&*bot.ably.connection_id));
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_two_users_with_one_name_have_different_names_in_the_room() {
    let scene = Scene::start().await;
    let (ann, bob, sue) = (scene.person("ann").await, scene.person("bob").await, scene.person("sue").await);
    let room = ann.make_room("kitchen", &[&sue]).await.unwrap();
    add_admin(&ann, &room, &bob).await;
    let channel = project(&room);
    let mut viewer = connect(&sue, Format::Json).await;
    viewer.attach(&channel).await.unwrap();
    let _of_ann = Bot::enter(&ann, "bot", &room).await;
    let mut of_bob = Bot::enter(&bob, "bot", &room).await;
    for (user, name) in [(&ann, "bot"), (&bob, "bot-bob")] {
        let of_user = |frame: &Frame<'_>| {
            let mut members = frame.presence.iter().flatten();
            members.any(|member| {
                let is_user = member.client_id.as_deref() == Some(user.user_id());
                is_user && matches!(&member.data, Some(Data::Text(text)) if text.contains("\"agents\""))
            })
        };
        let frame = viewer.wait_for(of_user).await.unwrap();
        let Some(Data::Text(data)) = &frame.presence.unwrap()[0].data else { panic!("no data") };
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&data["agentName"], &data["agents"][0]["agentName"]), (&json!(name), &json!(name)));
    }

    let mut page = following(&sue, &room).await;
    page.say(&room, "@bot-bob please help", "m1").await.unwrap();
    of_bob.wait_for("@bot-bob please help").await;
    of_bob.chunk("reply-1", "Hello ").await;
    of_bob.respond("reply-1", "Hello sue").await;
    let reply = page.wait_for_type("server:message_complete").await.unwrap()["message"].clone();
    assert_eq!((&reply["content"], &reply["senderName"]), (&json!("Hello sue"), &json!("bot-bob")));
    let mut received = Vec::new();
    while !received.last().is_some_and(|message| object_of(message)["type"] == "response") {
        received.extend(viewer.messages(&channel, 1).await.unwrap());
    }
    let of_agent = received.iter().map(object_of).filter(|data| data["type"] != "message");
    for data in of_agent {
        let names = (&data["agentName"], &data["fromUsername"]);
        assert_eq!(names, (&json!("bot-bob"), &json!("bot-bob")), "{data}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_users_who_may_add_agents_enter_with_one() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let mut ably = connect(&bob, Format::Json).await;
    ably.attach(&channel).await.unwrap();
    let mut enter = async |data: Value| {
        let (client, data) = (bob.user_id(), data.to_string());
        let serial =
            ably.send_presence(&channel, PresenceAction::Enter, Some(client), Some(&data)).await.unwrap();
        ably.outcome(serial).await.unwrap()
    };
    assert_eq!(enter(presence(&bob, "Coder")).await.unwrap_err().code, 40160);
    assert_eq!(enter(presence(&ann, "Coder")).await.unwrap_err().code, 40012, "userId of another user");
    enter(json!({ "userId": bob.user_id(), "username": "bob", "isAgent": false })).await.unwrap();
    let path = format!("/api/rooms/{room}/members/{}", bob.user_id());
    ann.put(&path, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    enter(presence(&bob, "Coder")).await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_add_their_agents_if_the_setting_permits_it() {
    let scene = Scene::with(&[("PARLOR_MEMBERS_ADD_AGENTS", "on")]).await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let bot = Bot::enter(&bob, "Coder", &room).await;
    let members = ann.get(&format!("/api/rooms/{room}/members")).await.unwrap().data().unwrap();
    assert!(members.to_string().contains("Coder"), "{members}");
    drop(bot);
    scene.ends_well().await;
}

/// The bots claim no depth and answer every mention, also those for which the hub starts no run.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_agents_stops_whatever_their_clients_claim() {
    let scene = Scene::start().await;
    let ann = scene.person("ann").await;
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    let mut bots = Vec::new();
    for (user, agent) in [("amy", "A1"), ("ben", "B2"), ("cyd", "C3"), ("dan", "D4")] {
        let user = scene.person(user).await;
        add_admin(&ann, &room, &user).await;
        bots.push(Bot::enter(&user, agent, &room).await);
    }
    ann.post_message(&room, "@A1 begin").await.unwrap();
    let answers = ["to @B2", "to @C3", "to @D4 and @A1"];
    let mut last = "@A1 begin";
    for (index, answer) in answers.into_iter().enumerate() {
        bots[index].wait_for(last).await;
        let reply = format!("r{index}");
        bots[index].typing(&reply).await;
        bots[index].respond(&reply, answer).await;
        last = answer;
    }
    // The fourth agent, and the first one again, have no run. Neither a reply nor a message continues the chain.
    for index in [3, 0] {
        bots[index].wait_for(last).await;
        let mut payload = bots[index].payload("response", &format!("late-{index}"), "to @B2 and @C3");
        payload["isAgentMessage"] = json!(true);
        payload["responseDepth"] = json!(0);
        let channel = project(&room);
        let bot = &mut bots[index];
        let serial = bot.ably.publish(&channel, vec![json_message("message", &payload)]).await.unwrap();
        assert_eq!(bot.ably.refused(serial).await.unwrap().code, 40160);
    }
    let stored = ann.history(&room).await.unwrap();
    assert_eq!(contents(&stored), ["@A1 begin", "to @B2", "to @C3", "to @D4 and @A1"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_reply_ends_and_its_later_output_is_dropped() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    add_admin(&ann, &room, &bob).await;
    let mut bot = Bot::enter(&bob, "Coder", &room).await;
    let mut page = following(&ann, &room).await;
    page.say(&room, "@coder tell a long story", "m1").await.unwrap();
    bot.wait_for("@coder tell a long story").await;
    bot.typing("reply-1").await;
    bot.chunk("reply-1", "Once").await;
    let chunk = page.wait_for_type("server:message_chunk").await.unwrap();
    let stop =
        json!({ "type": "client:stop_generation", "roomId": room, "agentId": chunk["agentId"].clone() });
    page.send(&stop).await.unwrap();
    let complete = page.wait_for_type("server:message_complete").await.unwrap();
    assert_eq!(complete["message"]["content"], "Once");
    bot.chunk("reply-1", " upon a time").await;
    bot.respond("reply-1", "Once upon a time").await;

    page.say(&room, "@coder and now?", "m2").await.unwrap();
    bot.wait_for("@coder and now?").await;
    bot.respond("reply-2", "done").await;
    let stored = ann.history(&room).await.unwrap();
    assert_eq!(contents(&stored), ["@coder tell a long story", "Once", "@coder and now?", "done"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_posts_messages_of_its_own_and_files_of_its_owner() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    add_admin(&ann, &room, &bob).await;
    let mut bot = Bot::enter(&bob, "Coder", &room).await;
    let mut page = following(&ann, &room).await;
    let mut notice = bot.payload("message", "notice-1", "Picking up task: **T1**");
    notice["isAgentMessage"] = json!(true);
    notice["isTaskNotification"] = json!(true);
    bot.send(&notice).await;
    let shown = heard(&mut page).await;
    assert_eq!((&shown["senderType"], &shown["id"]), (&json!("agent"), &json!("notice-1")));
    let own = bot.ably.messages(&project(&room), 1).await.unwrap();
    let data = object_of(&own[0]);
    assert_eq!((&data["type"], &data["isTaskNotification"]), (&json!("message"), &json!(true)));

    let file = bob.upload("plan.txt", b"step 1").await.unwrap().data().unwrap();
    let mut data = chat(&bob, "bob", &room, "see", "with-file");
    data["attachments"] = json!([{
        "id": file["id"], "filename": "plan.txt", "mimeType": "text/plain", "fileSize": 6, "blobUrl": "x",
    }]);
    bot.send(&data).await;
    let own = bot.ably.messages(&project(&room), 1).await.unwrap();
    assert_eq!(texts(&own), ["see"]);
    let attached = &object_of(&own[0])["attachments"][0];
    assert_eq!((&attached["id"], &attached["fileSize"]), (&file["id"], &json!(6)));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_enters_although_another_user_has_registered_its_ids() {
    let scene = Scene::start().await;
    let (ann, bob, eve) = (scene.person("ann").await, scene.person("bob").await, scene.person("eve").await);
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    add_admin(&ann, &room, &bob).await;
    let bot = Bot::enter(&bob, "Coder", &room).await;
    let agents = bob.get("/api/agents").await.unwrap().data().unwrap();
    let own = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "Coder").unwrap().clone();
    let (id, gateway) = (own["id"].as_str().unwrap(), own["gatewayId"].as_str().unwrap());
    bob.delete(&format!("/api/agents/gateways/{gateway}")).await.unwrap().data().unwrap();
    bot.ably.close().await.unwrap();
    let mut thief = Gateway::connect(&eve, gateway).await.unwrap();
    thief.register(id, "Coder").await.unwrap();
    let taken = eve.get("/api/agents").await.unwrap().data().unwrap();
    assert!(taken.as_array().unwrap().iter().any(|agent| agent["id"] == id), "{taken}");

    let mut bot = Bot::enter(&bob, "Coder", &room).await;
    ann.post_message(&room, "@coder help").await.unwrap();
    bot.wait_for("@coder help").await;
    bot.respond("reply-1", "done").await;
    scene.ends_well().await;
}
