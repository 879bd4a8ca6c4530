//! Tool approvals over the gateway protocol: request, decision, expiry, allow-always rules, and who may
//! decide.

use super::scenes::Room;
use crate::scene::{following, make_key, next, refused, so_far};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

const INPUT: &str = "rm -rf ./build \u{202e}gnp.exe";

/// A room whose agent `coder` has an active run.
async fn room_with_active_run() -> (Room, Gateway, Value) {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder clean up").await;
    let run = gateway.turn().await.unwrap();
    (room, gateway, run)
}

async fn request_permission(gateway: &mut Gateway, run: &Value, request: &str, timeout: u64) {
    request_permission_for(gateway, run, request, json!({ "command": INPUT }), timeout).await;
}

async fn request_permission_for(
    gateway: &mut Gateway,
    run: &Value,
    request: &str,
    input: Value,
    timeout: u64,
) {
    let frame = json!({
        "type": "gateway:permission_request", "requestId": request, "agentId": run["agentId"],
        "roomId": run["roomId"], "toolName": "Bash", "toolInput": input, "timeoutMs": timeout,
    });
    gateway.send(&frame).await.unwrap();
    gateway.settled().await.unwrap();
}

async fn next_approval(client: &mut Client) -> Value {
    next(client, "server:permission_request").await
}

fn permission_response(approval: &Value, decision: &str) -> Value {
    json!({ "type": "client:permission_response", "requestId": approval["requestId"], "decision": decision })
}

/// Waits for the decision that the hub sends to the gateway for this request.
async fn decision_for(gateway: &mut Gateway, request: &str) -> Value {
    let matches =
        |frame: &Value| frame["type"] == "server:permission_response" && frame["requestId"] == request;
    gateway.wait_for(TEST_TIMEOUT, matches).await.unwrap()
}

async fn audit(room: &Room, action: &str) -> Vec<Value> {
    let path = format!("/api/audit?action={action}");
    let page = room.scene.admin.get(&path).await.unwrap().data().unwrap();
    page["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_receives_the_approval_and_the_first_decision_counts() {
    let (mut room, mut gateway, run) = room_with_active_run().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    request_permission(&mut gateway, &run, "theirs", 60_000).await;
    let (approval, approval_at_bob) =
        (next_approval(&mut room.at_alice).await, next_approval(&mut at_bob).await);
    assert_eq!(approval, approval_at_bob);
    assert_ne!(approval["requestId"], "theirs", "the hub assigns its own id");
    assert_eq!((&approval["agentId"], &approval["agentName"]), (&json!("coder"), &json!("coder")));
    assert_eq!((&approval["roomId"], &approval["toolName"]), (&json!(room.room), &json!("Bash")));
    assert_eq!(approval["toolInput"], json!({ "command": INPUT }), "the tool input is unchanged");
    let path = format!("/api/rooms/{}/approvals", room.room);
    let listed = room.bob.get(&path).await.unwrap().data().unwrap();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["inputDigest"]),
        (&approval["requestId"], &approval["inputDigest"])
    );

    let mut response = permission_response(&approval, "allow");
    response["inputDigest"] = "00".repeat(32).into();
    refused(&mut at_bob, response.clone(), "INVALID_MESSAGE").await;
    response["inputDigest"] = approval["inputDigest"].clone();
    at_bob.send(&response).await.unwrap();
    let expected = json!({
        "type": "server:permission_response", "requestId": "theirs", "agentId": "coder", "decision": "allow",
    });
    assert_eq!(decision_for(&mut gateway, "theirs").await, expected);
    for client in [&mut room.at_alice, &mut at_bob] {
        let resolved = next(client, "server:permission_resolved").await;
        assert_eq!(
            (&resolved["requestId"], &resolved["decision"]),
            (&approval["requestId"], &json!("allow"))
        );
        assert_eq!(
            (&resolved["decidedBy"], &resolved["decidedByName"]),
            (&json!(room.bob.user_id()), &json!("bob"))
        );
    }
    refused(&mut room.at_alice, permission_response(&approval, "deny"), "INVALID_REQUEST").await;
    assert_eq!(room.bob.get(&path).await.unwrap().data().unwrap(), json!([]));
    gateway.settled().await.unwrap();

    let entries = audit(&room, "approval_allowed").await;
    assert_eq!(
        (&entries[0]["actor"]["name"], &entries[0]["subject"]["id"]),
        (&json!("bob"), &json!("coder"))
    );
    let detail = entries[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("Bash") && detail.contains(approval["inputDigest"].as_str().unwrap()),
        "{detail}"
    );
    assert!(!entries[0].to_string().contains("build"), "the audit entry does not contain the tool input");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_carries_its_reason_and_allow_always_creates_a_revocable_rule() {
    let (mut room, mut gateway, run) = room_with_active_run().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    request_permission(&mut gateway, &run, "1", 60_000).await;
    let mut denial = permission_response(&next_approval(&mut room.at_alice).await, "deny");
    denial["denyReason"] = "not on a Friday".into();
    room.at_alice.send(&denial).await.unwrap();
    let denied = decision_for(&mut gateway, "1").await;
    assert_eq!((&denied["decision"], &denied["denyReason"]), (&json!("deny"), &json!("not on a Friday")));
    assert_eq!(next(&mut at_bob, "server:permission_resolved").await["reason"], "not on a Friday");

    request_permission(&mut gateway, &run, "2", 60_000).await;
    next_approval(&mut at_bob).await;
    let mut allow_always = permission_response(&next_approval(&mut at_bob).await, "allow");
    allow_always["allowAlways"] = true.into();
    at_bob.send(&allow_always).await.unwrap();
    assert_eq!(decision_for(&mut gateway, "2").await["decision"], "allow");
    request_permission_for(&mut gateway, &run, "3", json!({ "command": "ls" }), 60_000).await;
    assert_eq!(
        decision_for(&mut gateway, "3").await["decision"],
        "allow",
        "the rule allows it without a new approval"
    );

    let path = format!("/api/rooms/{}/approval-rules", room.room);
    let rules = room.alice.get(&path).await.unwrap().data().unwrap();
    assert_eq!((&rules[0]["agentId"], &rules[0]["toolName"]), (&json!("coder"), &json!("Bash")));
    assert_eq!(rules[0]["createdById"], room.bob.user_id());
    let rule_path = format!("{path}?agentId=coder&toolName=Bash");
    let carol = room.scene.person("carol").await;
    assert_eq!(carol.delete(&rule_path).await.unwrap().status, 404);
    let body = json!({ "memberId": carol.user_id(), "memberType": "user" });
    room.alice.post(&format!("/api/rooms/{}/members", room.room), body).await.unwrap();
    assert_eq!(
        carol.delete(&rule_path).await.unwrap().status,
        403,
        "neither the creator of the rule nor an admin"
    );
    assert_eq!(room.bob.delete(&rule_path).await.unwrap().status, 200);
    assert_eq!(room.bob.delete(&rule_path).await.unwrap().status, 404);
    request_permission(&mut gateway, &run, "4", 60_000).await;
    let approval = next_approval(&mut at_bob).await;

    // A rule applies only while its creator may decide approvals of the room.
    allow_always["requestId"] = approval["requestId"].clone();
    at_bob.send(&allow_always).await.unwrap();
    decision_for(&mut gateway, "4").await;
    let path = format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id());
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    request_permission(&mut gateway, &run, "5", 60_000).await;
    let open = room.alice.get(&format!("/api/rooms/{}/approvals", room.room)).await.unwrap().data().unwrap();
    assert_eq!(open.as_array().unwrap().len(), 1, "a new approval is opened");
    assert_eq!(audit(&room, "approval_rule_created").await.len(), 2);
    assert_eq!(audit(&room, "approval_rule_revoked").await.len(), 1);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_without_a_decision_is_denied() {
    let (mut room, mut gateway, run) = room_with_active_run().await;
    request_permission(&mut gateway, &run, "1", 30).await;
    let approval = next_approval(&mut room.at_alice).await;
    assert_eq!(decision_for(&mut gateway, "1").await["decision"], "timeout");
    let expired = next(&mut room.at_alice, "server:permission_request_expired").await;
    assert_eq!(expired["requestId"], approval["requestId"]);
    refused(&mut room.at_alice, permission_response(&approval, "allow"), "INVALID_REQUEST").await;
    assert_eq!(audit(&room, "approval_expired").await.len(), 1);

    // An open approval is denied when its run ends or is stopped, and expires when the hub crashes.
    request_permission(&mut gateway, &run, "2", 60_000).await;
    gateway.complete(&run, "r", "I did without").await.unwrap();
    assert_eq!(decision_for(&mut gateway, "2").await["decision"], "deny");
    assert_eq!(next(&mut room.at_alice, "server:permission_resolved").await["decision"], "deny");
    room.say("@coder again").await;
    let run = gateway.turn().await.unwrap();
    request_permission(&mut gateway, &run, "3", 60_000).await;
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": "coder" });
    room.at_alice.send(&stop).await.unwrap();
    assert_eq!(decision_for(&mut gateway, "3").await["decision"], "deny");
    request_permission(&mut gateway, &run, "4", 60_000).await;
    assert_eq!(decision_for(&mut gateway, "4").await["decision"], "deny", "a stopped run opens no approvals");
    gateway.status("coder", "online").await.unwrap();
    room.say("@coder once more").await;
    let run = gateway.turn().await.unwrap();
    request_permission(&mut gateway, &run, "5", 60_000).await;
    room.scene.crash_and_restart().await;
    let alice = room.alice.at(room.scene.url());
    let mut at_alice = following(&alice, &room.room).await;
    assert!(!so_far(&mut at_alice).await.iter().any(|frame| frame["type"] == "server:permission_request"));
    let mut gateway = Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    assert_eq!(decision_for(&mut gateway, "5").await["decision"], "timeout");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_joiners_and_resuming_clients_receive_open_approvals() {
    let (mut room, mut gateway, run) = room_with_active_run().await;
    request_permission(&mut gateway, &run, "1", 60_000).await;
    let approval = next_approval(&mut room.at_alice).await;
    let mut at_bob = Client::connect(&room.bob).await.unwrap();
    let position = at_bob.join(&room.room).await.unwrap();
    assert_eq!(next_approval(&mut at_bob).await, approval);
    for since in ["now", &position] {
        let mut client = Client::connect(&room.bob).await.unwrap();
        client.join_since(&room.room, since).await.unwrap();
        let frames = so_far(&mut client).await;
        let approvals: Vec<_> =
            frames.iter().filter(|frame| frame["type"] == "server:permission_request").collect();
        assert_eq!(approvals, [&approval], "the open approval is sent once, since {since}");
    }
    // A decision made while the gateway is offline is delivered when the gateway reconnects.
    drop(gateway);
    at_bob.send(&permission_response(&approval, "allow")).await.unwrap();
    next(&mut at_bob, "server:permission_resolved").await;
    let mut gateway = Gateway::connect(&room.alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    assert_eq!(decision_for(&mut gateway, "1").await["decision"], "allow");
    let mut late_joiner = following(&room.bob, &room.room).await;
    assert!(!so_far(&mut late_joiner).await.iter().any(|frame| frame["type"] == "server:permission_request"));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_the_caller_may_not_decide_looks_nonexistent() {
    let (mut room, mut gateway, run) = room_with_active_run().await;
    let eve = room.scene.person("eve").await;
    eve.make_room("elsewhere", &[]).await.unwrap();
    request_permission(&mut gateway, &run, "1", 60_000).await;
    let approval = next_approval(&mut room.at_alice).await;
    let unknown =
        permission_response(&json!({ "requestId": "0198c0de-0000-7000-8000-000000000000" }), "allow");
    let malformed = permission_response(&json!({ "requestId": "../1" }), "allow");
    let gateway_request_id = permission_response(&json!({ "requestId": "1" }), "allow");

    // An API key of the agent's owner may not decide approvals, because the agent itself could hold it.
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
        let error = refused(client, unknown.clone(), code).await;
        for frame in [
            permission_response(&approval, "allow"),
            permission_response(&approval, "deny"),
            gateway_request_id.clone(),
        ] {
            assert_eq!(refused(client, frame, code).await, error);
        }
        refused(client, malformed.clone(), "INVALID_REQUEST").await;
    }
    let decision_path = |id: &Value| format!("/api/approvals/{}", id.as_str().unwrap());
    for (user, status) in [(&eve, 404), (&agent, 403), (&room.scene.admin, 404), (&room.bob, 404)] {
        let body = json!({ "decision": "allow" });
        let foreign = user.post(&decision_path(&approval["requestId"]), body.clone()).await.unwrap();
        let unknown = user.post(&decision_path(&unknown["requestId"]), body).await.unwrap();
        assert_eq!((foreign.status.as_u16(), &foreign.body), (status, &unknown.body));
    }
    let path = format!("/api/rooms/{}/approvals", room.room);
    assert_eq!(eve.get(&path).await.unwrap().status, 404);

    let body = json!({ "decision": "deny", "denyReason": "no" });
    let decided = room.alice.post(&decision_path(&approval["requestId"]), body.clone()).await.unwrap();
    assert_eq!(decided.data().unwrap()["decision"], "deny");
    assert_eq!(room.alice.post(&decision_path(&approval["requestId"]), body).await.unwrap().status, 409);
    assert_eq!(decision_for(&mut gateway, "1").await["decision"], "deny");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_requests_approvals_for_its_own_agents_and_once_per_request_id() {
    let (mut room, mut gateway, run) = room_with_active_run().await;
    request_permission(&mut gateway, &run, "1", 60_000).await;
    request_permission(&mut gateway, &run, "1", 60_000).await;
    let approval = next_approval(&mut room.at_alice).await;
    request_permission_for(&mut gateway, &run, "1", json!({ "command": "ls" }), 60_000).await;
    assert_eq!(gateway.wait_for_type("server:error").await.unwrap()["code"], "INVALID_REQUEST");
    // A gateway of another user can neither request approvals for the agent nor receive the decision.
    let mut other = Gateway::connect(&room.bob, "g2").await.unwrap();
    request_permission(&mut other, &run, "2", 60_000).await;
    assert_eq!(other.wait_for_type("server:error").await.unwrap()["code"], "INVALID_REQUEST");
    room.at_alice.send(&permission_response(&approval, "allow")).await.unwrap();
    assert_eq!(decision_for(&mut gateway, "1").await["decision"], "allow");
    // A decided request id is spent: reusing it opens no second approval.
    request_permission(&mut gateway, &run, "1", 60_000).await;

    // The hub's own tools are allowed without a decision, and an agent may request approvals without an
    // active run.
    let own_tool = json!({
        "type": "gateway:permission_request", "requestId": "own", "agentId": "coder", "roomId": room.room,
        "toolName": "mcp__agentim__send_message", "toolInput": {},
    });
    gateway.send(&own_tool).await.unwrap();
    assert_eq!(decision_for(&mut gateway, "own").await["decision"], "allow");
    gateway.complete(&run, "r", "done").await.unwrap();
    room.reply().await;
    request_permission(&mut gateway, &run, "3", 60_000).await;
    let approval_without_run = next_approval(&mut room.at_alice).await;
    room.at_alice.send(&permission_response(&approval_without_run, "allow")).await.unwrap();
    assert_eq!(decision_for(&mut gateway, "3").await["decision"], "allow");
    let frames = so_far(&mut room.at_alice).await;
    assert!(!frames.iter().any(|frame| frame["type"] == "server:permission_request"), "{frames:?}");

    // Maximum 20 open approvals per run: the next one is denied at once.
    for request in 0..20 {
        request_permission(&mut gateway, &run, &format!("many {request}"), 60_000).await;
    }
    request_permission(&mut gateway, &run, "too many", 60_000).await;
    assert_eq!(decision_for(&mut gateway, "too many").await["decision"], "deny");
    room.scene.ends_well().await;
}
