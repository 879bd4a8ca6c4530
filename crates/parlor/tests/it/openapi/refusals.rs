//! Refusals that are common to all operations, derived from the document: a new route needs no code here.

use futures_util::future::join_all;
use parlor_testkit::hub::HubCommand;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use super::document::Operation;
use super::forms::sample;
use super::tour::Tour;
use crate::process::first_admin::setup_token;
use crate::scene::{PARLOR, PASSWORD, Scene, bare, make_key};

const FOREIGN: &str = "http://elsewhere.example";

pub async fn all(tour: &Tour, scene: &Scene) {
    let anonymous = RestClient::outsider(scene.url());
    // The scope `sources` permits no REST operation.
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let without_scope = scene.admin.with_token(&key);
    for operation in &tour.document.operations {
        let send = async |client: &RestClient, path: &str, body: Body, expected: u16| {
            let request = client.request(operation.method.clone(), path);
            tour.send(&operation.name, body.put(request), expected).await
        };
        let unknown_path = path(operation, "unknown");
        if operation.requires_auth() {
            send(&anonymous, &unknown_path, Body::Sample(operation), 401).await;
            send(&without_scope, &unknown_path, Body::Sample(operation), 403).await;
        }
        if !operation.parameters("path").is_empty() {
            send(&scene.admin, &path(operation, "no%20id"), Body::Sample(operation), 400).await;
            send(&scene.admin, &unknown_path, Body::Sample(operation), 404).await;
        }
        if operation.body.is_some() {
            send(&scene.admin, &unknown_path, Body::Text("nonsense".into()), 400).await;
            send(&scene.admin, &unknown_path, Body::Text("x".repeat(1024 * 1024 + 1)), 413).await;
            send(&scene.admin, &unknown_path, Body::Compressed, 415).await;
        }
    }
    for (name, header) in [
        ("POST /api/setup", "x-nothing"),
        ("POST /api/auth/login", "x-nothing"),
        ("POST /api/auth/register", "x-nothing"),
        ("POST /api/auth/verify-totp", "x-nothing"),
        ("POST /api/pairing/exchange", "x-nothing"),
        ("POST /api/auth/refresh", "cookie"),
    ] {
        let operation = tour.document.operation(name);
        let request = anonymous.request(operation.method.clone(), &operation.path);
        let request = request.header("origin", FOREIGN).header(header, "parlor_rt=something");
        tour.send(name, Body::Sample(operation).put(request), 403).await;
    }
}

/// Sends incomplete bodies and expects a timeout (408). All requests run concurrently, because each takes the
/// full body timeout of the hub.
pub async fn stalled_bodies(tour: &Tour, admin: &RestClient) {
    let with_body = tour.document.operations.iter().filter(|operation| operation.body.is_some());
    join_all(with_body.map(async |operation| {
        let head = format!(
            "{} {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 10\r\n\r\n{{",
            operation.method,
            path(operation, "unknown"),
            admin.token()
        );
        let answer = bare(admin.url(), head.as_bytes()).await;
        let body = serde_json::from_str(&answer.body).unwrap_or_default();
        let status = answer.status.try_into().unwrap();
        tour.record(
            &operation.name,
            &RestResponse { status, headers: Default::default(), body },
            &answer.head,
        );
        assert_eq!(status, 408, "{} {answer:?}", operation.name);
    }))
    .await;
}

/// Rate-limit refusals (429), on a hub of its own with limits enabled. Its set-up happens here too, which
/// covers the set-up operation.
pub async fn rate_limited(tour: &Tour) {
    let data = tempfile::tempdir().unwrap();
    let command = HubCommand::process(PARLOR, data.path()).env_remove("PARLOR_ADMIN_PASSWORD");
    let command = command.env("PARLOR_LIMITS", "on");
    let command = command.env("PARLOR_LOGIN_RATE_LIMIT_MAX", "2").env("PARLOR_REFRESH_RATE_LIMIT_MAX", "1");
    let mut hub = command.start().await.unwrap();
    let token = setup_token(&mut hub).await;
    let anonymous = RestClient::outsider(hub.url());
    let account = json!({ "token": token, "username": "first", "password": PASSWORD });
    let session = tour.call_with(&anonymous, "POST /api/setup", &[], account.clone(), 200).await;
    tour.call_with(&anonymous, "POST /api/setup", &[], account.clone(), 404).await;
    tour.call_with(&anonymous, "POST /api/setup", &[], account, 429).await;
    let login = json!({ "username": "first", "password": PASSWORD });
    tour.call_with(&anonymous, "POST /api/auth/login", &[], login, 429).await;
    let join = json!({ "token": "none", "username": "second", "password": PASSWORD });
    tour.call_with(&anonymous, "POST /api/auth/register", &[], join, 429).await;
    let first = anonymous.with_token(session["accessToken"].as_str().unwrap());
    let credentials = json!({ "username": "first", "password": PASSWORD });
    tour.call_with(&anonymous, "POST /api/auth/token", &[], credentials, 429).await;
    let code = json!({ "totpToken": "none", "code": "123456" });
    tour.call_with(&anonymous, "POST /api/auth/verify-totp", &[], code.clone(), 429).await;
    tour.call_with(&first, "POST /api/auth/verify-totp-setup", &[], code, 429).await;
    tour.call_with(&first, "POST /api/auth/disable-totp", &[], json!({ "password": PASSWORD }), 429).await;
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "Another-one-7" });
    tour.call_with(&first, "PUT /api/users/me/password", &[], change, 429).await;
    tour.call(&anonymous, "POST /api/auth/refresh", &[], 401).await;
    tour.call(&anonymous, "POST /api/auth/refresh", &[], 429).await;
    // The general rate limit applies to every operation.
    let command = command.env("PARLOR_ADMIN_PASSWORD", PASSWORD).env("PARLOR_API_RATE_LIMIT_MAX", "1");
    hub.stop(TEST_TIMEOUT).await.unwrap();
    let hub = command.start().await.unwrap();
    let anonymous = RestClient::outsider(hub.url());
    tour.call(&anonymous, "GET /api/health", &[], 200).await;
    for operation in &tour.document.operations {
        let request = anonymous.request(operation.method.clone(), &path(operation, "unknown"));
        tour.send(&operation.name, Body::Sample(operation).put(request), 429).await;
    }
}

/// Store failures (503): drops all tables under the running hub, so this must be the last step.
pub async fn without_a_store(tour: &Tour, scene: &Scene) {
    let (_, key) = make_key(&scene.admin, &["read"]).await;
    // Looking up an API key needs the store, so every request with one fails.
    let key_client = scene.admin.with_token(&key);
    drop_tables(scene);
    let broken = tour.document.operations.iter().filter(|operation| operation.documents(503));
    // Health comes last, because it reports the failures of the other operations.
    let (health, others): (Vec<_>, Vec<_>) = broken.partition(|operation| operation.path == "/api/health");
    for operation in others.into_iter().chain(health) {
        let request = key_client.request(operation.method.clone(), &path(operation, "unknown"));
        tour.send(&operation.name, Body::Sample(operation).put(request), 503).await;
    }
}

fn drop_tables(scene: &Scene) {
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    database.pragma_update(None, "foreign_keys", false).unwrap();
    let mut tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables {
        // Fails for tables that SQLite drops together with another one, such as those of the full-text index.
        let _ = database.execute(&format!("DROP TABLE \"{table}\""), []);
    }
}

enum Body<'a> {
    /// A valid body for the operation.
    Sample(&'a Operation),
    Text(String),
    Compressed,
}

impl Body<'_> {
    fn put(self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match self {
            Self::Sample(operation) => match operation.body.as_ref().map(sample) {
                None | Some(Value::Null) => request,
                Some(body) => request.json(&body),
            },
            Self::Text(text) => request.body(text),
            Self::Compressed => request.header("content-encoding", "gzip").body("{}"),
        }
    }
}

/// The path with every placeholder replaced by `id`, and samples of the required query parameters.
fn path(operation: &Operation, id: &str) -> String {
    let path = operation.path_with(&vec![id; operation.parameters("path").len()]);
    let query = operation.parameters("query").into_iter().filter(|parameter| parameter["required"] == true);
    let query = query.map(|parameter| {
        let value = sample(&parameter["schema"]);
        let value = value.as_str().map_or(value.to_string(), str::to_owned);
        format!("{}={value}", parameter["name"].as_str().unwrap())
    });
    format!("{path}?{}", query.collect::<Vec<_>>().join("&"))
}
