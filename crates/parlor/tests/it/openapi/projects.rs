//! Calls of the operations for Jaibber clients: accounts, projects, messages, tasks and agents.

use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use super::tour::{Tour, id};
use crate::files::PNG;
use crate::scene::{PASSWORD, Scene};
use crate::sign_in::second_factor::Device;

pub async fn all(tour: &Tour, scene: &Scene) {
    accounts(tour, scene).await;
    let admin = &scene.admin;
    let body = json!({ "name": "Salon", "description": "for guests" });
    tour.call_with(admin, "POST /api/projects", &[], body, 201).await;
    let body = tour.call(admin, "GET /api/projects", &[], 200).await;
    assert_eq!(body, Value::Null, "the list has no field data");
    let room = admin.make_room("a project", &[]).await.unwrap();
    tour.call(admin, "GET /api/projects/{id}", &[&room], 200).await;
    tour.call_with(admin, "PATCH /api/projects/{id}", &[&room], json!({ "name": "Parlour" }), 200).await;
    members(tour, scene, &room).await;
    invites(tour, scene, &room).await;
    messages(tour, admin, &room).await;
    agents_and_tasks(tour, admin, &room).await;
    files(tour, admin, &room).await;
    tour.call(admin, "DELETE /api/projects/{id}", &[&room], 200).await;
}

async fn accounts(tour: &Tour, scene: &Scene) {
    let (ada, anonymous) = (scene.person("ada-of-the-tokens").await, RestClient::outsider(scene.url()));
    let body = |password: &str| json!({ "username": "ada-of-the-tokens", "password": password });
    tour.call_with(&anonymous, "POST /api/auth/token", &[], body("wrong"), 401).await;
    tour.call_with(&anonymous, "POST /api/auth/token", &[], body(PASSWORD), 200).await;
    tour.call(&ada, "GET /api/auth/me", &[], 200).await;
    tour.call(&ada, "POST /api/ably/token", &[], 200).await;
    let offered = tour.call(&ada, "POST /api/auth/setup-totp", &[], 200).await;
    let device = Device::new(offered["secret"].as_str().unwrap());
    let code = json!({ "code": device.code(0) });
    tour.call_with(&ada, "POST /api/auth/verify-totp-setup", &[], code, 200).await;
    tour.call_with(&anonymous, "POST /api/auth/token", &[], body(PASSWORD), 403).await;
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "Another-one-7" });
    tour.call_with(&ada, "POST /api/auth/change-password", &[], change, 200).await;
}

async fn members(tour: &Tour, scene: &Scene, room: &str) {
    let (admin, eve) = (&scene.admin, scene.person("eve-of-the-projects").await);
    let body = json!({ "username": "eve-of-the-projects", "role": "member" });
    tour.call_with(admin, "POST /api/projects/{id}/members", &[room], body.clone(), 201).await;
    tour.call_with(admin, "POST /api/projects/{id}/members", &[room], body, 409).await;
    tour.call(admin, "GET /api/projects/{id}/members", &[room], 200).await;
    let remove = "DELETE /api/projects/{id}/members/{member}";
    tour.call(admin, remove, &[room, admin.user_id()], 409).await;
    tour.call(admin, remove, &[room, eve.user_id()], 200).await;
}

async fn invites(tour: &Tour, scene: &Scene, room: &str) {
    let (admin, fay) = (&scene.admin, scene.person("fay-of-the-invites").await);
    let path = "POST /api/projects/{id}/invites";
    let body = json!({ "role": "member", "expiresInHours": 2 });
    let answer = tour.call_with(admin, path, &[room], body.clone(), 201).await;
    let list = admin.get(&format!("/api/projects/{room}/invites")).await.unwrap().body;
    tour.call(admin, "GET /api/projects/{id}/invites", &[room], 200).await;
    assert_eq!(answer, Value::Null, "the answer has no field data");
    let token = list["invites"][0]["token"].as_str().unwrap();
    tour.call(&fay, "GET /api/invites/project/{token}", &[token], 200).await;
    let accept = "POST /api/invites/project/{token}/accept";
    tour.call(admin, accept, &[token], 409).await;
    tour.call(&fay, accept, &[token], 200).await;
    tour.call_with(admin, path, &[room], body, 201).await;
    let list = admin.get(&format!("/api/projects/{room}/invites")).await.unwrap().body;
    let revoke = "DELETE /api/projects/{id}/invites/{invitation}";
    tour.call(admin, revoke, &[room, id(&list["invites"][0])], 200).await;
}

async fn messages(tour: &Tour, admin: &RestClient, room: &str) {
    let post = "POST /api/projects/{id}/messages";
    let message = tour.call_with(admin, post, &[room], json!({ "text": "hello" }), 201).await;
    let body = |text: &str| json!({ "id": "chosen-by-the-client", "type": "message", "text": text });
    tour.call_with(admin, post, &[room], body("hello"), 201).await;
    tour.call_with(admin, post, &[room], body("hello"), 201).await;
    tour.call_with(admin, post, &[room], body("bye"), 409).await;
    let list = "GET /api/projects/{id}/messages";
    tour.call(admin, &format!("{list}?limit=1"), &[room], 200).await;
    tour.call(admin, &format!("{list}?after=0&limit=1"), &[room], 200).await;
    tour.call(admin, &format!("{list}?after=00000000-1"), &[room], 410).await;
    tour.call(admin, "DELETE /api/projects/{id}/messages/{message}", &[room, id(&message)], 200).await;
}

async fn agents_and_tasks(tour: &Tour, admin: &RestClient, room: &str) {
    let agent =
        |room: &str| json!({ "projectId": room, "agentName": "Scribe", "agentInstructions": "Be nice" });
    tour.call_with(admin, "PUT /api/agent-registrations", &[], agent(room), 200).await;
    tour.call_with(admin, "PUT /api/agent-registrations", &[], agent("nowhere"), 404).await;
    tour.call(admin, "GET /api/agent-registrations", &[], 200).await;
    let body = json!({ "title": "Cook", "assignedAgentName": "scribe", "priority": "urgent" });
    let task = tour.call_with(admin, "POST /api/projects/{id}/tasks", &[room], body, 201).await;
    tour.call(admin, "GET /api/projects/{id}/tasks?status=submitted&limit=1", &[room], 200).await;
    let change = json!({ "status": "working", "assignedAgentName": null });
    tour.call_with(admin, "PATCH /api/tasks/{id}", &[id(&task)], change, 200).await;
    let delete = |room: &str| format!("DELETE /api/agent-registrations?projectId={room}&agentName=scribe");
    tour.call(admin, &delete(room), &[], 200).await;
    tour.call(admin, &delete("nowhere"), &[], 404).await;
    tour.call(admin, "DELETE /api/agent-registrations", &[], 400).await;
}

async fn files(tour: &Tour, admin: &RestClient, room: &str) {
    let upload = admin.upload("cat.png", PNG).await.unwrap().data().unwrap();
    let body = json!({ "blobUrl": upload["url"] });
    let file = tour.call_with(admin, "POST /api/projects/{id}/attachments", &[room], body, 201).await;
    let body = json!({ "content": "a cat", "attachmentIds": [id(&file)] });
    tour.call_with(admin, "POST /api/rooms/{id}/messages", &[room], body, 201).await;
    let files = tour.call(admin, "GET /api/projects/{id}/attachments", &[room], 200).await;
    assert_eq!(files[0]["id"], file["id"], "{files}");
}
