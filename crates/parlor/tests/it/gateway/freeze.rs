//! A frozen room is silent.

use super::scenes::Room;
use crate::scene::next;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_room_in_which_five_agents_speak_is_silent_within_a_second() {
    let mut room = Room::start().await;
    let agents = ["a", "b", "c", "d", "e"];
    let mut gateway = room.gateway("g1", &agents).await;
    room.say("@a @b @c @d @e speak").await;
    let mut turns = Vec::new();
    for _ in agents {
        turns.push(gateway.turn().await.unwrap());
    }
    for turn in &turns {
        gateway
            .chunk(turn, &format!("r-{}", turn["agentId"].as_str().unwrap()), "text", "Well, ")
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
    // They go on all the same, and nobody hears them.
    for turn in &turns {
        let id = format!("r-{}", turn["agentId"].as_str().unwrap());
        gateway.chunk(turn, &id, "text", "LOUD").await.unwrap();
        gateway.complete(turn, &id, "Well, LOUD").await.unwrap();
        gateway.complete(turn, &format!("{id}-again"), "LOUD").await.unwrap();
    }
    gateway.settled().await.unwrap();
    let asked = room.say("@a are you there?").await;
    let told = room.deliveries(&asked).await;
    assert_eq!((&told[0]["status"], &told[0]["reason"]), (&json!("refused"), &json!("the room is frozen")));
    let history = room.bob.history(&room.room).await.unwrap();
    assert!(
        !history.iter().any(|message| message["content"].as_str().unwrap().contains("LOUD")),
        "{history:?}"
    );

    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    next(&mut room.at_alice, "server:room_update").await;
    room.say("@a and now?").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "r-again", "Here.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Here.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_a_room_says_who_answers_what_is_said_to_nobody() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["a", "b"]).await;
    let path = format!("/api/rooms/{}", room.room);
    let quiet = room.say("hello all").await;
    assert!(room.deliveries(&quiet).await.is_empty(), "nobody was named");
    room.alice.put(&path, json!({ "policy": "all" })).await.unwrap().data().unwrap();
    room.say("hello all").await;
    for _ in 0..2 {
        let turn = gateway.turn().await.unwrap();
        assert_eq!(turn["routingMode"], "broadcast");
        let id = format!("r-{}", turn["agentId"].as_str().unwrap());
        gateway.complete(&turn, &id, "Hello.").await.unwrap();
        room.reply().await;
    }
    room.alice.put(&path, json!({ "broadcastMode": true })).await.unwrap().data().unwrap();
    let chatter = room.say("nice weather").await;
    let question = room.say("how does it work?").await;
    for _ in 0..2 {
        let turn = gateway.turn().await.unwrap();
        assert_eq!(turn["messageId"], question, "a question is for them, chatter is not");
        let id = format!("q-{}", turn["agentId"].as_str().unwrap());
        gateway.complete(&turn, &id, "Like this.").await.unwrap();
        room.reply().await;
    }
    let told = room.deliveries(&chatter).await;
    assert!(
        told.iter().all(|one| one["status"] == "refused" && one["reason"] == "it was not for this agent")
    );
    room.scene.ends_well().await;
}
