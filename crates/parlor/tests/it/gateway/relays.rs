//! Requests of users that the hub relays to agents and gateways (inquiries, commands, credentials, spawn,
//! rewind), and which connections receive the answers.

use super::scenes::Room;
use crate::scene::{assert_refused, bytes_in, contains, following, make_key, next, refused, so_far};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

fn workspace_request(room: &Room, request: Value) -> Value {
    json!({ "type": "client:request_workspace", "roomId": room.room, "agentId": "coder", "request": request })
}

fn command(room: &Room) -> Value {
    json!({
        "type": "client:agent_command", "roomId": room.room, "agentId": "coder",
        "command": "model", "args": "opus",
    })
}

fn info(room: Option<&str>) -> Value {
    let mut frame = json!({ "type": "client:query_agent_info", "agentId": "coder" });
    if let Some(room) = room {
        frame["roomId"] = room.into();
    }
    frame
}

/// Asserts that this connection has received no answer to any relayed request.
async fn assert_no_answer(client: &mut Client) {
    let frames = so_far(client).await;
    let answers = ["workspace_response", "agent_info", "_result", "credential", "oauth"];
    let answer =
        frames.iter().find(|frame| answers.iter().any(|kind| frame["type"].as_str().unwrap().contains(kind)));
    assert_eq!(answer, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_only_the_requesting_connection_and_only_once() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let mut at_bob_second = following(&room.bob, &room.room).await;

    at_bob.send(&workspace_request(&room, json!({ "kind": "file", "path": "src/main.rs" }))).await.unwrap();
    let relayed = gateway.wait_for_type("server:request_workspace").await.unwrap();
    assert_eq!(
        (&relayed["agentId"], &relayed["roomId"], &relayed["request"]),
        (&json!("coder"), &json!(room.room), &json!({ "kind": "file", "path": "src/main.rs" }))
    );
    let response =
        json!({ "kind": "file", "path": "src/main.rs", "content": "fn main", "size": 7, "truncated": false });
    let answer = json!({
        "type": "gateway:workspace_response", "agentId": "coder", "requestId": relayed["requestId"],
        "response": response, "note": null,
    });
    for request_id in [json!("guessed"), json!(null)] {
        let mut forged_answer = answer.clone();
        forged_answer["requestId"] = request_id;
        gateway.send(&forged_answer).await.unwrap();
    }
    gateway.settled().await.unwrap();
    assert_no_answer(&mut at_bob).await;
    gateway.send(&answer).await.unwrap();
    let delivered = next(&mut at_bob, "server:workspace_response").await;
    assert_eq!((&delivered["response"], &delivered["agentId"]), (&response, &json!("coder")));
    gateway.send(&answer).await.unwrap();

    at_bob.send(&command(&room)).await.unwrap();
    let relayed = gateway.wait_for_type("server:agent_command").await.unwrap();
    assert_eq!(
        (&relayed["command"], &relayed["args"], &relayed["userId"], &relayed["roomId"]),
        (&json!("model"), &json!("opus"), &json!(room.bob.user_id()), &json!(room.room))
    );
    let answer = json!({
        "type": "gateway:agent_command_result", "agentId": "coder", "roomId": room.room,
        "command": "model", "success": true,
    });
    gateway.send(&answer).await.unwrap();
    assert_eq!(next(&mut at_bob, "server:agent_command_result").await["success"], true);

    at_bob.send(&info(Some(&room.room))).await.unwrap();
    let relayed = gateway.wait_for_type("server:query_agent_info").await.unwrap();
    assert_eq!((&relayed["agentId"], &relayed["roomId"]), (&json!("coder"), &json!(room.room)));
    let answer = json!({ "type": "gateway:agent_info", "agentId": "coder", "name": "Boss", "slashCommands": [{ "name": "x" }] });
    gateway.send(&answer).await.unwrap();
    let agent = next(&mut at_bob, "server:agent_info").await["agent"].clone();
    assert_eq!(
        (&agent["name"], &agent["slashCommands"][0]["name"]),
        (&json!("coder"), &json!("x")),
        "{agent}"
    );
    gateway.send(&answer).await.unwrap();
    gateway.settled().await.unwrap();
    for client in [&mut at_bob, &mut at_bob_second, &mut room.at_alice] {
        assert_no_answer(client).await;
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_members_of_a_shared_room_send_requests_to_an_agent_and_only_permitted_ones() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let eve = room.scene.person("eve").await;
    let (mut at_eve, mut at_bob) =
        (Client::connect(&eve).await.unwrap(), Client::connect(&room.bob).await.unwrap());
    let other_room = eve.make_room("eve's", &[]).await.unwrap();

    for frame in
        [command(&room), workspace_request(&room, json!({ "kind": "status" })), info(Some(&room.room))]
    {
        refused(&mut at_eve, frame.clone(), "NOT_A_MEMBER").await;
        for (field, value, code) in [
            ("roomId", other_room.as_str(), "INVALID_REQUEST"),
            ("roomId", "nowhere", "ROOM_NOT_FOUND"),
            ("roomId", "../x", "ROOM_NOT_FOUND"),
        ] {
            let mut frame = frame.clone();
            frame[field] = value.into();
            refused(&mut at_eve, frame, code).await;
        }
        for unknown_agent in ["nobody", "../x"] {
            let mut frame = frame.clone();
            frame["agentId"] = unknown_agent.into();
            refused(&mut at_bob, frame, "INVALID_REQUEST").await;
        }
    }
    refused(&mut at_eve, info(None), "INVALID_REQUEST").await;
    for path in ["../.ssh/id_rsa", "a/../../b", "/etc/passwd", "/tmpx", "\\etc", "C:\\x", "~/.ssh", "a\u{0}b"]
    {
        for kind in ["file", "tree"] {
            let error = refused(
                &mut at_bob,
                workspace_request(&room, json!({ "kind": kind, "path": path })),
                "INVALID_MESSAGE",
            )
            .await;
            assert!(error["message"].as_str().unwrap().starts_with("path"), "{error}");
        }
    }

    let admins_only = json!({ "agentCommandRole": "admin" });
    let path = format!("/api/rooms/{}", room.room);
    assert_eq!(room.alice.put(&path, admins_only).await.unwrap().status, 200);
    refused(&mut at_bob, command(&room), "PERMISSION_DENIED").await;
    let request = command(&room);
    room.at_alice.send(&request).await.unwrap();
    let relayed = gateway.wait_for(parlor_testkit::socket::TEST_TIMEOUT, |frame| {
        let kind = frame["type"].as_str().unwrap();
        ["server:agent_command", "server:query_agent_info", "server:request_workspace"].contains(&kind)
    });
    assert_eq!(relayed.await.unwrap()["userId"], room.alice.user_id(), "refused requests are not relayed");
    // Any user in a room with the agent may query its info; an API key with only the scope `read` may not use
    // its workspace.
    at_bob.send(&info(None)).await.unwrap();
    gateway.wait_for_type("server:query_agent_info").await.unwrap();
    let (_, key) = make_key(&room.bob, &["read"]).await;
    let mut key_client = Client::connect(&room.bob.with_token(&key)).await.unwrap();
    refused(&mut key_client, workspace_request(&room, json!({ "kind": "status" })), "PERMISSION_DENIED")
        .await;

    drop(gateway);
    wait_for_agent_offline(&mut room.at_alice).await;
    refused(&mut at_bob, info(Some(&room.room)), "GATEWAY_OFFLINE").await;
    room.scene.ends_well().await;
}

async fn wait_for_agent_offline(client: &mut Client) {
    let offline = |frame: &Value| frame["agent"]["status"] == "offline";
    client.wait_for(parlor_testkit::socket::TEST_TIMEOUT, offline).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_removed_before_the_answer_does_not_receive_it() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    at_bob.send(&workspace_request(&room, json!({ "kind": "tree", "path": "/tmp/src" }))).await.unwrap();
    let relayed = gateway.wait_for_type("server:request_workspace").await.unwrap();
    let path = format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id());
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    next(&mut at_bob, "server:room_removed").await;
    let response = json!({ "kind": "tree", "path": "src", "entries": [] });
    let answer = json!({
        "type": "gateway:workspace_response", "agentId": "coder", "requestId": relayed["requestId"], "response": response,
    });
    gateway.send(&answer).await.unwrap();
    gateway.settled().await.unwrap();
    assert_no_answer(&mut at_bob).await;
    assert_no_answer(&mut room.at_alice).await;
    room.scene.ends_well().await;
}

const SECRET: &str = "sk-very-secret-indeed";

fn add_credential(gateway: &str) -> Value {
    json!({
        "type": "client:add_gateway_credential", "gatewayId": gateway, "agentType": "codex", "name": "work",
        "mode": "api", "apiKey": SECRET, "baseUrl": null,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_of_a_gateway_manages_its_credentials() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut gateway_of_bob = Gateway::connect(&room.bob, "g2").await.unwrap();
    let mut at_alice_second = Client::connect(&room.alice).await.unwrap();
    let mut at_bob = following(&room.bob, &room.room).await;

    for (kind, relayed, answer, delivered) in [
        ("list_gateway_credentials", "list_credentials", "credential_list", "gateway_credential_list"),
        ("manage_gateway_credential", "manage_credential", "credential_result", "gateway_credential_result"),
        ("start_gateway_oauth", "start_oauth", "oauth_url", "gateway_oauth_url"),
    ] {
        let frame =
            json!({ "type": format!("client:{kind}"), "gatewayId": "g1", "agentType": "codex", "x": [1] });
        room.at_alice.send(&frame).await.unwrap();
        let relayed = gateway.wait_for_type(&format!("server:{relayed}")).await.unwrap();
        assert_eq!(
            (&relayed["agentType"], &relayed["x"], relayed.get("gatewayId")),
            (&json!("codex"), &json!([1]), None)
        );
        let answer = json!({ "type": format!("gateway:{answer}"), "requestId": relayed["requestId"], "gatewayId": "g2", "y": null });
        gateway.send(&answer).await.unwrap();
        for client in [&mut room.at_alice, &mut at_alice_second] {
            let answer = next(client, &format!("server:{delivered}")).await;
            assert_eq!((&answer["gatewayId"], &answer["requestId"]), (&json!("g1"), &relayed["requestId"]));
        }
    }
    // A follow-up request keeps the request id of the exchange that it continues.
    let complete = json!({
        "type": "client:complete_gateway_oauth", "gatewayId": "g1", "requestId": "begun", "callbackUrl": "http://x",
    });
    room.at_alice.send(&complete).await.unwrap();
    let relayed = gateway.wait_for_type("server:complete_oauth").await.unwrap();
    assert_eq!((&relayed["requestId"], &relayed["callbackUrl"]), (&json!("begun"), &json!("http://x")));
    gateway
        .send(&json!({ "type": "gateway:oauth_result", "requestId": "begun", "success": true }))
        .await
        .unwrap();
    assert_eq!(next(&mut room.at_alice, "server:gateway_oauth_result").await["success"], true);

    room.at_alice.send(&add_credential("g1")).await.unwrap();
    let relayed = gateway.wait_for_type("server:add_credential").await.unwrap();
    assert_eq!((&relayed["apiKey"], &relayed["mode"]), (&json!(SECRET), &json!("api")));

    // A gateway of another user and an unknown gateway yield the same error, and receive nothing.
    for gateway in ["g2", "nothing", "../x"] {
        let error = refused(&mut room.at_alice, add_credential(gateway), "GATEWAY_NOT_FOUND").await;
        assert_eq!(error["message"], "Gateway not found");
    }
    gateway_of_bob.settled().await.unwrap();
    // An API key may not manage credentials, even if it belongs to the gateway's owner.
    let (_, key) = make_key(&room.alice, &["read", "write", "agents"]).await;
    let mut key_client = Client::connect(&room.alice.with_token(&key)).await.unwrap();
    refused(&mut key_client, add_credential("g1"), "PERMISSION_DENIED").await;
    assert_no_answer(&mut at_bob).await;

    drop(gateway);
    wait_for_agent_offline(&mut room.at_alice).await;
    refused(&mut room.at_alice, add_credential("g1"), "GATEWAY_OFFLINE").await;
    let (log, data) = (room.scene.hub.log(), bytes_in(room.scene.data()));
    assert!(!log.contains(SECRET) && !contains(&data, SECRET), "{log}");
    room.scene.ends_well().await;
}

async fn spawn(user: &RestClient, body: Value) -> parlor_testkit::rest::RestResponse {
    user.post("/api/agents/spawn", body).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_spawns_agents_only_on_their_own_gateways() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let body = json!({ "gatewayId": "g1", "agentType": "codex", "name": "Two", "workingDirectory": "/srv", "credentialId": "c1" });
    let request = spawn(&room.alice, body.clone()).await.data().unwrap()["requestId"].clone();
    let relayed = gateway.wait_for_type("server:spawn_agent").await.unwrap();
    assert_eq!(
        relayed,
        json!({
            "type": "server:spawn_agent", "requestId": request, "agentType": "codex", "name": "Two",
            "workingDirectory": "/srv", "credentialId": "c1",
        })
    );
    let answer =
        json!({ "type": "gateway:spawn_result", "requestId": request, "success": true, "agentId": "two" });
    gateway.send(&answer).await.unwrap();
    let delivered = next(&mut room.at_alice, "server:spawn_result").await;
    assert_eq!(
        (&delivered["requestId"], &delivered["gatewayId"], &delivered["agentId"]),
        (&request, &json!("g1"), &json!("two"))
    );
    gateway.settled().await.unwrap();
    assert_no_answer(&mut at_bob).await;

    let unknown = json!({ "gatewayId": "g9", "agentType": "codex", "name": "Two" });
    let (foreign, missing) = (spawn(&room.bob, body.clone()).await, spawn(&room.alice, unknown).await);
    assert_refused(&foreign, 404);
    assert_eq!((foreign.status, foreign.body), (missing.status, missing.body));
    for (field, value) in
        [("name", ""), ("agentType", ""), ("name", "a\nb"), ("workingDirectory", "a\u{202e}b")]
    {
        let mut body = body.clone();
        body[field] = value.into();
        let answer = spawn(&room.alice, body).await;
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], field);
    }
    drop(gateway);
    wait_for_agent_offline(&mut room.at_alice).await;
    let answer = spawn(&room.alice, body).await;
    assert_refused(&answer, 503);
    assert_eq!(
        (&answer.body["error"], &answer.body["code"]),
        (&json!("Gateway is offline"), &json!("GATEWAY_OFFLINE"))
    );
    room.scene.ends_well().await;
}

fn rewind(room: &Room, message: &str) -> Value {
    json!({ "type": "client:rewind_room", "roomId": room.room, "messageId": message })
}

/// A room with the agent `coder`, which declares the capability `rewind`.
async fn with_rewinder() -> (Room, Gateway) {
    let room = Room::start().await;
    let mut gateway = Gateway::connect(&room.alice, "g1").await.unwrap();
    let agent = json!({ "id": "coder", "name": "coder", "type": "claude-code", "capabilities": ["rewind"] });
    gateway.send(&json!({ "type": "gateway:register_agent", "agent": agent })).await.unwrap();
    gateway.settled().await.unwrap();
    room.add("coder").await;
    gateway.wait_for_type("server:room_context").await.unwrap();
    (room, gateway)
}

#[tokio::test(flavor = "multi_thread")]
async fn rewinding_a_room_deletes_messages_for_all_members_and_rewinds_its_agents() {
    let (mut room, mut gateway) = with_rewinder().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let before = room.say("before").await;
    let first = room.say("@coder one").await;
    let run = gateway.turn().await.unwrap();
    gateway.complete(&run, "r1", "One.").await.unwrap();
    room.reply().await;
    let second = room.say("@coder two").await;
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "r2", "text", "Tw").await.unwrap();
    next(&mut at_bob, "server:message_chunk").await;

    let frame = rewind(&room, &first);
    room.at_alice.send(&frame).await.unwrap();
    let received = gateway
        .wait_for(parlor_testkit::socket::TEST_TIMEOUT, |frame| {
            ["server:stop_agent", "server:rewind_agent"].contains(&frame["type"].as_str().unwrap())
        })
        .await
        .unwrap();
    assert_eq!(received["type"], "server:stop_agent", "the active run is stopped before the rewind");
    let received = gateway.wait_for_type("server:rewind_agent").await.unwrap();
    assert_eq!(
        (&received["agentId"], &received["roomId"], &received["messageId"]),
        (&json!("coder"), &json!(room.room), &json!(first))
    );
    gateway.send(&json!({ "type": "gateway:rewind_result", "agentId": "coder", "roomId": room.room, "success": true })).await.unwrap();
    for client in [&mut room.at_alice, &mut at_bob] {
        let mut deleted = Vec::new();
        for _ in 0..3 {
            deleted.push(next(client, "server:message_deleted").await["messageId"].clone());
        }
        assert_eq!(deleted, [json!(first), json!("r1"), json!(second)]);
        let received = next(client, "server:room_rewound").await;
        assert_eq!(received["removedMessageIds"], json!([first, "r1", second, "r2"]));
        assert_eq!(
            (&received["messageId"], &received["messageContent"]),
            (&json!(first), &json!("@coder one"))
        );
    }
    // The rest of the stopped reply is dropped.
    gateway.complete(&run, "r2", "Two.").await.unwrap();
    gateway.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.len(), 1, "{history:?}");
    assert_eq!(history[0]["id"], before.as_str());
    room.say("@coder three").await;
    let run = gateway.turn().await.unwrap();
    assert_eq!(run["content"], "@coder three");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offline_agent_is_rewound_once_when_it_reconnects() {
    let (mut room, gateway) = with_rewinder().await;
    let first = room.say("one").await;
    drop(gateway);
    wait_for_agent_offline(&mut room.at_alice).await;
    let frame = rewind(&room, &first);
    room.at_alice.send(&frame).await.unwrap();
    next(&mut room.at_alice, "server:room_rewound").await;
    let rewind_or_pong =
        |frame: &Value| ["server:rewind_agent", "server:pong"].contains(&frame["type"].as_str().unwrap());
    for expected in ["server:rewind_agent", "server:pong"] {
        let mut reconnected = Gateway::connect(&room.alice, "g1").await.unwrap();
        let agent =
            json!({ "id": "coder", "name": "coder", "type": "claude-code", "capabilities": ["rewind"] });
        reconnected.send(&json!({ "type": "gateway:register_agent", "agent": agent })).await.unwrap();
        reconnected.send(&json!({ "type": "gateway:ping", "ts": 1 })).await.unwrap();
        let received =
            reconnected.wait_for(parlor_testkit::socket::TEST_TIMEOUT, rewind_or_pong).await.unwrap();
        assert_eq!(received["type"], expected, "the rewind is sent once: {received}");
        if expected == "server:rewind_agent" {
            assert_eq!((&received["roomId"], &received["messageId"]), (&json!(room.room), &json!(first)));
        }
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_is_refused_for_foreign_messages_and_agents_without_the_capability() {
    let (mut room, mut gateway) = with_rewinder().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let eve = room.scene.person("eve").await;
    let mut at_eve = Client::connect(&eve).await.unwrap();
    let message_of_bob = at_bob.say_and_wait(&room.room, "bob's", "b1").await.unwrap().message_id;
    let frame = rewind(&room, &message_of_bob);
    refused(&mut room.at_alice, frame, "PERMISSION_DENIED").await;
    refused(&mut at_eve, rewind(&room, &message_of_bob), "INVALID_REQUEST").await;
    refused(&mut at_bob, rewind(&room, "never"), "INVALID_REQUEST").await;
    let other_room = room.bob.make_room("elsewhere", &[]).await.unwrap();
    let mut in_other_room = rewind(&room, &message_of_bob);
    in_other_room["roomId"] = other_room.as_str().into();
    refused(&mut at_bob, in_other_room, "INVALID_REQUEST").await;
    // Bob may not rewind past later messages of other users.
    room.say("alice's").await;
    refused(&mut at_bob, rewind(&room, &message_of_bob), "PERMISSION_DENIED").await;

    gateway.register("poet", "poet").await.unwrap();
    room.add("poet").await;
    let last = room.say("last").await;
    let frame = rewind(&room, &last);
    let error = refused(&mut room.at_alice, frame, "INVALID_MESSAGE").await;
    assert!(error["message"].as_str().unwrap().contains("without the rewind capability"), "{error}");
    assert_eq!(room.bob.history(&room.room).await.unwrap().len(), 3, "no message was deleted");
    gateway.settled().await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_deleted_while_its_gateway_was_offline_is_not_recreated_on_reconnect() {
    let mut room = Room::start().await;
    let gateway = room.gateway("g1", &["coder", "poet"]).await;
    // Neither the hub nor the gateway closes its connection properly.
    room.scene.hub.crash().await.unwrap();
    drop(gateway);
    room.scene.hub = room.scene.command.start().await.unwrap();
    let alice = room.alice.at(room.scene.url());
    let gateways = alice.get("/api/agents/gateways/list").await.unwrap().data().unwrap();
    assert_eq!(gateways[0]["online"], false, "{gateways}");
    assert_eq!(alice.delete("/api/agents/coder").await.unwrap().status, 200);
    assert_eq!(alice.delete("/api/agents/poet").await.unwrap().status, 200);
    assert_eq!(alice.post("/api/agents", json!({ "id": "poet", "name": "Poet" })).await.unwrap().status, 201);

    let mut reconnected = Gateway::connect(&alice, "g1").await.unwrap();
    reconnected.register("poet", "poet").await.unwrap();
    reconnected.send(&json!({ "type": "gateway:register_agent", "agent": { "id": "coder", "name": "coder", "type": "codex" } })).await.unwrap();
    assert_eq!(reconnected.wait_for_type("server:remove_agent").await.unwrap()["agentId"], "coder");
    let ids = |agents: Value| {
        agents.as_array().unwrap().iter().map(|agent| agent["id"].clone()).collect::<Vec<_>>()
    };
    let listed = alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(ids(listed), ["poet"], "a recreated agent may be registered");
    reconnected.register("coder", "coder").await.unwrap();
    let listed = alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(
        ids(listed),
        ["coder", "poet"],
        "the removal is sent once; a later registration creates the agent"
    );
    room.scene.ends_well().await;
}
