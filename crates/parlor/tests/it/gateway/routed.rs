//! Messages that the program of an agent routes to a room during a run of the agent.

use super::scenes::Room;
use crate::scene::next;
use parlor_testkit::broker::Broker;
use serde_json::json;

async fn routed(program: &mut Broker, room: &Room, agent: &str, text: &str) -> String {
    let path = format!("room/{}", room.room);
    let routed = program.route(agent, &path, json!({ "text": text })).await.unwrap();
    routed["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_program_routes_during_a_run_continues_its_chain() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b", "c"]).await;
    let mut program = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
    room.say("@a start").await;
    let first = gateway.turn().await.unwrap();
    assert_eq!(first["agentId"], "a");

    routed(&mut program, &room, "a", "@b your turn").await;
    let second = gateway.turn().await.unwrap();
    assert_eq!((&second["agentId"], &second["depth"]), (&json!("b"), &json!(1)), "{second}");

    let message = routed(&mut program, &room, "b", "@a @c again").await;
    let third = gateway.turn().await.unwrap();
    assert_eq!((&third["agentId"], &third["depth"]), (&json!("c"), &json!(2)), "{third}");
    let deliveries = room.deliveries(&message).await;
    let of_a = deliveries.iter().find(|delivery| delivery["agentId"] == "a").unwrap();
    assert_eq!(of_a["status"], "refused", "an agent answers once in a chain: {of_a}");

    let message = routed(&mut program, &room, "c", "@b and again").await;
    assert_eq!(room.deliveries(&message).await[0]["status"], "refused");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_cannot_post_in_a_frozen_room() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a"]).await;
    let mut program = Broker::connect(room.scene.url(), room.alice.token()).await.unwrap();
    room.say("@a start").await;
    gateway.turn().await.unwrap();
    let freeze = format!("/api/rooms/{}/freeze", room.room);
    assert_eq!(room.bob.post(&freeze, json!({})).await.unwrap().status, 200);
    let frame = json!({
        "type": "msg.route", "from": "a", "path": format!("room/{}", room.room), "payload": { "text": "LOUD" },
    });
    let refused = program.ask(frame).await.unwrap();
    assert_eq!(refused["type"], "msg.route.error", "{refused}");

    assert_eq!(room.alice.delete(&freeze).await.unwrap().status, 200);
    next(&mut room.at_alice, "server:room_update").await;
    routed(&mut program, &room, "a", "thawed").await;
    let history = room.bob.history(&room.room).await.unwrap();
    let texts: Vec<_> = history.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert!(texts.contains(&"thawed") && !texts.contains(&"LOUD"), "{texts:?}");
    room.scene.ends_well().await;
}
