//! Delivery through the broker by push and receive: external sources, rooms, broadcasts, dead letters,
//! history.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};

use crate::scene::{Scene, following, heard, make_key};

async fn connect(scene: &Scene, user: &RestClient) -> Broker {
    Broker::connect(scene.url(), user.token()).await.unwrap()
}

async fn add_agent(owner: &RestClient, room: &str, agent: &str) {
    let body = json!({ "memberId": agent, "memberType": "agent" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
}

fn session_frame(verb: &str, agent: &str, session: &str) -> Value {
    json!({ "type": format!("msg.session.{verb}"), "agentId": agent, "sessionId": session })
}

fn session_sub_add(agent: &str, session: &str, pattern: &str) -> Value {
    let mut frame = session_frame("sub.add", agent, session);
    frame["pattern"] = json!(pattern);
    frame
}

async fn session_mail(broker: &mut Broker, agent: &str, session: &str) -> Vec<Value> {
    let reply = broker.ok(session_frame("receive", agent, session)).await.unwrap();
    reply["messages"].as_array().unwrap().clone()
}

/// Returns all frames that the hub has queued for this connection: those that arrive before the answer to a
/// ping.
async fn pushes_so_far(socket: &mut Socket) -> Vec<Value> {
    let request_id = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos().to_string();
    socket.send(&json!({ "type": "ping", "reqId": request_id })).await.unwrap();
    let mut frames = Vec::new();
    loop {
        let frame = socket.frame(TEST_TIMEOUT).await.unwrap();
        if frame["reqId"] == request_id {
            return frames;
        }
        frames.push(frame);
    }
}

fn without_status(mut copy: Value) -> Value {
    copy.as_object_mut().unwrap().remove("status");
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_source_reaches_a_session_and_its_agent_by_push_and_by_receive() {
    let scene = Scene::start().await;
    let owner = scene.hearer("owner", &["slack/**"]).await;
    let mut agents = connect(&scene, &owner).await;
    agents.create_agent("researcher", &[]).await.unwrap();
    let added = agents.ok(session_sub_add("researcher", "slack", "slack/team/#general")).await.unwrap();
    assert_eq!(added["subscriptions"][0]["pattern"], "slack/team/#general");
    assert!(added["subscriptions"][0]["addedAt"].as_u64().is_some(), "{added}");
    agents.listen("researcher").await.unwrap();
    agents.ok(session_frame("listen", "researcher", "slack")).await.unwrap();
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let mut bridge = Broker::connect(scene.url(), &key).await.unwrap();
    let routed = bridge.route("slack-bridge", "slack/team/#general", json!({ "text": "hi" })).await.unwrap();
    assert_eq!(
        routed["deliveredTo"],
        json!(["researcher"]),
        "a message to a session is also delivered to its agent"
    );
    let taker = json!([{ "agentId": "researcher", "sessionId": "slack" }]);
    assert_eq!(routed["deliveredToSessions"], taker);

    let push = agents.wait_for_type("msg.session.push").await.unwrap();
    assert_eq!((&push["agentId"], &push["sessionId"]), (&json!("researcher"), &json!("slack")));
    let to_session = push["message"].clone();
    assert_eq!((&to_session["_deliveredTo"], &to_session["id"]), (&json!("researcher:slack"), &routed["id"]));
    assert!(to_session.get("handled").is_none() && to_session.get("handledBy").is_none(), "{to_session}");
    let to_agent = agents.pushed().await.unwrap();
    assert_eq!((&to_agent["handled"], &to_agent["handledBy"]), (&json!(true), &taker));
    assert_eq!((&to_agent["id"], &to_agent["source"]), (&routed["id"], &json!("external")));

    let mail = session_mail(&mut agents, "researcher", "slack").await;
    assert_eq!(mail.len(), 1);
    assert_eq!(mail[0]["status"], "delivered");
    assert_eq!(without_status(mail[0].clone()), without_status(to_session));
    let mail = agents.receive("researcher").await.unwrap();
    assert_eq!(without_status(mail[0].clone()), without_status(to_agent));
    assert_eq!(mail.len(), 1);
    assert!(session_mail(&mut agents, "researcher", "slack").await.is_empty(), "mail is received once");

    let mut remove = session_sub_add("researcher", "slack", "/slack/team/#general/");
    remove["type"] = json!("msg.session.sub.remove");
    let removed = agents.ok(remove).await.unwrap();
    assert_eq!((&removed["subscriptions"], &removed["sessionId"]), (&json!([]), &json!("slack")));
    let routed = bridge.route("slack-bridge", "slack/team/#general", json!({})).await.unwrap();
    assert_eq!(routed["unmatched"], true, "{routed}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_messages_reach_a_subscribed_session_and_its_agent_replies_in_the_room() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let path = format!("room/{room}");
    let mut agents = connect(&scene, &alice).await;
    agents.create_agent("cook", &[]).await.unwrap();
    let refused = agents.ask(session_sub_add("cook", "kitchen", &path)).await.unwrap();
    assert_eq!(refused["error"], "Not a member of this room");
    add_agent(&alice, &room, "cook").await;
    agents.ok(session_sub_add("cook", "kitchen", &path)).await.unwrap();
    agents.listen("cook").await.unwrap();
    agents.ok(session_frame("listen", "cook", "kitchen")).await.unwrap();
    let mut at_bob = following(&bob, &room).await;

    let ack = at_bob.say_and_wait(&room, "what is for dinner?", "b1").await.unwrap();
    assert_eq!(heard(&mut at_bob).await["content"], "what is for dinner?");
    let push = agents.wait_for_type("msg.session.push").await.unwrap()["message"].clone();
    assert_eq!((&push["id"], &push["path"]), (&json!(ack.message_id), &json!(path)));
    assert_eq!((&push["from"], &push["_deliveredTo"]), (&json!(bob.user_id()), &json!("cook:kitchen")));
    assert_eq!(push["payload"]["text"], "what is for dinner?");
    let copy = agents.pushed().await.unwrap();
    assert_eq!(
        (&copy["handled"], &copy["handledBy"][0]["sessionId"]),
        (&json!(true), &json!("kitchen")),
        "{copy}"
    );

    let routed = agents.route("cook", &path, json!({ "text": "soup" })).await.unwrap();
    let reply = heard(&mut at_bob).await;
    assert_eq!((&reply["content"], &reply["senderId"]), (&json!("soup"), &json!("cook")));
    assert_eq!((&reply["id"], &reply["senderType"]), (&routed["id"], &json!("agent")));
    assert_eq!(
        pushes_so_far(&mut agents).await,
        Vec::<Value>::new(),
        "the sender does not receive its own message"
    );
    assert_eq!(session_mail(&mut agents, "cook", "kitchen").await.len(), 1);
    assert_eq!(agents.receive("cook").await.unwrap().len(), 1);

    // After the agent is removed from the room, its subscription receives nothing.
    alice.delete(&format!("/api/rooms/{room}/members/cook")).await.unwrap();
    at_bob.say_and_wait(&room, "it is gone", "b2").await.unwrap();
    assert_eq!(pushes_so_far(&mut agents).await, Vec::<Value>::new());
    assert!(session_mail(&mut agents, "cook", "kitchen").await.is_empty());
    scene.ends_well().await;
}

/// Connects three users: Ada owns two agents, Bob's agent is in a room with Ada, Carol shares no room with
/// them. All agents subscribe to everything.
async fn three_owners(scene: &Scene) -> [Broker; 3] {
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let carol = scene.person("carol").await;
    let room = bob.make_room("common", &[&ada]).await.unwrap();
    let mut brokers = [connect(scene, &ada).await, connect(scene, &bob).await, connect(scene, &carol).await];
    for (owner, id) in [(0, "ada-1"), (0, "ada-2"), (1, "bob-1"), (2, "carol-1")] {
        brokers[owner].create_agent(id, &["**"]).await.unwrap();
        brokers[owner].ok(session_sub_add(id, "all", "agent/**")).await.unwrap();
    }
    add_agent(&bob, &room, "bob-1").await;
    brokers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_reaches_own_agents_and_those_in_a_common_room_but_not_its_sender() {
    let scene = Scene::start().await;
    let [mut ada, bob, carol] = three_owners(&scene).await;
    let sent = json!({ "type": "msg.broadcast", "from": "ada-1", "command": "announce" });
    let reply = ada.ok(sent).await.unwrap();
    assert_eq!(reply["message"]["deliveredTo"], json!(["ada-2", "bob-1"]), "{reply}");
    let sessions = reply["message"]["deliveredToSessions"].as_array().unwrap();
    let agents: Vec<&Value> = sessions.iter().map(|taker| &taker["agentId"]).collect();
    assert_eq!(agents, ["ada-2", "bob-1"], "the sessions of the sender do not receive it either");
    assert_eq!(
        (&reply["messageId"], &reply["message"]["source"]),
        (&reply["message"]["id"], &json!("internal"))
    );
    let mut brokers = [ada, bob, carol];
    for (owner, agent, expected) in [(0, "ada-1", 0), (0, "ada-2", 1), (1, "bob-1", 1), (2, "carol-1", 0)] {
        let broker = &mut brokers[owner];
        assert_eq!(broker.receive(agent).await.unwrap().len(), expected, "{agent}");
        assert_eq!(session_mail(broker, agent, "all").await.len(), expected, "{agent}:all");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_unreachable_agent_is_unmatched_like_one_to_an_unknown_agent() {
    let scene = Scene::start().await;
    let [mut ada, mut bob, mut carol] = three_owners(&scene).await;
    let mut answers = Vec::new();
    for to in ["carol-1", "nobody-1"] {
        let mut reply = ada.ok(json!({ "type": "msg.send", "from": "ada-1", "to": to })).await.unwrap();
        let message = reply["message"].as_object_mut().unwrap();
        assert_eq!(message["path"], format!("agent/{to}"));
        assert_eq!((&message["delivered"], &message["unmatched"]), (&json!(false), &json!(true)));
        for varying in ["id", "path", "timestamp", "position"] {
            message.remove(varying);
        }
        answers.push(reply["message"].clone());
    }
    assert_eq!(answers[0], answers[1]);
    assert!(carol.receive("carol-1").await.unwrap().is_empty());
    let reply = ada.ok(json!({ "type": "msg.send", "from": "ada-1", "to": "bob-1" })).await.unwrap();
    assert_eq!(reply["message"]["deliveredTo"], json!(["bob-1"]), "only Bob's agent receives it: {reply}");
    assert_eq!(bob.receive("bob-1").await.unwrap().len(), 1);
    assert!(
        ada.receive("ada-2").await.unwrap().is_empty(),
        "a subscription to `**` does not receive mail to Bob's agent"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_read_and_cleared_by_admins_and_keys_with_the_dead_letters_scope() {
    let scene = Scene::start().await;
    let owner = scene.person("owner").await;
    let mut agents = connect(&scene, &owner).await;
    agents.create_agent("writer", &[]).await.unwrap();
    agents.ok(json!({ "type": "msg.send", "from": "writer", "to": "ghost", "command": "hi" })).await.unwrap();
    agents.route("writer", "nobody/here", json!({ "n": 1 })).await.unwrap();
    let body = json!({ "name": "a program", "scopes": ["dead-letters"] });
    assert_eq!(
        owner.post("/api/keys", body).await.unwrap().status,
        403,
        "a user cannot create a key with more rights than their own"
    );
    let (_, key) = make_key(&scene.admin, &["dead-letters"]).await;
    let (_, other) = make_key(&scene.admin, &["read", "write", "agents", "sources"]).await;
    let mut by_key = Broker::connect(scene.url(), &key).await.unwrap();
    let mut by_other = Broker::connect(scene.url(), &other).await.unwrap();
    let mut admin = connect(&scene, &scene.admin).await;
    for kind in ["msg.unmatched", "msg.unmatched.clear"] {
        for broker in [&mut agents, &mut by_other] {
            let reply = broker.ask(json!({ "type": kind })).await.unwrap();
            assert_eq!(reply["error"], "Not allowed", "{reply}");
        }
    }
    for broker in [&mut by_key, &mut admin] {
        let reply = broker.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
        let letters = reply["messages"].as_array().unwrap();
        let paths: Vec<&Value> = letters.iter().map(|letter| &letter["path"]).collect();
        assert_eq!(paths, ["nobody/here", "agent/ghost"], "newest first");
        assert!(letters.iter().all(|letter| letter["reason"] == "no_subscribers"), "{reply}");
        assert!(letters.iter().all(|letter| letter.get("status").is_none()), "{reply}");
        assert_eq!(letters[0]["payload"], json!({ "n": 1 }));
        let limited = json!({ "type": "msg.unmatched", "options": { "limit": 1 } });
        assert_eq!(broker.ok(limited).await.unwrap()["messages"].as_array().unwrap().len(), 1);
    }
    assert_eq!(by_key.ok(json!({ "type": "msg.unmatched.clear" })).await.unwrap()["cleared"], true);
    assert_eq!(admin.ok(json!({ "type": "msg.unmatched" })).await.unwrap()["messages"], json!([]));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_newest_first_within_limit_and_times_and_consumes_no_mail() {
    let scene = Scene::start().await;
    let mut agents = connect(&scene, &scene.admin).await;
    agents.create_agent("writer", &[]).await.unwrap();
    let mut times = Vec::new();
    for n in 0..5 {
        let routed = agents.route("writer", "agent/writer", json!({ "n": n })).await.unwrap();
        times.push(routed["timestamp"].as_i64().unwrap());
    }
    let mut numbers = async |options: Value| {
        let frame = json!({ "type": "msg.history", "agentId": "writer", "options": options });
        let reply = agents.ok(frame).await.unwrap();
        let messages = reply["messages"].as_array().unwrap();
        assert!(messages.iter().all(|copy| copy["status"] == "pending"), "{reply}");
        messages.iter().map(|copy| copy["payload"]["n"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(json!({})).await, [4, 3, 2, 1, 0]);
    assert_eq!(numbers(json!({ "limit": 2 })).await, [4, 3]);
    let in_range = |keep: &dyn Fn(i64) -> bool| {
        (0..5_u64).rev().filter(|n| keep(times[*n as usize])).collect::<Vec<_>>()
    };
    assert_eq!(numbers(json!({ "fromTime": times[3] })).await, in_range(&|time| time >= times[3]));
    assert_eq!(numbers(json!({ "toTime": times[1] })).await, in_range(&|time| time <= times[1]));
    assert_eq!(numbers(json!({ "fromTime": times[4] + 1 })).await, Vec::<u64>::new());
    let mail = agents.receive("writer").await.unwrap();
    assert_eq!(mail.len(), 5);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_receives_no_pushes_before_it_listens() {
    let scene = Scene::start().await;
    let mut agents = connect(&scene, &scene.admin).await;
    agents.create_agent("writer", &[]).await.unwrap();
    for _ in 0..20 {
        let mut disconnected = connect(&scene, &scene.admin).await;
        disconnected.listen("writer").await.unwrap();
        disconnected.ok(session_frame("listen", "writer", "main")).await.unwrap();
    }
    let mut reconnected = connect(&scene, &scene.admin).await;
    // The witness listens all the time: its push proves that the message has been published.
    let mut witness = connect(&scene, &scene.admin).await;
    witness.listen("writer").await.unwrap();
    agents.route("writer", "agent/writer", json!({ "n": 1 })).await.unwrap();
    witness.wait_for_type("msg.push").await.unwrap();
    assert_eq!(pushes_so_far(&mut reconnected).await, Vec::<Value>::new());
    for _ in 0..2 {
        reconnected.listen("writer").await.unwrap();
    }
    agents.route("writer", "agent/writer", json!({ "n": 2 })).await.unwrap();
    let push = reconnected.wait_for_type("msg.push").await.unwrap();
    assert_eq!(push["message"]["payload"]["n"], 2);
    assert_eq!(
        pushes_so_far(&mut reconnected).await,
        Vec::<Value>::new(),
        "a second msg.listen does not duplicate pushes"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_of_a_deleted_agent_receives_nothing_of_a_new_agent_with_the_same_id() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let (mut at_ada, mut at_bob) = (connect(&scene, &ada).await, connect(&scene, &bob).await);
    let mut listener = connect(&scene, &ada).await;
    at_ada.create_agent("helper/one", &["slack/**"]).await.unwrap();
    at_ada.create_agent("helper", &[]).await.unwrap();
    at_ada.ok(session_sub_add("helper/one", "s", "slack/**")).await.unwrap();
    listener.listen("helper/one").await.unwrap();
    listener.ok(session_frame("listen", "helper/one", "s")).await.unwrap();
    at_ada.route("helper", "agent/helper/one", json!({ "text": "a secret" })).await.unwrap();
    assert_eq!(listener.pushed().await.unwrap()["payload"]["text"], "a secret");
    let deleted = at_ada.ok(json!({ "type": "agent.delete", "id": "helper" })).await.unwrap();
    assert_eq!(deleted["id"], "helper");

    at_bob.create_agent("helper/one", &[]).await.unwrap();
    at_bob.ok(session_sub_add("helper/one", "s", "agent/**")).await.unwrap();
    at_bob.route("helper/one", "agent/helper/one", json!({ "text": "bob's" })).await.unwrap();
    assert_eq!(pushes_so_far(&mut listener).await, Vec::<Value>::new());
    let mail = at_bob.receive("helper/one").await.unwrap();
    assert_eq!(mail.len(), 1, "the mail of the deleted agent is not delivered: {mail:?}");
    let history = at_bob.ok(json!({ "type": "msg.history", "agentId": "helper/one" })).await.unwrap();
    assert_eq!(history["messages"].as_array().unwrap().len(), 1, "{history}");
    let listed = at_bob.ok(json!({ "type": "msg.sub.list", "agentId": "helper/one" })).await.unwrap();
    assert_eq!(listed["subscriptions"], json!([]));
    let reply = listener.ask(json!({ "type": "msg.receive", "agentId": "helper/one" })).await.unwrap();
    assert_eq!(reply["error"], "Agent not found: helper/one");
    scene.ends_well().await;
}
