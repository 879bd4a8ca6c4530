//! Sign-in with a password, access and refresh tokens, the refresh cookie, the list of sign-ins, lockout, and
//! password rules.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene, assert_refused, assert_revoked};

async fn login(scene: &Scene, username: &str, password: &str) -> RestResponse {
    let body = json!({ "username": username, "password": password });
    RestClient::outsider(scene.url()).post("/api/auth/login", body).await.unwrap()
}

async fn refresh(scene: &Scene, token: &str) -> RestResponse {
    RestClient::outsider(scene.url())
        .post("/api/auth/refresh", json!({ "refreshToken": token }))
        .await
        .unwrap()
}

fn text<'a>(answer: &'a RestResponse, pointer: &str) -> &'a str {
    answer.body.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} in {answer:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_returns_two_tokens_and_a_cookie() {
    let scene = Scene::start().await;
    scene.person("ada").await;
    let answer = login(&scene, "ada", PASSWORD).await;
    assert_eq!(answer.status, 200);
    let user = &answer.body["data"]["user"];
    assert_eq!(
        (&user["username"], &user["displayName"], &user["role"]),
        (&json!("ada"), &json!("ada"), &json!("user"))
    );
    assert!(!user.to_string().contains("argon2"), "{user}");
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let refresh_token = text(&answer, "/data/refreshToken");
    assert_eq!(
        cookie,
        format!("parlor_rt={refresh_token}; Max-Age=604800; Path=/api/auth; HttpOnly; SameSite=Strict")
    );
    let ada = RestClient::outsider(scene.url()).with_token(text(&answer, "/data/accessToken"));
    assert_eq!(ada.get("/api/users/me").await.unwrap().data().unwrap()["username"], "ada");
    assert_eq!(login(&scene, "ADA", PASSWORD).await.status, 200, "usernames are case-insensitive");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_https_the_cookie_is_secure() {
    let scene =
        Scene::start_with(|command| command.env("PARLOR_PUBLIC_URL", "https://chat.example.org")).await;
    let answer = login(&scene, "admin", parlor_testkit::hub::PASSWORD).await;
    assert!(answer.headers["set-cookie"].to_str().unwrap().ends_with("; SameSite=Strict; Secure"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_is_rotated_with_every_refresh() {
    let scene = Scene::start().await;
    scene.person("ada").await;
    let mut token = text(&login(&scene, "ada", PASSWORD).await, "/data/refreshToken").to_owned();
    let mut seen = vec![token.clone()];
    for _ in 0..5 {
        let answer = refresh(&scene, &token).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let ada = RestClient::outsider(scene.url()).with_token(text(&answer, "/data/accessToken"));
        assert_eq!(ada.get("/api/users/me").await.unwrap().status, 200);
        token = text(&answer, "/data/refreshToken").to_owned();
        assert!(answer.headers["set-cookie"].to_str().unwrap().contains(&token));
        assert!(!seen.contains(&token));
        seen.push(token.clone());
    }
    assert_refused(&refresh(&scene, "plr_unknown").await, 401);
    let without_token = RestClient::outsider(scene.url()).request(Method::POST, "/api/auth/refresh");
    let without_token = RestResponse::of(without_token).await.unwrap();
    assert_refused(&without_token, 401);
    assert_eq!(without_token.body["error"], "Refresh token required");
}

#[tokio::test(flavor = "multi_thread")]
async fn reusing_an_old_refresh_token_revokes_its_family_and_closes_its_sockets() {
    let scene = Scene::start().await;
    let other_device = scene.person("ada").await;
    let first = login(&scene, "ada", PASSWORD).await;
    let reused = text(&first, "/data/refreshToken").to_owned();
    let second = refresh(&scene, &reused).await;
    let third = refresh(&scene, text(&second, "/data/refreshToken")).await;
    let ada = other_device.with_token(text(&third, "/data/accessToken"));
    let mut client = Client::connect(&ada).await.unwrap();

    assert_refused(&refresh(&scene, &reused).await, 401);
    assert_revoked(&mut client).await;
    assert_refused(&refresh(&scene, text(&third, "/data/refreshToken")).await, 401);
    assert_refused(&ada.get("/api/users/me").await.unwrap(), 401);
    assert_eq!(
        other_device.get("/api/users/me").await.unwrap().status,
        200,
        "a sign-in on another device is not affected"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_refreshes_with_one_token_both_succeed() {
    let scene = Scene::start().await;
    let session = login(&scene, "admin", parlor_testkit::hub::PASSWORD).await;
    let token = text(&session, "/data/refreshToken").to_owned();
    let (first, second) = tokio::join!(refresh(&scene, &token), refresh(&scene, &token));
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
    let (first, second) = (text(&first, "/data/refreshToken"), text(&second, "/data/refreshToken"));
    assert_ne!(first, second);
    let next = refresh(&scene, second).await;
    assert_eq!(next.status, 200);
    // Both responses are of one generation: after `second` was exchanged, `first` is still accepted as a
    // token of the generation just used. The original token is older, so reusing it revokes the whole family.
    assert_eq!(refresh(&scene, first).await.status, 200);
    assert_refused(&refresh(&scene, &token).await, 401);
    assert_refused(&refresh(&scene, text(&next, "/data/refreshToken")).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_refreshes_without_a_body_and_the_response_contains_no_refresh_token() {
    let scene = Scene::start().await;
    let session = login(&scene, "admin", parlor_testkit::hub::PASSWORD).await;
    let cookie = |answer: &RestResponse| {
        answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
    };
    let anonymous = RestClient::outsider(scene.url());
    let by_cookie = async |cookie: &str| {
        let request = anonymous.request(Method::POST, "/api/auth/refresh").header("cookie", cookie);
        RestResponse::of(request.header("origin", scene.url())).await.unwrap()
    };
    let renewed = by_cookie(&format!("theme=dark; {}", cookie(&session))).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    assert!(renewed.body["data"].get("refreshToken").is_none(), "{renewed:?}");
    assert_ne!(cookie(&renewed), cookie(&session));
    let admin = anonymous.with_token(text(&renewed, "/data/accessToken"));
    let logout = admin.request(Method::POST, "/api/auth/logout").header("cookie", cookie(&renewed));
    let logout = RestResponse::of(logout.header("origin", scene.url())).await.unwrap();
    assert_eq!(logout.status, 200);
    let cleared = logout.headers["set-cookie"].to_str().unwrap();
    assert!(cleared.starts_with("parlor_rt=; Max-Age=0; Path=/api/auth; HttpOnly"), "{cleared}");
    assert_refused(&by_cookie(&cookie(&renewed)).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_are_listed_and_revoked_individually() {
    let scene = Scene::start().await;
    let bob = scene.person("bob").await;
    let phone = scene.person("ada").await;
    let laptop = scene.hub.sign_in("ada", PASSWORD).await.unwrap();
    let sessions = phone.get("/api/auth/sessions").await.unwrap().data().unwrap();
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    assert_eq!(sessions.iter().filter(|session| session["current"] == true).count(), 1);
    for session in sessions {
        for field in ["id", "device", "address", "createdAt", "lastUsedAt", "expiresAt"] {
            assert!(session[field].is_string(), "{field} in {session}");
        }
        assert_eq!(session["address"], "127.0.0.1");
    }
    let other = sessions.iter().find(|session| session["current"] == false).unwrap();
    let path = format!("/api/auth/sessions/{}", other["id"].as_str().unwrap());
    let mut client = Client::connect(&laptop).await.unwrap();
    assert_refused(&bob.delete(&path).await.unwrap(), 404);
    assert_refused(&scene.admin.delete(&path).await.unwrap(), 404);
    assert_eq!(phone.delete(&path).await.unwrap().status, 200);
    assert_revoked(&mut client).await;
    assert_refused(&laptop.get("/api/users/me").await.unwrap(), 401);
    assert_refused(&phone.delete(&path).await.unwrap(), 404);
    let remaining = phone.get("/api/auth/sessions").await.unwrap().data().unwrap();
    assert_eq!(remaining.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_ends_all_other_sign_ins_at_once() {
    let scene = Scene::start().await;
    let (bob, phone) = (scene.person("bob").await, scene.person("ada").await);
    let mut lost = Vec::new();
    for _ in 0..2 {
        let device = scene.hub.sign_in("ada", PASSWORD).await.unwrap();
        lost.push((Client::connect(&device).await.unwrap(), device));
    }
    assert_eq!(phone.delete("/api/auth/sessions").await.unwrap().status, 200);
    for (mut client, device) in lost {
        assert_revoked(&mut client).await;
        assert_refused(&device.get("/api/users/me").await.unwrap(), 401);
    }
    let remaining = phone.get("/api/auth/sessions").await.unwrap().data().unwrap();
    assert_eq!((remaining.as_array().unwrap().len(), &remaining[0]["current"]), (1, &json!(true)));
    assert_eq!(bob.get("/api/users/me").await.unwrap().status, 200, "sign-ins of others stay");
    assert_eq!(phone.delete("/api/auth/sessions").await.unwrap().status, 200, "there may be no other");
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_and_sign_outs_survive_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let command = parlor_testkit::hub::HubCommand::process(crate::scene::PARLOR, data.path());
    let mut hub = command.start().await.unwrap();
    let (signed_in, signed_out) = (hub.admin().await.unwrap(), hub.admin().await.unwrap());
    assert_eq!(signed_out.post("/api/auth/logout", json!({})).await.unwrap().status, 200);
    hub.crash().await.unwrap();
    let hub = command.start().await.unwrap();
    assert_eq!(signed_in.at(hub.url()).get("/api/users/me").await.unwrap().status, 200);
    assert_refused(&signed_out.at(hub.url()).get("/api/users/me").await.unwrap(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn five_wrong_passwords_lock_the_account_and_every_failure_looks_the_same() {
    let scene = Scene::start_with(|command| command.env("PARLOR_LOCKOUT_SECONDS", "2")).await;
    let ada = scene.person("ada").await;
    scene.person("bob").await;
    let unknown = login(&scene, "nobody", PASSWORD).await;
    assert_refused(&unknown, 401);
    assert_eq!(unknown.body["error"], "Invalid credentials");
    for _ in 0..4 {
        assert_eq!(login(&scene, "ada", "Wrong-guess-1").await.body, unknown.body);
    }
    // A successful sign-in resets the failure count.
    assert_eq!(login(&scene, "ada", PASSWORD).await.status, 200);
    for _ in 0..5 {
        assert_eq!(login(&scene, "ada", "Wrong-guess-1").await.body, unknown.body);
    }
    let locked = login(&scene, "ada", PASSWORD).await;
    assert_eq!(
        (locked.status.as_u16(), &locked.body),
        (401, &unknown.body),
        "a locked account refuses the correct password"
    );
    let users = scene.admin.get("/api/users").await.unwrap().data().unwrap();
    let entry = users.as_array().unwrap().iter().find(|user| user["username"] == "ada").unwrap();
    assert_eq!(entry["locked"], true, "admins see the lock");
    assert_eq!(login(&scene, "bob", PASSWORD).await.status, 200, "other accounts are not locked");
    assert_eq!(ada.get("/api/users/me").await.unwrap().status, 200, "existing sign-ins remain valid");

    let path = format!("/api/users/{}", ada.user_id());
    scene.admin.put(&path, json!({ "password": "Given-anew-12" })).await.unwrap().data().unwrap();
    assert_eq!(login(&scene, "ada", "Given-anew-12").await.status, 200, "a new password unlocks the account");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lockout_expires() {
    let scene = Scene::start_with(|command| {
        command.env("PARLOR_LOCKOUT_SECONDS", "600").env("PARLOR_LOCKOUT_FAILURES", "1")
    })
    .await;
    scene.person("ada").await;
    assert_eq!(login(&scene, "ada", "Wrong-guess-1").await.status, 401);
    // The correct password is refused until the lockout ends.
    for _ in 0..3 {
        assert_eq!(login(&scene, "ada", PASSWORD).await.status, 401);
    }
    scene.advance(std::time::Duration::from_secs(300));
    assert_eq!(login(&scene, "ada", PASSWORD).await.status, 401);
    scene.advance(std::time::Duration::from_secs(600));
    assert_eq!(login(&scene, "ada", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_expires_after_the_configured_time() {
    let scene = Scene::start_with(|command| command.env("PARLOR_ACCESS_TOKEN_TTL", "30")).await;
    let answer = login(&scene, "admin", parlor_testkit::hub::PASSWORD).await;
    let claims = text(&answer, "/data/accessToken").split('.').nth(1).unwrap().to_owned();
    let claims = base64::Engine::decode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, claims).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 30);
    assert_eq!(claims["type"], "access");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_must_satisfy_the_rules_and_needs_the_current_password() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    for (password, rules) in [
        ("Sh0rt", 1),
        ("alllowercase1", 1),
        ("ALLUPPERCASE1", 1),
        ("NoDigitsHere", 1),
        ("short", 3),
        (&format!("Aa1{}", "x".repeat(126)), 1),
        ("", 4),
    ] {
        let body = json!({ "currentPassword": PASSWORD, "newPassword": password });
        let answer = ada.put("/api/users/me/password", body).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["error"], "Validation failed");
        let fields = answer.body["fields"].as_array().unwrap();
        assert_eq!(fields.len(), rules, "{password}: {fields:?}");
        assert!(fields.iter().all(|field| field["field"] == "password" && field["message"].is_string()));
        let body = json!({ "username": "bobby", "password": password });
        assert_refused(&scene.admin.post("/api/users", body).await.unwrap(), 400);
    }
    let body = json!({ "currentPassword": "Wrong-guess-1", "newPassword": "Another-one-10" });
    assert_refused(&ada.put("/api/users/me/password", body).await.unwrap(), 401);
    assert_eq!(ada.get("/api/users/me").await.unwrap().status, 200, "the sign-in remains valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_oauth_providers_is_empty() {
    let scene = Scene::start().await;
    let answer = RestClient::outsider(scene.url()).get("/api/auth/oauth/providers").await.unwrap();
    assert_eq!(answer.body, json!({ "ok": true, "data": [] }));
}
