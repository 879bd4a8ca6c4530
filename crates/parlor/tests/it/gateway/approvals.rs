//! An agent asks before it uses a tool, and only who may answers.

use super::scenes::Room;
use crate::scene::{following, make_key, next, refused, so_far};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

const INPUT: &str = "rm -rf ./build \u{202e}gnp.exe";

/// A room whose agent `coder` has a turn.
async fn at_work() -> (Room, Gateway, Value) {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder clean up").await;
    let turn = gateway.turn().await.unwrap();
    (room, gateway, turn)
}

async fn ask(gateway: &mut Gateway, turn: &Value, request: &str, timeout: u64) {
    ask_for(gateway, turn, request, json!({ "command": INPUT }), timeout).await;
}

async fn ask_for(gateway: &mut Gateway, turn: &Value, request: &str, input: Value, timeout: u64) {
    let question = json!({
        "type": "gateway:permission_request", "requestId": request, "agentId": turn["agentId"],
        "roomId": turn["roomId"], "toolName": "Bash", "toolInput": input, "timeoutMs": timeout,
    });
    gateway.send(&question).await.unwrap();
    gateway.settled().await.unwrap();
}

async fn card(client: &mut Client) -> Value {
    next(client, "server:permission_request").await
}

fn answer(card: &Value, decision: &str) -> Value {
    json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": decision })
}

/// What the gateway is told about its request.
async fn told(gateway: &mut Gateway, request: &str) -> Value {
    let about =
        |frame: &Value| frame["type"] == "server:permission_response" && frame["requestId"] == request;
    gateway.wait_for(TEST_TIMEOUT, about).await.unwrap()
}

async fn audit(room: &Room, action: &str) -> Vec<Value> {
    let path = format!("/api/audit?action={action}");
    let page = room.scene.admin.get(&path).await.unwrap().data().unwrap();
    page["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_sees_the_question_and_the_first_answer_counts() {
    let (mut room, mut gateway, turn) = at_work().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    ask(&mut gateway, &turn, "theirs", 60_000).await;
    let (shown, same) = (card(&mut room.at_alice).await, card(&mut at_bob).await);
    assert_eq!(shown, same);
    assert_ne!(shown["requestId"], "theirs", "the hub has its own name for it");
    assert_eq!((&shown["agentId"], &shown["agentName"]), (&json!("coder"), &json!("coder")));
    assert_eq!((&shown["roomId"], &shown["toolName"]), (&json!(room.room), &json!("Bash")));
    assert_eq!(shown["toolInput"], json!({ "command": INPUT }), "to the letter");
    let path = format!("/api/rooms/{}/approvals", room.room);
    let listed = room.bob.get(&path).await.unwrap().data().unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["inputDigest"]), (&shown["requestId"], &shown["inputDigest"]));

    let mut seen_another = answer(&shown, "allow");
    seen_another["inputDigest"] = "00".repeat(32).into();
    refused(&mut at_bob, seen_another.clone(), "INVALID_MESSAGE").await;
    seen_another["inputDigest"] = shown["inputDigest"].clone();
    at_bob.send(&seen_another).await.unwrap();
    let expected = json!({
        "type": "server:permission_response", "requestId": "theirs", "agentId": "coder", "decision": "allow",
    });
    assert_eq!(told(&mut gateway, "theirs").await, expected);
    for client in [&mut room.at_alice, &mut at_bob] {
        let resolved = next(client, "server:permission_resolved").await;
        assert_eq!((&resolved["requestId"], &resolved["decision"]), (&shown["requestId"], &json!("allow")));
        assert_eq!(
            (&resolved["decidedBy"], &resolved["decidedByName"]),
            (&json!(room.bob.user_id()), &json!("bob"))
        );
    }
    refused(&mut room.at_alice, answer(&shown, "deny"), "INVALID_REQUEST").await;
    assert_eq!(room.bob.get(&path).await.unwrap().data().unwrap(), json!([]));
    gateway.settled().await.unwrap();

    let noted = audit(&room, "approval_allowed").await;
    assert_eq!((&noted[0]["actor"]["name"], &noted[0]["subject"]["id"]), (&json!("bob"), &json!("coder")));
    let detail = noted[0]["detail"].as_str().unwrap();
    assert!(detail.contains("Bash") && detail.contains(shown["inputDigest"].as_str().unwrap()), "{detail}");
    assert!(!noted[0].to_string().contains("build"), "what was asked is no part of it");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_comes_with_its_reason_and_an_always_with_a_rule_that_can_be_taken_back() {
    let (mut room, mut gateway, turn) = at_work().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    ask(&mut gateway, &turn, "1", 60_000).await;
    let mut no = answer(&card(&mut room.at_alice).await, "deny");
    no["denyReason"] = "not on a Friday".into();
    room.at_alice.send(&no).await.unwrap();
    let denied = told(&mut gateway, "1").await;
    assert_eq!((&denied["decision"], &denied["denyReason"]), (&json!("deny"), &json!("not on a Friday")));
    assert_eq!(next(&mut at_bob, "server:permission_resolved").await["reason"], "not on a Friday");

    ask(&mut gateway, &turn, "2", 60_000).await;
    card(&mut at_bob).await;
    let mut always = answer(&card(&mut at_bob).await, "allow");
    always["allowAlways"] = true.into();
    at_bob.send(&always).await.unwrap();
    assert_eq!(told(&mut gateway, "2").await["decision"], "allow");
    ask_for(&mut gateway, &turn, "3", json!({ "command": "ls" }), 60_000).await;
    assert_eq!(told(&mut gateway, "3").await["decision"], "allow", "without being asked again");

    let path = format!("/api/rooms/{}/approval-rules", room.room);
    let rules = room.alice.get(&path).await.unwrap().data().unwrap();
    assert_eq!((&rules[0]["agentId"], &rules[0]["toolName"]), (&json!("coder"), &json!("Bash")));
    assert_eq!(rules[0]["createdById"], room.bob.user_id());
    let one = format!("{path}?agentId=coder&toolName=Bash");
    let carol = room.scene.person("carol").await;
    assert_eq!(carol.delete(&one).await.unwrap().status, 404);
    let body = json!({ "memberId": carol.user_id(), "memberType": "user" });
    room.alice.post(&format!("/api/rooms/{}/members", room.room), body).await.unwrap();
    assert_eq!(carol.delete(&one).await.unwrap().status, 403, "neither hers nor an admin");
    assert_eq!(room.bob.delete(&one).await.unwrap().status, 200);
    assert_eq!(room.bob.delete(&one).await.unwrap().status, 404);
    ask(&mut gateway, &turn, "4", 60_000).await;
    let asked = card(&mut at_bob).await;

    // A rule counts as long as its maker may answer.
    always["requestId"] = asked["requestId"].clone();
    at_bob.send(&always).await.unwrap();
    told(&mut gateway, "4").await;
    let path = format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id());
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    ask(&mut gateway, &turn, "5", 60_000).await;
    let open = room.alice.get(&format!("/api/rooms/{}/approvals", room.room)).await.unwrap().data().unwrap();
    assert_eq!(open.as_array().unwrap().len(), 1, "it is asked again");
    assert_eq!(audit(&room, "approval_rule_created").await.len(), 2);
    assert_eq!(audit(&room, "approval_rule_revoked").await.len(), 1);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobodys_answer_is_a_no() {
    let (mut room, mut gateway, turn) = at_work().await;
    ask(&mut gateway, &turn, "1", 30).await;
    let shown = card(&mut room.at_alice).await;
    assert_eq!(told(&mut gateway, "1").await["decision"], "timeout");
    let expired = next(&mut room.at_alice, "server:permission_request_expired").await;
    assert_eq!(expired["requestId"], shown["requestId"]);
    refused(&mut room.at_alice, answer(&shown, "allow"), "INVALID_REQUEST").await;
    assert_eq!(audit(&room, "approval_expired").await.len(), 1);

    // What is open when the turn ends is over with it, and so is what is open when the hub goes.
    ask(&mut gateway, &turn, "2", 60_000).await;
    gateway.complete(&turn, "r", "I did without").await.unwrap();
    assert_eq!(told(&mut gateway, "2").await["decision"], "deny");
    assert_eq!(next(&mut room.at_alice, "server:permission_resolved").await["decision"], "deny");
    room.say("@coder again").await;
    let turn = gateway.turn().await.unwrap();
    ask(&mut gateway, &turn, "3", 60_000).await;
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": "coder" });
    room.at_alice.send(&stop).await.unwrap();
    assert_eq!(told(&mut gateway, "3").await["decision"], "deny");
    ask(&mut gateway, &turn, "4", 60_000).await;
    assert_eq!(told(&mut gateway, "4").await["decision"], "deny", "who was stopped is not heard");
    gateway.status("coder", "online").await.unwrap();
    room.say("@coder once more").await;
    let turn = gateway.turn().await.unwrap();
    ask(&mut gateway, &turn, "5", 60_000).await;
    room.scene.crash_and_restart().await;
    let alice = room.alice.at(room.scene.url());
    let mut at_alice = following(&alice, &room.room).await;
    assert!(!so_far(&mut at_alice).await.iter().any(|frame| frame["type"] == "server:permission_request"));
    let mut gateway = Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    assert_eq!(told(&mut gateway, "5").await["decision"], "timeout");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_later_or_comes_back_sees_what_is_open() {
    let (mut room, mut gateway, turn) = at_work().await;
    ask(&mut gateway, &turn, "1", 60_000).await;
    let shown = card(&mut room.at_alice).await;
    let mut at_bob = Client::connect(&room.bob).await.unwrap();
    let position = at_bob.join(&room.room).await.unwrap();
    assert_eq!(card(&mut at_bob).await, shown);
    for since in ["now", &position] {
        let mut back = Client::connect(&room.bob).await.unwrap();
        back.join_since(&room.room, since).await.unwrap();
        let frames = so_far(&mut back).await;
        let cards: Vec<_> =
            frames.iter().filter(|frame| frame["type"] == "server:permission_request").collect();
        assert_eq!(cards, [&shown], "once, since {since}");
    }
    // The gateway goes and comes back: what was decided meanwhile waits for it.
    drop(gateway);
    at_bob.send(&answer(&shown, "allow")).await.unwrap();
    next(&mut at_bob, "server:permission_resolved").await;
    let mut gateway = Gateway::connect(&room.alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    assert_eq!(told(&mut gateway, "1").await["decision"], "allow");
    let mut late = following(&room.bob, &room.room).await;
    assert!(!so_far(&mut late).await.iter().any(|frame| frame["type"] == "server:permission_request"));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_may_not_answer_looks_like_what_is_not_there() {
    let (mut room, mut gateway, turn) = at_work().await;
    let eve = room.scene.person("eve").await;
    eve.make_room("elsewhere", &[]).await.unwrap();
    ask(&mut gateway, &turn, "1", 60_000).await;
    let shown = card(&mut room.at_alice).await;
    let unknown = answer(&json!({ "requestId": "0198c0de-0000-7000-8000-000000000000" }), "allow");
    let impossible = answer(&json!({ "requestId": "../1" }), "allow");
    let theirs = answer(&json!({ "requestId": "1" }), "allow");

    // The key of the agent's own owner: it may be in the hands of the agent.
    let (_, key) = make_key(&room.alice, &["read", "write", "agents"]).await;
    let agent = room.alice.with_token(&key);
    let path = format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id());
    let mut at_bob = following(&room.bob, &room.room).await;
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    next(&mut at_bob, "server:room_removed").await;
    let mut clients = [
        (Client::connect(&eve).await.unwrap(), "INVALID_REQUEST"),
        (Client::connect(&agent).await.unwrap(), "PERMISSION_DENIED"),
        (Client::connect(&room.scene.admin).await.unwrap(), "INVALID_REQUEST"),
        (at_bob, "INVALID_REQUEST"),
    ];
    for (client, code) in &mut clients {
        let words = refused(client, unknown.clone(), code).await;
        for frame in [answer(&shown, "allow"), answer(&shown, "deny"), theirs.clone()] {
            assert_eq!(refused(client, frame, code).await, words);
        }
        refused(client, impossible.clone(), "INVALID_REQUEST").await;
    }
    let rest = |id: &Value| format!("/api/approvals/{}", id.as_str().unwrap());
    for (person, status) in [(&eve, 404), (&agent, 403), (&room.scene.admin, 404), (&room.bob, 404)] {
        let body = json!({ "decision": "allow" });
        let foreign = person.post(&rest(&shown["requestId"]), body.clone()).await.unwrap();
        let unknown = person.post(&rest(&unknown["requestId"]), body).await.unwrap();
        assert_eq!((foreign.status.as_u16(), &foreign.body), (status, &unknown.body));
    }
    let path = format!("/api/rooms/{}/approvals", room.room);
    assert_eq!(eve.get(&path).await.unwrap().status, 404);

    let body = json!({ "decision": "deny", "denyReason": "no" });
    let decided = room.alice.post(&rest(&shown["requestId"]), body.clone()).await.unwrap();
    assert_eq!(decided.data().unwrap()["decision"], "deny");
    assert_eq!(room.alice.post(&rest(&shown["requestId"]), body).await.unwrap().status, 409);
    assert_eq!(told(&mut gateway, "1").await["decision"], "deny");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_asks_for_its_own_agents_once_and_for_what_it_said() {
    let (mut room, mut gateway, turn) = at_work().await;
    ask(&mut gateway, &turn, "1", 60_000).await;
    ask(&mut gateway, &turn, "1", 60_000).await;
    let shown = card(&mut room.at_alice).await;
    ask_for(&mut gateway, &turn, "1", json!({ "command": "ls" }), 60_000).await;
    assert_eq!(gateway.wait_for_type("server:error").await.unwrap()["code"], "INVALID_REQUEST");
    // Somebody else's gateway neither asks in the agent's name nor hears the answer.
    let mut other = Gateway::connect(&room.bob, "g2").await.unwrap();
    ask(&mut other, &turn, "2", 60_000).await;
    assert_eq!(other.wait_for_type("server:error").await.unwrap()["code"], "INVALID_REQUEST");
    room.at_alice.send(&answer(&shown, "allow")).await.unwrap();
    assert_eq!(told(&mut gateway, "1").await["decision"], "allow");
    // Used up: the same name brings no second answer.
    ask(&mut gateway, &turn, "1", 60_000).await;

    // The hub's own tools need nobody, and an agent may ask unasked.
    let own = json!({
        "type": "gateway:permission_request", "requestId": "own", "agentId": "coder", "roomId": room.room,
        "toolName": "mcp__agentim__send_message", "toolInput": {},
    });
    gateway.send(&own).await.unwrap();
    assert_eq!(told(&mut gateway, "own").await["decision"], "allow");
    gateway.complete(&turn, "r", "done").await.unwrap();
    room.reply().await;
    ask(&mut gateway, &turn, "3", 60_000).await;
    let unasked = card(&mut room.at_alice).await;
    room.at_alice.send(&answer(&unasked, "allow")).await.unwrap();
    assert_eq!(told(&mut gateway, "3").await["decision"], "allow");
    let more = so_far(&mut room.at_alice).await;
    assert!(!more.iter().any(|frame| frame["type"] == "server:permission_request"), "{more:?}");

    // More than twenty at once are too many: the next ones are denied.
    for request in 0..20 {
        ask(&mut gateway, &turn, &format!("many {request}"), 60_000).await;
    }
    ask(&mut gateway, &turn, "too many", 60_000).await;
    assert_eq!(told(&mut gateway, "too many").await["decision"], "deny");
    room.scene.ends_well().await;
}
