//! Active runs that lose their gateway, owner, room, membership, trigger message or hub.
//!
//! No late reply may be published, and no run may block the next one.

use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_revoked, following, next, so_far};
use parlor_testkit::gateway::Gateway;
use serde_json::{Value, json};

/// Starts a run of `coder` and streams the first chunk of its reply.
async fn start_streaming(room: &mut Room, gateway: &mut Gateway) -> Value {
    room.say("@coder go").await;
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "r", "text", "Well, ").await.unwrap();
    gateway.settled().await.unwrap();
    run
}

/// Sends the rest of the reply, and a second reply, as if the run were still active.
async fn keep_streaming(gateway: &mut Gateway, run: &Value) {
    gateway.chunk(run, "r", "text", "LOUD").await.unwrap();
    gateway.complete(run, "r", "Well, LOUD").await.unwrap();
    gateway.chunk(run, "again", "text", "LOUD").await.unwrap();
    gateway.complete(run, "again", "LOUD").await.unwrap();
    gateway.settled().await.unwrap();
}

/// Asserts that nothing sent by [`keep_streaming`] was published or stored.
async fn assert_no_late_reply(room: &mut Room) {
    let frames = so_far(&mut room.at_alice).await;
    assert!(!frames.iter().any(|frame| frame.to_string().contains("LOUD")), "{frames:?}");
    let history = room.alice.history(&room.room).await.unwrap();
    assert!(!history.iter().any(|message| message.to_string().contains("LOUD")), "{history:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_gateway_and_its_agents_go_offline_at_once() {
    let mut room = Room::start().await;
    let phone = room.scene.hub.sign_in("alice", crate::scene::PASSWORD).await.unwrap();
    let mut gateway = Gateway::connect(&phone, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    room.add("coder").await;
    start_streaming(&mut room, &mut gateway).await;
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
async fn deleting_the_owner_of_a_gateway_disconnects_it_and_deletes_its_agents() {
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
    start_streaming(&mut room, &mut gateway).await;
    room.say("@coder this waits").await;
    let removed = room.scene.admin.delete(&format!("/api/users/{}", eve.user_id())).await.unwrap();
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_revoked(&mut gateway).await;
    let message = room.say("@coder are you there?").await;
    assert_eq!(
        room.deliveries(&message).await,
        [json!(null); 0],
        "the mention matches no agent, so there is no delivery"
    );
    assert_no_late_reply(&mut room).await;
    let members = room.alice.get(&format!("/api/rooms/{}/members", room.room)).await.unwrap().data().unwrap();
    assert!(!members.to_string().contains("coder"), "{members}");
    // The streaming reply has ended: a late joiner receives no chunk of it.
    let mut at_bob = following(&room.bob, &room.room).await;
    let frames = so_far(&mut at_bob).await;
    assert!(!frames.iter().any(|frame| frame["type"] == "server:message_chunk"), "{frames:?}");
    // The agent id can be registered again, and the new agent does not inherit the old agent's backlog.
    let mut new = room.gateway("g2", &["coder"]).await;
    room.say("@coder hello").await;
    assert_eq!(new.turn().await.unwrap()["content"], "@coder hello");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_removed_from_the_room_cannot_publish_replies_there() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let run = start_streaming(&mut room, &mut gateway).await;
    let path = format!("/api/rooms/{}/members/coder", room.room);
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    gateway.wait_for_type("server:stop_agent").await.unwrap();
    keep_streaming(&mut gateway, &run).await;
    let refused = gateway.wait_for_type("server:error").await;
    assert_no_late_reply(&mut room).await;
    assert!(refused.is_ok());
    // After it is added to the room again, the agent runs normally.
    room.add("coder").await;
    room.say("@coder and now?").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, "back", "Here.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Here.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_room_stops_its_runs() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let run = start_streaming(&mut room, &mut gateway).await;
    room.say("@coder this waits").await;
    assert_eq!(room.alice.delete(&format!("/api/rooms/{}", room.room)).await.unwrap().status, 200);
    gateway.wait_for_type("server:stop_agent").await.unwrap();
    keep_streaming(&mut gateway, &run).await;
    let frames = so_far(&mut room.at_alice).await;
    assert!(!frames.iter().any(|frame| frame.to_string().contains("LOUD")), "{frames:?}");
    gateway.status("coder", "online").await.unwrap();
    // The agent is idle and starts runs in other rooms.
    room.room = room.alice.make_room("garden", &[]).await.unwrap();
    room.at_alice = following(&room.alice, &room.room).await;
    room.add("coder").await;
    room.say("@coder here").await;
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["content"], "@coder here");
    gateway.complete(&run, "new", "Here.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Here.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_message_keeps_its_active_run_and_drops_its_queued_run() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let active = room.say("@coder go").await;
    let run = gateway.turn().await.unwrap();
    let queued = room.say("@coder and this").await;
    for message in [&active, &queued] {
        let removed = room.alice.delete(&format!("/api/messages/{message}")).await.unwrap();
        assert_eq!(removed.status, 200, "{removed:?}");
    }
    gateway.complete(&run, "r", "Gone.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Gone.");
    room.say("@coder third").await;
    assert_eq!(gateway.turn().await.unwrap()["content"], "@coder third");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_agent_cannot_finish_its_reply() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder", "other"]).await;
    let run = start_streaming(&mut room, &mut gateway).await;
    assert_eq!(room.alice.delete("/api/agents/coder").await.unwrap().status, 200);
    assert_eq!(gateway.wait_for_type("server:remove_agent").await.unwrap()["agentId"], "coder");
    keep_streaming(&mut gateway, &run).await;
    assert_no_late_reply(&mut room).await;
    room.say("@other you?").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, "o", "Yes.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Yes.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnected_gateway_that_lost_its_run_does_not_block_the_next_run() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut old = room.gateway("g1", &["coder"]).await;
    let first = room.say("@coder one").await;
    old.turn().await.unwrap();
    // The gateway reconnects while the hub still considers the old connection open.
    let mut new = Gateway::connect(&room.alice, "g1").await.unwrap();
    new.register("coder", "coder").await.unwrap();
    room.say("@coder two").await;
    let run = new.turn().await.unwrap();
    assert_eq!(run["content"], "@coder two");
    assert_eq!(room.deliveries(&first).await[0]["status"], "interrupted");
    new.complete(&run, "r", "Two.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Two.");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reply_does_not_complete_the_next_run() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let first = start_streaming(&mut room, &mut gateway).await;
    drop(gateway);
    assert_eq!(room.reply().await["metadata"]["outcome"], "interrupted");
    room.say("@coder next").await;
    let mut reconnected = Gateway::connect(&room.alice, "g1").await.unwrap();
    reconnected.register("coder", "coder").await.unwrap();
    let run = reconnected.turn().await.unwrap();
    reconnected.complete(&first, "r", "Well, that was it.").await.unwrap();
    assert_eq!(room.reply().await["content"], "Well, that was it.");
    reconnected.complete(&run, "n", "Next.").await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["id"], &reply["content"]), (&json!("n"), &json!("Next.")));
    let deliveries = room.deliveries(run["messageId"].as_str().unwrap()).await;
    assert_eq!(deliveries[0]["replyId"], "n");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_active_or_queued_run_ends_exactly_once_after_a_crash_of_the_hub() {
    let mut room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "2")]).await).await;
    let agents = ["a", "b", "c"];
    let mut gateway = room.gateway("g1", &agents).await;
    let first = room.say("@a @b @c one").await;
    let second = room.say("@a @b @c two").await;
    let mut runs = Vec::new();
    for _ in agents {
        let run = gateway.turn().await.unwrap();
        let id = format!("one-{}", run["agentId"].as_str().unwrap());
        gateway.chunk(&run, &id, "text", "Well, ").await.unwrap();
        runs.push((run, id));
    }
    gateway.settled().await.unwrap();
    room.scene.crash_and_restart().await;
    room.alice = room.alice.at(room.scene.url());
    room.at_alice = following(&room.alice, &room.room).await;
    // After the restart the gateway completes run `a`, continues and completes `b`, and does not know `c` any
    // more.
    let mut gateway = Gateway::connect(&room.alice, "g1").await.unwrap();
    for agent in agents {
        gateway.register(agent, agent).await.unwrap();
    }
    let run_of = |agent: &str| runs.iter().find(|(run, _)| run["agentId"] == agent).unwrap().clone();
    let (run, id) = run_of("a");
    gateway.complete(&run, &id, "Well, a.").await.unwrap();
    let (run, id) = run_of("b");
    gateway.chunk(&run, &id, "text", "b.").await.unwrap();
    gateway.complete(&run, &id, "Well, b.").await.unwrap();
    for _ in agents {
        let run = gateway.turn().await.unwrap();
        assert_eq!(run["messageId"], *second, "each queued run starts exactly once");
        let id = format!("two-{}", run["agentId"].as_str().unwrap());
        gateway.complete(&run, &id, "Second.").await.unwrap();
    }
    let mut replies: Vec<Value> = Vec::new();
    while replies.len() < 5 {
        replies.push(room.reply().await["id"].clone());
    }
    replies.sort_by_key(ToString::to_string);
    assert_eq!(replies, ["one-a", "one-b", "two-a", "two-b", "two-c"].map(|id| json!(id)));
    let status = |deliveries: &[Value], agent: &str| {
        deliveries.iter().find(|delivery| delivery["agentId"] == agent).unwrap()["status"].clone()
    };
    let deliveries = room.deliveries(&first).await;
    assert_eq!(
        agents.map(|agent| status(&deliveries, agent)),
        [json!("answered"), json!("answered"), json!("interrupted")]
    );
    let history = room.alice.history(&room.room).await.unwrap();
    assert_eq!(history.len(), 2 + 5, "{history:?}");
    room.scene.ends_well().await;
}
