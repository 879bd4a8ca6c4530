//! Tests that secrets appear in no log, error or listing, and are stored only as hashes.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::hub::HubCommand;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::Socket;
use reqwest::Method;
use serde_json::json;

use crate::scene::{PARLOR, Scene, assert_refused, bytes_in, connect, contains, make_key, send_text};
use crate::sign_in::second_factor::Device;

const ADMIN: &str = "Canary-admin-1";
const PERSON: &str = "Canary-person-2";
const CHANGED: &str = "Canary-changed-3";
const WRONG: &str = "Canary-wrong-4";
const TEXT: &str = "canary in a message";
const EDITED: &str = "canary in an edit";
const PAYLOAD: &str = "canary in a payload";
const TOKEN_SECRET: &str = "canary-signing-secret-of-thirty-two-bytes";

#[tokio::test(flavor = "multi_thread")]
async fn secrets_appear_in_no_log_even_at_trace_level() {
    for format in ["text", "json"] {
        let mut scene = Canaries::start(format).await;
        scene.use_secrets().await;
        scene.hub.stop(Duration::from_secs(10)).await.unwrap();
        let printed = format!("{}{}", scene.hub.stdout(), scene.hub.log());
        assert!(scene.hub.log().contains("answered"), "the log is not empty: {}", scene.hub.log());
        let config = tokio::process::Command::new(PARLOR)
            .args(["config", "show", "--data"])
            .arg(scene.data.path())
            .env("PARLOR_TOKEN_SECRET", TOKEN_SECRET)
            .env("PARLOR_ADMIN_PASSWORD", ADMIN)
            .output()
            .await
            .unwrap();
        let shown = String::from_utf8(config.stdout).unwrap();
        assert!(shown.contains("token_secret"), "{shown}");
        let stored = bytes_in(scene.data.path());
        for canary in &scene.canaries {
            assert!(!scene.responses.contains(canary.as_str()), "{canary} is in a response");
            assert!(!shown.contains(canary.as_str()), "{canary} is in the printed settings");
            let is_content = [TEXT, EDITED, PAYLOAD].contains(&canary.as_str());
            assert!(is_content || !contains(&stored, canary), "{canary} is stored on disk");
            let line = printed.lines().find(|line| line.contains(canary.as_str()));
            assert_eq!(line, None, "{canary} in the log as {format}");
        }
    }
}

/// A hub, and the secrets that were used with it.
struct Canaries {
    hub: parlor_testkit::hub::Hub,
    data: tempfile::TempDir,
    canaries: Vec<String>,
    /// Responses of the hub to its admin after all secrets were used.
    responses: String,
}

impl Canaries {
    async fn start(format: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let command = HubCommand::process(PARLOR, data.path())
            .env("PARLOR_ADMIN_PASSWORD", ADMIN)
            .env("PARLOR_TOKEN_SECRET", TOKEN_SECRET)
            .env("PARLOR_LOG_LEVEL", "trace")
            .env("PARLOR_LOG_FORMAT", format);
        let canaries = [ADMIN, PERSON, CHANGED, WRONG, TEXT, EDITED, PAYLOAD, TOKEN_SECRET];
        let hub = command.start().await.unwrap();
        Self { hub, data, canaries: canaries.map(str::to_owned).to_vec(), responses: String::new() }
    }

    /// Uses an invitation, a challenge, a TOTP secret and backup codes, each with success and failure.
    /// Returns them.
    async fn use_account_secrets(&self, admin: &RestClient) -> (String, String, String, Vec<String>) {
        let outsider = RestClient::outsider(self.hub.url());
        let created = admin.post("/api/invites", json!({})).await.unwrap().data().unwrap();
        let invitation = created["token"].as_str().unwrap().to_owned();
        let account = json!({ "token": invitation, "username": "joan", "password": PERSON });
        outsider.post("/api/auth/register", account.clone()).await.unwrap().data().unwrap();
        assert_refused(&outsider.post("/api/auth/register", account).await.unwrap(), 404);
        let joan = self.hub.sign_in("joan", PERSON).await.unwrap();
        let offered = joan.post("/api/auth/setup-totp", json!({})).await.unwrap().data().unwrap();
        let secret = offered["secret"].as_str().unwrap().to_owned();
        let code = json!({ "code": Device::new(&secret).code(0) });
        let codes = joan.post("/api/auth/verify-totp-setup", code).await.unwrap().data().unwrap();
        let codes = codes["backupCodes"].as_array().unwrap().iter();
        let codes: Vec<String> = codes.map(|code| code.as_str().unwrap().to_owned()).collect();
        let login = json!({ "username": "joan", "password": PERSON });
        let required = outsider.post("/api/auth/login", login).await.unwrap().data().unwrap();
        let challenge = required["totpToken"].as_str().unwrap().to_owned();
        for status in [200, 401] {
            let body = json!({ "totpToken": challenge, "code": codes[0] });
            assert_eq!(outsider.post("/api/auth/verify-totp", body).await.unwrap().status, status);
        }
        (invitation, challenge, secret, codes)
    }

    /// Uses every kind of secret over every protocol, with success and failure.
    async fn use_secrets(&mut self) {
        let url = self.hub.url().to_owned();
        let outsider = RestClient::outsider(&url);
        let sign_in = json!({ "username": "admin", "password": ADMIN });
        let signed = outsider.post("/api/auth/login", sign_in).await.unwrap().data().unwrap();
        let refresh = signed["refreshToken"].as_str().unwrap().to_owned();
        let admin = self.hub.sign_in("admin", ADMIN).await.unwrap();
        let ada = admin.make_user("ada", PERSON).await.unwrap();
        let wrong = json!({ "username": "ada", "password": WRONG });
        assert_refused(&outsider.post("/api/auth/login", wrong).await.unwrap(), 401);
        let body = json!({ "refreshToken": refresh });
        let renewed = outsider.post("/api/auth/refresh", body.clone()).await.unwrap().data().unwrap();
        let newer = renewed["refreshToken"].as_str().unwrap().to_owned();
        let again = json!({ "refreshToken": newer });
        outsider.post("/api/auth/refresh", again).await.unwrap().data().unwrap();
        assert_refused(&outsider.post("/api/auth/refresh", body).await.unwrap(), 401);
        let (_, key) = make_key(&admin, &["read", "write", "agents", "sources"]).await;
        let room = admin.make_room("a room", &[&ada]).await.unwrap();
        let message = admin.post_message(&room, TEXT).await.unwrap();
        let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
        admin.put(&path, json!({ "content": EDITED })).await.unwrap().data().unwrap();
        admin.get(&format!("/api/messages/rooms/{room}?after=0&token={key}")).await.unwrap().data().unwrap();
        let mut client = Client::connect(&ada).await.unwrap();
        client.join(&room).await.unwrap();
        client.say_and_wait(&room, TEXT, "c1").await.unwrap();
        let mut agents = Broker::connect(&url, &key).await.unwrap();
        agents.create_agent("helper", &["slack/**"]).await.unwrap();
        agents.listen("helper").await.unwrap();
        agents.route("bridge", "slack/x", json!({ "text": PAYLOAD })).await.unwrap();
        agents.pushed().await.unwrap();
        let bearer = format!("Bearer {key}");
        Socket::open(&url, "/ws/broker", &[("authorization", &bearer)]).await.unwrap();
        let body = json!({ "currentPassword": PERSON, "newPassword": CHANGED });
        assert_eq!(ada.put("/api/users/me/password", body).await.unwrap().status, 200);
        // A connection that is closed in the middle of a secret.
        let mut broken = connect(&url).await;
        let half =
            format!("POST /api/auth/login HTTP/1.1\r\nContent-Length: 999\r\n\r\n{{\"password\":\"{WRONG}");
        tokio::io::AsyncWriteExt::write_all(&mut broken, half.as_bytes()).await.unwrap();
        drop(broken);
        let (invitation, challenge, device, codes) = self.use_account_secrets(&admin).await;
        self.canaries.extend([invitation, challenge]);
        // Six digits may occur by chance, so the TOTP secret is searched for instead of the codes.
        self.canaries.push(device);
        self.canaries.extend(codes);
        let sent = admin.upload("notes.txt", b"notes").await.unwrap().data().unwrap();
        let path = format!("/api/upload/{}/link", sent["id"].as_str().unwrap());
        let link =
            admin.post(&path, json!({})).await.unwrap().data().unwrap()["url"].as_str().unwrap().to_owned();
        assert_eq!(outsider.get(&link).await.unwrap().status, 200);
        self.canaries.push(link.rsplit_once('=').unwrap().1.to_owned());
        let audit = admin.get("/api/audit?limit=200").await.unwrap();
        assert!(audit.body.to_string().contains("second_factor_on"), "{audit:?}");
        let mut responses = audit.body.to_string();
        for path in
            ["/api/settings", "/api/admin/settings", "/api/invites", "/api/users", "/api/keys", "/metrics"]
        {
            responses += &admin.request(Method::GET, path).send().await.unwrap().text().await.unwrap();
        }
        self.responses.push_str(&responses);
        self.canaries.extend([refresh, newer, key]);
        self.canaries.extend([admin.token().to_owned(), ada.token().to_owned()]);
        let renewed = renewed["accessToken"].as_str().unwrap().to_owned();
        self.canaries.push(renewed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setup_token_is_printed_once_and_not_logged() {
    let data = tempfile::tempdir().unwrap();
    let command = HubCommand::process(PARLOR, data.path())
        .env_remove("PARLOR_ADMIN_PASSWORD")
        .env("PARLOR_LOG_LEVEL", "trace");
    let mut hub = command.start().await.unwrap();
    let token = crate::process::first_admin::setup_token(&mut hub).await;
    let outsider = RestClient::outsider(hub.url());
    let body = json!({ "token": token, "username": "first", "password": PERSON });
    assert_eq!(outsider.post("/api/setup", body.clone()).await.unwrap().status, 200);
    assert_refused(&outsider.post("/api/setup", body).await.unwrap(), 404);
    hub.stop(Duration::from_secs(10)).await.unwrap();
    assert!(!hub.log().contains(&token), "{}", hub.log());
    assert!(!hub.log().contains(PERSON), "{}", hub.log());
    assert_eq!(hub.stdout().matches(&token).count(), 1, "{}", hub.stdout());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_response_never_contains_the_input() {
    let scene = Scene::process().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let outsider = RestClient::outsider(scene.url());
    let canary = "Canary-8-in-a-body";
    for (method, path) in [
        (Method::POST, "/api/auth/login".to_owned()),
        (Method::POST, "/api/auth/refresh".to_owned()),
        (Method::POST, "/api/setup".to_owned()),
        (Method::POST, "/api/users".to_owned()),
        (Method::PUT, "/api/users/me/password".to_owned()),
        (Method::PUT, "/api/users/me".to_owned()),
        (Method::POST, "/api/keys".to_owned()),
        (Method::POST, "/api/invites".to_owned()),
        (Method::POST, "/api/auth/register".to_owned()),
        (Method::POST, "/api/auth/verify-totp".to_owned()),
        (Method::POST, "/api/auth/verify-totp-setup".to_owned()),
        (Method::POST, "/api/auth/disable-totp".to_owned()),
        (Method::POST, "/api/settings".to_owned()),
        (Method::PUT, "/api/admin/settings".to_owned()),
        (Method::POST, "/api/rooms".to_owned()),
        (Method::POST, format!("/api/rooms/{room}/messages")),
    ] {
        for body in [
            format!(r#""{canary}""#),
            format!(r#"["{canary}"]"#),
            format!(r#"{{"username":"{canary}""#),
            format!(r#"{{"{canary}":1}}"#),
            format!(
                r#"{{"username":"x","password":["{canary}"],"name":["{canary}"],"content":["{canary}"]}}"#
            ),
            format!(
                r#"{{"username":"x","password":"{canary}","role":"{canary}","scopes":"{canary}","name":"x"}}"#
            ),
            format!(
                r#"{{"token":"{canary}","username":"x","password":"{canary}","refreshToken":"{canary}"}}"#
            ),
            r#"{"username":"x","password":8888777766,"name":8888777766,"content":8888777766}"#.to_owned(),
            format!(r#"{{"name":"x","memberIds":"{canary}","broadcastMode":"{canary}"}}"#),
            format!(
                r#"{{"totpToken":"{canary}","code":"{canary}","note":["{canary}"],"hubName":["{canary}"]}}"#
            ),
        ] {
            let answer = send_text(&scene.admin, method.clone(), &path, body.clone()).await;
            if answer.status.is_success() {
                continue;
            }
            let response = answer.body.to_string();
            assert!(
                !response.contains(canary) && !response.contains("8888777766"),
                "{path} {body}: {response}"
            );
            assert!(!response.contains("struct "), "internal type names are not exposed: {response}");
        }
    }
    for (path, header) in [("/api/users/me", "authorization"), ("/api/auth/refresh", "cookie")] {
        let request =
            outsider.request(Method::POST, path).header(header, format!("Bearer parlor_rt={canary}"));
        let answer = RestResponse::of(request).await.unwrap();
        assert!(!answer.body.to_string().contains(canary), "{answer:?}");
    }
    let mut socket = Socket::open(scene.url(), "/ws/client", &[]).await.unwrap();
    socket.send(&json!({ "type": "client:auth", "token": canary })).await.unwrap();
    assert!(!socket.wait_for_type("server:auth_result").await.unwrap().to_string().contains(canary));
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    for frame in [
        json!({ "type": "agent.create", "id": "x", "config": canary }),
        json!({ "type": "msg.route", "from": "x", "path": [canary] }),
        json!({ "type": "msg.route", "from": "x", "path": "p", "payload": canary }),
        json!({ "type": "auth", "token": [canary] }),
    ] {
        let reply = broker.ask(frame.clone()).await.unwrap();
        assert!(!reply.to_string().contains(canary), "{frame}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_stored_only_as_hashes() {
    let scene = Scene::process().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&ada, &["read"]).await;
    let sign_in = json!({ "username": "ada", "password": crate::scene::PASSWORD });
    let outsider = RestClient::outsider(scene.url());
    let signed = outsider.post("/api/auth/login", sign_in).await.unwrap().data().unwrap();
    let stored = bytes_in(scene.data());
    assert!(contains(&stored, "ada") && contains(&stored, "$argon2id$"), "the search covers the database");
    let admin = parlor_testkit::hub::PASSWORD;
    let tokens = [&signed["refreshToken"], &signed["accessToken"]].map(|token| token.as_str().unwrap());
    for secret in [&key, admin, crate::scene::PASSWORD, tokens[0], tokens[1]] {
        assert!(!contains(&stored, secret), "{secret} is stored on disk");
    }
    let listed = ada.get("/api/keys").await.unwrap().body.to_string();
    assert!(!listed.contains(&key) && !listed.contains("secret"), "{listed}");
    let users = scene.admin.get("/api/users").await.unwrap().body.to_string();
    assert!(!users.contains("argon2"), "{users}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operating_system_user_of_the_hub_can_read_its_files() {
    let parent = tempfile::tempdir().unwrap();
    let made = parent.path().join("made-by-parlor");
    let found = parent.path().join("made-by-hand");
    std::fs::create_dir(&found).unwrap();
    std::fs::set_permissions(&found, PermissionsExt::from_mode(0o755)).unwrap();
    for data in [&made, &found] {
        let hub = HubCommand::process(PARLOR, data).start().await.unwrap();
        hub.admin().await.unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        if data == &made {
            assert_eq!(mode(data), 0o700);
        }
        let names: Vec<String> = std::fs::read_dir(data)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let owners_only = if entry.path().is_dir() { 0o700 } else { 0o600 };
                assert_eq!(mode(&entry.path()), owners_only, "{name}");
                name
            })
            .collect();
        for name in ["parlor.db", "parlor.db-wal", "token.key", "control.sock", "parlor.lock"] {
            assert!(names.iter().any(|found| found == name), "{names:?}");
        }
    }
}
