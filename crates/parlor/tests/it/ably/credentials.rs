//! Keys, token requests, JWTs and revocations over HTTP, and the rejection of Ably credentials by other protocols.

use super::{key, token, with_key};
use crate::scene::Scene;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use parlor_testkit::ably::Ably;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_wire::ably::auth::TokenRequest;
use parlor_wire::ably::frames::{Action, Format};
use parlor_wire::ably::presence::PresenceAction;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn millis() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// A signed request of a token with this key.
fn token_request(key: &str, capability: Option<&str>, nonce: &str) -> TokenRequest {
    let (name, secret) = key.split_once(':').unwrap();
    let mut request = TokenRequest {
        key_name: name.into(),
        ttl: Some(60_000),
        capability: capability.map(Into::into),
        client_id: Some("bob".into()),
        timestamp: Some(millis()),
        nonce: Some(nonce.into()),
        mac: None,
    };
    request.mac = Some(request.sign(secret));
    request
}

/// Posts to a route of the key, with basic authentication if a key is given.
async fn post(url: &str, path: &str, basic: Option<&str>, body: &Value) -> RestResponse {
    let outsider = RestClient::outsider(url);
    let mut request = outsider.request(Method::POST, path).json(body);
    if let Some(key) = basic {
        request = request.header("authorization", format!("Basic {}", BASE64_STANDARD.encode(key)));
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
    RestResponse { status, headers, body }
}

async fn request_token(url: &str, request: &TokenRequest) -> RestResponse {
    let path = format!("/keys/{}/requestToken", request.key_name);
    post(url, &path, None, &serde_json::to_value(request).unwrap()).await
}

#[track_caller]
fn assert_error(response: &RestResponse, status: u16, code: u32) {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.body["error"]["code"], code, "{response:?}");
    assert_eq!(response.headers["content-type"], "application/json");
    assert_eq!(response.headers["x-ably-errorcode"], code.to_string());
}

/// Code of the error with which the hub refuses a connection.
async fn refused(url: &str, query: &[(&str, &str)]) -> u32 {
    Ably::open(url, Format::Json, query).await.unwrap().error().await.unwrap().code
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_gets_one_token_within_the_capability_of_the_key() {
    let scene = Scene::start().await;
    let url = scene.url();
    let key = key(&scene.admin, json!({ "chat:*": ["publish", "subscribe"] })).await;
    let request = token_request(&key, Some(r#"{"chat:a":["subscribe","history"]}"#), "0123456789abcdef");
    let granted = request_token(url, &request).await;
    assert_eq!(granted.status, 201, "{granted:?}");
    assert_eq!(granted.body["capability"], r#"{"chat:a":["subscribe"]}"#);
    assert_eq!(granted.body["clientId"], "bob");
    assert_eq!(granted.body["keyName"], *key.split_once(':').unwrap().0);
    let lifetime = granted.body["expires"].as_i64().unwrap() - granted.body["issued"].as_i64().unwrap();
    assert_eq!(lifetime, 60_000);
    let token = granted.body["token"].as_str().unwrap();
    let mut client = Ably::connect(url, Format::Json, &[("access_token", token)]).await.unwrap();
    client.attach("chat:a").await.unwrap();
    assert_eq!(refused(url, &[("access_token", token), ("clientId", "eve")]).await, 40102);

    assert_error(&request_token(url, &request).await, 401, 40105);
    let altered = TokenRequest { capability: None, ..request.clone() };
    assert_error(&request_token(url, &altered).await, 401, 40101);
    let wider = token_request(&key, Some(r#"{"other":["*"]}"#), "1123456789abcdef");
    assert_error(&request_token(url, &wider).await, 401, 40160);
    let mut old = token_request(&key, None, "2123456789abcdef");
    old.timestamp = Some(millis() - 16 * 60 * 1000);
    old.mac = Some(old.sign(key.split_once(':').unwrap().1));
    assert_error(&request_token(url, &old).await, 401, 40104);
    let unknown = token_request("parlor.unknown:secret", None, "3123456789abcdef");
    assert_error(&request_token(url, &unknown).await, 401, 40101);
    let unknown = token_request("other.unknown:secret", None, "3123456789abcdef");
    assert_error(&request_token(url, &unknown).await, 404, 40400);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_mac_needs_basic_authentication_with_the_key() {
    let scene = Scene::start().await;
    let url = scene.url();
    let (key, other) =
        (key(&scene.admin, json!({ "*": ["*"] })).await, key(&scene.admin, json!({ "*": ["*"] })).await);
    let name = key.split_once(':').unwrap().0;
    let (path, body) = (format!("/keys/{name}/requestToken"), json!({ "keyName": name }));
    assert_eq!(post(url, &path, Some(&key), &body).await.status, 201);
    assert_error(&post(url, &path, None, &body).await, 401, 40106);
    assert_error(&post(url, &path, Some(&other), &body).await, 401, 40160);
    assert_error(&post(url, &path, Some("nonsense"), &body).await, 400, 40005);
    let long = json!({ "keyName": name, "ttl": 25 * 3600 * 1000 });
    assert_error(&post(url, &path, Some(&key), &long).await, 400, 40003);
    scene.ends_well().await;
}

/// A JWT of the key for a client id, issued at `issued` (in seconds).
fn jwt(key: &str, capability: &str, client: &str, issued: i64) -> String {
    let (name, secret) = key.split_once(':').unwrap();
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": name });
    let claims = json!({
        "iat": issued, "exp": issued + 600, "x-ably-capability": capability, "x-ably-clientId": client,
        "x-ably-revocation-key": "team",
    });
    let encoded = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(header), encoded(claims));
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes()).unwrap();
    let tag = mac.chain_update(signed.as_bytes()).finalize().into_bytes();
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(tag))
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_tokens_end_at_once_and_others_stay_valid() {
    let scene = Scene::start().await;
    let url = scene.url();
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let now = millis() / 1000;
    let (bob, ann) =
        (jwt(&key, r#"{"a":["*"]}"#, "bob", now - 5), jwt(&key, r#"{"a":["*"]}"#, "ann", now - 5));
    let mut connection = Ably::connect(url, Format::Msgpack, &[("access_token", &bob)]).await.unwrap();
    Ably::connect(url, Format::Json, &[("access_token", &ann)]).await.unwrap();
    let path = format!("/keys/{}/revokeTokens", key.split_once(':').unwrap().0);
    let body = json!({ "targets": ["clientId:bob", "nonsense"] });
    assert_error(&post(url, &path, None, &body).await, 401, 40106);
    let revoked = post(url, &path, Some(&key), &body).await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    assert_eq!((&revoked.body["successCount"], &revoked.body["failureCount"]), (&1.into(), &1.into()));
    assert_eq!(revoked.body["results"][0]["target"], "clientId:bob");
    connection.closed().await.unwrap();
    assert_eq!(refused(url, &[("access_token", &bob)]).await, 40141);
    Ably::connect(url, Format::Json, &[("access_token", &ann)]).await.unwrap();
    let all = post(url, &path, Some(&key), &json!({ "targets": ["revocationKey:team"] })).await;
    assert_eq!(all.body["successCount"], 1);
    assert_eq!(refused(url, &[("access_token", &ann)]).await, 40141);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_expired_and_foreign_credentials_have_their_own_errors() {
    let scene = Scene::start().await;
    let url = scene.url();
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let name = key.split_once(':').unwrap().0;
    let now = millis() / 1000;
    let valid = jwt(&key, r#"{"*":["*"]}"#, "bob", now);
    for (query, code) in [
        (("key", "nonsense"), 40005),
        (("key", "parlor.unknown:secret"), 40101),
        (("key", "other.unknown:secret"), 40101),
        (("key", &*format!("{name}:wrong")), 40101),
        (("access_token", "nonsense"), 40005),
        (("access_token", "parlor.bm9uc2Vuc2Vub25zZW5zZW5vbnNlbnNlbm9uc2Vuc2U"), 40140),
        (("access_token", &*format!("{valid}A")), 40144),
        (("access_token", &*jwt(&key, r#"{"*":["*"]}"#, "bob", now - 601)), 40142),
        (("access_token", &*jwt("other.key:secret", r#"{"*":["*"]}"#, "bob", now)), 40400),
        (("access_token", &*jwt("parlor.key:secret", r#"{"*":["*"]}"#, "bob", now)), 40101),
        (("clientId", "bob"), 40106),
    ] {
        assert_eq!(refused(url, &[query]).await, code, "{query:?}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_tokens_are_accepted_by_the_ably_protocol_alone() {
    let scene = Scene::start().await;
    let (url, ann) = (scene.url(), scene.person("ann").await);
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let token = token(&ann).await;
    for credential in [&*key, &*token] {
        let client = ann.with_token(credential);
        for path in ["/api/rooms", "/api/users/me", "/api/keys"] {
            assert_eq!(client.get(path).await.unwrap().status, 401, "{path}");
        }
    }
    let (_, ordinary) = crate::scene::make_key(&ann, &["read", "write"]).await;
    assert_eq!(refused(url, &[("key", &ordinary)]).await, 40005);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_create_keys_and_a_revoked_key_ends_its_connections_and_tokens() {
    let scene = Scene::start().await;
    let (url, ann) = (scene.url(), scene.person("ann").await);
    let body =
        json!({ "name": "ci", "scopes": [], "capability": r#"{"b":["*"],"a":["subscribe","publish"]}"# });
    assert_eq!(ann.post("/api/keys", body.clone()).await.unwrap().status, 403);
    let created = scene.admin.post("/api/keys", body.clone()).await.unwrap().data().unwrap();
    assert_eq!(created["capability"], r#"{"a":["publish","subscribe"],"b":["*"]}"#);
    let (id, key) = (created["id"].as_str().unwrap(), created["key"].as_str().unwrap());
    assert!(key.starts_with(&format!("parlor.{id}:")));
    for wrong in [json!("nonsense"), json!("{}"), json!(r#"{"a":["unknown"]}"#)] {
        let mut body = body.clone();
        body["capability"] = wrong;
        assert_eq!(scene.admin.post("/api/keys", body).await.unwrap().status, 400);
    }
    let listed = scene.admin.get("/api/keys").await.unwrap().data().unwrap();
    let listed = listed.as_array().unwrap().iter().find(|listed| listed["id"] == id).unwrap().clone();
    assert_eq!(listed["capability"], created["capability"]);
    assert!(listed.get("key").is_none());

    let mut connection = with_key(url, key, Format::Json).await;
    let request = token_request(key, None, "0123456789abcdef");
    let token = request_token(url, &request).await.body["token"].as_str().unwrap().to_owned();
    scene.admin.delete(&format!("/api/keys/{id}")).await.unwrap().data().unwrap();
    connection.closed().await.unwrap();
    assert_eq!(refused(url, &[("key", key)]).await, 40101);
    assert_eq!(refused(url, &[("access_token", &token)]).await, 40101);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_user_ends_with_the_sign_in() {
    let scene = Scene::start().await;
    let (url, ann) = (scene.url(), scene.person("ann").await);
    let token = token(&ann).await;
    let mut connection = Ably::connect(url, Format::Json, &[("access_token", &token)]).await.unwrap();
    assert_eq!(refused(url, &[("access_token", &token), ("clientId", "eve")]).await, 40102);
    ann.post("/api/auth/logout", json!({})).await.unwrap();
    connection.closed().await.unwrap();
    assert_eq!(refused(url, &[("access_token", &token)]).await, 40141);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires_and_a_page_of_another_origin_may_request_one() {
    let scene = Scene::start().await;
    let url = scene.url();
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let name = key.split_once(':').unwrap().0;
    let path = format!("/keys/{name}/requestToken");
    let short = json!({ "keyName": name, "ttl": 2000 });
    let granted = post(url, &path, Some(&key), &short).await;
    assert_eq!(granted.headers["access-control-allow-origin"], "*");
    let token = granted.body["token"].as_str().unwrap().to_owned();
    scene.advance(Duration::from_secs(3));
    assert_eq!(refused(url, &[("access_token", &token)]).await, 40142);
    let outsider = RestClient::outsider(url);
    let preflight = outsider.request(Method::OPTIONS, &path).header("origin", "https://page.example");
    let preflight = preflight.send().await.unwrap();
    assert_eq!(preflight.status(), 204);
    assert_eq!(preflight.headers()["access-control-allow-origin"], "*");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_request_from_before_a_restart_is_not_accepted_again() {
    let mut scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut request = token_request(&key, None, "0123456789abcdef");
    request.timestamp = Some(millis() - 2 * 60 * 1000);
    request.mac = Some(request.sign(key.split_once(':').unwrap().1));
    scene.advance(Duration::from_secs(1));
    assert_error(&request_token(scene.url(), &request).await, 401, 40104);

    let request = token_request(&key, None, "1123456789abcdef");
    assert_eq!(request_token(scene.url(), &request).await.status, 201);
    scene.advance(Duration::from_secs(3 * 60));
    scene.crash_and_restart().await;
    assert_error(&request_token(scene.url(), &request).await, 401, 40104);
    let mut later = token_request(&key, None, "2123456789abcdef");
    later.timestamp = Some(millis() + 3 * 60 * 1000);
    later.mac = Some(later.sign(key.split_once(':').unwrap().1));
    assert_eq!(request_token(scene.url(), &later).await.status, 201);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_tokens_of_a_connection_count_as_requests_of_its_user() {
    let scene = Scene::with(&[("PARLOR_LIMITS", "on"), ("PARLOR_API_RATE_LIMIT_MAX", "12")]).await;
    let ann = scene.person("ann").await;
    let token = token(&ann).await;
    let mut client = Ably::connect(scene.url(), Format::Json, &[("access_token", &token)]).await.unwrap();
    let mut renewed = 0;
    let error = loop {
        client.authorize(&token).await.unwrap();
        let answer = client.frame().await.unwrap();
        match answer.action {
            Action::Connected => renewed += 1,
            Action::Disconnected => break answer.error.unwrap(),
            _ => panic!("{answer:?}"),
        }
        assert!(renewed < 20, "the hub accepts every token");
    };
    assert!(renewed > 0);
    assert_eq!(error.code, 42910);
    client.closed().await.unwrap();
    // The client library connects again after DISCONNECTED.
    Ably::connect(scene.url(), Format::Json, &[("access_token", &token)]).await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_an_owner_who_is_no_longer_an_admin_end_at_once() {
    let scene = Scene::start().await;
    let (url, boss) = (scene.url(), scene.person("boss").await);
    let path = format!("/api/users/{}", boss.user_id());
    let with_role = async |role: &str| {
        scene.admin.put(&path, json!({ "role": role })).await.unwrap().data().unwrap();
    };
    with_role("admin").await;
    let key = key(&boss, json!({ "*": ["*"] })).await;
    let other = super::key(&scene.admin, json!({ "*": ["*"] })).await;
    let token = request_token(url, &token_request(&key, None, "0123456789abcdef")).await;
    let token = token.body["token"].as_str().unwrap().to_owned();
    let mut of_key = with_key(url, &key, Format::Json).await;
    let mut of_token = Ably::connect(url, Format::Msgpack, &[("access_token", &token)]).await.unwrap();
    let mut witness = with_key(url, &other, Format::Json).await;
    witness.attach("c").await.unwrap();
    of_key.present("c", PresenceAction::Enter, Some("ann"), None).await.unwrap();
    let entered = witness.wait_on(Action::Presence, "c").await.unwrap();
    assert_eq!(entered.presence.unwrap()[0].action, PresenceAction::Enter);

    with_role("user").await;
    of_key.closed().await.unwrap();
    of_token.closed().await.unwrap();
    let left = witness.wait_on(Action::Presence, "c").await.unwrap();
    assert_eq!(left.presence.unwrap()[0].action, PresenceAction::Leave);
    assert_eq!(refused(url, &[("key", &key)]).await, 40101);
    assert_eq!(refused(url, &[("access_token", &token)]).await, 40141);
    let again = token_request(&key, None, "1123456789abcdef");
    let issued = request_token(url, &again).await;
    if issued.status == 201 {
        let token = issued.body["token"].as_str().unwrap();
        assert_eq!(refused(url, &[("access_token", token)]).await, 40141);
    }
    with_role("admin").await;
    with_key(url, &key, Format::Json).await;
    scene.ends_well().await;
}
