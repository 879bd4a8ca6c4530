//! Who gets what is sent through the broker, by push and by receive: sources, rooms, broadcasts, dead letters.

use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};

use crate::scene::{Scene, following, heard, make_key};

async fn connect(scene: &Scene, person: &RestClient) -> Broker {
    Broker::connect(scene.url(), person.token()).await.unwrap()
}

async fn add_agent(owner: &RestClient, room: &str, agent: &str) {
    let body = json!({ "memberId": agent, "memberType": "agent" });
    owner.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
}

fn of_session(verb: &str, agent: &str, session: &str) -> Value {
    json!({ "type": format!("msg.session.{verb}"), "agentId": agent, "sessionId": session })
}

fn subscribing(agent: &str, session: &str, pattern: &str) -> Value {
    let mut frame = of_session("sub.add", agent, session);
    frame["pattern"] = json!(pattern);
    frame
}

async fn session_mail(broker: &mut Broker, agent: &str, session: &str) -> Vec<Value> {
    let reply = broker.ok(of_session("receive", agent, session)).await.unwrap();
    reply["messages"].as_array().unwrap().clone()
}

/// Everything that came before the answer to a ping: what the hub had to say so far.
async fn pushes_so_far(socket: &mut Socket) -> Vec<Value> {
    let mark = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos().to_string();
    socket.send(&json!({ "type": "ping", "reqId": mark })).await.unwrap();
    let mut frames = Vec::new();
    loop {
        let frame = socket.frame(TEST_TIMEOUT).await.unwrap();
        if frame["reqId"] == mark {
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
async fn what_a_source_routes_reaches_a_session_and_its_agent_by_push_and_by_receive() {
    let scene = Scene::start().await;
    let owner = scene.hearer("owner", &["slack/**"]).await;
    let mut agents = connect(&scene, &owner).await;
    agents.create_agent("researcher", &[]).await.unwrap();
    let added = agents.ok(subscribing("researcher", "slack", "slack/team/#general")).await.unwrap();
    assert_eq!(added["subscriptions"][0]["pattern"], "slack/team/#general");
    assert!(added["subscriptions"][0]["addedAt"].as_u64().is_some(), "{added}");
    agents.listen("researcher").await.unwrap();
    agents.ok(of_session("listen", "researcher", "slack")).await.unwrap();
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let mut bridge = Broker::connect(scene.url(), &key).await.unwrap();
    let routed = bridge.route("slack-bridge", "slack/team/#general", json!({ "text": "hi" })).await.unwrap();
    assert_eq!(routed["deliveredTo"], json!(["researcher"]), "a session brings its agent");
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
    assert!(session_mail(&mut agents, "researcher", "slack").await.is_empty(), "once");

    let mut remove = subscribing("researcher", "slack", "/slack/team/#general/");
    remove["type"] = json!("msg.session.sub.remove");
    let removed = agents.ok(remove).await.unwrap();
    assert_eq!((&removed["subscriptions"], &removed["sessionId"]), (&json!([]), &json!("slack")));
    let routed = bridge.route("slack-bridge", "slack/team/#general", json!({})).await.unwrap();
    assert_eq!(routed["unmatched"], true, "{routed}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_reaches_a_session_that_listens_to_it_and_is_answered_through_the_room() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let path = format!("room/{room}");
    let mut agents = connect(&scene, &alice).await;
    agents.create_agent("cook", &[]).await.unwrap();
    let refused = agents.ask(subscribing("cook", "kitchen", &path)).await.unwrap();
    assert_eq!(refused["error"], "Not a member of this room");
    add_agent(&alice, &room, "cook").await;
    agents.ok(subscribing("cook", "kitchen", &path)).await.unwrap();
    agents.listen("cook").await.unwrap();
    agents.ok(of_session("listen", "cook", "kitchen")).await.unwrap();
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
    let said = heard(&mut at_bob).await;
    assert_eq!((&said["content"], &said["senderId"]), (&json!("soup"), &json!("cook")));
    assert_eq!((&said["id"], &said["senderType"]), (&routed["id"], &json!("agent")));
    assert_eq!(pushes_so_far(&mut agents).await, Vec::<Value>::new(), "it does not hear itself");
    assert_eq!(session_mail(&mut agents, "cook", "kitchen").await.len(), 1);
    assert_eq!(agents.receive("cook").await.unwrap().len(), 1);

    // Out of the room, its subscription hears nothing.
    alice.delete(&format!("/api/rooms/{room}/members/cook")).await.unwrap();
    at_bob.say_and_wait(&room, "it is gone", "b2").await.unwrap();
    assert_eq!(pushes_so_far(&mut agents).await, Vec::<Value>::new());
    assert!(session_mail(&mut agents, "cook", "kitchen").await.is_empty());
    scene.ends_well().await;
}

/// Ada with two agents; bob's agent in a room with her; carol's nowhere near. All listen to everything.
async fn three_owners(scene: &Scene) -> [Broker; 3] {
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let carol = scene.person("carol").await;
    let room = bob.make_room("common", &[&ada]).await.unwrap();
    let mut brokers = [connect(scene, &ada).await, connect(scene, &bob).await, connect(scene, &carol).await];
    for (owner, id) in [(0, "ada-1"), (0, "ada-2"), (1, "bob-1"), (2, "carol-1")] {
        brokers[owner].create_agent(id, &["**"]).await.unwrap();
        brokers[owner].ok(subscribing(id, "all", "agent/**")).await.unwrap();
    }
    add_agent(&bob, &room, "bob-1").await;
    brokers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_reaches_own_agents_and_those_in_a_common_room_but_not_its_sender() {
    let scene = Scene::start().await;
    let [mut ada, bob, carol] = three_owners(&scene).await;
    let sent = json!({ "type": "msg.broadcast", "from": "ada-1", "command": "announce" });
    let told = ada.ok(sent).await.unwrap();
    assert_eq!(told["message"]["deliveredTo"], json!(["ada-2", "bob-1"]), "{told}");
    let sessions = told["message"]["deliveredToSessions"].as_array().unwrap();
    let of: Vec<&Value> = sessions.iter().map(|taker| &taker["agentId"]).collect();
    assert_eq!(of, ["ada-2", "bob-1"], "the sender's sessions do not hear it either");
    assert_eq!(
        (&told["messageId"], &told["message"]["source"]),
        (&told["message"]["id"], &json!("internal"))
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
async fn a_message_to_a_strangers_agent_is_unmatched_as_one_to_nobody_is() {
    let scene = Scene::start().await;
    let [mut ada, mut bob, mut carol] = three_owners(&scene).await;
    let mut answers = Vec::new();
    for to in ["carol-1", "nobody-1"] {
        let mut told = ada.ok(json!({ "type": "msg.send", "from": "ada-1", "to": to })).await.unwrap();
        let message = told["message"].as_object_mut().unwrap();
        assert_eq!(message["path"], format!("agent/{to}"));
        assert_eq!((&message["delivered"], &message["unmatched"]), (&json!(false), &json!(true)));
        for varying in ["id", "path", "timestamp", "position"] {
            message.remove(varying);
        }
        answers.push(told["message"].clone());
    }
    assert_eq!(answers[0], answers[1]);
    assert!(carol.receive("carol-1").await.unwrap().is_empty());
    let told = ada.ok(json!({ "type": "msg.send", "from": "ada-1", "to": "bob-1" })).await.unwrap();
    assert_eq!(told["message"]["deliveredTo"], json!(["bob-1"]), "only bob's agents hear it: {told}");
    assert_eq!(bob.receive("bob-1").await.unwrap().len(), 1);
    assert!(ada.receive("ada-2").await.unwrap().is_empty(), "`**` does not overhear what is bob's");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_for_admins_and_keys_made_for_it_and_are_cleared() {
    let scene = Scene::start().await;
    let owner = scene.person("owner").await;
    let mut agents = connect(&scene, &owner).await;
    agents.create_agent("writer", &[]).await.unwrap();
    agents.ok(json!({ "type": "msg.send", "from": "writer", "to": "ghost", "command": "hi" })).await.unwrap();
    agents.route("writer", "nobody/here", json!({ "n": 1 })).await.unwrap();
    let body = json!({ "name": "a program", "scopes": ["dead-letters"] });
    assert_eq!(owner.post("/api/keys", body).await.unwrap().status, 403, "no key beyond its owner");
    let (_, key) = make_key(&scene.admin, &["dead-letters"]).await;
    let (_, other) = make_key(&scene.admin, &["read", "write", "agents", "sources"]).await;
    let mut by_key = Broker::connect(scene.url(), &key).await.unwrap();
    let mut by_other = Broker::connect(scene.url(), &other).await.unwrap();
    let mut admin = connect(&scene, &scene.admin).await;
    for kind in ["msg.unmatched", "msg.unmatched.clear"] {
        for broker in [&mut agents, &mut by_other] {
            let told = broker.ask(json!({ "type": kind })).await.unwrap();
            assert_eq!(told["error"], "Not allowed", "{told}");
        }
    }
    for broker in [&mut by_key, &mut admin] {
        let told = broker.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
        let letters = told["messages"].as_array().unwrap();
        let paths: Vec<&Value> = letters.iter().map(|letter| &letter["path"]).collect();
        assert_eq!(paths, ["nobody/here", "agent/ghost"], "newest first");
        assert!(letters.iter().all(|letter| letter["reason"] == "no_subscribers"), "{told}");
        assert!(letters.iter().all(|letter| letter.get("status").is_none()), "{told}");
        assert_eq!(letters[0]["payload"], json!({ "n": 1 }));
        let one = json!({ "type": "msg.unmatched", "options": { "limit": 1 } });
        assert_eq!(broker.ok(one).await.unwrap()["messages"].as_array().unwrap().len(), 1);
    }
    assert_eq!(by_key.ok(json!({ "type": "msg.unmatched.clear" })).await.unwrap()["cleared"], true);
    assert_eq!(admin.ok(json!({ "type": "msg.unmatched" })).await.unwrap()["messages"], json!([]));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_newest_first_within_its_limit_and_times_and_takes_nothing_out() {
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
        let told = agents.ok(frame).await.unwrap();
        let messages = told["messages"].as_array().unwrap();
        assert!(messages.iter().all(|copy| copy["status"] == "pending"), "{told}");
        messages.iter().map(|copy| copy["payload"]["n"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(json!({})).await, [4, 3, 2, 1, 0]);
    assert_eq!(numbers(json!({ "limit": 2 })).await, [4, 3]);
    let within = |keep: &dyn Fn(i64) -> bool| {
        (0..5_u64).rev().filter(|n| keep(times[*n as usize])).collect::<Vec<_>>()
    };
    assert_eq!(numbers(json!({ "fromTime": times[3] })).await, within(&|time| time >= times[3]));
    assert_eq!(numbers(json!({ "toTime": times[1] })).await, within(&|time| time <= times[1]));
    assert_eq!(numbers(json!({ "fromTime": times[4] + 1 })).await, Vec::<u64>::new());
    let mail = agents.receive("writer").await.unwrap();
    assert_eq!(mail.len(), 5);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_hears_nothing_before_it_listens_and_another_one_must_listen_again() {
    let scene = Scene::start().await;
    let mut agents = connect(&scene, &scene.admin).await;
    agents.create_agent("writer", &[]).await.unwrap();
    for _ in 0..20 {
        let mut gone = connect(&scene, &scene.admin).await;
        gone.listen("writer").await.unwrap();
        gone.ok(of_session("listen", "writer", "main")).await.unwrap();
    }
    let mut back = connect(&scene, &scene.admin).await;
    // Who listens all the time tells when a message has been told.
    let mut witness = connect(&scene, &scene.admin).await;
    witness.listen("writer").await.unwrap();
    agents.route("writer", "agent/writer", json!({ "n": 1 })).await.unwrap();
    witness.wait_for_type("msg.push").await.unwrap();
    assert_eq!(pushes_so_far(&mut back).await, Vec::<Value>::new());
    for _ in 0..2 {
        back.listen("writer").await.unwrap();
    }
    agents.route("writer", "agent/writer", json!({ "n": 2 })).await.unwrap();
    let push = back.wait_for_type("msg.push").await.unwrap();
    assert_eq!(push["message"]["payload"]["n"], 2);
    assert_eq!(pushes_so_far(&mut back).await, Vec::<Value>::new(), "listening twice is listening");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_listened_to_a_deleted_agent_hears_nothing_of_the_next_one_with_its_id() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let (mut at_ada, mut at_bob) = (connect(&scene, &ada).await, connect(&scene, &bob).await);
    let mut ears = connect(&scene, &ada).await;
    at_ada.create_agent("helper/one", &["slack/**"]).await.unwrap();
    at_ada.create_agent("helper", &[]).await.unwrap();
    at_ada.ok(subscribing("helper/one", "s", "slack/**")).await.unwrap();
    ears.listen("helper/one").await.unwrap();
    ears.ok(of_session("listen", "helper/one", "s")).await.unwrap();
    at_ada.route("helper", "agent/helper/one", json!({ "text": "a secret" })).await.unwrap();
    assert_eq!(ears.pushed().await.unwrap()["payload"]["text"], "a secret");
    let deleted = at_ada.ok(json!({ "type": "agent.delete", "id": "helper" })).await.unwrap();
    assert_eq!(deleted["id"], "helper");

    at_bob.create_agent("helper/one", &[]).await.unwrap();
    at_bob.ok(subscribing("helper/one", "s", "agent/**")).await.unwrap();
    at_bob.route("helper/one", "agent/helper/one", json!({ "text": "bob's" })).await.unwrap();
    assert_eq!(pushes_so_far(&mut ears).await, Vec::<Value>::new());
    let mail = at_bob.receive("helper/one").await.unwrap();
    assert_eq!(mail.len(), 1, "nothing of the old one's mail: {mail:?}");
    let history = at_bob.ok(json!({ "type": "msg.history", "agentId": "helper/one" })).await.unwrap();
    assert_eq!(history["messages"].as_array().unwrap().len(), 1, "{history}");
    let listed = at_bob.ok(json!({ "type": "msg.sub.list", "agentId": "helper/one" })).await.unwrap();
    assert_eq!(listed["subscriptions"], json!([]));
    let told = ears.ask(json!({ "type": "msg.receive", "agentId": "helper/one" })).await.unwrap();
    assert_eq!(told["error"], "Agent not found: helper/one");
    scene.ends_well().await;
}
