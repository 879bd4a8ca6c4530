//! `/metrics`: correct counts, valid Prometheus format, no user content, and restricted access.

use std::collections::BTreeMap;

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::json;

use crate::process::operating::backup::backup;
use crate::scene::{Scene, assert_refused, bare, make_key};

/// Parses the Prometheus text format into samples by series name with labels. Panics on a line that is
/// neither a `# HELP` or `# TYPE` comment nor a sample of the metric declared last: all lines of a metric must be
/// together.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut declared, mut newest) = (std::collections::BTreeSet::new(), "");
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(declaration) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declaration.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(declared.insert(name.to_owned()), "duplicate: {line}");
            newest = name;
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            assert!(name == newest || family == Some(newest), "{line}");
            assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "duplicate: {line}");
        }
    }
    samples
}

async fn read(hub: &str) -> (String, BTreeMap<String, f64>) {
    let response = RestClient::outsider(hub).request(Method::GET, "/metrics").send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    let text = response.text().await.unwrap();
    let series = samples(&text);
    (text, series)
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_activity_and_contain_no_user_content() {
    let scene = Scene::start().await;
    let (_, before) = read(scene.url()).await;
    let room = scene.admin.make_room("canary-room", &[]).await.unwrap();
    let user = scene.person("canary-person").await;
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for n in 0..20 {
        client.say_and_wait(&room, "canary-text", &format!("canary-{n}")).await.unwrap();
    }
    let _broker = Broker::connect(scene.admin.url(), scene.admin.token()).await.unwrap();
    let foreign_room = format!("/api/messages/rooms/{room}?limit=7&canary=canary");
    assert_eq!(user.get(&foreign_room).await.unwrap().status, 404);
    scene.admin.get("/api/no/canary").await.unwrap();
    scene.admin.request("CANARY".parse().unwrap(), "/api/rooms").send().await.unwrap();

    let (text, after) = read(scene.url()).await;
    let increase = |series: &str| after[series] - before.get(series).copied().unwrap_or_default();
    assert!(increase("parlor_commands_total{outcome=\"done\"}") >= 22.0, "{text}");
    assert!(
        increase("parlor_commit_seconds_count") >= 20.0,
        "each message was awaited, so each has its own commit: {text}"
    );
    assert_eq!(
        increase("parlor_answer_seconds_count"),
        increase("parlor_answer_seconds_bucket{le=\"+Inf\"}")
    );
    assert!(after["parlor_head_seq"] >= 20.0 && after["parlor_told_seq"] <= after["parlor_head_seq"]);
    assert_eq!(after["parlor_sockets{endpoint=\"/ws/client\"}"], 1.0, "{text}");
    assert_eq!(after["parlor_sockets{endpoint=\"/ws/broker\"}"], 1.0, "{text}");
    assert_eq!((after["parlor_healthy"], after["parlor_commands_waiting"]), (1.0, 0.0));
    assert!(after["parlor_database_bytes"] > 0.0 && after["parlor_journal_bytes"] > 0.0, "{text}");
    let request_count = |method: &str, route: &str, status: u16| {
        let series = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        after.get(&format!("parlor_http_requests_total{{{series}}}")).copied().unwrap_or_default()
    };
    assert_eq!(request_count("GET", "/api/messages/rooms/{id}", 404), 1.0, "{text}");
    assert_eq!(request_count("POST", "/api/rooms", 201), 1.0, "{text}");
    assert_eq!(request_count("other", "/api/rooms", 405), 1.0, "{text}");
    for secret in ["canary", "CANARY", &room, scene.admin.token(), user.user_id()] {
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
async fn the_last_backup_is_reported_with_its_time() {
    const SERIES: &str = "parlor_last_backup_timestamp_seconds";
    let scene = Scene::start().await;
    assert!(!read(scene.url()).await.1.contains_key(SERIES), "no backup was created yet");
    let start = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as f64;
    let directory = tempfile::tempdir().unwrap();
    backup(scene.data(), &directory.path().join("backup.tar")).await;
    let timestamp = read(scene.url()).await.1[SERIES];
    assert!(timestamp >= start && timestamp <= start + 3600.0, "{start}: {timestamp}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_available_locally_to_admins_and_to_keys_with_the_metrics_scope() {
    let scene = Scene::start().await;
    let request_metrics = async |user: &RestClient, header: Option<(&str, &str)>| {
        let request = user.request(Method::GET, "/metrics");
        let request = header.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        RestResponse::of(request).await.unwrap()
    };
    let anonymous = RestClient::outsider(scene.url());
    for header in [
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Real-IP", "127.0.0.1"),
        ("Via", "1.1 proxy"),
        ("Host", "chat.example.org"),
        ("Origin", "https://evil.example"),
    ] {
        assert_refused(&request_metrics(&anonymous, Some(header)).await, 401);
    }
    let http_1_0 = bare(scene.url(), b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").await;
    assert_eq!(http_1_0.status, 401, "HTTP/1.0 may come from a proxy that adds no headers: {http_1_0:?}");

    let remote = Some(("X-Forwarded-For", "192.0.2.7"));
    let (_, key) = make_key(&scene.admin, &["metrics"]).await;
    let key_client = anonymous.with_token(&key);
    assert_eq!(request_metrics(&key_client, remote).await.status, 200);
    assert_refused(&key_client.get("/api/rooms").await.unwrap(), 403);
    let (_, key) = make_key(&scene.admin, &["read", "write"]).await;
    assert_refused(&request_metrics(&anonymous.with_token(&key), remote).await, 403);
    assert_eq!(request_metrics(&scene.admin, remote).await.status, 200);
    let user = scene.person("somebody").await;
    assert_refused(&request_metrics(&user, remote).await, 403);
    let body = json!({ "name": "mine", "scopes": ["metrics"] });
    assert_refused(&user.post("/api/keys", body).await.unwrap(), 403);
}
