//! Denial of service: incomplete requests and handshakes, and floods of sign-ins, sockets and subscriptions.

use std::time::{Duration, Instant};

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{NotUpgraded, Socket, TEST_TIMEOUT};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::scene::{PASSWORD, Scene, assert_refused, connect};

/// Reads until the hub closes the connection; returns the elapsed time and the response.
async fn read_until_closed(mut stream: TcpStream) -> (Duration, String) {
    let start = Instant::now();
    let mut response = Vec::new();
    let end = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut response)).await;
    end.expect("the hub closes the connection before the timeout").ok();
    (start.elapsed(), String::from_utf8_lossy(&response).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_requests_time_out_while_others_are_served() {
    let scene = Scene::start().await;
    let beginnings = [
        "",
        "GET /api/hea",
        "GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        "GET /ws/client HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
        "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{\"username\":",
        "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"use",
    ];
    let mut waiting = JoinSet::new();
    for beginning in beginnings {
        let mut stream = connect(scene.url()).await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        waiting.spawn(async move { (beginning, read_until_closed(stream).await) });
    }
    assert_eq!(scene.admin.health().await.unwrap(), 200);
    while let Some(closed) = waiting.join_next().await {
        let (beginning, (after, response)) = closed.unwrap();
        assert!(after < Duration::from_secs(15), "{beginning:?} after {after:?}");
        assert!(
            response.is_empty() || response.starts_with("HTTP/1.1 408"),
            "{beginning:?} got {response:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_sent_byte_by_byte_times_out() {
    let scene = Scene::start().await;
    let mut stream = connect(scene.url()).await;
    let head = "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let start = Instant::now();
    let mut byte = [0; 1];
    // Each received byte must not restart the timeout of the body.
    loop {
        let _ = stream.write_all(b" ").await;
        match tokio::time::timeout(Duration::from_millis(200), stream.read(&mut byte)).await {
            Err(_) => assert!(start.elapsed() < Duration::from_secs(15), "the hub still reads the body"),
            Ok(_) => break,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_sockets_are_closed_and_limited_per_address() {
    let scene = Scene::start_with(|command| {
        command
            .env("PARLOR_LIMITS", "on")
            .env("PARLOR_MAX_UNAUTHENTICATED_PER_ADDRESS", "5")
            .env("PARLOR_AUTH_TIMEOUT", "2")
    })
    .await;
    let mut sockets = Vec::new();
    for path in ["/ws/client", "/ws/broker", "/ws/client", "/ws/broker", "/ws/client"] {
        sockets.push(Socket::open(scene.url(), path, &[]).await.unwrap());
    }
    for path in ["/ws/client", "/ws/broker"] {
        let refused = Socket::open(scene.url(), path, &[])
            .await
            .err()
            .expect("the sixth unauthenticated socket is refused");
        assert_eq!(refused.downcast::<NotUpgraded>().unwrap().0, 429);
    }
    // A socket that authenticates no longer counts as unauthenticated.
    sockets[0].send(&json!({ "type": "client:auth", "token": scene.admin.token() })).await.unwrap();
    sockets[0].wait_for_type("server:auth_result").await.unwrap();
    let late =
        Socket::open(scene.url(), "/ws/client", &[]).await.expect("the authenticated socket freed a slot");
    sockets.push(late);
    for socket in &mut sockets[1..] {
        assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 4001);
    }
    // A slot is freed when its connection ends; a peer that does not answer the close delays that by two
    // seconds.
    let start = Instant::now();
    while let Err(refused) = Socket::open(scene.url(), "/ws/client", &[]).await {
        assert_eq!(refused.downcast::<NotUpgraded>().unwrap().0, 429);
        assert!(start.elapsed() < TEST_TIMEOUT, "closed sockets still occupy their slots");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sockets[0].send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
    sockets[0].wait_for_type("server:pong").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_429_of_a_refused_upgrade_has_retry_after() {
    let scene = Scene::start_with(|command| {
        command.env("PARLOR_LIMITS", "on").env("PARLOR_MAX_UNAUTHENTICATED_PER_ADDRESS", "1")
    })
    .await;
    let _unauthenticated = Socket::open(scene.url(), "/ws/client", &[]).await.unwrap();
    let request = "GET /ws/client HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut stream = connect(scene.url()).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 2048];
    let read = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 429") && head.contains("\r\nretry-after: "), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_from_one_address_are_rate_limited_with_retry_after() {
    let scene = Scene::start_with(|command| {
        command.env("PARLOR_LIMITS", "on").env("PARLOR_LOGIN_RATE_LIMIT_MAX", "6")
    })
    .await;
    let outsider = RestClient::outsider(scene.url());
    let attempt = || outsider.post("/api/auth/login", json!({ "username": "nobody", "password": PASSWORD }));
    // The sign-in of the admin at the start was the first of the six allowed.
    for _ in 0..5 {
        assert_refused(&attempt().await.unwrap(), 401);
    }
    let refused = attempt().await.unwrap();
    assert_refused(&refused, 429);
    assert_eq!(refused.body["code"], "RATE_LIMITED");
    let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    // Forwarding headers do not change the limited address, and all endpoints that check a password share the
    // limit.
    let forwarded = outsider
        .request(reqwest::Method::POST, "/api/auth/login")
        .header("x-forwarded-for", "203.0.113.9")
        .header("forwarded", "for=203.0.113.9")
        .json(&json!({ "username": "nobody", "password": PASSWORD }));
    assert_eq!(forwarded.send().await.unwrap().status(), 429);
    let body = json!({ "token": "pls_x", "username": "nobody", "password": PASSWORD });
    assert_refused(&outsider.post("/api/setup", body).await.unwrap(), 429);
    let body = json!({ "currentPassword": "Wrong-guess-1", "newPassword": PASSWORD });
    assert_refused(&scene.admin.put("/api/users/me/password", body).await.unwrap(), 429);
    // Requests with a valid token are not limited.
    assert_eq!(scene.admin.get("/api/users/me").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn token_refreshes_from_one_address_are_rate_limited() {
    let scene = Scene::start_with(|command| {
        command.env("PARLOR_LIMITS", "on").env("PARLOR_REFRESH_RATE_LIMIT_MAX", "3")
    })
    .await;
    let outsider = RestClient::outsider(scene.url());
    for _ in 0..3 {
        let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": "guess" })).await.unwrap();
        assert_refused(&answer, 401);
    }
    let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": "guess" })).await.unwrap();
    assert_refused(&answer, 429);
    assert!(answer.headers.contains_key("retry-after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn password_checks_wait_in_a_bounded_queue_while_the_hub_stays_responsive() {
    let scene = Scene::start_with(|command| command.env("PARLOR_PASSWORD_HASHING_JOBS", "1")).await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let outsider = RestClient::outsider(scene.url());
    let mut flood = JoinSet::new();
    for n in 0..150 {
        let outsider = outsider.clone();
        let body = json!({ "username": format!("nobody-{n}"), "password": PASSWORD });
        flood.spawn(async move { outsider.post("/api/auth/login", body).await.unwrap() });
    }
    let first = flood.join_next().await.unwrap().unwrap();
    client.say_and_wait(&room, "in the midst of it", "c1").await.unwrap();
    assert_eq!(scene.admin.health().await.unwrap(), 200);
    let (mut checked, mut refused) = (0, 0);
    let mut count = |answer: parlor_testkit::rest::RestResponse| match answer.status.as_u16() {
        401 => checked += 1,
        429 => {
            assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
            refused += 1;
        }
        _ => panic!("{answer:?}"),
    };
    count(first);
    while let Some(answer) = flood.join_next().await {
        count(answer.unwrap());
    }
    assert!(checked > 0 && refused > 0, "{checked} checked, {refused} refused");
    let again = outsider.post("/api/auth/login", json!({ "username": "x", "password": "y" })).await.unwrap();
    assert_refused(&again, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_is_closed_after_five_invalid_tokens() {
    let scene = Scene::start().await;
    let mut socket = Socket::open(scene.url(), "/ws/client", &[]).await.unwrap();
    for _ in 0..5 {
        socket.send(&json!({ "type": "client:auth", "token": "guess" })).await.unwrap();
        assert_eq!(socket.wait_for_type("server:auth_result").await.unwrap()["ok"], false);
    }
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 1008);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_cannot_fill_the_routing_index() {
    const MAX_AGENTS: usize = 1000;
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let mut broker = Broker::connect(scene.url(), ada.token()).await.unwrap();
    let create = |n: usize| json!({ "type": "agent.create", "id": format!("a{n}"), "config": { "subscriptions": ["room/**"] } });
    for n in 0..MAX_AGENTS {
        broker.feed(&create(n)).await.unwrap();
    }
    broker.flush().await.unwrap();
    for _ in 0..MAX_AGENTS {
        broker.wait_for_type("agent.create.ok").await.unwrap();
    }
    let refused = broker.ask(create(MAX_AGENTS)).await.unwrap();
    assert_eq!(refused["type"], "agent.create.error", "{refused}");
    // Deleting the owner deletes all their agents at once, and the limit of other users is not affected.
    scene.admin.delete(&format!("/api/users/{}", ada.user_id())).await.unwrap();
    let mut other = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    other.create_agent("a0", &[]).await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guessed_codes_and_invitations_share_the_rate_limit_of_sign_ins() {
    let scene = Scene::start_with(|command| {
        command.env("PARLOR_LIMITS", "on").env("PARLOR_LOGIN_RATE_LIMIT_MAX", "5")
    })
    .await;
    let outsider = RestClient::outsider(scene.url());
    let code = || outsider.post("/api/auth/verify-totp", json!({ "totpToken": "guess", "code": "123456" }));
    let join = || {
        let body = json!({ "token": "pli_guess", "username": "mallory", "password": PASSWORD });
        outsider.post("/api/auth/register", body)
    };
    // The sign-in of the admin at the start was the first of the five allowed.
    for _ in 0..2 {
        assert_refused(&code().await.unwrap(), 401);
        assert_refused(&join().await.unwrap(), 404);
    }
    for refused in [code().await.unwrap(), join().await.unwrap()] {
        assert_refused(&refused, 429);
        assert!(refused.headers.contains_key("retry-after"));
    }
    let setup = scene.admin.post("/api/auth/verify-totp-setup", json!({ "code": "123456" })).await.unwrap();
    assert_refused(&setup, 429);
    let off = scene.admin.post("/api/auth/disable-totp", json!({ "password": PASSWORD })).await.unwrap();
    assert_refused(&off, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sign_ins_with_unknown_names_share_one_audit_row_and_do_not_block_writes() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let outsider = RestClient::outsider(scene.url());
    let mut flood = JoinSet::new();
    for n in 0..40 {
        let outsider = outsider.clone();
        let body = json!({ "username": format!("nobody-{n}"), "password": PASSWORD });
        flood.spawn(async move { outsider.post("/api/auth/login", body).await.unwrap().status.as_u16() });
    }
    client.say_and_wait(&room, "in the midst of it", "c1").await.unwrap();
    let statuses = flood.join_all().await;
    let failed = statuses.iter().filter(|status| **status == 401).count() as u64;
    assert!(failed > 0 && statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    // A failed sign-in is stored after its response, but before any later command: this message waits for all
    // of them.
    client.say_and_wait(&room, "after it", "c2").await.unwrap();
    let page = scene.admin.get("/api/audit?action=sign_in_failed").await.unwrap().data().unwrap();
    let rows = page["items"].as_array().unwrap();
    assert_eq!((rows.len(), rows[0]["count"].as_u64()), (1, Some(failed)), "{rows:?}");
}
