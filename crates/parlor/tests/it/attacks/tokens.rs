//! Forged and misused tokens, signed with the hub's own key.
//!
//! The hub accepts only access tokens in the exact form that it issues.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::Socket;
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};

use crate::scene::{Scene, assert_refused, make_key};
use crate::sign_in::second_factor::{challenge, turn_on};

/// Signs any header and claims with the hub's own key.
struct Forger {
    key: Vec<u8>,
    claims: Value,
}

impl Forger {
    fn new(scene: &Scene) -> Self {
        let key = std::fs::read(scene.data().join("token.key")).unwrap();
        let claims = scene.admin.token().split('.').nth(1).unwrap();
        Self { key, claims: serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap() }
    }

    fn with(&self, name: &str, value: Value) -> Value {
        let mut claims = self.claims.clone();
        claims[name] = value;
        claims
    }

    fn without(&self, name: &str) -> Value {
        let mut claims = self.claims.clone();
        claims.as_object_mut().unwrap().remove(name);
        claims
    }

    fn sign(&self, header: &str, claims: &Value) -> String {
        let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims.to_string()));
        let signature = match header.contains("HS512") {
            true => Hmac::<Sha512>::new_from_slice(&self.key)
                .unwrap()
                .chain_update(&signed)
                .finalize()
                .into_bytes()
                .to_vec(),
            false => Hmac::<Sha256>::new_from_slice(&self.key)
                .unwrap()
                .chain_update(&signed)
                .finalize()
                .into_bytes()
                .to_vec(),
        };
        format!("{signed}.{}", BASE64.encode(signature))
    }
}

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// Asserts that the token is refused as a bearer token and in the authentication frame of both sockets.
async fn assert_no_access(scene: &Scene, name: &str, token: &str) {
    let caller = RestClient::outsider(scene.url()).with_token(token);
    if reqwest::header::HeaderValue::from_str(token).is_ok() {
        let answer = caller.get("/api/users/me").await.unwrap();
        assert_eq!(answer.status, 401, "{name}: {answer:?}");
        assert_refused(&answer, 401);
    }
    let mut client = Socket::open(scene.url(), "/ws/client", &[]).await.unwrap();
    client.send(&json!({ "type": "client:auth", "token": token })).await.unwrap();
    let result = client.wait_for_type("server:auth_result").await.unwrap();
    assert_eq!((&result["ok"], &result["error"]), (&json!(false), &json!("Invalid token")), "{name}");
    let mut broker = Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap();
    broker.send(&json!({ "type": "auth", "token": token })).await.unwrap();
    assert_eq!(broker.wait_for_type("auth.error").await.unwrap()["error"], "Invalid token", "{name}");
    assert_eq!(broker.closed(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap(), 4003, "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_with_another_algorithm_or_extra_header_fields_are_refused() {
    let scene = Scene::start().await;
    let forger = Forger::new(&scene);
    let me = scene.admin.with_token(&forger.sign(HEADER, &forger.claims));
    assert_eq!(me.get("/api/users/me").await.unwrap().status, 200, "the forged signature is valid");
    for header in [
        r#"{"alg":"none","typ":"JWT"}"#,
        r#"{"alg":"None","typ":"JWT"}"#,
        r#"{"alg":"HS512","typ":"JWT"}"#,
        r#"{"alg":"RS256","typ":"JWT"}"#,
        r#"{"alg":"ES256","typ":"JWT"}"#,
        r#"{"alg":["HS256"],"typ":"JWT"}"#,
        r#"{"alg":"HS256","typ":"JWT","kid":"../../../../dev/null"}"#,
        r#"{"alg":"HS256","typ":"JWT","kid":"' OR 1=1 --"}"#,
        r#"{"alg":"HS256","typ":"JWT","jku":"http://127.0.0.1/keys"}"#,
        r#"{"alg":"HS256","typ":"JWT","crit":["exp"]}"#,
        r#"{"alg":"HS256"}"#,
        r#"{"typ":"JWT"}"#,
        "{}",
    ] {
        assert_no_access(&scene, header, &forger.sign(header, &forger.claims)).await;
    }
    let unsigned = format!(
        "{}.{}.",
        BASE64.encode(r#"{"alg":"none","typ":"JWT"}"#),
        BASE64.encode(forger.claims.to_string())
    );
    assert_no_access(&scene, "unsigned", &unsigned).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_expired_foreign_or_unknown_sign_ins_are_refused() {
    let scene = Scene::start().await;
    let forger = Forger::new(&scene);
    let now = forger.claims["iat"].as_i64().unwrap();
    for (name, claims) in [
        ("expired an hour ago", forger.with("exp", json!(now - 3600))),
        ("never expires", forger.without("exp")),
        ("expiry as a string", forger.with("exp", json!("9999999999"))),
        ("another audience", forger.with("aud", json!("elsewhere"))),
        ("many audiences", forger.with("aud", json!(["parlor", "elsewhere"]))),
        ("no audience", forger.without("aud")),
        ("another issuer", forger.with("iss", json!("elsewhere"))),
        ("a refresh token by type", forger.with("type", json!("refresh"))),
        ("no type", forger.without("type")),
        ("an unknown sign-in", forger.with("sid", json!("0190aaaa"))),
        ("no sign-in", forger.without("sid")),
        ("an unknown user", forger.with("sub", json!("0190aaaa"))),
        ("a malformed user id", forger.with("sub", json!("../admin"))),
        ("no claims", json!({})),
        ("claims are not an object", json!("admin")),
    ] {
        assert_no_access(&scene, name, &forger.sign(HEADER, &claims)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_does_not_authenticate_another_user() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let forger = Forger::new(&scene);
    let mixed = forger.with("sub", json!(ada.user_id()));
    assert_no_access(&scene, "ada by the admin's sign-in", &forger.sign(HEADER, &mixed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_tampered_with_is_refused() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let token = ada.token();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let forged = String::from_utf8(BASE64.decode(claims).unwrap()).unwrap();
    let forged = forged.replace(ada.user_id(), scene.admin.user_id());
    let flipped = if signature.starts_with('A') { 'B' } else { 'A' };
    for (name, token) in [
        ("claims replaced", format!("{header}.{}.{signature}", BASE64.encode(forged))),
        ("signature flipped", format!("{signed}.{flipped}{}", &signature[1..])),
        ("signature cut", format!("{signed}.{}", &signature[..20])),
        ("signature missing", format!("{signed}.")),
        ("an extra part", format!("{token}.{signature}")),
        ("no signature part", signed.to_owned()),
        ("padded", format!("{token}=")),
        ("another's signature", format!("{signed}.{}", scene.admin.token().rsplit_once('.').unwrap().1)),
        ("empty", String::new()),
        ("dots", "..".to_owned()),
        ("huge", "a".repeat(50_000)),
    ] {
        assert_no_access(&scene, name, &token).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_secrets_are_not_accepted_as_access_tokens() {
    let scene = Scene::start().await;
    let sign_in = json!({ "username": "admin", "password": parlor_testkit::hub::PASSWORD });
    let outsider = RestClient::outsider(scene.url());
    let data = outsider.post("/api/auth/login", sign_in).await.unwrap().data().unwrap();
    assert_no_access(&scene, "a refresh token", data["refreshToken"].as_str().unwrap()).await;
    let (key_id, key) = make_key(&scene.admin, &["read"]).await;
    assert_no_access(&scene, "the id of a key", &key_id).await;
    assert_no_access(&scene, "a key cut short", &key[..key.len() - 1]).await;
    assert_no_access(&scene, "a key in capitals", &key.to_uppercase()).await;
    assert_no_access(&scene, "the name of the admin", "admin").await;
    // Conversely, neither an access token nor an API key is accepted as a refresh token.
    for token in [scene.admin.token(), key.as_str()] {
        let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": token })).await.unwrap();
        assert_refused(&answer, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setup_token_is_not_accepted_as_access_or_refresh_token() {
    let data = tempfile::tempdir().unwrap();
    let command = parlor_testkit::hub::HubCommand::process(crate::scene::PARLOR, data.path());
    let mut hub = command.env_remove("PARLOR_ADMIN_PASSWORD").start().await.unwrap();
    let token = crate::process::first_admin::setup_token(&mut hub).await;
    let caller = RestClient::outsider(hub.url()).with_token(&token);
    assert_refused(&caller.get("/api/users/me").await.unwrap(), 401);
    let answer = caller.post("/api/auth/refresh", json!({ "refreshToken": token })).await.unwrap();
    assert_refused(&answer, 401);
    assert_eq!(caller.get("/setup").await.unwrap().status, 200, "the setup link is still valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn challenges_and_invitations_are_accepted_only_for_their_own_purpose() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let challenge = challenge(&scene, "ada").await;
    let invitation = scene.admin.post("/api/invites", json!({})).await.unwrap().data().unwrap();
    let invitation = invitation["token"].as_str().unwrap();
    let (_, key) = make_key(&ada, &["read"]).await;
    let outsider = RestClient::outsider(scene.url());
    let login = json!({ "username": "admin", "password": parlor_testkit::hub::PASSWORD });
    let signed_in = outsider.post("/api/auth/login", login).await.unwrap().data().unwrap();
    let refresh = signed_in["refreshToken"].as_str().unwrap();
    for (name, token) in [("a challenge", &*challenge), ("an invitation", invitation)] {
        assert_no_access(&scene, name, token).await;
        let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": token })).await.unwrap();
        assert_refused(&answer, 401);
        let cookie = outsider.request(reqwest::Method::POST, "/api/auth/refresh");
        let cookie = cookie.header("cookie", format!("parlor_rt={token}")).header("origin", scene.url());
        assert_eq!(cookie.send().await.unwrap().status(), 401, "{name}");
    }
    // Conversely, other tokens are refused in place of a challenge, even with valid codes.
    for token in [ada.token(), scene.admin.token(), refresh, &key, invitation, ""] {
        for code in [&device.code(1), &codes[0]] {
            let body = json!({ "totpToken": token, "code": code });
            assert_refused(&outsider.post("/api/auth/verify-totp", body).await.unwrap(), 401);
        }
    }
    for token in [ada.token(), &challenge, refresh, &key] {
        let body = json!({ "token": token, "username": "mallory", "password": crate::scene::PASSWORD });
        assert_refused(&outsider.post("/api/auth/register", body.clone()).await.unwrap(), 404);
        assert_refused(&outsider.post("/api/setup", body).await.unwrap(), 404);
    }
    let body = json!({ "totpToken": challenge, "code": codes[0] });
    assert_eq!(
        outsider.post("/api/auth/verify-totp", body).await.unwrap().status,
        200,
        "the refused attempts used up neither the challenge nor the code"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_challenge_does_not_replace_the_password() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let genuine = challenge(&scene, "ada").await;
    let forger = Forger::new(&scene);
    let claims = genuine.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap();
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        forger.sign(HEADER, &claims)
    };
    let (signed, _) = genuine.rsplit_once('.').unwrap();
    for (name, token) in [
        ("no signature", format!("{signed}.")),
        ("the type of an access token", with("type", json!("access"))),
        ("another user", with("sub", json!(scene.admin.user_id()))),
        ("an unknown user", with("sub", json!("nobody"))),
        ("another password version", with("sid", json!("x"))),
        ("expired", with("exp", json!(1))),
        ("another audience", with("aud", json!("elsewhere"))),
    ] {
        for code in [&device.code(1), &codes[0]] {
            let body = json!({ "totpToken": token, "code": code });
            let answer = RestClient::outsider(scene.url()).post("/api/auth/verify-totp", body).await.unwrap();
            assert_eq!(answer.status, 401, "{name}: {answer:?}");
        }
    }
}
