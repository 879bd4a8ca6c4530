//! What every operation refuses in the same way, found in the document itself: a new route needs no lines here.

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
    let outsider = RestClient::outsider(scene.url());
    // A key that may nothing of what REST has.
    let (_, key) = make_key(&scene.admin, &["sources"]).await;
    let powerless = scene.admin.with_token(&key);
    for operation in &tour.document.operations {
        let send = async |who: &RestClient, path: &str, body: Body, expected: u16| {
            let request = who.request(operation.method.clone(), path);
            tour.send(&operation.name, body.put(request), expected).await
        };
        let known = path(operation, "unknown");
        if operation.is_signed() {
            send(&outsider, &known, Body::Sample(operation), 401).await;
            send(&powerless, &known, Body::Sample(operation), 403).await;
        }
        if !operation.parameters("path").is_empty() {
            send(&scene.admin, &path(operation, "no%20id"), Body::Sample(operation), 400).await;
            send(&scene.admin, &known, Body::Sample(operation), 404).await;
        }
        if operation.body.is_some() {
            send(&scene.admin, &known, Body::Text("nonsense".into()), 400).await;
            send(&scene.admin, &known, Body::Text("x".repeat(1024 * 1024 + 1)), 413).await;
            send(&scene.admin, &known, Body::Compressed, 415).await;
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
        let request = outsider.request(operation.method.clone(), &operation.path);
        let request = request.header("origin", FOREIGN).header(header, "parlor_rt=something");
        tour.send(name, Body::Sample(operation).put(request), 403).await;
    }
}

/// Bodies that begin and do not go on. All at once, for each takes as long as the hub is patient.
pub async fn bodies_that_stop(tour: &Tour, admin: &RestClient) {
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
        tour.note(&operation.name, &RestResponse { status, headers: Default::default(), body }, &answer.head);
        assert_eq!(status, 408, "{} {answer:?}", operation.name);
    }))
    .await;
}

/// A hub of its own, which counts: and which is set up before that.
pub async fn too_often(tour: &Tour) {
    let data = tempfile::tempdir().unwrap();
    let command = HubCommand::process(PARLOR, data.path()).env_remove("PARLOR_ADMIN_PASSWORD");
    let command = command.env("PARLOR_LIMITS", "on");
    let command = command.env("PARLOR_LOGIN_RATE_LIMIT_MAX", "2").env("PARLOR_REFRESH_RATE_LIMIT_MAX", "1");
    let mut hub = command.start().await.unwrap();
    let token = setup_token(&mut hub).await;
    let outsider = RestClient::outsider(hub.url());
    let account = json!({ "token": token, "username": "first", "password": PASSWORD });
    let signed = tour.tell(&outsider, "POST /api/setup", &[], account.clone(), 200).await;
    tour.tell(&outsider, "POST /api/setup", &[], account.clone(), 404).await;
    tour.tell(&outsider, "POST /api/setup", &[], account, 429).await;
    let login = json!({ "username": "first", "password": PASSWORD });
    tour.tell(&outsider, "POST /api/auth/login", &[], login, 429).await;
    let join = json!({ "token": "none", "username": "second", "password": PASSWORD });
    tour.tell(&outsider, "POST /api/auth/register", &[], join, 429).await;
    let first = outsider.with_token(signed["accessToken"].as_str().unwrap());
    let shown = json!({ "totpToken": "none", "code": "123456" });
    tour.tell(&outsider, "POST /api/auth/verify-totp", &[], shown.clone(), 429).await;
    tour.tell(&first, "POST /api/auth/verify-totp-setup", &[], shown, 429).await;
    tour.tell(&first, "POST /api/auth/disable-totp", &[], json!({ "password": PASSWORD }), 429).await;
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "Another-one-7" });
    tour.tell(&first, "PUT /api/users/me/password", &[], change, 429).await;
    tour.ask(&outsider, "POST /api/auth/refresh", &[], 401).await;
    tour.ask(&outsider, "POST /api/auth/refresh", &[], 429).await;
    // And whoever asks for anything too often.
    let command = command.env("PARLOR_ADMIN_PASSWORD", PASSWORD).env("PARLOR_API_RATE_LIMIT_MAX", "1");
    hub.stop(TEST_TIMEOUT).await.unwrap();
    let hub = command.start().await.unwrap();
    let outsider = RestClient::outsider(hub.url());
    tour.ask(&outsider, "GET /api/health", &[], 200).await;
    for operation in &tour.document.operations {
        let request = outsider.request(operation.method.clone(), &path(operation, "unknown"));
        tour.send(&operation.name, Body::Sample(operation).put(request), 429).await;
    }
}

/// The last of all: the store loses its tables under the hub.
pub async fn without_a_store(tour: &Tour, scene: &Scene) {
    let (_, key) = make_key(&scene.admin, &["read"]).await;
    // To look up a key is the first thing that needs the store.
    let program = scene.admin.with_token(&key);
    lose_tables(scene);
    let broken = tour.document.operations.iter().filter(|operation| operation.documents(503));
    // The state of health comes last, it is what the others found.
    let (health, others): (Vec<_>, Vec<_>) = broken.partition(|operation| operation.path == "/api/health");
    for operation in others.into_iter().chain(health) {
        let request = program.request(operation.method.clone(), &path(operation, "unknown"));
        tour.send(&operation.name, Body::Sample(operation).put(request), 503).await;
    }
}

fn lose_tables(scene: &Scene) {
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    database.pragma_update(None, "foreign_keys", false).unwrap();
    let mut tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables {
        // Some belong to others and go with them.
        let _ = database.execute(&format!("DROP TABLE \"{table}\""), []);
    }
}

enum Body<'a> {
    /// As the operation wants it.
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

/// The path with this in the place of every id, and what must be in the query.
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
