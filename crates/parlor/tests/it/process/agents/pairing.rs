//! Tests of pairing a machine by a code: the code works once, for ten minutes, and grants only hosting.

use super::{TestGateway, parlor, registered};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, make_key};
use parlor_testkit::broker::Broker;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::gateway_process::GatewayLauncher;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

async fn create_code(person: &RestClient) -> Value {
    person.post("/api/pairing", json!({})).await.unwrap().data().unwrap()
}

async fn exchange(url: &str, code: &str) -> parlor_testkit::rest::RestResponse {
    RestClient::outsider(url)
        .post("/api/pairing/exchange", json!({ "code": code, "name": "laptop" }))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paired_machine_hosts_agents_without_a_password() {
    let mut room = Room::start().await;
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let code = create_code(&room.alice).await;
    let typed = code["code"].as_str().unwrap().to_lowercase().replace('-', " ");
    assert!(code["command"].as_str().unwrap().starts_with("parlor join "), "{code}");
    let url = room.scene.url().to_owned();
    let join = ["join", &typed, "--server", &url, "--data", data.to_str().unwrap()];
    let (joined, printed) = parlor(&join).await;
    assert!(joined && printed.contains("Paired with http://127.0.0.1"), "{printed}");
    assert!(!printed.contains("plk_"), "{printed}");
    let kept = data.join("joined.json");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(data.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let (again, printed) = parlor(&join).await;
    assert!(!again && printed.contains("rejected the pairing code"), "{printed}");

    let settings = "[[agent]]\nname = 'echo'\nkind = 'command'\ncommand = ['echo', 'here']\n";
    let gateway_launcher = GatewayLauncher::new(crate::scene::PARLOR, place.path(), settings);
    let _gateway = gateway_launcher.start().await.unwrap();
    let id = registered(&room.alice, "echo").await;
    room.add(&id).await;
    room.say("@echo where are you?").await;
    assert_eq!(room.reply().await["content"], "here\n");
    let keys = room.alice.get("/api/keys").await.unwrap().data().unwrap();
    assert_eq!(keys[0]["scopes"], json!(["hosting"]));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_newest_code_works_and_only_once() {
    let scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let (first, newest) = (create_code(&alice).await, create_code(&alice).await);
    let others = create_code(&bob).await;
    assert_refused(&exchange(scene.url(), first["code"].as_str().unwrap()).await, 404);
    for wrong in ["", "BBBB-BBBB-BBBB", "x", "\u{0}"] {
        assert_refused(&exchange(scene.url(), wrong).await, 404);
    }
    let code = newest["code"].as_str().unwrap();
    let at_once = (0..10).map(|_| exchange(scene.url(), code));
    let answers = futures_util::future::join_all(at_once).await;
    let taken: Vec<_> = answers.into_iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(taken.len(), 1, "{taken:?}");
    let key = taken.into_iter().next().unwrap().data().unwrap();
    assert_eq!((&key["name"], &key["scopes"]), (&json!("laptop"), &json!(["hosting"])));

    // The key allows only hosting: no reading, no writing, no acting as an agent over the broker, no new
    // keys.
    let program = alice.with_token(key["key"].as_str().unwrap());
    for path in ["/api/rooms", "/api/users/me", "/api/keys", "/api/messages/recent"] {
        assert_refused(&program.get(path).await.unwrap(), 403);
    }
    for (path, body) in [
        ("/api/pairing", json!({})),
        ("/api/keys", json!({ "name": "more", "scopes": ["read"] })),
        ("/api/rooms", json!({ "name": "mine" })),
    ] {
        assert_refused(&program.post(path, body).await.unwrap(), 403);
    }
    let mut gateway = Gateway::connect(&program, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    let mut broker = Broker::connect(scene.url(), program.token()).await.unwrap();
    for frame in [
        json!({ "type": "agent.create", "id": "more" }),
        json!({ "type": "agent.list" }),
        json!({ "type": "agent.get", "id": "coder" }),
        json!({ "type": "agent.delete", "id": "coder" }),
        json!({ "type": "msg.listen", "agentId": "coder" }),
        json!({ "type": "msg.receive", "agentId": "coder" }),
        json!({ "type": "msg.route", "from": "coder", "path": "agent/coder" }),
    ] {
        let reply = broker.ask(frame.clone()).await.unwrap();
        assert_eq!(reply["error"], "Not allowed", "{frame}: {reply}");
    }
    assert_refused(&program.delete("/api/agents/gateways/g1").await.unwrap(), 403);
    let (_, wider) = make_key(&alice, &["agents"]).await;
    Gateway::connect(&alice.with_token(&wider), "g2").await.expect("who may act as an agent may host it");

    // A password change revokes pairing codes that were created before.
    let body = json!({ "currentPassword": crate::scene::PASSWORD, "newPassword": "Another-sail-10" });
    bob.put("/api/users/me/password", body).await.unwrap();
    assert_refused(&exchange(scene.url(), others["code"].as_str().unwrap()).await, 404);
    let page = scene.admin.get("/api/audit?action=key_created").await.unwrap();
    assert!(page.body.to_string().contains("by a pairing code"), "{page:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guessed_codes_count_towards_the_sign_in_rate_limit() {
    let settings = [("PARLOR_LIMITS", "on"), ("PARLOR_LOGIN_RATE_LIMIT_MAX", "8")];
    let scene = Scene::with(&settings).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(exchange(scene.url(), "BBBB-BBBB-BBBB").await.status.as_u16());
    }
    assert_eq!(answers[0], 404, "{answers:?}");
    assert_eq!(answers[9], 429, "{answers:?}");
    let body = json!({ "username": "admin", "password": "Wrong-password-1" });
    let sign_in = RestClient::outsider(scene.url()).post("/api/auth/login", body).await.unwrap();
    assert_eq!(sign_in.status, 429, "pairing and sign-in attempts are counted together");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_passed_as_an_argument() {
    let room = Room::start().await;
    let hosted = TestGateway::new(room.scene.url(), &[("echo", "cat")]);
    let gateway = hosted.gateway_launcher.start().await.unwrap();
    let id = gateway.process_id().unwrap();
    let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap();
    assert!(!line.contains(crate::scene::PASSWORD), "{line}");
    let (done, help) = parlor(&["gateway", "--help"]).await;
    assert!(done && !help.contains("--password ") && !help.contains("--key "), "{help}");
    let (done, printed) =
        parlor(&["gateway", "--server", "http://a:b@127.0.0.1", "--agent", "e=command", "--", "cat"]).await;
    assert!(!done && printed.contains("must not contain a password"), "{printed}");
    room.scene.ends_well().await;
}
