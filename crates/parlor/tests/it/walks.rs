//! A message sent through one protocol is delivered through all others, once and in order.

use std::time::Duration;

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::{Scene, contents, following, heard, next, so_far};

#[tokio::test(flavor = "multi_thread")]
async fn two_users_exchange_messages_in_one_room() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let (mut at_alice, mut at_bob) = (following(&alice, &room).await, following(&bob, &room).await);

    let ack = at_alice.say_and_wait(&room, "Hello @bob", "a1").await.unwrap();
    let received = heard(&mut at_bob).await;
    assert_eq!(received, heard(&mut at_alice).await, "both members receive the same frame");
    assert_eq!(received["id"], ack.message_id);
    assert_eq!((&received["roomId"], &received["senderId"]), (&json!(room), &json!(alice.user_id())));
    assert_eq!((&received["senderName"], &received["senderType"]), (&json!("alice"), &json!("user")));
    assert_eq!((&received["type"], &received["content"]), (&json!("text"), &json!("Hello @bob")));
    assert_eq!((&received["mentions"], &received["clientMessageId"]), (&json!(["bob"]), &json!("a1")));
    assert_eq!(received["seq"], ack.seq);
    assert!(received.get("replyToId").is_none() && received.get("editedAt").is_none(), "{received}");

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
    assert_eq!(history[0], received, "the history equals the frames of the socket");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_deletions_and_read_receipts_are_published_to_members() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
    let mut at_bob = following(&bob, &room).await;
    let posted = alice.post_message(&room, "frist").await.unwrap();
    let path = format!("/api/messages/{}", posted["id"].as_str().unwrap());
    let unread = bob.get("/api/messages/recent").await.unwrap().data().unwrap();
    assert_eq!(unread[&room]["unread"], 1, "{unread}");

    let edited = alice.put(&path, json!({ "content": "first" })).await.unwrap().data().unwrap();
    let published = next(&mut at_bob, "server:message_edited").await["message"].clone();
    assert_eq!(published, edited);
    assert_eq!((&published["content"], &published["id"]), (&json!("first"), &posted["id"]));
    let revisions = bob.get(&format!("{path}/history")).await.unwrap().data().unwrap();
    assert_eq!(revisions[0]["previousContent"], "frist");

    bob.post(&format!("/api/messages/rooms/{room}/read"), json!({})).await.unwrap();
    let receipt = next(&mut at_bob, "server:read_receipt").await;
    assert_eq!((&receipt["roomId"], &receipt["userId"]), (&json!(room), &json!(bob.user_id())));
    assert_eq!(receipt["username"], "bob");
    assert!(receipt["lastReadAt"].as_str().unwrap().ends_with('Z'), "{receipt}");
    let unread = bob.get("/api/messages/recent").await.unwrap().data().unwrap();
    assert_eq!(unread[&room]["unread"], 0, "{unread}");

    assert_eq!(bob.delete(&path).await.unwrap().status, 403, "only the author may delete a message");
    alice.delete(&path).await.unwrap();
    let deleted = next(&mut at_bob, "server:message_deleted").await;
    assert_eq!((&deleted["messageId"], &deleted["roomId"]), (&posted["id"], &json!(room)));
    assert!(bob.history(&room).await.unwrap().is_empty());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_is_published_to_other_members_at_most_once_per_second() {
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
    let received = of_kind(so_far(&mut at_bob).await, "server:typing");
    let expected = json!({
        "type": "server:typing", "roomId": room, "userId": alice.user_id(), "username": "alice",
    });
    assert_eq!(received, [expected], "five typing signals within one second are published once");
    for client in [&mut at_alice, &mut also_alice] {
        heard(client).await;
        assert!(
            of_kind(so_far(client).await, "server:typing").is_empty(),
            "no connection of the typing user receives the signal"
        );
    }
    // After one second the signal is published again; until then the hub drops it.
    let published_again = async {
        loop {
            at_alice.send(&typing).await.unwrap();
            if !of_kind(so_far(&mut at_bob).await, "server:typing").is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, published_again).await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_is_published_only_to_users_who_share_a_room() {
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
    // Bob stays online until his last connection has ended.
    let second = Client::connect(&bob).await.unwrap();
    drop(first);
    drop(second);
    let offline = next(&mut at_alice, "server:presence").await;
    assert_eq!((&offline["online"], &offline["userId"]), (&json!(false), &json!(bob.user_id())));
    let at_carol_presence = of_kind(so_far(&mut at_carol).await, "server:presence");
    assert!(
        at_carol_presence.iter().all(|frame| frame["userId"] == carol.user_id()),
        "{at_carol_presence:?}"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_or_removed_member_is_notified_and_receives_nothing_after_removal() {
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
async fn sending_joins_the_room_and_leaving_ends_delivery() {
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
async fn a_broker_agent_receives_room_messages_and_posts_in_the_room() {
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
    assert_eq!(to, ["coder", "listener"], "a mentioned agent receives the message without a subscription");

    // Messages over the client socket and the broker at the same time have one order for all subscribers.
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
        assert!(
            of_kind(so_far(client).await, "server:new_message").is_empty(),
            "each message is delivered once"
        );
    }
    assert_eq!(seen[0], alice.history(&room).await.unwrap());
    assert_eq!(seen[0], seen[1]);
    let of_agent = |frame: &&Value| frame["senderType"] == "agent";
    let agent_messages: Vec<Value> = seen[0].iter().filter(of_agent).cloned().collect();
    assert_eq!(contents(&agent_messages), (0..20).map(|n| format!("agent {n}")).collect::<Vec<_>>());
    assert_eq!(
        (&agent_messages[0]["senderId"], &agent_messages[0]["type"]),
        (&json!("listener"), &json!("agent_response"))
    );
    // The sending agent receives no message of its own, and all messages of users in order.
    let mail = program.receive("listener").await.unwrap();
    let texts: Vec<&str> = mail.iter().map(|copy| copy["payload"]["text"].as_str().unwrap()).collect();
    let user_messages = seen[0].iter().filter(|frame| frame["senderType"] == "user");
    assert_eq!(texts, user_messages.map(|frame| frame["content"].as_str().unwrap()).collect::<Vec<_>>());
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_an_external_source_reaches_subscribed_agents_by_push_and_by_receive() {
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
    let retried = bridge.ok(route(3)).await.unwrap();
    let mail = program.receive("researcher").await.unwrap();
    assert_eq!(retried["id"], mail[3]["id"], "the same externalId is the same message");
    let numbers: Vec<&Value> = mail.iter().map(|copy| &copy["payload"]["n"]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4], "oldest first, including messages from before msg.listen");
    assert!(mail.iter().all(|copy| copy["status"] == "delivered"), "{mail:?}");
    assert!(program.receive("researcher").await.unwrap().is_empty(), "delivered once");

    let unmatched = bridge.route("slack-bridge", "nobody/here", json!({})).await.unwrap();
    assert_eq!((&unmatched["delivered"], &unmatched["unmatched"]), (&json!(false), &json!(true)));
    // An API key with the scope `sources` cannot receive mail, and one with `agents` cannot route as a
    // source.
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
