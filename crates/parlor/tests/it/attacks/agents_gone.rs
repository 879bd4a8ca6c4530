//! Agents whose ground is taken away while they speak: their owner, their room, what they were asked, the hub.

use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_revoked, following, next, so_far};
use parlor_testkit::gateway::Gateway;
use serde_json::{Value, json};

async fn speaking(room: &mut Room, gateway: &mut Gateway) -> Value {
    room.say("@coder go").await;
    let turn = gateway.turn().await.unwrap();
    gateway.chunk(&turn, "r", "text", "Well, ").await.unwrap();
    gateway.settled().await.unwrap();
    turn
}

/// Goes on as if nothing had happened.
async fn go_on(gateway: &mut Gateway, turn: &Value) {
    gateway.chunk(turn, "r", "text", "LOUD").await.unwrap();
    gateway.complete(turn, "r", "Well, LOUD").await.unwrap();
    gateway.chunk(turn, "again", "text", "LOUD").await.unwrap();
    gateway.complete(turn, "again", "LOUD").await.unwrap();
    gateway.settled().await.unwrap();
}

async fn assert_silent(room: &mut Room) {
    let heard = so_far(&mut room.at_alice).await;
    assert!(!heard.iter().any(|frame| frame.to_string().contains("LOUD")), "{heard:?}");
    let history = room.alice.history(&room.room).await.unwrap();
    assert!(!history.iter().any(|message| message.to_string().contains("LOUD")), "{history:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_revoked_is_gone_at_once_and_its_agents_with_it() {
    let mut room = Room::start().await;
    let phone = room.scene.hub.sign_in("alice", crate::scene::PASSWORD).await.unwrap();
    let mut gateway = Gateway::connect(&phone, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    room.add("coder").await;
    speaking(&mut room, &mut gateway).await;
    assert_eq!(phone.post("/api/auth/logout", json!({})).await.unwrap().status, 200);
    assert_revoked(&mut gateway).await;
    loop {
        let status = next(&mut room.at_alice, "server:agent_status").await;
        if status["agent"]["status"] == "offline" {
            break;
        }
    }
    let agents = room.alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(agents[0]["status"], "offline");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_owner_is_removed_is_gone_at_once() {
    let mut room = Room::start().await;
    let eve = room.scene.person("eve").await;
    let body = json!({ "memberId": eve.user_id(), "memberType": "user" });
    room.alice.post(&format!("/api/rooms/{}/members", room.room), body).await.unwrap().data().unwrap();
    let mut gateway = Gateway::connect(&eve, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    eve.put("/api/agents/coder", json!({ "visibility": "all" })).await.unwrap().data().unwrap();
    room.add("coder").await;
    let elsewhere = eve.make_room("cellar", &[]).await.unwrap();
    gateway.register("digger", "digger").await.unwrap();
    let body = json!({ "memberId": "digger", "memberType": "agent" });
    eve.post(&format!("/api/rooms/{elsewhere}/members"), body).await.unwrap().data().unwrap();
    eve.post_message(&elsewhere, "@digger dig").await.unwrap();
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "digger");
    speaking(&mut room, &mut gateway).await;
    room.say("@coder this waits").await;
    let removed = room.scene.admin.delete(&format!("/api/users/{}", eve.user_id())).await.unwrap();
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_revoked(&mut gateway).await;
    let asked = room.say("@coder are you there?").await;
    assert_eq!(room.deliveries(&asked).await, [json!(null); 0], "there is nobody of that name");
    assert_silent(&mut room).await;
    let members = room.alice.get(&format!("/api/rooms/{}/members", room.room)).await.unwrap().data().unwrap();
    assert!(!members.to_string().contains("coder"), "{members}");
    // What it was saying is over: who comes now hears nothing of it.
    let mut at_bob = following(&room.bob, &room.room).await;
    let heard = so_far(&mut at_bob).await;
    assert!(!heard.iter().any(|frame| frame["type"] == "server:message_chunk"), "{heard:?}");
    // The name is free, and nothing of what was asked of the old one is asked of the new one.
    let mut new = room.gateway("g2", &["coder"]).await;
    room.say("@coder hello").await;
    assert_eq!(new.turn().await.unwrap()["content"], "@coder hello");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_no_member_any_more_says_nothing_more() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let turn = speaking(&mut room, &mut gateway).await;
    let path = format!("/api/rooms/{}/members/coder", room.room);
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    gateway.wait_for_type("server:stop_agent").await.unwrap();
    go_on(&mut gateway, &turn).await;
    let refused = gateway.wait_for_type("server:error").await;
    assert_silent(&mut room).await;
    assert!(refused.is_ok());
    // Back in the room it is as before.
    room.add("coder").await;
    room.say("@coder and now?").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "back", "Here.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Here.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_is_deleted_ends_what_goes_on_in_it() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let turn = speaking(&mut room, &mut gateway).await;
    room.say("@coder this waits").await;
    assert_eq!(room.alice.delete(&format!("/api/rooms/{}", room.room)).await.unwrap().status, 200);
    gateway.wait_for_type("server:stop_agent").await.unwrap();
    go_on(&mut gateway, &turn).await;
    let heard = so_far(&mut room.at_alice).await;
    assert!(!heard.iter().any(|frame| frame.to_string().contains("LOUD")), "{heard:?}");
    gateway.status("coder", "online").await.unwrap();
    // It is free for what comes elsewhere.
    room.room = room.alice.make_room("garden", &[]).await.unwrap();
    room.at_alice = following(&room.alice, &room.room).await;
    room.add("coder").await;
    room.say("@coder here").await;
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["content"], "@coder here");
    gateway.complete(&turn, "new", "Here.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Here.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_deleted_is_answered_if_it_was_being_answered_and_not_asked_if_it_waits() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let asked = room.say("@coder go").await;
    let turn = gateway.turn().await.unwrap();
    let waits = room.say("@coder and this").await;
    for message in [&asked, &waits] {
        let removed = room.alice.delete(&format!("/api/messages/{message}")).await.unwrap();
        assert_eq!(removed.status, 200, "{removed:?}");
    }
    gateway.complete(&turn, "r", "Gone.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Gone.");
    room.say("@coder third").await;
    assert_eq!(gateway.turn().await.unwrap()["content"], "@coder third");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_deleted_while_it_speaks_is_gone() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder", "other"]).await;
    let turn = speaking(&mut room, &mut gateway).await;
    assert_eq!(room.alice.delete("/api/agents/coder").await.unwrap().status, 200);
    assert_eq!(gateway.wait_for_type("server:remove_agent").await.unwrap()["agentId"], "coder");
    go_on(&mut gateway, &turn).await;
    assert_silent(&mut room).await;
    room.say("@other you?").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "o", "Yes.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Yes.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_comes_again_and_knows_nothing_of_its_turn_blocks_nothing() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut old = room.gateway("g1", &["coder"]).await;
    let asked = room.say("@coder one").await;
    old.turn().await.unwrap();
    // The old connection is never seen to end.
    let mut new = Gateway::connect(&room.alice, "g1").await.unwrap();
    new.register("coder", "coder").await.unwrap();
    room.say("@coder two").await;
    let turn = new.turn().await.unwrap();
    assert_eq!(turn["content"], "@coder two");
    assert_eq!(room.deliveries(&asked).await[0]["status"], "interrupted");
    new.complete(&turn, "r", "Two.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Two.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_late_does_not_answer_the_next_question() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let first = speaking(&mut room, &mut gateway).await;
    drop(gateway);
    assert_eq!(room.reply().await["metadata"]["outcome"], "interrupted");
    room.say("@coder next").await;
    let mut back = Gateway::connect(&room.alice, "g1").await.unwrap();
    back.register("coder", "coder").await.unwrap();
    let turn = back.turn().await.unwrap();
    back.complete(&first, "r", "Well, that was it.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Well, that was it.");
    back.complete(&turn, "n", "Next.").await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["id"], &reply["content"]), (&json!("n"), &json!("Next.")));
    let answered = room.deliveries(turn["messageId"].as_str().unwrap()).await;
    assert_eq!(answered[0]["replyId"], "n");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_killed_while_turns_run_and_wait_ends_each_once() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "2")]).await).await;
    let agents = ["a", "b", "c"];
    let mut gateway = room.gateway("g1", &agents).await;
    let first = room.say("@a @b @c one").await;
    let second = room.say("@a @b @c two").await;
    let mut turns = Vec::new();
    for _ in agents {
        let turn = gateway.turn().await.unwrap();
        let id = format!("one-{}", turn["agentId"].as_str().unwrap());
        gateway.chunk(&turn, &id, "text", "Well, ").await.unwrap();
        turns.push((turn, id));
    }
    gateway.settled().await.unwrap();
    room.scene.crash_and_restart().await;
    room.alice = room.alice.at(room.scene.url());
    room.at_alice = following(&room.alice, &room.room).await;
    // It has finished one of them meanwhile, goes on with another, and has forgotten the third.
    let mut gateway = Gateway::connect(&room.alice, "g1").await.unwrap();
    for agent in agents {
        gateway.register(agent, agent).await.unwrap();
    }
    let of = |agent: &str| turns.iter().find(|(turn, _)| turn["agentId"] == agent).unwrap().clone();
    let (turn, id) = of("a");
    gateway.complete(&turn, &id, "Well, a.").await.unwrap();
    let (turn, id) = of("b");
    gateway.chunk(&turn, &id, "text", "b.").await.unwrap();
    gateway.complete(&turn, &id, "Well, b.").await.unwrap();
    for _ in agents {
        let turn = gateway.turn().await.unwrap();
        assert_eq!(turn["messageId"], *second, "nothing that waited is lost, nothing is asked twice");
        let id = format!("two-{}", turn["agentId"].as_str().unwrap());
        gateway.complete(&turn, &id, "Second.").await.unwrap();
    }
    let mut said: Vec<Value> = Vec::new();
    while said.len() < 5 {
        said.push(room.reply().await["id"].clone());
    }
    said.sort_by_key(ToString::to_string);
    assert_eq!(said, ["one-a", "one-b", "two-a", "two-b", "two-c"].map(|id| json!(id)));
    let outcome = |told: &[Value], agent: &str| {
        told.iter().find(|one| one["agentId"] == agent).unwrap()["status"].clone()
    };
    let told = room.deliveries(&first).await;
    assert_eq!(
        agents.map(|agent| outcome(&told, agent)),
        [json!("answered"), json!("answered"), json!("interrupted")]
    );
    let history = room.alice.history(&room.room).await.unwrap();
    assert_eq!(history.len(), 2 + 5, "{history:?}");
    room.scene.ends_well().await;
}
