//! Rate limits per user and address, trusted proxies, and the connection limit per address.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{PASSWORD, Scene, assert_refused, connect};

const LIMITS_ON: (&str, &str) = ("PARLOR_LIMITS", "on");

fn number(answer: &RestResponse, header: &str) -> u64 {
    let value = answer.headers.get(header).unwrap_or_else(|| panic!("no {header}: {answer:?}"));
    value.to_str().unwrap().parse().unwrap()
}

#[track_caller]
fn assert_rate_limited(answer: &RestResponse, limit: u64) {
    assert_refused(answer, 429);
    assert_eq!(answer.body["error"], "Too many requests");
    let seen = (number(answer, "x-ratelimit-limit"), number(answer, "x-ratelimit-remaining"));
    assert_eq!(seen, (limit, 0));
    assert!((1..=60).contains(&number(answer, "retry-after")), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_limited_individually_and_anonymous_requests_by_address() {
    let scene = Scene::with(&[LIMITS_ON, ("PARLOR_API_RATE_LIMIT_MAX", "10")]).await;
    let user = scene.person("somebody").await;
    for remaining in (0..10).rev() {
        let answer = user.get("/api/users/me").await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(number(&answer, "x-ratelimit-limit"), 10);
        assert_eq!(number(&answer, "x-ratelimit-remaining"), remaining);
    }
    assert_rate_limited(&user.get("/api/users/me").await.unwrap(), 10);
    assert_rate_limited(&user.get("/api/no/such/route").await.unwrap(), 10);
    assert_eq!(scene.admin.get("/api/users/me").await.unwrap().status, 200, "other users are not limited");

    // A request with an invalid token counts as anonymous, under its address.
    let forged = RestClient::outsider(scene.url()).with_token("plk_forged");
    let mut refused = 0;
    while forged.get("/api/rooms").await.unwrap().status == 401 {
        refused += 1;
        assert!(refused < 10, "the limit is never reached");
    }
    assert_rate_limited(&RestClient::outsider(scene.url()).get("/api/health").await.unwrap(), 10);
    assert_eq!(
        scene.admin.get("/api/users/me").await.unwrap().status,
        200,
        "authenticated users are not limited"
    );
    assert_eq!(
        RestClient::outsider(scene.url()).get("/").await.unwrap().status,
        200,
        "the web page is not limited"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn password_changes_have_their_own_limit() {
    let scene = Scene::with(&[LIMITS_ON, ("PARLOR_PASSWORD_RATE_LIMIT_MAX", "2")]).await;
    let user = scene.person("somebody").await;
    let wrong = json!({ "currentPassword": "Wrong-as-can-be-1", "newPassword": PASSWORD });
    for _ in 0..2 {
        assert_refused(&user.put("/api/users/me/password", wrong.clone()).await.unwrap(), 401);
    }
    assert_rate_limited(&user.put("/api/users/me/password", wrong).await.unwrap(), 2);
    assert_eq!(user.get("/api/users/me").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_limits_no_request_is_limited() {
    let scene = Scene::with(&[("PARLOR_API_RATE_LIMIT_MAX", "1")]).await;
    for _ in 0..5 {
        let answer = scene.admin.get("/api/rooms").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.headers.get("x-ratelimit-limit")), (200, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_addresses_are_accepted_only_from_a_trusted_proxy() {
    let status_from = async |scene: &Scene, address: &str| {
        let request = RestClient::outsider(scene.url()).request(Method::GET, "/api/health");
        RestResponse::of(request.header("x-forwarded-for", address)).await.unwrap().status.as_u16()
    };
    let settings = [LIMITS_ON, ("PARLOR_API_RATE_LIMIT_MAX", "3"), ("PARLOR_TRUSTED_PROXIES", "127.0.0.0/8")];
    let scene = Scene::with(&settings).await;
    for _ in 0..3 {
        assert_eq!(status_from(&scene, "198.51.100.7").await, 200);
    }
    assert_eq!(status_from(&scene, "198.51.100.7").await, 429);
    assert_eq!(status_from(&scene, "198.51.100.8").await, 200);
    assert_eq!(
        status_from(&scene, "198.51.100.8, 198.51.100.7").await,
        429,
        "only the last address of the header, added by the proxy, is trusted"
    );

    let scene = Scene::with(&settings[..2]).await;
    // The sign-in of the admin counted as the first of the three requests.
    assert_eq!(status_from(&scene, "198.51.100.7").await, 200);
    assert_eq!(status_from(&scene, "198.51.100.8").await, 200);
    assert_eq!(status_from(&scene, "198.51.100.9").await, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_per_address_are_limited_and_web_sockets_do_not_count() {
    let scene = Scene::with(&[LIMITS_ON, ("PARLOR_MAX_CONNECTIONS_PER_ADDRESS", "8")]).await;
    // Idle connections of the test client count as well, so the exact number is not known.
    let mut sockets = Vec::new();
    for _ in 0..5 {
        sockets.push(Client::connect(&scene.admin).await.unwrap());
    }
    let mut held = Vec::new();
    loop {
        let mut stream = connect(scene.url()).await;
        let request = "GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        // A connection that the hub closed fails either on write or on read.
        if stream.write_all(request.as_bytes()).await.is_err() {
            break;
        }
        let mut answer = [0; 12];
        match tokio::time::timeout(TEST_TIMEOUT, stream.read_exact(&mut answer))
            .await
            .expect("the hub responds or closes the connection in time")
        {
            Ok(_) => assert_eq!(&answer, b"HTTP/1.1 200"),
            Err(_) => break,
        }
        held.push(stream);
        assert!(held.len() <= 8, "the connection limit is never reached");
    }
    assert!((6..=8).contains(&held.len()), "{} connections were accepted", held.len());
    sockets[0].send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
    sockets[0].wait_for_type("server:pong").await.expect("WebSockets do not count and stay open");
    held.clear();
    // Closed connections free their place.
    let mut reconnected = Client::connect(&scene.admin).await;
    for _ in 0..1000 {
        if reconnected.is_ok() {
            break;
        }
        reconnected = Client::connect(&scene.admin).await;
    }
    reconnected.expect("the hub accepts connections again");
}
