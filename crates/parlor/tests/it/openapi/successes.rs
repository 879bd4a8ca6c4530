//! Successful calls of every operation, and refusals that need a specific state. A new route needs calls
//! here; refusals that are common to all routes are in `refusals`.

use parlor_testkit::broker::Broker;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use reqwest::Method;
use serde_json::{Value, json};

use super::tour::{Tour, id};
use crate::scene::{PASSWORD, Scene};
use crate::sign_in::second_factor::Device;

/// A folder that the hub allows as project root.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/openapi");

pub async fn all(tour: &Tour, scene: &Scene) {
    let anonymous = RestClient::outsider(scene.url());
    tour.call(&anonymous, "GET /api/health", &[], 200).await;
    tour.call(&anonymous, "GET /api/openapi.json", &[], 200).await;
    tour.call(&anonymous, "GET /api/auth/oauth/providers", &[], 200).await;
    users(tour, scene).await;
    invitations(tour, scene).await;
    sign_ins(tour, scene).await;
    second_factor(tour, scene).await;
    settings(tour, scene).await;
    keys(tour, scene).await;
    rooms(tour, scene).await;
    roots(tour, scene).await;
    missions(tour, scene).await;
    room_preferences(tour, scene).await;
    agents(tour, scene).await;
    tasks(tour, scene).await;
    routers(tour, scene).await;
    services(tour, scene).await;
    messages(tour, scene).await;
    annotations(tour, scene).await;
}

async fn users(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let body = json!({ "username": "grace", "password": PASSWORD, "displayName": "Grace", "role": "user" });
    let grace = tour.call_with(admin, "POST /api/users", &[], body.clone(), 200).await;
    tour.call_with(admin, "POST /api/users", &[], body, 409).await;
    tour.call(admin, "GET /api/users?limit=1&offset=1", &[], 200).await;
    tour.call(admin, "GET /api/users?limit=some", &[], 400).await;
    let changes = json!({ "displayName": "Grace H.", "maxConnections": 3 });
    tour.call_with(admin, "PUT /api/users/{id}", &[id(&grace)], changes, 200).await;
    tour.call_with(admin, "PUT /api/users/{id}", &[admin.user_id()], json!({ "role": "user" }), 409).await;
    tour.call(admin, "GET /api/users/search?q=gra", &[], 200).await;
    tour.call(admin, "GET /api/users/search?q=g", &[], 400).await;
    tour.call(admin, "DELETE /api/users/{id}", &[id(&grace)], 200).await;
    tour.call(admin, "DELETE /api/users/{id}", &[admin.user_id()], 409).await;
    tour.call(admin, "GET /api/users/me", &[], 200).await;
    tour.call_with(admin, "PUT /api/users/me", &[], json!({ "displayName": "The admin" }), 200).await;
    tour.call(admin, "GET /api/users/me/oauth-accounts", &[], 200).await;
}

async fn invitations(tour: &Tour, scene: &Scene) {
    let (admin, anonymous) = (&scene.admin, RestClient::outsider(scene.url()));
    let invitation =
        tour.call_with(admin, "POST /api/invites", &[], json!({ "note": "for Joan" }), 201).await;
    tour.call(admin, "GET /api/invites", &[], 200).await;
    let body = |name: &str| json!({ "token": invitation["token"], "username": name, "password": PASSWORD });
    tour.call_with(&anonymous, "POST /api/auth/register", &[], body("admin"), 409).await;
    tour.call_with(&anonymous, "POST /api/auth/register", &[], body("joan"), 200).await;
    tour.call_with(&anonymous, "POST /api/auth/register", &[], body("jean"), 404).await;
    tour.call(admin, "DELETE /api/invites/{id}", &[id(&invitation)], 200).await;
}

async fn sign_ins(tour: &Tour, scene: &Scene) {
    let (ada, anonymous) = (scene.person("ada-of-the-keys").await, RestClient::outsider(scene.url()));
    let body = |password: &str| json!({ "username": "ada-of-the-keys", "password": password });
    tour.call_with(&anonymous, "POST /api/auth/login", &[], body("wrong"), 401).await;
    let session = tour.call_with(&anonymous, "POST /api/auth/login", &[], body(PASSWORD), 200).await;
    let refresh = json!({ "refreshToken": session["refreshToken"] });
    tour.call_with(&anonymous, "POST /api/auth/refresh", &[], refresh, 200).await;
    tour.call_with(&anonymous, "POST /api/auth/refresh", &[], json!({ "refreshToken": "spent" }), 401).await;
    let sessions = tour.call(&ada, "GET /api/auth/sessions", &[], 200).await;
    let other = sessions.as_array().unwrap().iter().find(|session| session["current"] == false).unwrap();
    tour.call(&ada, "DELETE /api/auth/sessions/{id}", &[id(other)], 200).await;
    tour.call(&ada, "DELETE /api/auth/sessions", &[], 200).await;
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "Another-one-7" });
    tour.call_with(&ada, "PUT /api/users/me/password", &[], change, 200).await;
    let signed_in = RestClient::sign_in(scene.url(), "ada-of-the-keys", "Another-one-7").await.unwrap();
    tour.call(&signed_in, "POST /api/auth/logout", &[], 200).await;
}

async fn second_factor(tour: &Tour, scene: &Scene) {
    let (ada, anonymous) = (scene.person("ada-of-the-codes").await, RestClient::outsider(scene.url()));
    let password = json!({ "password": PASSWORD });
    tour.call_with(&ada, "POST /api/auth/disable-totp", &[], password.clone(), 404).await;
    let offered = tour.call(&ada, "POST /api/auth/setup-totp", &[], 200).await;
    let device = Device::new(offered["secret"].as_str().unwrap());
    let code = |ahead| json!({ "code": device.code(ahead) });
    let codes = tour.call_with(&ada, "POST /api/auth/verify-totp-setup", &[], code(0), 200).await;
    tour.call_with(&ada, "POST /api/auth/verify-totp-setup", &[], code(1), 409).await;
    tour.call(&ada, "POST /api/auth/setup-totp", &[], 409).await;
    let body = json!({ "username": "ada-of-the-codes", "password": PASSWORD });
    let challenge = tour.call_with(&anonymous, "POST /api/auth/login", &[], body, 200).await;
    let verification = |code| json!({ "totpToken": challenge["totpToken"], "code": code });
    tour.call_with(
        &anonymous,
        "POST /api/auth/verify-totp",
        &[],
        verification(&codes["backupCodes"][0]),
        200,
    )
    .await;
    tour.call_with(
        &anonymous,
        "POST /api/auth/verify-totp",
        &[],
        verification(&codes["backupCodes"][0]),
        401,
    )
    .await;
    tour.call_with(&ada, "POST /api/auth/disable-totp", &[], password, 200).await;
}

async fn settings(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    tour.call(admin, "GET /api/settings", &[], 200).await;
    tour.call_with(admin, "POST /api/settings", &[], json!({ "hubName": "Salon" }), 200).await;
    tour.call(admin, "GET /api/admin/settings", &[], 200).await;
    let body = json!({ "changes": { "hubName": null } });
    tour.call_with(admin, "PUT /api/admin/settings", &[], body, 200).await;
    tour.call(admin, "GET /api/limits", &[], 200).await;
    let page = tour.call(admin, "GET /api/audit?limit=1", &[], 200).await;
    assert!(page["nextCursor"].is_string(), "{page}");
    tour.call(admin, "GET /api/audit?action=party", &[], 400).await;
}

async fn keys(tour: &Tour, scene: &Scene) {
    let body = json!({ "name": "a program", "scopes": ["read", "dead-letters"] });
    let key = tour.call_with(&scene.admin, "POST /api/keys", &[], body, 201).await;
    tour.call(&scene.admin, "GET /api/keys", &[], 200).await;
    tour.call(&scene.admin, "DELETE /api/keys/{id}", &[id(&key)], 200).await;
    let pairing = tour.call(&scene.admin, "POST /api/pairing", &[], 201).await;
    let body = json!({ "code": pairing["code"], "name": "laptop" });
    tour.call_with(&scene.admin, "POST /api/pairing/exchange", &[], body.clone(), 201).await;
    tour.call_with(&scene.admin, "POST /api/pairing/exchange", &[], body, 404).await;
}

async fn rooms(tour: &Tour, scene: &Scene) {
    let (admin, bob) = (&scene.admin, scene.person("bob").await);
    let body = json!({ "name": "Salon", "systemPrompt": "Be kind" });
    let room = tour.call_with(admin, "POST /api/rooms", &[], body, 201).await;
    let unknown_member = json!({ "name": "Salon", "memberIds": ["nobody"] });
    tour.call_with(admin, "POST /api/rooms", &[], unknown_member, 404).await;
    let room = id(&room);
    tour.call(admin, "GET /api/rooms", &[], 200).await;
    tour.call(admin, "GET /api/rooms/{id}", &[room], 200).await;
    let change = json!({ "name": "Parlour", "systemPrompt": null });
    tour.call_with(admin, "PUT /api/rooms/{id}", &[room], change, 200).await;
    let member = json!({ "memberId": bob.user_id() });
    tour.call_with(admin, "POST /api/rooms/{id}/members", &[room], member.clone(), 201).await;
    tour.call_with(admin, "POST /api/rooms/{id}/members", &[room], member, 409).await;
    tour.call(admin, "GET /api/rooms/{id}/members?limit=1", &[room], 200).await;
    let member_operation = "PUT /api/rooms/{id}/members/{member}";
    tour.call_with(admin, member_operation, &[room, bob.user_id()], json!({ "role": "admin" }), 200).await;
    tour.call_with(admin, member_operation, &[room, admin.user_id()], json!({ "role": "admin" }), 409).await;
    let member_operation = "DELETE /api/rooms/{id}/members/{member}";
    tour.call(admin, member_operation, &[room, admin.user_id()], 409).await;
    tour.call(admin, member_operation, &[room, bob.user_id()], 200).await;
    let mut broker = Broker::connect(scene.url(), admin.token()).await.unwrap();
    broker.create_agent("helper/first", &[]).await.unwrap();
    tour.call(admin, "GET /api/agents", &[], 200).await;
    tour.call(admin, "GET /api/agents/shared", &[], 200).await;
    let agent = json!({ "memberId": "helper/first", "memberType": "agent" });
    tour.call_with(admin, "POST /api/rooms/{id}/members", &[room], agent, 201).await;
    tour.call(admin, member_operation, &[room, "helper%2Ffirst"], 200).await;
    tour.call(admin, "DELETE /api/rooms/{id}", &[room], 200).await;
}

async fn routers(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let body = json!({ "name": "picker", "scope": "global", "llmBaseUrl": "https://model.example/v1",
                       "llmApiKey": "sk-1", "llmModel": "small" });
    let router = tour.call_with(admin, "POST /api/routers", &[], body, 201).await;
    tour.call(admin, "GET /api/routers", &[], 200).await;
    tour.call(admin, "GET /api/routers/{id}", &[id(&router)], 200).await;
    let change = json!({ "llmApiKey": null, "llmApi": "anthropic" });
    tour.call_with(admin, "PUT /api/routers/{id}", &[id(&router)], change, 200).await;
    tour.call(admin, "POST /api/routers/{id}/test", &[id(&router)], 200).await;
    tour.call(admin, "DELETE /api/routers/{id}", &[id(&router)], 200).await;
}

async fn services(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    tour.call(admin, "GET /api/service-agents/providers", &[], 200).await;
    let config = json!({ "baseUrl": "https://model.example/v1", "apiKey": "sk-1", "model": "small",
                         "fallbackModel": "tiny", "systemPrompt": "Be kind.", "maxTokens": 100 });
    let body = json!({ "name": "Sage", "type": "anthropic-chat", "description": "knows", "config": config });
    let sage = tour.call_with(admin, "POST /api/service-agents", &[], body, 201).await;
    tour.call(admin, "GET /api/service-agents", &[], 200).await;
    tour.call(admin, "GET /api/service-agents/{id}", &[id(&sage)], 200).await;
    let change = json!({ "status": "inactive", "config": { "apiKey": null, "systemPrompt": null } });
    tour.call_with(admin, "PUT /api/service-agents/{id}", &[id(&sage)], change, 200).await;
    tour.call(admin, "POST /api/service-agents/{id}/validate", &[id(&sage)], 200).await;
    tour.call(admin, "DELETE /api/service-agents/{id}", &[id(&sage)], 200).await;
}

async fn tasks(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let room = admin.make_room("a room", &[]).await.unwrap();
    tour.call(admin, "POST /api/rooms/{id}/freeze", &[&room], 200).await;
    tour.call(admin, "DELETE /api/rooms/{id}/freeze", &[&room], 200).await;
    let body = json!({ "title": "Tidy up", "description": "all", "assigneeId": admin.user_id() });
    let task = tour.call_with(admin, "POST /api/tasks/rooms/{id}", &[&room], body, 201).await;
    tour.call(admin, "GET /api/tasks/rooms/{id}", &[&room], 200).await;
    tour.call(admin, "GET /api/tasks?limit=1", &[], 200).await;
    tour.call(admin, "GET /api/tasks?limit=some", &[], 400).await;
    let completed = json!({ "status": "completed", "result": "tidy", "dueDate": "2030-01-01T00:00:00Z" });
    tour.call_with(admin, "PUT /api/tasks/{id}", &[id(&task)], completed, 200).await;
    for change in ["PUT /api/tasks/{id}", "PATCH /api/tasks/{id}"] {
        tour.call_with(admin, change, &[id(&task)], json!({ "status": "in_progress" }), 409).await;
    }
    tour.call_with(admin, "PATCH /api/tasks/{id}", &[id(&task)], json!({ "assigneeId": null }), 200).await;
    tour.call(admin, "DELETE /api/tasks/{id}", &[id(&task)], 200).await;
}

async fn agents(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let mut gateway = Gateway::connect(admin, "laptop").await.unwrap();
    gateway.register("hosted", "Hosted").await.unwrap();
    let body = json!({ "id": "planned", "name": "Planned", "type": "codex", "visibility": "all" });
    tour.call_with(admin, "POST /api/agents", &[], body.clone(), 201).await;
    tour.call_with(admin, "POST /api/agents", &[], body, 409).await;
    tour.call_with(admin, "POST /api/agents", &[], json!({ "name": "Of any id" }), 201).await;
    tour.call(admin, "GET /api/agents/{id}", &["hosted"], 200).await;
    tour.call(admin, "GET /api/agents/{id}/rooms", &["hosted"], 200).await;
    tour.call(admin, "GET /api/agents/{id}/runs?limit=5", &["hosted"], 200).await;
    tour.call(admin, "GET /api/agents/{id}/runs?limit=some", &["hosted"], 400).await;
    let list = json!({ "name": "Renamed", "visibility": "whitelist", "visibilityList": [admin.user_id()] });
    tour.call_with(admin, "PUT /api/agents/{id}", &["planned"], list, 200).await;
    tour.call(admin, "GET /api/agents", &[], 200).await;
    tour.call(admin, "GET /api/agents/shared?limit=1", &[], 200).await;
    tour.call(admin, "GET /api/agents/shared?limit=some", &[], 400).await;
    mail(tour, scene).await;
    turns(tour, admin).await;
    tour.call(admin, "DELETE /api/agents/{id}", &["planned"], 200).await;
    approvals(tour, scene, &mut gateway).await;
    chats(tour, admin).await;
    let spawn = json!({ "gatewayId": "laptop", "agentType": "codex", "name": "One more" });
    tour.call_with(admin, "POST /api/agents/spawn", &[], spawn, 200).await;
    let spawn = json!({ "gatewayId": "never", "agentType": "codex", "name": "One more" });
    tour.call_with(admin, "POST /api/agents/spawn", &[], spawn, 404).await;
    tour.call(admin, "GET /api/agents/gateways/list", &[], 200).await;
    tour.call(admin, "DELETE /api/agents/gateways/{id}", &["laptop"], 200).await;
}

async fn turns(tour: &Tour, admin: &RestClient) {
    let turn = |agent: &str| json!({ "agentId": agent, "sessionId": "side", "prompt": "hello" });
    tour.call_with(admin, "POST /api/turns", &[], turn("hosted"), 201).await;
    tour.call_with(admin, "POST /api/turns", &[], turn("planned"), 503).await;
    tour.call_with(admin, "POST /api/turns", &[], turn("never"), 404).await;
    let nothing = json!({ "agentId": "hosted", "messageIds": [] });
    tour.call_with(admin, "POST /api/turns", &[], nothing, 400).await;
    let log = "GET /api/agents/{id}/sessions/{session}/log?limit=1";
    tour.call(admin, log, &["hosted", "side"], 200).await;
    let invalid = "GET /api/agents/{id}/sessions/{session}/log?cursor=some";
    tour.call(admin, invalid, &["hosted", "side"], 400).await;
    tour.call(admin, "GET /api/turns?limit=1", &[], 200).await;
    tour.call(admin, "GET /api/turns?agentId=hosted&sessionId=side", &[], 200).await;
    tour.call(admin, "GET /api/turns?cursor=some", &[], 400).await;
    tour.call(admin, "GET /api/turns?agentId=never", &[], 404).await;
}

async fn mail(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let session = "PUT /api/agents/{id}/sessions/{session}";
    let auto_run = json!({ "enabled": true, "triageModel": "small", "debounceMs": 500, "maxBatchSize": 5 });
    let changes = json!({ "title": "Side", "autoRun": auto_run, "roomId": null });
    tour.call_with(admin, session, &["planned", "side"], changes, 200).await;
    tour.call_with(admin, session, &["planned", "side"], json!({ "autoRun": null }), 200).await;
    let invalid = json!({ "autoRun": { "enabled": true, "debounceMs": 600_001 } });
    tour.call_with(admin, session, &["planned", "side"], invalid, 400).await;
    tour.call_with(admin, session, &["planned", "side"], json!({ "roomId": "never" }), 404).await;
    let mut broker = Broker::connect(scene.url(), admin.token()).await.unwrap();
    broker.route("slack-bridge", "slack/team", json!({ "text": "hello" })).await.unwrap();
    broker.route("slack-bridge", "agent/planned", json!({ "text": "hello" })).await.unwrap();
    tour.call(admin, "GET /api/agents/{id}/sessions", &["planned"], 200).await;
    let page = tour.call(admin, "GET /api/agents/{id}/mail?limit=1", &["planned"], 200).await;
    assert_eq!(page["items"][0]["state"], "pending", "{page}");
    tour.call(admin, "GET /api/agents/{id}/mail?session=side&offset=1", &["planned"], 200).await;
    tour.call(admin, "GET /api/agents/{id}/mail?session=no%20id", &["planned"], 400).await;
    let letters = tour.call(admin, "GET /api/dead-letters?limit=1", &[], 200).await;
    tour.call(admin, "GET /api/dead-letters?limit=some", &[], 400).await;
    let letter = id(&letters["items"][0]["message"]);
    tour.call(admin, "POST /api/dead-letters/{id}/resend", &[letter], 409).await;
    tour.call_with(
        admin,
        "POST /api/dead-letters/{id}/resend",
        &[letter],
        json!({ "sessionId": "side" }),
        400,
    )
    .await;
    let subscribe = json!({ "type": "msg.session.sub.add", "agentId": "planned", "sessionId": "side", "pattern": "slack/**" });
    broker.ok(subscribe).await.unwrap();
    let resent = tour.call(admin, "POST /api/dead-letters/{id}/resend", &[letter], 200).await;
    assert_eq!(resent["mailboxes"][0], json!({ "agentId": "planned", "sessionId": "side" }));
    tour.call(admin, "POST /api/dead-letters/{id}/resend", &[letter], 404).await;
    tour.call(admin, "DELETE /api/dead-letters", &[], 200).await;
}

async fn chats(tour: &Tour, admin: &RestClient) {
    tour.call(admin, "POST /api/events/ticket", &[], 200).await;
    let send = async |operation: &str, method: Method, path: &str, body: Value| {
        let request = admin.request(method, path);
        let request = if body.is_null() { request } else { request.json(&body) };
        tour.send(operation, request, 200).await.body
    };
    let body = json!({ "agent_id": "hosted", "message": "hello" });
    let chat = send("POST /api/chat", Method::POST, "/api/chat", body).await;
    let (session, run) = (chat["session_id"].as_str().unwrap(), chat["run_id"].as_str().unwrap());
    let body = json!({ "agent_id": "hosted", "message": "and more", "session_id": session });
    send("POST /api/chat", Method::POST, "/api/chat", body).await;
    tour.call_with(admin, "POST /api/chat", &[], json!({ "agent_id": "nobody", "message": "hello" }), 404)
        .await;
    let queue = send("GET /api/queue", Method::GET, "/api/queue", Value::Null).await;
    assert_eq!(queue["items"][0]["session_id"], session, "{queue}");
    let path = format!("/api/queue?session_id={session}");
    send("DELETE /api/queue", Method::DELETE, &path, Value::Null).await;
    for (operation, path) in [
        ("GET /api/agent-runs", format!("/api/agent-runs?session_id={session}")),
        ("GET /api/agent-children", format!("/api/agent-children?run_id={run}")),
        ("GET /api/agent-context", format!("/api/agent-context?run_id={run}&view=raw")),
        ("GET /api/agent-context", format!("/api/agent-context?run_id={run}")),
    ] {
        send(operation, Method::GET, &path, Value::Null).await;
    }
    send("POST /api/agent-cancel", Method::POST, "/api/agent-cancel", json!({ "run_id": run })).await;
    tour.call_with(admin, "POST /api/agent-cancel", &[], json!({ "run_id": "never" }), 404).await;
    for operation in ["GET /api/queue", "DELETE /api/queue", "GET /api/agent-runs"] {
        tour.call(admin, &format!("{operation}?session_id=never"), &[], 404).await;
        tour.call(admin, &format!("{operation}?session_id=no%20id"), &[], 400).await;
    }
    for operation in ["GET /api/agent-children", "GET /api/agent-context"] {
        tour.call(admin, &format!("{operation}?run_id=never"), &[], 404).await;
        tour.call(admin, operation, &[], 400).await;
    }
}

async fn approvals(tour: &Tour, scene: &Scene, gateway: &mut Gateway) {
    let (admin, bob) = (&scene.admin, scene.person("bob-of-the-questions").await);
    let room = admin.make_room("questions", &[&bob]).await.unwrap();
    let member = json!({ "memberId": "hosted", "memberType": "agent" });
    admin.post(&format!("/api/rooms/{room}/members"), member).await.unwrap();
    let frame = json!({
        "type": "gateway:permission_request", "requestId": "1", "agentId": "hosted", "roomId": room,
        "toolName": "Bash", "toolInput": { "command": "ls", "deep": [1.0, { "nothing": null }] },
    });
    gateway.send(&frame).await.unwrap();
    gateway.settled().await.unwrap();
    let open = tour.call(admin, "GET /api/rooms/{id}/approvals", &[&room], 200).await;
    let (approval, digest) = (id(&open[0]).to_owned(), open[0]["inputDigest"].clone());
    let wrong = json!({ "decision": "maybe" });
    tour.call_with(admin, "POST /api/approvals/{id}", &[&approval], wrong, 400).await;
    let body = json!({ "decision": "allow", "allowAlways": true, "inputDigest": digest });
    tour.call_with(admin, "POST /api/approvals/{id}", &[&approval], body.clone(), 200).await;
    tour.call_with(admin, "POST /api/approvals/{id}", &[&approval], body, 409).await;
    tour.call(admin, "GET /api/rooms/{id}/approval-rules", &[&room], 200).await;
    questions_and_plans(tour, admin, gateway, &room).await;
    let rule = "DELETE /api/rooms/{id}/approval-rules?agentId=hosted&toolName=Bash";
    tour.call(&bob, rule, &[&room], 403).await;
    tour.call(admin, rule, &[&room], 200).await;
    tour.call(admin, rule, &[&room], 404).await;
}

async fn questions_and_plans(tour: &Tour, admin: &RestClient, gateway: &mut Gateway, room: &str) {
    let option = |label: &str| json!({ "label": label });
    let question = json!({ "question": "Which?", "header": "Drink", "multiSelect": false,
        "options": [option("Tea"), option("Water")] });
    let answer = json!([{ "question_index": 0, "selected": ["Tea"] }]);
    let run_event = |event: Value| json!({ "type": "gateway:run_event", "agentId": "hosted", "roomId": room, "event": event });
    let plan = json!({ "kind": "plan", "summary": "Make tea", "status": "planned", "items": [] });
    gateway.send(&run_event(plan.clone())).await.unwrap();
    for id in ["q1", "q2"] {
        let event = json!({ "kind": "question", "questionId": id, "questions": [question.clone()] });
        gateway.send(&run_event(event)).await.unwrap();
    }
    gateway.settled().await.unwrap();
    let open = tour.send("GET /api/ask-user", admin.request(Method::GET, "/api/ask-user"), 200).await.body;
    let answer_to = |at: usize| json!({ "question_id": open[at]["question_id"], "answers": answer });
    let respond = "POST /api/ask-user-response";
    tour.call_with(admin, respond, &[], json!({ "question_id": "never", "answers": answer }), 404).await;
    tour.call_with(admin, respond, &[], json!({ "question_id": open[0]["question_id"], "answers": [] }), 400)
        .await;
    for (body, status) in [(answer_to(0), 200), (answer_to(0), 409)] {
        let request = admin.request(Method::POST, "/api/ask-user-response").json(&body);
        tour.send(respond, request, status).await;
    }
    tour.send("GET /api/plan", admin.request(Method::GET, "/api/plan"), 200).await;
    tour.call(admin, "GET /api/plan?session_id=never", &[], 404).await;
    tour.call(admin, "GET /api/plan?session_id=no%20id", &[], 400).await;
    let body = json!({ "agent_id": "hosted", "session_id": room, "text": "# Tea" });
    for (path, status) in [("edit", 200), ("reject", 200), ("reject", 404), ("edit", 404), ("approve", 404)] {
        let path = format!("/api/plan/{path}");
        let request = admin.request(Method::POST, &path).json(&body);
        tour.send(&format!("POST {path}"), request, status).await;
    }
    gateway.send(&run_event(plan)).await.unwrap();
    gateway.settled().await.unwrap();
    let request = admin.request(Method::POST, "/api/plan/approve").json(&body);
    tour.send("POST /api/plan/approve", request, 200).await;
    // Questions of a run end with it.
    let mut stream = EventReader::live(admin, "").await.unwrap();
    admin.post("/api/agent-cancel", json!({ "run_id": open[1]["run_id"] })).await.unwrap();
    stream.wait_for(|event| event["kind"] == "ask_user" && event["phase"] == "resolved").await.unwrap();
    let request = admin.request(Method::POST, "/api/ask-user-response").json(&answer_to(1));
    tour.send(respond, request, 410).await;
}

async fn roots(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    tour.call(admin, "GET /api/project-roots", &[], 200).await;
    let room = admin.make_room("about nothing", &[]).await.unwrap();
    let body = json!({ "projectRoot": null });
    tour.call_with(admin, "PUT /api/rooms/{id}/project-root", &[&room], body, 200).await;
    tour.call(admin, &format!("GET /api/workspace/tree?session_id={room}"), &[], 404).await;
    let request = admin.request(Method::GET, "/api/workspace/tree");
    let without_room = tour.send("GET /api/workspace/tree", request, 400).await;
    assert_eq!(without_room.body["fields"][0]["field"], "session_id");
    let body = json!({ "projectRoot": FOLDER });
    tour.call_with(admin, "PUT /api/rooms/{id}/project-root", &[&room], body, 200).await;
    tour.call(admin, &format!("GET /api/workspace/tree?session_id={room}"), &[], 200).await;
}

async fn missions(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let room = admin.make_room("with a mission", &[]).await.unwrap();
    let with_session = |call: &str| format!("{call}session_id={room}");
    tour.call(admin, &with_session("GET /api/mission?"), &[], 200).await;
    tour.call(admin, &with_session("DELETE /api/mission?"), &[], 404).await;
    let body = json!({ "session_id": room, "text": "Tea", "agents": [{ "id": "coder" }] });
    tour.call_with(admin, "POST /api/mission", &[], body, 200).await;
    tour.call_with(admin, "POST /api/mission", &[], json!({ "session_id": "nowhere", "text": "Tea" }), 404)
        .await;
    tour.call(admin, &with_session("GET /api/mission?"), &[], 200).await;
    tour.call(admin, "GET /api/mission?session_id=nowhere", &[], 404).await;
    tour.call(admin, "GET /api/mission", &[], 400).await;
    tour.call(admin, &with_session("GET /api/missions?"), &[], 200).await;
    tour.call(admin, "GET /api/missions?session_id=nowhere", &[], 404).await;
    tour.call(admin, "GET /api/missions", &[], 400).await;
    tour.call(admin, &with_session("DELETE /api/mission?"), &[], 200).await;
    let agent = json!({ "id": "sleeper", "name": "Sleeper", "type": "generic" });
    admin.post("/api/agents", agent).await.unwrap().data().unwrap();
    let override_path = "/api/agent-override?agent_id=sleeper";
    tour.call(admin, &format!("DELETE {override_path}"), &[], 404).await;
    let body = |agent: &str| json!({ "agent_id": agent, "idle_prompt": "Wake up", "idle_interval_secs": 30 });
    tour.call_with(admin, "POST /api/agent-override", &[], body("sleeper"), 200).await;
    tour.call_with(admin, "POST /api/agent-override", &[], body("nobody"), 404).await;
    tour.call(admin, &format!("GET {override_path}"), &[], 200).await;
    tour.call(admin, "GET /api/agent-override?agent_id=nobody", &[], 404).await;
    tour.call(admin, "GET /api/agent-override", &[], 400).await;
    tour.call(admin, &format!("DELETE {override_path}"), &[], 200).await;
}

async fn room_preferences(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let room = admin.make_room("a room", &[]).await.unwrap();
    for preference in ["pin", "archive", "clear"] {
        tour.call(admin, &format!("PUT /api/rooms/{{id}}/{preference}"), &[&room], 200).await;
    }
    let pref = json!({ "pref": "none" });
    tour.call_with(admin, "PUT /api/rooms/{id}/notification-pref", &[&room], pref, 200).await;
    tour.call(admin, "GET /api/rooms", &[], 200).await;
    tour.call(admin, "GET /api/rooms/{id}/members", &[&room], 200).await;
}

async fn annotations(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let room = admin.make_room("a room", &[]).await.unwrap();
    let message = admin.post_message(&room, "hello").await.unwrap();
    let message = id(&message);
    for text in ["one", "two"] {
        let reply = json!({ "content": text, "replyToId": message });
        tour.call_with(admin, "POST /api/rooms/{id}/messages", &[&room], reply, 201).await;
    }
    let thread = "GET /api/messages/{id}/thread";
    tour.call(admin, &format!("{thread}?limit=1"), &[message], 200).await;
    tour.call(admin, &format!("{thread}?cursor=00000000-1"), &[message], 410).await;
    tour.call(admin, "GET /api/messages/{id}/replies/count", &[message], 200).await;
    tour.call(admin, "GET /api/messages/{id}/deliveries", &[message], 200).await;
    let emoji = json!({ "emoji": "+1" });
    tour.call_with(admin, "POST /api/messages/{id}/reactions", &[message], emoji, 200).await;
    let (forward, target) =
        ("POST /api/messages/{id}/forward", json!({ "targetRoomId": room, "clientMessageId": "copy" }));
    let copy = tour.call_with(admin, forward, &[message], target.clone(), 201).await;
    tour.call_with(admin, forward, &[message], target.clone(), 200).await;
    tour.call_with(admin, forward, &[id(&copy)], target, 409).await;
    tour.call(admin, "POST /api/messages/{id}/pin", &[message], 200).await;
    tour.call(admin, "GET /api/rooms/{id}/pins", &[&room], 200).await;
    tour.call(admin, "GET /api/rooms/{id}/messages", &[&room], 200).await;
    tour.call(admin, "DELETE /api/messages/{id}/pin", &[message], 200).await;
    for (message_id, status) in [(message, 201), (message, 200), (id(&copy), 201), ("unknown", 404)] {
        tour.call_with(admin, "POST /api/bookmarks", &[], json!({ "messageId": message_id }), status).await;
    }
    let page = tour.call(admin, "GET /api/bookmarks?limit=1", &[], 200).await;
    assert!(page["nextCursor"].is_string(), "{page}");
    tour.call(admin, "GET /api/bookmarks?limit=some", &[], 400).await;
    tour.call(admin, "GET /api/bookmarks?cursor=00000000-1", &[], 410).await;
    tour.call(admin, "DELETE /api/bookmarks/{id}", &[message], 200).await;
    let batch = "POST /api/messages/batch-delete";
    tour.call_with(admin, batch, &[], json!({ "messageIds": [message, "unknown"] }), 404).await;
    tour.call_with(admin, batch, &[], json!({ "messageIds": [message] }), 200).await;
}

async fn messages(tour: &Tour, scene: &Scene) {
    let admin = &scene.admin;
    let room = admin.make_room("a room", &[]).await.unwrap();
    let post = "POST /api/rooms/{id}/messages";
    let body = json!({ "content": "hello", "clientMessageId": "c1" });
    let message = tour.call_with(admin, post, &[&room], body.clone(), 201).await;
    tour.call_with(admin, post, &[&room], body.clone(), 200).await;
    tour.call_with(admin, post, &[&room], json!({ "content": "other", "clientMessageId": "c1" }), 409).await;
    let reply = json!({ "content": "hello again", "replyToId": message["id"] });
    tour.call_with(admin, post, &[&room], reply, 201).await;
    tour.call_with(admin, "PUT /api/messages/{id}", &[id(&message)], json!({ "content": "edited" }), 200)
        .await;
    let edited = tour.call(admin, "GET /api/messages/{id}", &[id(&message)], 200).await;
    assert_eq!(edited["content"], "edited");
    tour.call(admin, "GET /api/messages/{id}/history", &[id(&message)], 200).await;
    for history in ["GET /api/rooms/{id}/messages", "GET /api/messages/rooms/{id}"] {
        let page = tour.call(admin, &format!("{history}?limit=1"), &[&room], 200).await;
        assert!(page["nextCursor"].is_string(), "{page}");
        tour.call(admin, &format!("{history}?after=0"), &[&room], 200).await;
        tour.call(admin, &format!("{history}?after=00000000-1"), &[&room], 410).await;
    }
    tour.call(admin, "GET /api/messages/recent", &[], 200).await;
    let search = "GET /api/messages/search?q=hello";
    tour.call(admin, &format!("{search}&limit=1&senderType=user&dateFrom=2020-01-01"), &[], 200).await;
    tour.call(admin, &format!("{search}&dateTo=never"), &[], 400).await;
    tour.call(admin, &format!("{search}&roomId=nowhere"), &[], 404).await;
    tour.call(admin, &format!("{search}&cursor=00000000-1.0"), &[], 410).await;
    tour.call(admin, "POST /api/messages/rooms/{id}/read", &[&room], 200).await;
    tour.call(admin, "POST /api/messages/mark-all-read", &[], 200).await;
    tour.call(admin, "DELETE /api/messages/{id}", &[id(&message)], 200).await;
    let retried = tour.call_with(admin, post, &[&room], body, 200).await;
    assert_eq!(retried["deleted"], true, "a retry of a deleted message returns a tombstone");
}
