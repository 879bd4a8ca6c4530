//! The REST requests of Jaibber clients: the recorded ones of the SDK without its connections, and the rules of
//! accounts, messages, tasks and keys.

use std::time::Duration;

use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::{Value, json};

use super::replay::{RECORDED, assert_shape};
use crate::scene::{PASSWORD, Scene, assert_refused};

/// The SDK never refreshes its token.
const LASTING: Duration = Duration::from_secs(7 * 86_400);

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_requests_get_answers_of_the_recorded_shape() {
    let scene = Scene::start().await;
    let mut people = Vec::new();
    let mut values = vec![("password", PASSWORD.to_owned())];
    for name in ["human", "bot", "bot2"] {
        let person = scene.person(name).await;
        values.push((name, person.user_id().to_owned()));
        people.push((name, person));
    }
    for line in RECORDED.lines() {
        let line = values
            .iter()
            .fold(line.to_owned(), |line, (name, value)| line.replace(&format!("${{{name}}}"), value));
        let step: Value = serde_json::from_str(&line).unwrap();
        let Some(path) = step["path"].as_str().filter(|path| *path != "/api/ably/token") else { continue };
        let (_, person) = people.iter_mut().find(|(name, _)| step["who"] == *name).unwrap();
        let method: Method = step["method"].as_str().unwrap().parse().unwrap();
        let request = person.request(method, path).body(step["body"].as_str().unwrap().to_owned());
        let answer = RestResponse::of(request).await.unwrap();
        assert_eq!(answer.status.as_u16(), step["status"], "{step} {answer:?}");
        assert_shape(path, &step["answer"], &answer.body);
        match path {
            "/api/auth/token" => *person = person.with_token(answer.body["token"].as_str().unwrap()),
            "/api/projects" if step["method"] == "POST" => {
                let project = answer.body["project"]["id"].as_str().unwrap().to_owned();
                register_agents(&people[..], &project).await;
                values.push(("project", project));
            }
            _ if path.ends_with("/tasks") && step["method"] == "POST" => {
                values.push(("task", answer.body["data"]["id"].as_str().unwrap().to_owned()));
            }
            _ => {}
        }
    }
    let project = &values.iter().find(|(name, _)| *name == "project").unwrap().1;
    let stored = people[0].1.get(&format!("/api/projects/{project}/messages")).await.unwrap().body;
    let bot = people[1].1.user_id();
    let newest = &stored["data"][0];
    assert_eq!(
        (&newest["text"], &newest["senderId"], &newest["senderName"], &newest["senderType"]),
        (&json!("done!"), &json!(bot), &json!("Coder"), &json!("agent"))
    );
    assert_eq!(stored["meta"]["cursor"], stored["pagination"]["cursor"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_keeps_its_description() {
    let scene = Scene::start().await;
    let ann = scene.person("ann").await;
    let body = json!({ "name": "Kitchen", "description": "Where we cook" });
    let made = ann.post("/api/projects", body).await.unwrap().body["project"].clone();
    assert_eq!(made["description"], "Where we cook");
    let path = format!("/api/projects/{}", made["id"].as_str().unwrap());
    let change = async |body: Value| {
        let answer = RestResponse::of(ann.request(Method::PATCH, &path).json(&body)).await.unwrap();
        (answer.status.as_u16(), answer.body["project"]["description"].clone())
    };
    assert_eq!(change(json!({ "name": "Den" })).await, (200, json!("Where we cook")));
    assert_eq!(change(json!({ "description": "Where we rest" })).await, (200, json!("Where we rest")));
    let listed = ann.get("/api/projects").await.unwrap().body["projects"].clone();
    assert!(listed.as_array().unwrap().iter().any(|project| project["description"] == "Where we rest"));
    assert_eq!(change(json!({ "description": "" })).await, (200, Value::Null));
    assert_refused(
        &ann.post("/api/projects", json!({ "name": "x", "description": "x".repeat(2001) })).await.unwrap(),
        400,
    );
    scene.ends_well().await;
}

/// Adds both bots and their agents to the project, as their connections would do.
async fn register_agents(people: &[(&str, RestClient)], project: &str) {
    for ((name, bot), agent) in people[1..].iter().zip(["Coder", "Tester"]) {
        let member = json!({ "username": name, "role": "admin" });
        people[0].1.post(&format!("/api/projects/{project}/members"), member).await.unwrap();
        let agent = json!({ "projectId": project, "agentName": agent, "agentInstructions": "Be nice" });
        let registered = bot.put("/api/agent-registrations", agent.clone()).await.unwrap();
        assert_eq!(registered.status, 200, "{registered:?}");
        bot.put("/api/agent-registrations", agent).await.unwrap();
        let listed = bot.get("/api/agent-registrations").await.unwrap().body;
        assert_eq!(listed["data"].as_array().map(Vec::len), Some(1), "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_can_register_while_registration_is_open() {
    let scene = Scene::with(&[("PARLOR_OPEN_REGISTRATION", "on")]).await;
    let anonymous = RestClient::outsider(scene.url());
    let body = json!({ "username": "human", "password": PASSWORD, "email": "human@example.org" });
    let answer = anonymous.post("/api/auth/register", body.clone()).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        (&answer.body["username"], &answer.body["data"]["user"]["role"]),
        (&json!("human"), &json!("user"))
    );
    assert_eq!(answer.body["userId"], answer.body["data"]["user"]["id"]);
    let human = anonymous.with_token(answer.body["token"].as_str().unwrap());
    let me = human.get("/api/auth/me").await.unwrap().body;
    assert_eq!(me, json!({ "userId": answer.body["userId"], "username": "human" }));
    assert_refused(&anonymous.post("/api/auth/register", body).await.unwrap(), 409);
    let weak = json!({ "username": "other", "password": "x" });
    assert_refused(&anonymous.post("/api/auth/register", weak).await.unwrap(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_without_invitation_is_refused_by_default() {
    let scene = Scene::start().await;
    let body = json!({ "username": "human", "password": PASSWORD });
    let answer = RestClient::outsider(scene.url()).post("/api/auth/register", body).await.unwrap();
    assert_refused(&answer, 403);
    assert_eq!(answer.body["error"], "Registration requires an invitation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lasts_seven_days_and_ends_with_its_sign_in() {
    let scene = Scene::start().await;
    let (human, anonymous) = (scene.person("human").await, RestClient::outsider(scene.url()));
    let credentials = json!({ "username": "human", "password": PASSWORD });
    let token = async || {
        let answer = anonymous.post("/api/auth/token", credentials.clone()).await.unwrap();
        assert_eq!(answer.body["userId"], human.user_id());
        anonymous.with_token(answer.body["token"].as_str().unwrap())
    };
    let status = async |client: &RestClient| client.get("/api/auth/me").await.unwrap().status;
    let (ended, lasting) = (token().await, token().await);
    let sessions = ended.get("/api/auth/sessions").await.unwrap().data().unwrap();
    let own = sessions.as_array().unwrap().iter().find(|session| session["current"] == true).unwrap();
    let path = format!("/api/auth/sessions/{}", own["id"].as_str().unwrap());
    human.delete(&path).await.unwrap();
    assert_eq!(
        (status(&ended).await, status(&lasting).await),
        (401.try_into().unwrap(), 200.try_into().unwrap())
    );
    scene.advance(LASTING - Duration::from_secs(60));
    assert_eq!(status(&lasting).await, 200);
    scene.advance(Duration::from_secs(120));
    assert_eq!(status(&lasting).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_an_id_is_stored_once() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let path = format!("/api/projects/{room}/messages");
    let upload = ann.upload("cat.png", crate::files::PNG).await.unwrap().data().unwrap();
    let posted = json!({ "content": "hello", "attachmentIds": [upload["id"]] });
    let posted = ann.post(&format!("/api/rooms/{room}/messages"), posted).await.unwrap().data().unwrap();
    // Stored by another protocol with an attachment, which the body of a client does not repeat.
    let repeated = json!({ "id": posted["id"], "text": "hello" });
    for _ in 0..2 {
        let answer = ann.post(&path, repeated.clone()).await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body["data"]["id"]), (201, &posted["id"]), "{answer:?}");
    }
    let forged = bob.post(&path, repeated).await.unwrap();
    assert!(forged.status.is_client_error(), "{forged:?}");
    assert_refused(&ann.post(&path, json!({ "id": posted["id"], "text": "bye" })).await.unwrap(), 409);
    let stranger = json!({ "id": "m2", "text": "I am", "senderType": "agent", "senderName": "Coder" });
    let stranger = ann.post(&path, stranger).await.unwrap();
    assert_eq!(stranger.body["error"], "senderName is not an agent of yours");
    assert_eq!(ann.history(&room).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_paged_in_both_directions() {
    let scene = Scene::start().await;
    let ann = &scene.admin;
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    let path = format!("/api/projects/{room}/messages");
    for text in ["1", "2", "3"] {
        ann.post(&path, json!({ "text": text })).await.unwrap();
    }
    let page = async |query: &str| ann.get(&format!("{path}?{query}")).await.unwrap().body;
    let texts = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
    };
    let first = page("limit=2").await;
    assert_eq!((texts(&first), &first["meta"]["hasMore"]), (vec!["3".into(), "2".into()], &json!(true)));
    let cursor = first["pagination"]["cursor"].as_str().unwrap();
    assert_eq!(first["pagination"]["links"]["next"], format!("{path}?before={cursor}"));
    let second = page(&format!("before={cursor}")).await;
    assert_eq!((texts(&second), &second["meta"]["cursor"]), (vec!["1".into()], &Value::Null));
    let after = second["data"][0]["createdAt"].as_str().unwrap();
    let newer = page(&format!("after={after}&limit=1")).await;
    assert_eq!((texts(&newer), &newer["meta"]["hasMore"]), (vec!["2".into()], &json!(true)));
    let cursor = newer["meta"]["cursor"].as_str().unwrap();
    assert_eq!(texts(&page(&format!("after={cursor}")).await), ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_both_vocabularies() {
    let scene = Scene::start().await;
    let ann = &scene.admin;
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    let tasks = format!("/api/projects/{room}/tasks");
    let coder = json!({ "projectId": room, "agentName": "Coder" });
    ann.put("/api/agent-registrations", coder).await.unwrap();
    let first = json!({ "title": "Cook", "priority": "high", "assignedAgentName": "coder" });
    let first = ann.post(&tasks, first).await.unwrap().body["data"].take();
    assert_eq!((&first["status"], &first["assignedAgentName"]), (&json!("submitted"), &json!("Coder")));
    let follow_up = json!({ "title": "Serve", "parentTaskId": first["id"], "createdByType": "agent",
                            "createdByName": "Coder" });
    let follow_up = ann.post(&tasks, follow_up).await.unwrap().body["data"].take();
    assert_eq!((&follow_up["parentTaskId"], &follow_up["createdByName"]), (&first["id"], &json!("Coder")));
    let orphan = ann.post(&tasks, json!({ "title": "Serve", "parentTaskId": "none" })).await.unwrap();
    assert_refused(&orphan, 400);
    assert_eq!(orphan.body["error"], "parentTaskId references a non-existent task");

    let path = format!("/api/tasks/{}", first["id"].as_str().unwrap());
    let patch = async |body: Value| {
        let request = ann.request(Method::PATCH, &path).json(&body);
        RestResponse::of(request).await.unwrap().data().unwrap()
    };
    let working = patch(json!({ "status": "working", "priority": "low" })).await;
    assert_eq!(
        (&working["status"], &working["priority"], &working["projectId"], &working["roomId"]),
        (&json!("working"), &json!("low"), &json!(room), &json!(room))
    );
    assert_eq!(patch(json!({ "status": "input_required" })).await["status"], "input_required");
    assert_eq!(patch(json!({ "assignedAgentName": null })).await["status"], "input-required");
    let listed = ann.get(&format!("{tasks}?status=input-required")).await.unwrap().body;
    assert_eq!((&listed["data"][0]["id"], &listed["data"][1]), (&first["id"], &Value::Null));
    let newest = ann.get(&format!("{tasks}?limit=1")).await.unwrap().body;
    assert_eq!((&newest["data"][0]["id"], &newest["meta"]["hasMore"]), (&follow_up["id"], &json!(true)));
    let before = newest["meta"]["cursor"].as_str().unwrap();
    let older = ann.get(&format!("{tasks}?before={before}")).await.unwrap().body;
    assert_eq!(older["data"][0]["id"], first["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_its_own_header_has_the_scopes_of_its_preset() {
    let scene = Scene::start().await;
    let anonymous = RestClient::outsider(scene.url());
    let send = async |key: &str, method: Method, path: &str, body: Value| {
        let request = anonymous.request(method, path).header("x-api-key", key).json(&body);
        RestResponse::of(request).await.unwrap()
    };
    let key = async |body: Value| {
        let created = scene.admin.post("/api/keys", body).await.unwrap().data().unwrap();
        (created["key"].as_str().unwrap().to_owned(), created["scopes"].clone())
    };
    let (reader, scopes) = key(json!({ "name": "reader", "preset": "read-only" })).await;
    assert_eq!(scopes, json!(["read"]));
    let scopes = json!(["messages:read", "tasks:read", "messages:write"]);
    let (writer, scopes) = key(json!({ "name": "writer", "scopes": scopes })).await;
    assert_eq!(scopes, json!(["read", "write"]));
    let project = json!({ "name": "P1" });
    let status = async |key, method, body| send(key, method, "/api/projects", body).await.status.as_u16();
    assert_eq!(status(&reader, Method::GET, Value::Null).await, 200);
    assert_eq!(status(&reader, Method::POST, project.clone()).await, 403);
    assert_eq!(status(&writer, Method::POST, project).await, 201);
    assert_eq!(status("plk_unknown", Method::GET, Value::Null).await, 401);
    assert_eq!(status(scene.admin.token(), Method::GET, Value::Null).await, 401, "not an API key");
}
