//! What people ask of agents and gateways, and who hears the answers.

use super::scenes::Room;
use crate::scene::{assert_refused, bytes_in, contains, following, make_key, next, refused, so_far};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

fn look(room: &Room, request: Value) -> Value {
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

/// Nothing of an answer has reached this connection.
async fn heard_no_answer(client: &mut Client) {
    let frames = so_far(client).await;
    let answers = ["workspace_response", "agent_info", "_result", "credential", "oauth"];
    let answer =
        frames.iter().find(|frame| answers.iter().any(|kind| frame["type"].as_str().unwrap().contains(kind)));
    assert_eq!(answer, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_for_the_connection_that_asked_and_comes_once() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let mut at_bob_too = following(&room.bob, &room.room).await;

    at_bob.send(&look(&room, json!({ "kind": "file", "path": "src/main.rs" }))).await.unwrap();
    let asked = gateway.wait_for_type("server:request_workspace").await.unwrap();
    assert_eq!(
        (&asked["agentId"], &asked["roomId"], &asked["request"]),
        (&json!("coder"), &json!(room.room), &json!({ "kind": "file", "path": "src/main.rs" }))
    );
    let response =
        json!({ "kind": "file", "path": "src/main.rs", "content": "fn main", "size": 7, "truncated": false });
    let answer = json!({
        "type": "gateway:workspace_response", "agentId": "coder", "requestId": asked["requestId"],
        "response": response, "note": null,
    });
    for forged in [json!("guessed"), json!(null)] {
        let mut forged_answer = answer.clone();
        forged_answer["requestId"] = forged;
        gateway.send(&forged_answer).await.unwrap();
    }
    gateway.settled().await.unwrap();
    heard_no_answer(&mut at_bob).await;
    gateway.send(&answer).await.unwrap();
    let told = next(&mut at_bob, "server:workspace_response").await;
    assert_eq!((&told["response"], &told["agentId"]), (&response, &json!("coder")));
    gateway.send(&answer).await.unwrap();

    at_bob.send(&command(&room)).await.unwrap();
    let asked = gateway.wait_for_type("server:agent_command").await.unwrap();
    assert_eq!(
        (&asked["command"], &asked["args"], &asked["userId"], &asked["roomId"]),
        (&json!("model"), &json!("opus"), &json!(room.bob.user_id()), &json!(room.room))
    );
    let answer = json!({
        "type": "gateway:agent_command_result", "agentId": "coder", "roomId": room.room,
        "command": "model", "success": true,
    });
    gateway.send(&answer).await.unwrap();
    assert_eq!(next(&mut at_bob, "server:agent_command_result").await["success"], true);

    at_bob.send(&info(Some(&room.room))).await.unwrap();
    let asked = gateway.wait_for_type("server:query_agent_info").await.unwrap();
    assert_eq!((&asked["agentId"], &asked["roomId"]), (&json!("coder"), &json!(room.room)));
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
    for client in [&mut at_bob, &mut at_bob_too, &mut room.at_alice] {
        heard_no_answer(client).await;
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_in_a_room_with_an_agent_ask_it_and_only_what_they_may() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let eve = room.scene.person("eve").await;
    let (mut at_eve, mut at_bob) =
        (Client::connect(&eve).await.unwrap(), Client::connect(&room.bob).await.unwrap());
    let elsewhere = eve.make_room("eve's", &[]).await.unwrap();

    for frame in [command(&room), look(&room, json!({ "kind": "status" })), info(Some(&room.room))] {
        refused(&mut at_eve, frame.clone(), "NOT_A_MEMBER").await;
        for (field, value, code) in [
            ("roomId", elsewhere.as_str(), "INVALID_REQUEST"),
            ("roomId", "nowhere", "ROOM_NOT_FOUND"),
            ("roomId", "../x", "ROOM_NOT_FOUND"),
        ] {
            let mut frame = frame.clone();
            frame[field] = value.into();
            refused(&mut at_eve, frame, code).await;
        }
        for nobody in ["nobody", "../x"] {
            let mut frame = frame.clone();
            frame["agentId"] = nobody.into();
            refused(&mut at_bob, frame, "INVALID_REQUEST").await;
        }
    }
    refused(&mut at_eve, info(None), "INVALID_REQUEST").await;
    for path in ["../.ssh/id_rsa", "a/../../b", "/etc/passwd", "/tmpx", "\\etc", "C:\\x", "~/.ssh", "a\u{0}b"]
    {
        for kind in ["file", "tree"] {
            let error =
                refused(&mut at_bob, look(&room, json!({ "kind": kind, "path": path })), "INVALID_MESSAGE")
                    .await;
            assert!(error["message"].as_str().unwrap().starts_with("path"), "{error}");
        }
    }

    let admins_only = json!({ "agentCommandRole": "admin" });
    let path = format!("/api/rooms/{}", room.room);
    assert_eq!(room.alice.put(&path, admins_only).await.unwrap().status, 200);
    refused(&mut at_bob, command(&room), "PERMISSION_DENIED").await;
    let asks = command(&room);
    room.at_alice.send(&asks).await.unwrap();
    let asked = gateway.wait_for(parlor_testkit::socket::TEST_TIMEOUT, |frame| {
        let kind = frame["type"].as_str().unwrap();
        ["server:agent_command", "server:query_agent_info", "server:request_workspace"].contains(&kind)
    });
    assert_eq!(asked.await.unwrap()["userId"], room.alice.user_id(), "nothing that was refused came through");
    // Whoever shares a room with it may ask how it is, and who may read but not write asks no more than that.
    at_bob.send(&info(None)).await.unwrap();
    gateway.wait_for_type("server:query_agent_info").await.unwrap();
    let (_, key) = make_key(&room.bob, &["read"]).await;
    let mut program = Client::connect(&room.bob.with_token(&key)).await.unwrap();
    refused(&mut program, look(&room, json!({ "kind": "status" })), "PERMISSION_DENIED").await;

    drop(gateway);
    next_offline(&mut room.at_alice).await;
    refused(&mut at_bob, info(Some(&room.room)), "GATEWAY_OFFLINE").await;
    room.scene.ends_well().await;
}

async fn next_offline(client: &mut Client) {
    let offline = |frame: &Value| frame["agent"]["status"] == "offline";
    client.wait_for(parlor_testkit::socket::TEST_TIMEOUT, offline).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_left_meanwhile_hears_no_answer() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    at_bob.send(&look(&room, json!({ "kind": "tree", "path": "/tmp/src" }))).await.unwrap();
    let asked = gateway.wait_for_type("server:request_workspace").await.unwrap();
    let path = format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id());
    assert_eq!(room.alice.delete(&path).await.unwrap().status, 200);
    next(&mut at_bob, "server:room_removed").await;
    let response = json!({ "kind": "tree", "path": "src", "entries": [] });
    let answer = json!({
        "type": "gateway:workspace_response", "agentId": "coder", "requestId": asked["requestId"], "response": response,
    });
    gateway.send(&answer).await.unwrap();
    gateway.settled().await.unwrap();
    heard_no_answer(&mut at_bob).await;
    heard_no_answer(&mut room.at_alice).await;
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
async fn credentials_are_between_a_gateway_and_its_owner() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut bobs = Gateway::connect(&room.bob, "g2").await.unwrap();
    let mut at_alice_too = Client::connect(&room.alice).await.unwrap();
    let mut at_bob = following(&room.bob, &room.room).await;

    for (kind, asked, answer, told) in [
        ("list_gateway_credentials", "list_credentials", "credential_list", "gateway_credential_list"),
        ("manage_gateway_credential", "manage_credential", "credential_result", "gateway_credential_result"),
        ("start_gateway_oauth", "start_oauth", "oauth_url", "gateway_oauth_url"),
    ] {
        let frame =
            json!({ "type": format!("client:{kind}"), "gatewayId": "g1", "agentType": "codex", "x": [1] });
        room.at_alice.send(&frame).await.unwrap();
        let asked = gateway.wait_for_type(&format!("server:{asked}")).await.unwrap();
        assert_eq!(
            (&asked["agentType"], &asked["x"], asked.get("gatewayId")),
            (&json!("codex"), &json!([1]), None)
        );
        let answer = json!({ "type": format!("gateway:{answer}"), "requestId": asked["requestId"], "gatewayId": "g2", "y": null });
        gateway.send(&answer).await.unwrap();
        for client in [&mut room.at_alice, &mut at_alice_too] {
            let answer = next(client, &format!("server:{told}")).await;
            assert_eq!((&answer["gatewayId"], &answer["requestId"]), (&json!("g1"), &asked["requestId"]));
        }
    }
    // An exchange that goes on does so under the name it began with.
    let complete = json!({
        "type": "client:complete_gateway_oauth", "gatewayId": "g1", "requestId": "begun", "callbackUrl": "http://x",
    });
    room.at_alice.send(&complete).await.unwrap();
    let asked = gateway.wait_for_type("server:complete_oauth").await.unwrap();
    assert_eq!((&asked["requestId"], &asked["callbackUrl"]), (&json!("begun"), &json!("http://x")));
    gateway
        .send(&json!({ "type": "gateway:oauth_result", "requestId": "begun", "success": true }))
        .await
        .unwrap();
    assert_eq!(next(&mut room.at_alice, "server:gateway_oauth_result").await["success"], true);

    room.at_alice.send(&add_credential("g1")).await.unwrap();
    let asked = gateway.wait_for_type("server:add_credential").await.unwrap();
    assert_eq!((&asked["apiKey"], &asked["mode"]), (&json!(SECRET), &json!("api")));

    // Somebody else's gateway and none at all are told alike, and neither hears anything.
    for gateway in ["g2", "nothing", "../x"] {
        let error = refused(&mut room.at_alice, add_credential(gateway), "GATEWAY_NOT_FOUND").await;
        assert_eq!(error["message"], "Gateway not found");
    }
    bobs.settled().await.unwrap();
    // Not even a program of its owner's gets at them.
    let (_, key) = make_key(&room.alice, &["read", "write", "agents"]).await;
    let mut program = Client::connect(&room.alice.with_token(&key)).await.unwrap();
    refused(&mut program, add_credential("g1"), "PERMISSION_DENIED").await;
    heard_no_answer(&mut at_bob).await;

    drop(gateway);
    next_offline(&mut room.at_alice).await;
    refused(&mut room.at_alice, add_credential("g1"), "GATEWAY_OFFLINE").await;
    let (log, data) = (room.scene.hub.log(), bytes_in(room.scene.data()));
    assert!(!log.contains(SECRET) && !contains(&data, SECRET), "{log}");
    room.scene.ends_well().await;
}

async fn spawn(person: &RestClient, body: Value) -> parlor_testkit::rest::RestResponse {
    person.post("/api/agents/spawn", body).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_started_on_ones_own_gateway() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let wanted = json!({ "gatewayId": "g1", "agentType": "codex", "name": "Two", "workingDirectory": "/srv", "credentialId": "c1" });
    let request = spawn(&room.alice, wanted.clone()).await.data().unwrap()["requestId"].clone();
    let asked = gateway.wait_for_type("server:spawn_agent").await.unwrap();
    assert_eq!(
        asked,
        json!({
            "type": "server:spawn_agent", "requestId": request, "agentType": "codex", "name": "Two",
            "workingDirectory": "/srv", "credentialId": "c1",
        })
    );
    let answer =
        json!({ "type": "gateway:spawn_result", "requestId": request, "success": true, "agentId": "two" });
    gateway.send(&answer).await.unwrap();
    let told = next(&mut room.at_alice, "server:spawn_result").await;
    assert_eq!(
        (&told["requestId"], &told["gatewayId"], &told["agentId"]),
        (&request, &json!("g1"), &json!("two"))
    );
    gateway.settled().await.unwrap();
    heard_no_answer(&mut at_bob).await;

    let unknown = json!({ "gatewayId": "g9", "agentType": "codex", "name": "Two" });
    let (foreign, none) = (spawn(&room.bob, wanted.clone()).await, spawn(&room.alice, unknown).await);
    assert_refused(&foreign, 404);
    assert_eq!((foreign.status, foreign.body), (none.status, none.body));
    for (field, value) in
        [("name", ""), ("agentType", ""), ("name", "a\nb"), ("workingDirectory", "a\u{202e}b")]
    {
        let mut wanted = wanted.clone();
        wanted[field] = value.into();
        let answer = spawn(&room.alice, wanted).await;
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], field);
    }
    drop(gateway);
    next_offline(&mut room.at_alice).await;
    let answer = spawn(&room.alice, wanted).await;
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

/// A room with an agent in it that can forget.
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
async fn a_room_is_rewound_for_everyone_and_its_agents_forget() {
    let (mut room, mut gateway) = with_rewinder().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let before = room.say("before").await;
    let first = room.say("@coder one").await;
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "r1", "One.").await.unwrap();
    room.reply().await;
    let second = room.say("@coder two").await;
    let turn = gateway.turn().await.unwrap();
    gateway.chunk(&turn, "r2", "text", "Tw").await.unwrap();
    next(&mut at_bob, "server:message_chunk").await;

    let frame = rewind(&room, &first);
    room.at_alice.send(&frame).await.unwrap();
    let told = gateway
        .wait_for(parlor_testkit::socket::TEST_TIMEOUT, |frame| {
            ["server:stop_agent", "server:rewind_agent"].contains(&frame["type"].as_str().unwrap())
        })
        .await
        .unwrap();
    assert_eq!(told["type"], "server:stop_agent", "what it is saying ends first");
    let told = gateway.wait_for_type("server:rewind_agent").await.unwrap();
    assert_eq!(
        (&told["agentId"], &told["roomId"], &told["messageId"]),
        (&json!("coder"), &json!(room.room), &json!(first))
    );
    gateway.send(&json!({ "type": "gateway:rewind_result", "agentId": "coder", "roomId": room.room, "success": true })).await.unwrap();
    for client in [&mut room.at_alice, &mut at_bob] {
        let mut deleted = Vec::new();
        for _ in 0..3 {
            deleted.push(next(client, "server:message_deleted").await["messageId"].clone());
        }
        assert_eq!(deleted, [json!(first), json!("r1"), json!(second)]);
        let told = next(client, "server:room_rewound").await;
        assert_eq!(told["removedMessageIds"], json!([first, "r1", second, "r2"]));
        assert_eq!((&told["messageId"], &told["messageContent"]), (&json!(first), &json!("@coder one")));
    }
    // What it still had to say is heard by nobody.
    gateway.complete(&turn, "r2", "Two.").await.unwrap();
    gateway.settled().await.unwrap();
    let history = room.bob.history(&room.room).await.unwrap();
    assert_eq!(history.len(), 1, "{history:?}");
    assert_eq!(history[0]["id"], before.as_str());
    room.say("@coder three").await;
    let turn = gateway.turn().await.unwrap();
    assert_eq!(turn["content"], "@coder three");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_away_forgets_when_it_comes_back() {
    let (mut room, gateway) = with_rewinder().await;
    let first = room.say("one").await;
    drop(gateway);
    next_offline(&mut room.at_alice).await;
    let frame = rewind(&room, &first);
    room.at_alice.send(&frame).await.unwrap();
    next(&mut room.at_alice, "server:room_rewound").await;
    let told =
        |frame: &Value| ["server:rewind_agent", "server:pong"].contains(&frame["type"].as_str().unwrap());
    for expected in ["server:rewind_agent", "server:pong"] {
        let mut back = Gateway::connect(&room.alice, "g1").await.unwrap();
        let agent =
            json!({ "id": "coder", "name": "coder", "type": "claude-code", "capabilities": ["rewind"] });
        back.send(&json!({ "type": "gateway:register_agent", "agent": agent })).await.unwrap();
        back.send(&json!({ "type": "gateway:ping", "ts": 1 })).await.unwrap();
        let heard = back.wait_for(parlor_testkit::socket::TEST_TIMEOUT, told).await.unwrap();
        assert_eq!(heard["type"], expected, "told once: {heard}");
        if expected == "server:rewind_agent" {
            assert_eq!((&heard["roomId"], &heard["messageId"]), (&json!(room.room), &json!(first)));
        }
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_rewinds_what_is_not_theirs_or_what_an_agent_would_remember() {
    let (mut room, mut gateway) = with_rewinder().await;
    let mut at_bob = following(&room.bob, &room.room).await;
    let eve = room.scene.person("eve").await;
    let mut at_eve = Client::connect(&eve).await.unwrap();
    let bobs = at_bob.say_and_wait(&room.room, "bob's", "b1").await.unwrap().message_id;
    let frame = rewind(&room, &bobs);
    refused(&mut room.at_alice, frame, "PERMISSION_DENIED").await;
    refused(&mut at_eve, rewind(&room, &bobs), "INVALID_REQUEST").await;
    refused(&mut at_bob, rewind(&room, "never"), "INVALID_REQUEST").await;
    let elsewhere = room.bob.make_room("elsewhere", &[]).await.unwrap();
    let mut there = rewind(&room, &bobs);
    there["roomId"] = elsewhere.as_str().into();
    refused(&mut at_bob, there, "INVALID_REQUEST").await;
    // What others said since is not Bob's to take away.
    room.say("alice's").await;
    refused(&mut at_bob, rewind(&room, &bobs), "PERMISSION_DENIED").await;

    gateway.register("poet", "poet").await.unwrap();
    room.add("poet").await;
    let last = room.say("last").await;
    let frame = rewind(&room, &last);
    let error = refused(&mut room.at_alice, frame, "INVALID_MESSAGE").await;
    assert!(error["message"].as_str().unwrap().contains("cannot be rewound"), "{error}");
    assert_eq!(room.bob.history(&room.room).await.unwrap().len(), 3, "nothing was changed");
    gateway.settled().await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_removed_while_its_gateway_was_away_is_not_brought_back() {
    let mut room = Room::start().await;
    let gateway = room.gateway("g1", &["coder", "poet"]).await;
    // Neither side has a chance to say that it goes.
    room.scene.hub.crash().await.unwrap();
    drop(gateway);
    room.scene.hub = room.scene.command.start().await.unwrap();
    let alice = room.alice.at(room.scene.url());
    let gateways = alice.get("/api/agents/gateways/list").await.unwrap().data().unwrap();
    assert_eq!(gateways[0]["online"], false, "{gateways}");
    assert_eq!(alice.delete("/api/agents/coder").await.unwrap().status, 200);
    assert_eq!(alice.delete("/api/agents/poet").await.unwrap().status, 200);
    assert_eq!(alice.post("/api/agents", json!({ "id": "poet", "name": "Poet" })).await.unwrap().status, 201);

    let mut back = Gateway::connect(&alice, "g1").await.unwrap();
    back.register("poet", "poet").await.unwrap();
    back.send(&json!({ "type": "gateway:register_agent", "agent": { "id": "coder", "name": "coder", "type": "codex" } })).await.unwrap();
    assert_eq!(back.wait_for_type("server:remove_agent").await.unwrap()["agentId"], "coder");
    let ids = |agents: Value| {
        agents.as_array().unwrap().iter().map(|agent| agent["id"].clone()).collect::<Vec<_>>()
    };
    let own = alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(ids(own), ["poet"], "what was made anew is welcome");
    back.register("coder", "coder").await.unwrap();
    let own = alice.get("/api/agents").await.unwrap().data().unwrap();
    assert_eq!(ids(own), ["coder", "poet"], "said once, and then it is meant");
    room.scene.ends_well().await;
}
