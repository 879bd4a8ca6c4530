//! What is said through one door is seen through the others, in the same order, once.

use std::time::Duration;

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::{Scene, contents, following, heard, next, so_far};

#[tokio::test(flavor = "multi_thread")]
async fn two_people_talk_in_one_room() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let (mut at_alice, mut at_bob) = (following(&alice, &room).await, following(&bob, &room).await);

    let ack = at_alice.say_and_wait(&room, "Hello @bob", "a1").await.unwrap();
    let said = heard(&mut at_bob).await;
    assert_eq!(said, heard(&mut at_alice).await, "both see the same");
    assert_eq!(said["id"], ack.message_id);
    assert_eq!((&said["roomId"], &said["senderId"]), (&json!(room), &json!(alice.user_id())));
    assert_eq!((&said["senderName"], &said["senderType"]), (&json!("alice"), &json!("user")));
    assert_eq!((&said["type"], &said["content"]), (&json!("text"), &json!("Hello @bob")));
    assert_eq!((&said["mentions"], &said["clientMessageId"]), (&json!(["bob"]), &json!("a1")));
    assert_eq!(said["seq"], ack.seq);
    assert!(said.get("replyToId").is_none() && said.get("editedAt").is_none(), "{said}");

    let reply = json!({
        "type": "client:send_message", "roomId": room, "content": "Hi", "replyToId": ack.message_id,
        "mentions": [alice.user_id(), "nobody"],
    });
    at_bob.send(&reply).await.unwrap();
    let answer = heard(&mut at_alice).await;
    assert_eq!(answer["replyToId"], ack.message_id);
    assert_eq!(answer["mentions"], json!(["alice"]), "ids resolve to names, unknown ones are ignored");
    assert!(answer["seq"].as_u64().unwrap() > ack.seq);

    let posted = bob.post_message(&room, "by REST").await.unwrap();
    assert_eq!(heard(&mut at_alice).await["id"], posted["id"]);
    let history = alice.history(&room).await.unwrap();
    assert_eq!(contents(&history), ["Hello @bob", "Hi", "by REST"]);
    assert_eq!(history[0], said, "history says what the socket said");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_deletions_and_read_receipts_reach_the_others() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let mut at_bob = following(&bob, &room).await;
    let posted = alice.post_message(&room, "frist").await.unwrap();
    let path = format!("/api/messages/{}", posted["id"].as_str().unwrap());
    let unread = bob.get("/api/messages/recent").await.unwrap().data().unwrap();
    assert_eq!(unread[&room]["unread"], 1, "{unread}");

    let edited = alice.put(&path, json!({ "content": "first" })).await.unwrap().data().unwrap();
    let told = next(&mut at_bob, "server:message_edited").await["message"].clone();
    assert_eq!(told, edited);
    assert_eq!((&told["content"], &told["id"]), (&json!("first"), &posted["id"]));
    let revisions = bob.get(&format!("{path}/history")).await.unwrap().data().unwrap();
    assert_eq!(revisions[0]["previousContent"], "frist");

    bob.post(&format!("/api/messages/rooms/{room}/read"), json!({})).await.unwrap();
    let receipt = next(&mut at_bob, "server:read_receipt").await;
    assert_eq!((&receipt["roomId"], &receipt["userId"]), (&json!(room), &json!(bob.user_id())));
    assert_eq!(receipt["username"], "bob");
    assert!(receipt["lastReadAt"].as_str().unwrap().ends_with('Z'), "{receipt}");
    let unread = bob.get("/api/messages/recent").await.unwrap().data().unwrap();
    assert_eq!(unread[&room]["unread"], 0, "{unread}");

    assert_eq!(bob.delete(&path).await.unwrap().status, 403, "not his message");
    alice.delete(&path).await.unwrap();
    let deleted = next(&mut at_bob, "server:message_deleted").await;
    assert_eq!((&deleted["messageId"], &deleted["roomId"]), (&posted["id"], &json!(room)));
    assert!(bob.history(&room).await.unwrap().is_empty());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_is_told_to_the_others_once_a_second() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let (mut at_alice, mut at_bob) = (following(&alice, &room).await, following(&bob, &room).await);
    let mut also_alice = following(&alice, &room).await;
    let typing = json!({ "type": "client:typing", "roomId": room });
    for _ in 0..5 {
        at_alice.send(&typing).await.unwrap();
    }
    at_alice.say_and_wait(&room, "done", "a1").await.unwrap();
    heard(&mut at_bob).await;
    let told = of_kind(so_far(&mut at_bob).await, "server:typing");
    let expected = json!({
        "type": "server:typing", "roomId": room, "userId": alice.user_id(), "username": "alice",
    });
    assert_eq!(told, [expected], "five within a second are one");
    for own in [&mut at_alice, &mut also_alice] {
        heard(own).await;
        assert!(of_kind(so_far(own).await, "server:typing").is_empty(), "nobody is told of themselves");
    }
    // After the second it is told again; until then each attempt is swallowed.
    let again = async {
        loop {
            at_alice.send(&typing).await.unwrap();
            if !of_kind(so_far(&mut at_bob).await, "server:typing").is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, again).await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_is_told_to_people_who_share_a_room_and_to_nobody_else() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let carol = scene.person("carol").await;
    alice.make_room("kitchen", &[&bob]).await.unwrap();
    let (mut at_alice, mut at_carol) =
        (Client::connect(&alice).await.unwrap(), Client::connect(&carol).await.unwrap());
    next(&mut at_alice, "server:presence").await;

    let first = Client::connect(&bob).await.unwrap();
    let online = next(&mut at_alice, "server:presence").await;
    assert_eq!(
        online,
        json!({ "type": "server:presence", "userId": bob.user_id(), "username": "bob", "online": true })
    );
    // A second connection, and the end of the first, change nothing about bob being there.
    let second = Client::connect(&bob).await.unwrap();
    drop(first);
    drop(second);
    let offline = next(&mut at_alice, "server:presence").await;
    assert_eq!((&offline["online"], &offline["userId"]), (&json!(false), &json!(bob.user_id())));
    let strangers = of_kind(so_far(&mut at_carol).await, "server:presence");
    assert!(strangers.iter().all(|frame| frame["userId"] == carol.user_id()), "{strangers:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_added_or_removed_learns_of_it_and_hears_nothing_afterwards() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[]).await.unwrap();
    let (mut at_alice, mut at_bob) = (following(&alice, &room).await, Client::connect(&bob).await.unwrap());

    let body = json!({ "memberId": bob.user_id(), "memberType": "user" });
    alice.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    for client in [&mut at_alice, &mut at_bob] {
        let has_bob = |frame: &Value| {
            let members = frame["members"].as_array().map(Vec::as_slice).unwrap_or_default();
            members.iter().any(|member| member["memberId"] == bob.user_id())
        };
        let update = client.wait_for(TEST_TIMEOUT, has_bob).await.unwrap();
        assert_eq!(update["type"], "server:room_update");
        assert_eq!((&update["room"]["id"], &update["room"]["name"]), (&json!(room), &json!("kitchen")));
    }
    at_bob.join(&room).await.unwrap();
    alice.put(&format!("/api/rooms/{room}"), json!({ "name": "parlour" })).await.unwrap().data().unwrap();
    assert_eq!(next(&mut at_bob, "server:room_update").await["room"]["name"], "parlour");

    alice.delete(&format!("/api/rooms/{room}/members/{}", bob.user_id())).await.unwrap();
    let removed = json!({ "type": "server:room_removed", "roomId": room });
    assert_eq!(next(&mut at_bob, "server:room_removed").await, removed);
    alice.post_message(&room, "he is gone").await.unwrap();
    heard(&mut at_alice).await;
    assert!(of_kind(so_far(&mut at_bob).await, "server:new_message").is_empty());
    assert_eq!(bob.get(&format!("/api/messages/rooms/{room}")).await.unwrap().status, 404);

    alice.delete(&format!("/api/rooms/{room}")).await.unwrap();
    assert_eq!(next(&mut at_alice, "server:room_removed").await, removed);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_who_sends_without_having_joined_is_joined_by_it_and_one_who_left_hears_nothing() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let mut at_alice = Client::connect(&alice).await.unwrap();
    at_alice.say_and_wait(&room, "one", "a1").await.unwrap();
    assert_eq!(heard(&mut at_alice).await["content"], "one");
    bob.post_message(&room, "two").await.unwrap();
    assert_eq!(heard(&mut at_alice).await["content"], "two");
    at_alice.send(&json!({ "type": "client:leave_room", "roomId": room })).await.unwrap();
    so_far(&mut at_alice).await;
    let mut at_bob = following(&bob, &room).await;
    bob.post_message(&room, "three").await.unwrap();
    heard(&mut at_bob).await;
    assert!(of_kind(so_far(&mut at_alice).await, "server:new_message").is_empty());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_program_hears_the_room_and_is_heard_in_it() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let path = format!("room/{room}");
    let mut program = Broker::connect(scene.url(), &key(&alice, &["agents"]).await).await.unwrap();
    for agent in ["listener", "coder"] {
        program.create_agent(agent, &[]).await.unwrap();
        let body = json!({ "memberId": agent, "memberType": "agent" });
        alice.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
        program.listen(agent).await.unwrap();
    }
    let frame = json!({ "type": "msg.sub.add", "agentId": "listener", "pattern": path });
    program.ok(frame).await.unwrap();
    let (mut at_alice, mut at_bob) = (following(&alice, &room).await, following(&bob, &room).await);

    let ack = at_bob.say_and_wait(&room, "anybody here?", "b1").await.unwrap();
    let push = program.pushed().await.unwrap();
    assert_eq!((&push["_deliveredTo"], &push["path"]), (&json!("listener"), &json!(path)));
    assert_eq!((&push["id"], &push["from"]), (&json!(ack.message_id), &json!(bob.user_id())));
    assert_eq!(push["payload"]["text"], "anybody here?");
    at_bob.say_and_wait(&room, "@coder please", "b2").await.unwrap();
    let both = [program.pushed().await.unwrap(), program.pushed().await.unwrap()];
    let to: Vec<&Value> = both.iter().map(|push| &push["_deliveredTo"]).collect();
    assert_eq!(to, ["coder", "listener"], "the one that was mentioned hears it too");

    // Both doors speak at once; everyone sees one order.
    for n in 0..20 {
        at_alice.say(&room, &format!("person {n}"), &format!("p{n}")).await.unwrap();
        let routed = program.route("listener", &path, json!({ "text": format!("agent {n}") })).await.unwrap();
        assert_eq!((&routed["delivered"], &routed["unmatched"]), (&json!(true), &json!(false)));
    }
    let mut seen = [Vec::new(), Vec::new()];
    for (client, seen) in [&mut at_alice, &mut at_bob].into_iter().zip(&mut seen) {
        for _ in 0..42 {
            seen.push(heard(client).await);
        }
        assert!(of_kind(so_far(client).await, "server:new_message").is_empty(), "each once");
    }
    assert_eq!(seen[0], alice.history(&room).await.unwrap());
    assert_eq!(seen[0], seen[1]);
    let of_agent = |frame: &&Value| frame["senderType"] == "agent";
    let spoken: Vec<Value> = seen[0].iter().filter(of_agent).cloned().collect();
    assert_eq!(contents(&spoken), (0..20).map(|n| format!("agent {n}")).collect::<Vec<_>>());
    assert_eq!((&spoken[0]["senderId"], &spoken[0]["type"]), (&json!("listener"), &json!("agent_response")));
    // The speaker does not hear itself; it heard the people, in order.
    let mail = program.receive("listener").await.unwrap();
    let texts: Vec<&str> = mail.iter().map(|copy| copy["payload"]["text"].as_str().unwrap()).collect();
    let people = seen[0].iter().filter(|frame| frame["senderType"] == "user");
    assert_eq!(texts, people.map(|frame| frame["content"].as_str().unwrap()).collect::<Vec<_>>());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_from_an_outside_source_reaches_subscribed_agents_by_push_and_by_receive() {
    let scene = Scene::start().await;
    let owner = scene.hearer("owner", &["slack/team/**"]).await;
    let mut program = Broker::connect(scene.url(), &key(&owner, &["agents"]).await).await.unwrap();
    program.create_agent("researcher", &["slack/**"]).await.unwrap();
    let mut bridge = Broker::connect(scene.url(), &key(&scene.admin, &["sources"]).await).await.unwrap();
    let route = |n: u32| {
        json!({
            "type": "msg.route", "from": "slack-bridge", "path": "slack/team/#general",
            "command": "new_message", "payload": { "n": n }, "source": "slack", "externalId": format!("ts-{n}"),
        })
    };
    bridge.ok(route(0)).await.unwrap();
    program.listen("researcher").await.unwrap();
    for n in 1..5 {
        let routed = bridge.ok(route(n)).await.unwrap();
        assert_eq!(routed["deliveredTo"], json!(["researcher"]));
        assert_eq!(program.pushed().await.unwrap()["payload"]["n"], n);
    }
    let again = bridge.ok(route(3)).await.unwrap();
    let mail = program.receive("researcher").await.unwrap();
    assert_eq!(again["id"], mail[3]["id"], "the same externalId is the same message");
    let numbers: Vec<&Value> = mail.iter().map(|copy| &copy["payload"]["n"]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4], "oldest first, also what came before it listened");
    assert!(mail.iter().all(|copy| copy["status"] == "delivered"), "{mail:?}");
    assert!(program.receive("researcher").await.unwrap().is_empty(), "delivered once");

    let lost = bridge.route("slack-bridge", "nobody/here", json!({})).await.unwrap();
    assert_eq!((&lost["delivered"], &lost["unmatched"]), (&json!(false), &json!(true)));
    // A key that may only be a source is no agent, and the other way round.
    let refused = bridge.ask(json!({ "type": "msg.receive", "agentId": "researcher" })).await.unwrap();
    assert_eq!(refused["type"], "msg.receive.error");
    let refused = program.ask(route(9)).await.unwrap();
    assert_eq!(refused["type"], "msg.route.error");
    scene.ends_well().await;
}

async fn key(owner: &RestClient, scopes: &[&str]) -> String {
    let body = json!({ "name": "a program", "scopes": scopes });
    let key = owner.post("/api/keys", body).await.unwrap().data().unwrap();
    key["key"].as_str().unwrap().to_owned()
}

fn of_kind(frames: Vec<Value>, kind: &str) -> Vec<Value> {
    frames.into_iter().filter(|frame| frame["type"] == kind).collect()
}
