//! `/metrics`: true, well formed, without anything that people said, and not for everybody.

use std::collections::BTreeMap;

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::json;

use crate::process::operating::backup::backup;
use crate::scene::{Scene, assert_refused, bare, make_key};

/// Every sample by its name with labels; every line must be one, or say something about the next ones.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut described = std::collections::BTreeSet::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# TYPE ") {
            let (name, kind) = about.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(described.insert(name.to_owned()), "twice: {line}");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(described.contains(name) || described.contains(family.unwrap_or_default()), "{line}");
            assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    samples
}

async fn read(hub: &str) -> (String, BTreeMap<String, f64>) {
    let response = RestClient::outsider(hub).request(Method::GET, "/metrics").send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    let text = response.text().await.unwrap();
    let found = samples(&text);
    (text, found)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_counted_and_what_is_said_is_not_told() {
    let scene = Scene::start().await;
    let (_, before) = read(scene.url()).await;
    let room = scene.admin.make_room("canary-room", &[]).await.unwrap();
    let person = scene.person("canary-person").await;
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for n in 0..20 {
        client.say_and_wait(&room, "canary-text", &format!("canary-{n}")).await.unwrap();
    }
    let _broker = Broker::connect(scene.admin.url(), scene.admin.token()).await.unwrap();
    let foreign = format!("/api/messages/rooms/{room}?limit=7&canary=canary");
    assert_eq!(person.get(&foreign).await.unwrap().status, 404);
    scene.admin.get("/api/no/canary").await.unwrap();
    scene.admin.request("CANARY".parse().unwrap(), "/api/rooms").send().await.unwrap();

    let (text, after) = read(scene.url()).await;
    let grown = |series: &str| after[series] - before.get(series).copied().unwrap_or_default();
    assert!(grown("parlor_commands_total{outcome=\"done\"}") >= 22.0, "{text}");
    assert!(grown("parlor_commit_seconds_count") >= 20.0, "each was awaited: {text}");
    assert_eq!(grown("parlor_answer_seconds_count"), grown("parlor_answer_seconds_bucket{le=\"+Inf\"}"));
    assert!(after["parlor_head_seq"] >= 20.0 && after["parlor_told_seq"] <= after["parlor_head_seq"]);
    assert_eq!(after["parlor_sockets{door=\"/ws/client\"}"], 1.0, "{text}");
    assert_eq!(after["parlor_sockets{door=\"/ws/broker\"}"], 1.0, "{text}");
    assert_eq!((after["parlor_healthy"], after["parlor_commands_waiting"]), (1.0, 0.0));
    assert!(after["parlor_database_bytes"] > 0.0 && after["parlor_journal_bytes"] > 0.0, "{text}");
    let asked = |method: &str, route: &str, status: u16| {
        let series = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        after.get(&format!("parlor_http_requests_total{{{series}}}")).copied().unwrap_or_default()
    };
    assert_eq!(asked("GET", "/api/messages/rooms/{id}", 404), 1.0, "{text}");
    assert_eq!(asked("POST", "/api/rooms", 201), 1.0, "{text}");
    assert_eq!(asked("other", "/api/rooms", 405), 1.0, "{text}");
    for secret in ["canary", "CANARY", &room, scene.admin.token(), person.user_id()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    if cfg!(target_os = "linux") {
        assert!(after["process_resident_memory_bytes"] > 1e6 && after["process_open_fds"] > 5.0, "{text}");
        assert!(after["process_max_fds"] >= after["process_open_fds"], "{text}");
    }
    drop(client);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_backup_has_its_time() {
    const SERIES: &str = "parlor_last_backup_timestamp_seconds";
    let scene = Scene::start().await;
    assert!(!read(scene.url()).await.1.contains_key(SERIES), "none was made");
    let began = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as f64;
    let elsewhere = tempfile::tempdir().unwrap();
    backup(scene.data(), &elsewhere.path().join("backup.tar")).await;
    let made = read(scene.url()).await.1[SERIES];
    assert!(made >= began && made <= began + 3600.0, "{began}: {made}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_for_this_machine_and_for_keys_made_for_it() {
    let scene = Scene::start().await;
    let ask = async |person: &RestClient, header: Option<(&str, &str)>| {
        let request = person.request(Method::GET, "/metrics");
        let request = header.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        RestResponse::of(request).await.unwrap()
    };
    let outsider = RestClient::outsider(scene.url());
    for header in [
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("Via", "1.1 proxy"),
        ("Host", "chat.example.org"),
        ("Origin", "https://evil.example"),
    ] {
        assert_refused(&ask(&outsider, Some(header)).await, 401);
    }
    let old = bare(scene.url(), b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").await;
    assert_eq!(old.status, 401, "a proxy that was not told to say so: {old:?}");

    let far = Some(("X-Forwarded-For", "192.0.2.7"));
    let (_, key) = make_key(&scene.admin, &["metrics"]).await;
    let watcher = outsider.with_token(&key);
    assert_eq!(ask(&watcher, far).await.status, 200);
    assert_refused(&watcher.get("/api/rooms").await.unwrap(), 403);
    let (_, key) = make_key(&scene.admin, &["read", "write"]).await;
    assert_refused(&ask(&outsider.with_token(&key), far).await, 403);
    assert_eq!(ask(&scene.admin, far).await.status, 200);
    let person = scene.person("somebody").await;
    assert_refused(&ask(&person, far).await, 403);
    let body = json!({ "name": "mine", "scopes": ["metrics"] });
    assert_refused(&person.post("/api/keys", body).await.unwrap(), 403);
}
