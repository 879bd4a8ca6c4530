//! Attacks by foreign web pages: cross-origin sockets, use of the cookie, DNS rebinding.

use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::{NotUpgraded, Socket};
use reqwest::Method;
use serde_json::json;

use crate::scene::{PASSWORD, Scene, assert_refused, bare};

const SOCKET_PATHS: [&str; 2] = ["/ws/client", "/ws/broker"];

async fn upgrade(url: &str, path: &str, headers: &[(&'static str, &str)]) -> Result<(), u16> {
    match Socket::open(url, path, headers).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.downcast::<NotUpgraded>().expect("a refused upgrade has an HTTP status").0),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_upgrade_from_a_foreign_origin_is_refused_with_403() {
    let scene = Scene::start().await;
    let port = scene.url().rsplit(':').next().unwrap();
    let foreign = [
        "http://evil.example".to_owned(),
        "https://evil.example".to_owned(),
        "null".to_owned(),
        "file://".to_owned(),
        "".to_owned(),
        format!("http://127.0.0.1:{}", port.parse::<u16>().unwrap() ^ 1),
        format!("http://evil.example:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://evil.example#127.0.0.1:{port}"),
        format!("http://user@127.0.0.1:{port}"),
        format!("ftp://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
    ];
    for path in SOCKET_PATHS {
        for origin in &foreign {
            assert_eq!(upgrade(scene.url(), path, &[("origin", origin)]).await, Err(403), "{path} {origin}");
        }
        assert_eq!(upgrade(scene.url(), path, &[("origin", scene.url())]).await, Ok(()), "{path}");
        assert_eq!(
            upgrade(scene.url(), path, &[]).await,
            Ok(()),
            "{path}: clients that are no browser send no origin"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_host_is_refused_with_403_even_if_the_origin_matches_it() {
    let scene = Scene::start().await;
    let port = scene.url().rsplit(':').next().unwrap();
    for path in SOCKET_PATHS {
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            let host = format!("{host}:{port}");
            let origin = format!("http://{host}");
            let headers: [&[(&'static str, &str)]; 2] =
                [&[("host", &host), ("origin", &origin)], &[("host", &host)]];
            for headers in headers {
                assert_eq!(upgrade(scene.url(), path, headers).await, Err(403), "{path} {headers:?}");
            }
        }
        let (host, origin) = (format!("localhost:{port}"), format!("http://localhost:{port}"));
        let ours = [("host", host.as_str()), ("origin", origin.as_str())];
        assert_eq!(upgrade(scene.url(), path, &ours).await, Ok(()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_host_is_not_upgraded() {
    let scene = Scene::start().await;
    for path in SOCKET_PATHS {
        let request = format!(
            "GET {path} HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let refused = bare(scene.url(), with_connection_close(&request).as_bytes()).await;
        assert!(matches!(refused.status, 400 | 403), "{refused:?}");
    }
}

/// Adds a second `Connection` header, `close`, so that the hub closes the connection after its response.
fn with_connection_close(request: &str) -> String {
    request.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_configured_hosts_and_origins_are_accepted() {
    let scene = Scene::start_with(|command| {
        command
            .env("PARLOR_ALLOWED_ORIGINS", "https://chat.example.org")
            .env("PARLOR_ALLOWED_HOSTS", "hub.example.org")
    })
    .await;
    let host = ("host", "hub.example.org");
    for path in SOCKET_PATHS {
        let ours = [host, ("origin", "https://chat.example.org")];
        assert_eq!(upgrade(scene.url(), path, &ours).await, Ok(()));
        let own = [host, ("origin", "https://hub.example.org")];
        assert_eq!(upgrade(scene.url(), path, &own).await, Ok(()));
        let other = [host, ("origin", "https://chat.example.org.evil.example")];
        assert_eq!(upgrade(scene.url(), path, &other).await, Err(403));
        let plain = [host, ("origin", "http://chat.example.org")];
        assert_eq!(upgrade(scene.url(), path, &plain).await, Err(403), "another scheme is another origin");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_the_cookie_from_a_foreign_origin_or_host_are_refused() {
    let scene = Scene::start().await;
    scene.person("ada").await;
    let outsider = RestClient::outsider(scene.url());
    let sign_in = json!({ "username": "ada", "password": PASSWORD });
    let signed_in = outsider.post("/api/auth/login", sign_in).await.unwrap();
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let ada = outsider.with_token(signed_in.body["data"]["accessToken"].as_str().unwrap());
    let foreign: [(&str, &str); 3] =
        [("origin", "http://evil.example"), ("origin", "null"), ("host", "evil.example")];
    for path in ["/api/auth/refresh", "/api/auth/logout"] {
        for (name, value) in foreign {
            let request = ada.request(Method::POST, path).header("cookie", &cookie).header(name, value);
            let answer = RestResponse::of(request).await.unwrap();
            assert_refused(&answer, 403);
            assert!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
        }
    }
    // The refused requests neither rotated nor revoked the refresh token.
    let own = ada.request(Method::POST, "/api/auth/refresh").header("cookie", &cookie);
    let renewed = RestResponse::of(own.header("origin", scene.url())).await.unwrap();
    assert_eq!(renewed.status, 200, "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refresh_cookie_authenticates_neither_rest_nor_sockets() {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    let sign_in = json!({ "username": "admin", "password": parlor_testkit::hub::PASSWORD });
    let signed_in = outsider.post("/api/auth/login", sign_in).await.unwrap();
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let me = outsider.request(Method::GET, "/api/users/me").header("cookie", &cookie);
    assert_refused(&RestResponse::of(me).await.unwrap(), 401);
    let mut socket = Socket::open(scene.url(), "/ws/client", &[("cookie", &cookie)]).await.unwrap();
    socket.send(&json!({ "type": "client:join_room", "roomId": "any" })).await.unwrap();
    assert_eq!(socket.wait_for_type("server:error").await.unwrap()["code"], "NOT_AUTHENTICATED");
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_and_setup_from_a_foreign_origin_are_refused() {
    let scene = Scene::start().await;
    let outsider = RestClient::outsider(scene.url());
    let sign_in = json!({ "username": "admin", "password": parlor_testkit::hub::PASSWORD });
    for (path, body) in [
        ("/api/auth/login", sign_in.clone()),
        ("/api/setup", json!({ "token": "x", "username": "eve", "password": PASSWORD })),
    ] {
        let request =
            outsider.request(Method::POST, path).json(&body).header("origin", "http://evil.example");
        let answer = RestResponse::of(request).await.unwrap();
        assert_refused(&answer, 403);
        assert!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
    }
    let own = outsider.request(Method::POST, "/api/auth/login").json(&sign_in).header("origin", scene.url());
    assert_eq!(RestResponse::of(own).await.unwrap().status, 200);
}
