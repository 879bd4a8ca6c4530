//! How often one may ask, and how many connections one may hold.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{PASSWORD, Scene, assert_refused, connect};

const ON: (&str, &str) = ("PARLOR_LIMITS", "on");

fn number(answer: &RestResponse, header: &str) -> u64 {
    let value = answer.headers.get(header).unwrap_or_else(|| panic!("no {header}: {answer:?}"));
    value.to_str().unwrap().parse().unwrap()
}

#[track_caller]
fn assert_too_often(answer: &RestResponse, limit: u64) {
    assert_refused(answer, 429);
    assert_eq!(answer.body["error"], "Too many requests");
    let seen = (number(answer, "x-ratelimit-limit"), number(answer, "x-ratelimit-remaining"));
    assert_eq!(seen, (limit, 0));
    assert!((1..=60).contains(&number(answer, "retry-after")), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_has_a_count_of_their_own_and_strangers_one_for_each_address() {
    let scene = Scene::with(&[ON, ("PARLOR_API_RATE_LIMIT_MAX", "10")]).await;
    let person = scene.person("somebody").await;
    for left in (0..10).rev() {
        let answer = person.get("/api/users/me").await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(number(&answer, "x-ratelimit-limit"), 10);
        assert_eq!(number(&answer, "x-ratelimit-remaining"), left);
    }
    assert_too_often(&person.get("/api/users/me").await.unwrap(), 10);
    assert_too_often(&person.get("/api/no/such/route").await.unwrap(), 10);
    assert_eq!(scene.admin.get("/api/users/me").await.unwrap().status, 200, "others go on");

    // Whoever says they are somebody, and are not, counts as the stranger they are.
    let forged = RestClient::outsider(scene.url()).with_token("plk_forged");
    let mut refused = 0;
    while forged.get("/api/rooms").await.unwrap().status == 401 {
        refused += 1;
        assert!(refused < 10, "it is never too often");
    }
    assert_too_often(&RestClient::outsider(scene.url()).get("/api/health").await.unwrap(), 10);
    assert_eq!(scene.admin.get("/api/users/me").await.unwrap().status, 200, "who is signed in goes on");
    assert_eq!(RestClient::outsider(scene.url()).get("/").await.unwrap().status, 200, "so does the page");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_costs_more_has_a_count_of_its_own() {
    let scene = Scene::with(&[ON, ("PARLOR_PASSWORD_RATE_LIMIT_MAX", "2")]).await;
    let person = scene.person("somebody").await;
    let wrong = json!({ "currentPassword": "Wrong-as-can-be-1", "newPassword": PASSWORD });
    for _ in 0..2 {
        assert_refused(&person.put("/api/users/me/password", wrong.clone()).await.unwrap(), 401);
    }
    assert_too_often(&person.put("/api/users/me/password", wrong).await.unwrap(), 2);
    assert_eq!(person.get("/api/users/me").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_limits_nothing_is_counted() {
    let scene = Scene::with(&[("PARLOR_API_RATE_LIMIT_MAX", "1")]).await;
    for _ in 0..5 {
        let answer = scene.admin.get("/api/rooms").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.headers.get("x-ratelimit-limit")), (200, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_is_believed_about_addresses_and_nobody_else() {
    let from = async |scene: &Scene, address: &str| {
        let request = RestClient::outsider(scene.url()).request(Method::GET, "/api/health");
        RestResponse::of(request.header("x-forwarded-for", address)).await.unwrap().status.as_u16()
    };
    let settings = [ON, ("PARLOR_API_RATE_LIMIT_MAX", "3"), ("PARLOR_TRUSTED_PROXIES", "127.0.0.0/8")];
    let scene = Scene::with(&settings).await;
    for _ in 0..3 {
        assert_eq!(from(&scene, "198.51.100.7").await, 200);
    }
    assert_eq!(from(&scene, "198.51.100.7").await, 429);
    assert_eq!(from(&scene, "198.51.100.8").await, 200);
    assert_eq!(
        from(&scene, "198.51.100.8, 198.51.100.7").await,
        429,
        "what a client says itself is worth nothing"
    );

    let scene = Scene::with(&settings[..2]).await;
    // Signing in was one.
    assert_eq!(from(&scene, "198.51.100.7").await, 200);
    assert_eq!(from(&scene, "198.51.100.8").await, 200);
    assert_eq!(from(&scene, "198.51.100.9").await, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_holds_so_many_connections_and_sockets_are_not_among_them() {
    let scene = Scene::with(&[ON, ("PARLOR_MAX_CONNECTIONS_PER_ADDRESS", "8")]).await;
    // What the harness itself holds open is among them until it is idle for too long.
    let mut sockets = Vec::new();
    for _ in 0..5 {
        sockets.push(Client::connect(&scene.admin).await.unwrap());
    }
    let mut held = Vec::new();
    loop {
        let mut stream = connect(scene.url()).await;
        let request = "GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        // One that was hung up on may say so here or there.
        if stream.write_all(request.as_bytes()).await.is_err() {
            break;
        }
        let mut answer = [0; 12];
        match tokio::time::timeout(TEST_TIMEOUT, stream.read_exact(&mut answer))
            .await
            .expect("not left hanging")
        {
            Ok(_) => assert_eq!(&answer, b"HTTP/1.1 200"),
            Err(_) => break,
        }
        held.push(stream);
        assert!(held.len() <= 8, "there is no end to it");
    }
    assert!((6..=8).contains(&held.len()), "{} were let in", held.len());
    sockets[0].send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
    sockets[0].wait_for_type("server:pong").await.expect("sockets go on");
    held.clear();
    // Places are free when the connections are gone.
    let mut again = Client::connect(&scene.admin).await;
    for _ in 0..1000 {
        if again.is_ok() {
            break;
        }
        again = Client::connect(&scene.admin).await;
    }
    again.expect("a place is free again");
}
