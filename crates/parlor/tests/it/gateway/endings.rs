//! How turns end: stopped, interrupted, late, too long.

use super::scenes::Room;
use crate::scene::{Scene, following, next, so_far};
use parlor_testkit::gateway::Gateway;
use serde_json::{Value, json};

fn stop(room: &Room, agent: &str) -> Value {
    json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": agent })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_over_for_everyone_whatever_the_gateway_does() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let asked = room.say("@coder write a novel").await;
    let turn = gateway.turn().await.unwrap();
    gateway.chunk(&turn, "r", "text", "Once upon").await.unwrap();
    gateway.settled().await.unwrap();
    at_bob.send(&stop(&room, "coder")).await.unwrap();
    let told = gateway.wait_for_type("server:stop_agent").await.unwrap();
    assert_eq!(told["agentId"], "coder");
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], &reply["metadata"]["outcome"]),
        (&json!("Once upon"), &json!("cancelled"))
    );
    // The gateway has not understood, and goes on.
    gateway.chunk(&turn, "r", "text", " a time").await.unwrap();
    gateway.complete(&turn, "r", "Once upon a time").await.unwrap();
    gateway.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.last().unwrap()["content"], "Once upon");
    let frames = so_far(&mut room.at_alice).await;
    assert!(!frames.iter().any(|frame| frame.to_string().contains("a time")), "{frames:?}");
    assert_eq!(room.deliveries(&asked).await[0]["status"], "cancelled");

    room.say("@coder a poem then").await;
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["content"], "@coder a poem then", "the next turn comes");
    gateway.complete(&turn, "r2", "Roses").await.unwrap();
    assert_eq!(room.reply().await["content"], "Roses");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_stops_nothing() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let eve = room.scene.person("eve").await;
    room.say("@coder go").await;
    let turn = gateway.turn().await.unwrap();
    let mut at_eve = parlor_testkit::agentim::Client::connect(&eve).await.unwrap();
    at_eve.send(&stop(&room, "coder")).await.unwrap();
    assert_eq!(next(&mut at_eve, "server:error").await["code"], "NOT_A_MEMBER");
    gateway.complete(&turn, "r", "went").await.unwrap();
    assert_eq!(room.reply().await["metadata"]["outcome"], "complete");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_lost_interrupts_unless_it_comes_back_in_time() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "2")]).await).await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder first").await;
    let turn = gateway.turn().await.unwrap();
    gateway.chunk(&turn, "r1", "text", "Half ").await.unwrap();
    gateway.settled().await.unwrap();
    drop(gateway);
    let mut back = Gateway::connect(&room.alice, "g1").await.unwrap();
    back.register("coder", "coder").await.unwrap();
    back.chunk(&turn, "r1", "text", "and half").await.unwrap();
    back.complete(&turn, "r1", "Half and half").await.unwrap();
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], &reply["metadata"]["outcome"]),
        (&json!("Half and half"), &json!("complete"))
    );

    room.say("@coder second").await;
    let turn = back.turn().await.unwrap();
    back.chunk(&turn, "r2", "text", "To be contin").await.unwrap();
    back.settled().await.unwrap();
    drop(back);
    let reply = room.reply().await;
    assert_eq!(
        (&reply["content"], &reply["metadata"]["outcome"]),
        (&json!("To be contin"), &json!("interrupted"))
    );

    // What the gateway had queued is said after all, once.
    let mut back = Gateway::connect(&room.alice, "g1").await.unwrap();
    back.register("coder", "coder").await.unwrap();
    for _ in 0..2 {
        back.complete(&turn, "r2", "To be continued").await.unwrap();
    }
    let late = room.reply().await;
    assert_eq!(
        (&late["content"], &late["metadata"]["outcome"]),
        (&json!("To be continued"), &json!("complete"))
    );
    back.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    let said = history.iter().filter(|message| message["content"] == "To be continued").count();
    assert_eq!((said, history.len()), (1, 5), "{history:?}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_gateways_killed_while_their_agents_speak_end_every_reply_once() {
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
            let turn = gateway.turn().await.unwrap();
            let id = format!("r-{}", turn["agentId"].as_str().unwrap());
            gateway.chunk(&turn, &id, "text", "Well, ").await.unwrap();
            if (number + agent) % 2 == 0 {
                gateway.complete(&turn, &id, "Well, done").await.unwrap();
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
    assert_eq!(items, 51, "each reply once");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_for_a_frame_is_told_and_the_chunks_count() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder everything").await;
    let turn = gateway.turn().await.unwrap();
    let piece = "0123456789".repeat(1000);
    for _ in 0..60 {
        gateway.chunk(&turn, "r", "text", &piece).await.unwrap();
    }
    let whole = piece.repeat(60);
    gateway.complete(&turn, "r", &whole).await.unwrap();
    assert_eq!(gateway.wait_for_type("server:error").await.unwrap()["code"], "MESSAGE_TOO_LARGE");
    gateway.status("coder", "online").await.unwrap();
    let reply = room.reply().await;
    assert_eq!(reply["content"].as_str().unwrap().len(), whole.len());
    assert_eq!(reply["metadata"]["outcome"], "complete");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_socket_that_closes_late_takes_nothing_from_the_new_one() {
    let mut room = Room::start().await;
    let old = room.gateway("g1", &["coder"]).await;
    let mut new = Gateway::connect(&room.alice, "g1").await.unwrap();
    new.register("coder", "coder").await.unwrap();
    drop(old);
    let agents = room.alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(agents[0]["status"], "online", "{agents}");
    room.say("@coder hi").await;
    let turn = new.turn().await.unwrap();
    new.complete(&turn, "r", "hi").await.unwrap();
    assert_eq!(room.reply().await["content"], "hi");
    room.scene.ends_well().await;
}

/// Its host has not understood that the turn is over, and says so only when it has got the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_stopped_before_it_spoke_is_not_taken_for_the_next_answer() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    for (pieces, late) in [(false, "late-1"), (true, "late-2")] {
        room.say("@coder one").await;
        let stopped = gateway.turn().await.unwrap();
        let frame = stop(&room, "coder");
        room.at_alice.send(&frame).await.unwrap();
        gateway.wait_for_type("server:stop_agent").await.unwrap();
        gateway.status("coder", "online").await.unwrap();
        let asked = room.say("@coder two").await;
        let turn = gateway.turn().await.unwrap();
        if pieces {
            gateway.chunk(&stopped, late, "text", "One, ").await.unwrap();
        }
        gateway.complete(&stopped, late, "One, LOUD").await.unwrap();
        if pieces {
            let reply = room.reply().await;
            let told = (&reply["id"], &reply["content"], &reply["metadata"]["outcome"]);
            assert_eq!(
                told,
                (&json!(late), &json!("One, "), &json!("cancelled")),
                "it ends where it was seen"
            );
        }
        let answer = format!("to-{late}");
        gateway.chunk(&turn, &answer, "text", "Tw").await.unwrap();
        gateway.complete(&turn, &answer, "Two.").await.unwrap();
        let reply = room.reply().await;
        assert_eq!((&reply["id"], &reply["content"]), (&json!(answer), &json!("Two.")));
        assert_eq!(room.deliveries(&asked).await[0]["replyId"], answer.as_str());
    }
    let history = room.bob.history(&room.room).await.unwrap();
    assert!(!history.iter().any(|message| message.to_string().contains("LOUD")), "{history:?}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_before_it_spoke_is_said_beside_the_next_answer() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let first = room.say("@coder one").await;
    let given_up = gateway.turn().await.unwrap();
    drop(gateway);
    room.say("@coder two").await;
    let mut back = Gateway::connect(&room.alice, "g1").await.unwrap();
    back.register("coder", "coder").await.unwrap();
    let turn = back.turn().await.unwrap();
    assert_eq!(turn["content"], "@coder two");
    assert_eq!(room.deliveries(&first).await[0]["status"], "interrupted");
    back.chunk(&given_up, "r1", "text", "One, ").await.unwrap();
    back.complete(&given_up, "r1", "One, late.").await.unwrap();
    back.complete(&turn, "r2", "Two.").await.unwrap();
    // Two turns that end in the same moment, in whatever order.
    let mut replies = [room.reply().await, room.reply().await];
    replies.sort_by_key(|reply| reply["id"].to_string());
    let told =
        replies.each_ref().map(|reply| (&reply["id"], &reply["content"], &reply["metadata"]["outcome"]));
    let complete = json!("complete");
    let expected = [(json!("r1"), json!("One, late.")), (json!("r2"), json!("Two."))];
    assert_eq!(told, expected.each_ref().map(|(id, text)| (id, text, &complete)));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_under_the_id_of_another_message_is_refused_and_its_turn_has_failed() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let asked = room.say("@coder one").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, &asked, "HIJACK").await.unwrap();
    let refused = gateway.wait_for_type("server:error").await.unwrap();
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!("INVALID_MESSAGE"), &json!("This messageId belongs to another message"))
    );
    room.say("@coder two").await;
    let next_turn = gateway.turn().await.unwrap();
    assert_eq!(next_turn["content"], "@coder two", "it is free for the next");
    let told = &room.deliveries(&asked).await[0];
    assert_eq!(
        (&told["status"], &told["reason"]),
        (&json!("failed"), &json!("its reply came under the id of another message"))
    );
    gateway.complete(&next_turn, "r2", "Two.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Two.");
    // What is its own already is only said again.
    room.say("@coder three").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&next_turn, "r2", "Two.").await.unwrap();
    gateway.complete(&turn, "r3", "Three.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Three.");
    let history = room.bob.history(&room.room).await.unwrap();
    assert!(!history.iter().any(|message| message.to_string().contains("HIJACK")), "{history:?}");
    room.scene.ends_well().await;
}
