//! Agents with one name: a restarted gateway that registers its agents under new ids, and agents of two owners.

use super::scenes::Room;
use crate::scene::Scene;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

/// Ids and names of the agents of a room.
async fn agents_in(user: &RestClient, room: &str) -> Vec<(String, String)> {
    let room = user.get(&format!("/api/rooms/{room}")).await.unwrap().data().unwrap();
    let members = room["members"].as_array().unwrap().iter();
    let agents = members.filter(|member| member["memberType"] == "agent");
    let text = |member: &Value, field: &str| member[field].as_str().unwrap().to_owned();
    agents.map(|agent| (text(agent, "memberId"), text(agent, "displayName"))).collect()
}

fn agent(id: &str, name: &str) -> (String, String) {
    (id.to_owned(), name.to_owned())
}

/// Ends a gateway as the client of AgentIM does, and waits until the hub has stored that it is disconnected.
async fn stop(mut gateway: Gateway, owner: &RestClient, agents: &[&str]) {
    for agent in agents {
        gateway.send(&json!({ "type": "gateway:unregister_agent", "agentId": agent })).await.unwrap();
    }
    gateway.settled().await.unwrap();
    drop(gateway);
    loop {
        let gateways = owner.get("/api/agents/gateways/list").await.unwrap().data().unwrap();
        let mut gateways = gateways.as_array().unwrap().iter();
        if gateways.all(|gateway| gateway["online"] == false) {
            return;
        }
    }
}

/// Members of a room as a gateway receives them for one of its agents.
async fn context(gateway: &mut Gateway, agent: &str) -> Vec<String> {
    let is_context = |frame: &Value| frame["type"] == "server:room_context" && frame["agentId"] == agent;
    let frame = gateway.wait_for(TEST_TIMEOUT, is_context).await.unwrap();
    let members = frame["context"]["members"].as_array().unwrap().iter();
    members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_a_restarted_gateway_continues_under_its_new_id() {
    let mut room = Room::start().await;
    let mut gateway = Gateway::connect(&room.alice, "first-start").await.unwrap();
    gateway.register("old-id", "bot").await.unwrap();
    room.add("old-id").await;
    room.say("@bot hello").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, "r1", "hello").await.unwrap();
    room.reply().await;
    stop(gateway, &room.alice, &["old-id"]).await;
    room.say("@bot are you there?").await;

    let mut gateway = Gateway::connect(&room.alice, "second-start").await.unwrap();
    gateway.register("new-id", "bot").await.unwrap();
    let waiting = gateway.turn().await.unwrap();
    assert_eq!((&waiting["agentId"], &waiting["content"]), (&json!("new-id"), &json!("@bot are you there?")));
    gateway.complete(&waiting, "r2", "now I am").await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["senderId"], &reply["senderName"]), (&json!("new-id"), &json!("bot")));
    room.say("@bot and now?").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "new-id");
    assert_eq!(agents_in(&room.alice, &room.room).await, [agent("new-id", "bot")]);
    let own = room.alice.get("/api/agents").await.unwrap().data().unwrap();
    let own = own.as_array().unwrap().iter();
    assert_eq!(own.filter(|agent| agent["name"] == "bot").count(), 1, "the old agent is removed");
    let history = room.alice.history(&room.room).await.unwrap();
    let first = history.iter().find(|message| message["id"] == "r1").unwrap();
    assert_eq!((&first["senderId"], &first["senderName"]), (&json!("old-id"), &json!("bot")));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_online_is_not_replaced() {
    let mut room = Room::start().await;
    let mut first = Gateway::connect(&room.alice, "laptop").await.unwrap();
    first.register("a1", "bot").await.unwrap();
    room.add("a1").await;
    let mut second = Gateway::connect(&room.alice, "server").await.unwrap();
    second.register("a2", "bot").await.unwrap();
    assert_eq!(agents_in(&room.alice, &room.room).await, [agent("a1", "bot")]);
    room.add("a2").await;
    assert_eq!(agents_in(&room.alice, &room.room).await, [agent("a1", "bot"), agent("a2", "bot-alice")]);
    room.say("@bot-alice hello").await;
    assert_eq!(second.turn().await.unwrap()["agentId"], "a2");
    room.say("@bot hello").await;
    assert_eq!(first.turn().await.unwrap()["agentId"], "a1");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_two_owners_have_different_names_in_a_room() {
    let mut room = Room::on(Scene::with(&[("PARLOR_MEMBERS_ADD_AGENTS", "on")]).await).await;
    let mut of_alice = room.gateway("g1", &["bot"]).await;
    let mut of_bob = Gateway::connect(&room.bob, "g2").await.unwrap();
    of_bob.register("b1", "Bot").await.unwrap();
    let path = format!("/api/rooms/{}/members", room.room);
    let body = json!({ "memberId": "b1", "memberType": "agent" });
    assert_eq!(room.bob.post(&path, body).await.unwrap().status, 201);
    assert_eq!(context(&mut of_bob, "b1").await, ["alice", "bob", "bot", "Bot-bob"]);
    assert_eq!(agents_in(&room.bob, &room.room).await, [agent("bot", "bot"), agent("b1", "Bot-bob")]);

    room.say("@bot hello").await;
    assert_eq!(of_alice.turn().await.unwrap()["agentId"], "bot");
    room.say("@bot-bob hello").await;
    let run = of_bob.turn().await.unwrap();
    assert_eq!((&run["agentId"], &run["content"]), (&json!("b1"), &json!("@bot-bob hello")));
    of_bob.chunk(&run, "r1", "text", "I ").await.unwrap();
    let chunk = room.at_alice.wait_for_type("server:message_chunk").await.unwrap();
    assert_eq!(chunk["agentName"], "Bot-bob");
    of_bob.complete(&run, "r1", "I am here").await.unwrap();
    assert_eq!(room.reply().await["senderName"], "Bot-bob");

    // A rename to a free name, and back to the taken one.
    for (name, expected) in [("helper", "helper"), ("BOT", "BOT-bob")] {
        of_bob.register("b1", name).await.unwrap();
        assert_eq!(agents_in(&room.alice, &room.room).await, [agent("bot", "bot"), agent("b1", expected)]);
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_does_not_take_the_name_of_an_agent() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["bot"]).await;
    let renamed = room.bob.put("/api/users/me", json!({ "displayName": "bot" })).await.unwrap();
    assert_eq!(renamed.status, 200, "{renamed:?}");
    let mut at_bob = crate::scene::following(&room.bob, &room.room).await;
    at_bob.say_and_wait(&room.room, "hello", "b1").await.unwrap();
    let heard = room.at_alice.wait_for(TEST_TIMEOUT, |frame| frame["message"]["content"] == "hello");
    assert_eq!(heard.await.unwrap()["message"]["senderName"], "bot-bob");
    room.say("@bot hello").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "bot");
    room.scene.ends_well().await;
}
