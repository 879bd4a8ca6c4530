//! Freezing a room cancels its runs, and the answer policy decides which agents a message reaches.

use super::scenes::Room;
use crate::scene::next;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn freezing_a_room_cancels_the_runs_of_all_its_agents() {
    let mut room = Room::start().await;
    let agents = ["a", "b", "c", "d", "e"];
    let mut gateway = room.gateway("g1", &agents).await;
    room.say("@a @b @c @d @e speak").await;
    let mut runs = Vec::new();
    for _ in agents {
        runs.push(gateway.turn().await.unwrap());
    }
    for run in &runs {
        gateway
            .chunk(run, &format!("r-{}", run["agentId"].as_str().unwrap()), "text", "Well, ")
            .await
            .unwrap();
    }
    gateway.settled().await.unwrap();
    let path = format!("/api/rooms/{}/freeze", room.room);
    let frozen = room.bob.post(&path, json!({})).await.unwrap();
    assert_eq!(frozen.status, 200, "{frozen:?}");
    for _ in agents {
        let reply = room.reply().await;
        assert_eq!(
            (&reply["content"], &reply["metadata"]["outcome"]),
            (&json!("Well, "), &json!("cancelled"))
        );
    }
    for _ in agents {
        gateway.wait_for_type("server:stop_agent").await.unwrap();
    }
    // The gateway ignores the stop; its further chunks and replies are dropped.
    for run in &runs {
        let id = format!("r-{}", run["agentId"].as_str().unwrap());
        gateway.chunk(run, &id, "text", "LOUD").await.unwrap();
        gateway.complete(run, &id, "Well, LOUD").await.unwrap();
        gateway.complete(run, &format!("{id}-again"), "LOUD").await.unwrap();
    }
    gateway.settled().await.unwrap();
    let message = room.say("@a are you there?").await;
    let deliveries = room.deliveries(&message).await;
    assert_eq!(
        (&deliveries[0]["status"], &deliveries[0]["reason"]),
        (&json!("refused"), &json!("the room is frozen"))
    );
    let history = room.bob.history(&room.room).await.unwrap();
    assert!(
        !history.iter().any(|message| message["content"].as_str().unwrap().contains("LOUD")),
        "{history:?}"
    );

    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    next(&mut room.at_alice, "server:room_update").await;
    room.say("@a and now?").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, "r-again", "Here.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Here.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_policy_picks_the_agents_for_an_unaddressed_message() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    let path = format!("/api/rooms/{}", room.room);
    let unaddressed = room.say("hello all").await;
    assert!(room.deliveries(&unaddressed).await.is_empty(), "the message names no agent");
    room.alice.put(&path, json!({ "policy": "all" })).await.unwrap().data().unwrap();
    room.say("hello all").await;
    for _ in 0..2 {
        let run = gateway.turn().await.unwrap();
        assert_eq!(run["routingMode"], "broadcast");
        let id = format!("r-{}", run["agentId"].as_str().unwrap());
        gateway.complete(&run, &id, "Hello.").await.unwrap();
        room.reply().await;
    }
    room.alice.put(&path, json!({ "broadcastMode": true })).await.unwrap().data().unwrap();
    let chatter = room.say("nice weather").await;
    let question = room.say("how does it work?").await;
    for _ in 0..2 {
        let run = gateway.turn().await.unwrap();
        assert_eq!(run["messageId"], question, "triage picks the question and not the chatter");
        let id = format!("q-{}", run["agentId"].as_str().unwrap());
        gateway.complete(&run, &id, "Like this.").await.unwrap();
        room.reply().await;
    }
    let deliveries = room.deliveries(&chatter).await;
    assert!(
        deliveries
            .iter()
            .all(|delivery| delivery["status"] == "refused"
                && delivery["reason"] == "it was not for this agent")
    );
    room.scene.ends_well().await;
}
