//! How runs end: stopped by a user, interrupted by a lost gateway, completed late, or with an oversized
//! reply.

use super::scenes::Room;
use crate::scene::{Scene, following, next, so_far};
use parlor_testkit::gateway::Gateway;
use serde_json::{Value, json};

fn stop(room: &Room, agent: &str) -> Value {
    json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": agent })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_cancels_the_run_even_if_the_gateway_ignores_it() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let trigger = room.say("@coder write a novel").await;
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "r", "text", "Once upon").await.unwrap();
    gateway.settled().await.unwrap();
    at_bob.send(&stop(&room, "coder")).await.unwrap();
    let stop_frame = gateway.wait_for_type("server:stop_agent").await.unwrap();
    assert_eq!(stop_frame["agentId"], "coder");
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], &reply["metadata"]["outcome"]),
        (&json!("Once upon"), &json!("cancelled"))
    );
    // The gateway ignores the stop and continues the reply.
    gateway.chunk(&run, "r", "text", " a time").await.unwrap();
    gateway.complete(&run, "r", "Once upon a time").await.unwrap();
    gateway.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.last().unwrap()["content"], "Once upon");
    let frames = so_far(&mut room.at_alice).await;
    assert!(!frames.iter().any(|frame| frame.to_string().contains("a time")), "{frames:?}");
    assert_eq!(room.deliveries(&trigger).await[0]["status"], "cancelled");

    room.say("@coder a poem then").await;
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["content"], "@coder a poem then", "the next run is delivered");
    gateway.complete(&run, "r2", "Roses").await.unwrap();
    assert_eq!(room.reply().await["content"], "Roses");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_non_member_cannot_stop_a_run() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let eve = room.scene.person("eve").await;
    room.say("@coder go").await;
    let run = gateway.turn().await.unwrap();
    let mut at_eve = parlor_testkit::agentim::Client::connect(&eve).await.unwrap();
    at_eve.send(&stop(&room, "coder")).await.unwrap();
    assert_eq!(next(&mut at_eve, "server:error").await["code"], "NOT_A_MEMBER");
    gateway.complete(&run, "r", "went").await.unwrap();
    assert_eq!(room.reply().await["metadata"]["outcome"], "complete");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_gateway_interrupts_its_runs_unless_it_reconnects_within_the_grace_period() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "2")]).await).await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder first").await;
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "r1", "text", "Half ").await.unwrap();
    gateway.settled().await.unwrap();
    drop(gateway);
    let mut reconnected = Gateway::connect(&room.alice, "g1").await.unwrap();
    reconnected.register("coder", "coder").await.unwrap();
    reconnected.chunk(&run, "r1", "text", "and half").await.unwrap();
    reconnected.complete(&run, "r1", "Half and half").await.unwrap();
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], &reply["metadata"]["outcome"]),
        (&json!("Half and half"), &json!("complete"))
    );

    room.say("@coder second").await;
    let run = reconnected.turn().await.unwrap();
    reconnected.chunk(&run, "r2", "text", "To be contin").await.unwrap();
    reconnected.settled().await.unwrap();
    drop(reconnected);
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], &reply["metadata"]["outcome"]),
        (&json!("To be contin"), &json!("interrupted"))
    );

    // A completion that the gateway sends after the grace period is posted once, even if it is repeated.
    let mut reconnected = Gateway::connect(&room.alice, "g1").await.unwrap();
    reconnected.register("coder", "coder").await.unwrap();
    for _ in 0..2 {
        reconnected.complete(&run, "r2", "To be continued").await.unwrap();
    }
    let late_reply = room.reply().await;
    assert_eq!(
        (&late_reply["content"], &late_reply["metadata"]["outcome"]),
        (&json!("To be continued"), &json!("complete"))
    );
    reconnected.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    let copies = history.iter().filter(|message| message["content"] == "To be continued").count();
    assert_eq!((copies, history.len()), (1, 5), "{history:?}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reply_ends_exactly_once_when_its_gateway_is_lost() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut gateways = Vec::new();
    for number in 0..10 {
        let agents: Vec<String> = (0..5).map(|agent| format!("a{number}-{agent}")).collect();
        let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
        gateways.push(room.gateway(&format!("g{number}"), &agents).await);
    }
    let names: Vec<String> =
        (0..10).flat_map(|gateway| (0..5).map(move |agent| format!("@a{gateway}-{agent}"))).collect();
    room.say(&names.join(" ")).await;
    for (number, gateway) in gateways.iter_mut().enumerate() {
        for agent in 0..5 {
            let run = gateway.turn().await.unwrap();
            let id = format!("r-{}", run["agentId"].as_str().unwrap());
            gateway.chunk(&run, &id, "text", "Well, ").await.unwrap();
            if (number + agent) % 2 == 0 {
                gateway.complete(&run, &id, "Well, done").await.unwrap();
            }
        }
        gateway.settled().await.unwrap();
    }
    drop(gateways);
    let mut replies = std::collections::BTreeMap::new();
    for _ in 0..50 {
        let reply = room.reply().await;
        let outcome = reply["metadata"]["outcome"].as_str().unwrap().to_owned();
        let text = reply["content"].as_str().unwrap();
        assert_eq!(text, if outcome == "complete" { "Well, done" } else { "Well, " });
        *replies.entry(outcome).or_insert(0) += 1;
        assert!(reply["id"].as_str().unwrap().starts_with("r-a"));
    }
    assert_eq!(replies, [("complete".to_owned(), 25), ("interrupted".to_owned(), 25)].into());
    let history = room.bob.get(&format!("/api/messages/rooms/{}?limit=100", room.room)).await.unwrap();
    let items = history.data().unwrap()["items"].as_array().unwrap().len();
    assert_eq!(items, 51, "each reply is stored once");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_completion_is_rejected_and_the_chunks_become_the_reply() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder everything").await;
    let run = gateway.turn().await.unwrap();
    let chunk = "0123456789".repeat(1000);
    for _ in 0..60 {
        gateway.chunk(&run, "r", "text", &chunk).await.unwrap();
    }
    let full_text = chunk.repeat(60);
    gateway.complete(&run, "r", &full_text).await.unwrap();
    assert_eq!(gateway.wait_for_type("server:error").await.unwrap()["code"], "MESSAGE_TOO_LARGE");
    gateway.status("coder", "online").await.unwrap();
    let reply = room.reply().await;
    assert_eq!(reply["content"].as_str().unwrap().len(), full_text.len());
    assert_eq!(reply["metadata"]["outcome"], "complete");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_replaced_socket_keeps_its_agents_online_through_the_new_one() {
    let mut room = Room::start().await;
    let replaced = room.gateway("g1", &["coder"]).await;
    let mut current = Gateway::connect(&room.alice, "g1").await.unwrap();
    current.register("coder", "coder").await.unwrap();
    drop(replaced);
    let agents = room.alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(agents[0]["status"], "online", "{agents}");
    room.say("@coder hi").await;
    let run = current.turn().await.unwrap();
    current.complete(&run, "r", "hi").await.unwrap();
    assert_eq!(room.reply().await["content"], "hi");
    room.scene.ends_well().await;
}

/// The gateway sends the reply of the stopped run only after it has received the next run.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_reply_of_a_stopped_run_is_not_taken_for_the_next_reply() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    for (with_chunk, late_reply) in [(false, "late-1"), (true, "late-2")] {
        room.say("@coder one").await;
        let stopped = gateway.turn().await.unwrap();
        let frame = stop(&room, "coder");
        room.at_alice.send(&frame).await.unwrap();
        gateway.wait_for_type("server:stop_agent").await.unwrap();
        gateway.status("coder", "online").await.unwrap();
        let trigger = room.say("@coder two").await;
        let run = gateway.turn().await.unwrap();
        if with_chunk {
            gateway.chunk(&stopped, late_reply, "text", "One, ").await.unwrap();
        }
        gateway.complete(&stopped, late_reply, "One, LOUD").await.unwrap();
        if with_chunk {
            let reply = room.reply().await;
            let received = (&reply["id"], &reply["content"], &reply["metadata"]["outcome"]);
            assert_eq!(
                received,
                (&json!(late_reply), &json!("One, "), &json!("cancelled")),
                "the reply ends with its streamed text"
            );
        }
        let answer = format!("to-{late_reply}");
        gateway.chunk(&run, &answer, "text", "Tw").await.unwrap();
        gateway.complete(&run, &answer, "Two.").await.unwrap();
        let reply = room.reply().await;
        assert_eq!((&reply["id"], &reply["content"]), (&json!(answer), &json!("Two.")));
        assert_eq!(room.deliveries(&trigger).await[0]["replyId"], answer.as_str());
    }
    let history = room.bob.history(&room.room).await.unwrap();
    assert!(!history.iter().any(|message| message.to_string().contains("LOUD")), "{history:?}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reply_of_an_interrupted_run_is_posted_beside_the_next_reply() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let trigger = room.say("@coder one").await;
    let interrupted = gateway.turn().await.unwrap();
    drop(gateway);
    room.say("@coder two").await;
    let mut reconnected = Gateway::connect(&room.alice, "g1").await.unwrap();
    reconnected.register("coder", "coder").await.unwrap();
    let run = reconnected.turn().await.unwrap();
    assert_eq!(run["content"], "@coder two");
    assert_eq!(room.deliveries(&trigger).await[0]["status"], "interrupted");
    reconnected.chunk(&interrupted, "r1", "text", "One, ").await.unwrap();
    reconnected.complete(&interrupted, "r1", "One, late.").await.unwrap();
    reconnected.complete(&run, "r2", "Two.").await.unwrap();
    // Both runs end at about the same time, so their replies arrive in either order.
    let mut replies = [room.reply().await, room.reply().await];
    replies.sort_by_key(|reply| reply["id"].to_string());
    let received =
        replies.each_ref().map(|reply| (&reply["id"], &reply["content"], &reply["metadata"]["outcome"]));
    let complete = json!("complete");
    let expected = [(json!("r1"), json!("One, late.")), (json!("r2"), json!("Two."))];
    assert_eq!(received, expected.each_ref().map(|(id, text)| (id, text, &complete)));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_under_the_id_of_another_message_is_refused_and_its_run_fails() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let trigger = room.say("@coder one").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, &trigger, "HIJACK").await.unwrap();
    let refused = gateway.wait_for_type("server:error").await.unwrap();
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!("INVALID_MESSAGE"), &json!("This messageId belongs to another message"))
    );
    room.say("@coder two").await;
    let next_run = gateway.turn().await.unwrap();
    assert_eq!(next_run["content"], "@coder two", "the agent is free for the next run");
    let delivery = &room.deliveries(&trigger).await[0];
    assert_eq!(
        (&delivery["status"], &delivery["reason"]),
        (&json!("failed"), &json!("the id of its reply belongs to another message"))
    );
    gateway.complete(&next_run, "r2", "Two.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Two.");
    // Repeating the completion of a finished reply has no effect.
    room.say("@coder three").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&next_run, "r2", "Two.").await.unwrap();
    gateway.complete(&run, "r3", "Three.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Three.");
    let history = room.bob.history(&room.room).await.unwrap();
    assert!(!history.iter().any(|message| message.to_string().contains("HIJACK")), "{history:?}");
    room.scene.ends_well().await;
}
