//! Forged and misused tokens. The attacker here even knows the key that signs them: what is not an access
//! token of this hub, in its one form, is still none.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::Socket;
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};

use crate::scene::{Scene, assert_refused, make_key};
use crate::sign_in::second_factor::{challenge, turn_on};

/// Signs whatever it is given with the hub's own key.
struct Forge {
    key: Vec<u8>,
    claims: Value,
}

impl Forge {
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

/// Refused as a bearer token and as the first frame on both sockets.
async fn assert_useless(scene: &Scene, name: &str, token: &str) {
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
async fn no_other_algorithm_and_no_key_id_is_taken() {
    let scene = Scene::start().await;
    let forge = Forge::new(&scene);
    let me = scene.admin.with_token(&forge.sign(HEADER, &forge.claims));
    assert_eq!(me.get("/api/users/me").await.unwrap().status, 200, "the forge works");
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
        assert_useless(&scene, header, &forge.sign(header, &forge.claims)).await;
    }
    let unsigned = format!(
        "{}.{}.",
        BASE64.encode(r#"{"alg":"none","typ":"JWT"}"#),
        BASE64.encode(forge.claims.to_string())
    );
    assert_useless(&scene, "unsigned", &unsigned).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_are_not_an_access_token_of_a_living_sign_in_are_refused() {
    let scene = Scene::start().await;
    let forge = Forge::new(&scene);
    let now = forge.claims["iat"].as_i64().unwrap();
    for (name, claims) in [
        ("expired an hour ago", forge.with("exp", json!(now - 3600))),
        ("never expires", forge.without("exp")),
        ("expires in words", forge.with("exp", json!("9999999999"))),
        ("another audience", forge.with("aud", json!("elsewhere"))),
        ("many audiences", forge.with("aud", json!(["parlor", "elsewhere"]))),
        ("no audience", forge.without("aud")),
        ("another issuer", forge.with("iss", json!("elsewhere"))),
        ("a refresh token by type", forge.with("type", json!("refresh"))),
        ("no type", forge.without("type")),
        ("an unknown sign-in", forge.with("sid", json!("0190aaaa"))),
        ("no sign-in", forge.without("sid")),
        ("an unknown person", forge.with("sub", json!("0190aaaa"))),
        ("an impossible person", forge.with("sub", json!("../admin"))),
        ("nothing", json!({})),
        ("no object", json!("admin")),
    ] {
        assert_useless(&scene, name, &forge.sign(HEADER, &claims)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_of_one_person_does_not_speak_for_another() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let forge = Forge::new(&scene);
    let mixed = forge.with("sub", json!(ada.user_id()));
    assert_useless(&scene, "ada by the admin's sign-in", &forge.sign(HEADER, &mixed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_tampered_with_is_refused() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let token = ada.token();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let raised = String::from_utf8(BASE64.decode(claims).unwrap()).unwrap();
    let raised = raised.replace(ada.user_id(), scene.admin.user_id());
    let flipped = if signature.starts_with('A') { 'B' } else { 'A' };
    for (name, token) in [
        ("claims replaced", format!("{header}.{}.{signature}", BASE64.encode(raised))),
        ("signature flipped", format!("{signed}.{flipped}{}", &signature[1..])),
        ("signature cut", format!("{signed}.{}", &signature[..20])),
        ("signature missing", format!("{signed}.")),
        ("a part more", format!("{token}.{signature}")),
        ("a part less", signed.to_owned()),
        ("padded", format!("{token}=")),
        ("another's signature", format!("{signed}.{}", scene.admin.token().rsplit_once('.').unwrap().1)),
        ("empty", String::new()),
        ("dots", "..".to_owned()),
        ("huge", "a".repeat(50_000)),
    ] {
        assert_useless(&scene, name, &token).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_secrets_of_the_hub_are_no_access_tokens() {
    let scene = Scene::start().await;
    let sign_in = json!({ "username": "admin", "password": parlor_testkit::hub::PASSWORD });
    let outsider = RestClient::outsider(scene.url());
    let data = outsider.post("/api/auth/login", sign_in).await.unwrap().data().unwrap();
    assert_useless(&scene, "a refresh token", data["refreshToken"].as_str().unwrap()).await;
    let (key_id, key) = make_key(&scene.admin, &["read"]).await;
    assert_useless(&scene, "the id of a key", &key_id).await;
    assert_useless(&scene, "a key cut short", &key[..key.len() - 1]).await;
    assert_useless(&scene, "a key in capitals", &key.to_uppercase()).await;
    assert_useless(&scene, "the name of the admin", "admin").await;
    // And the other way round: neither an access token nor a key refreshes anything.
    for token in [scene.admin.token(), key.as_str()] {
        let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": token })).await.unwrap();
        assert_refused(&answer, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setup_token_is_no_access_token() {
    let data = tempfile::tempdir().unwrap();
    let command = parlor_testkit::hub::HubCommand::process(crate::scene::PARLOR, data.path());
    let mut hub = command.env_remove("PARLOR_ADMIN_PASSWORD").start().await.unwrap();
    let token = crate::process::first_admin::setup_token(&mut hub).await;
    let caller = RestClient::outsider(hub.url()).with_token(&token);
    assert_refused(&caller.get("/api/users/me").await.unwrap(), 401);
    let answer = caller.post("/api/auth/refresh", json!({ "refreshToken": token })).await.unwrap();
    assert_refused(&answer, 401);
    assert_eq!(caller.get("/setup").await.unwrap().status, 200, "the link is still good");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_and_an_invitation_are_good_for_what_they_are_for_alone() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let challenge = challenge(&scene, "ada").await;
    let invitation = scene.admin.post("/api/invites", json!({})).await.unwrap().data().unwrap();
    let invitation = invitation["token"].as_str().unwrap();
    let (_, key) = make_key(&ada, &["read"]).await;
    let outsider = RestClient::outsider(scene.url());
    let login = json!({ "username": "admin", "password": parlor_testkit::hub::PASSWORD });
    let signed = outsider.post("/api/auth/login", login).await.unwrap().data().unwrap();
    let refresh = signed["refreshToken"].as_str().unwrap();
    for (name, token) in [("a challenge", &*challenge), ("an invitation", invitation)] {
        assert_useless(&scene, name, token).await;
        let answer = outsider.post("/api/auth/refresh", json!({ "refreshToken": token })).await.unwrap();
        assert_refused(&answer, 401);
        let cookie = outsider.request(reqwest::Method::POST, "/api/auth/refresh");
        let cookie = cookie.header("cookie", format!("parlor_rt={token}")).header("origin", scene.url());
        assert_eq!(cookie.send().await.unwrap().status(), 401, "{name}");
    }
    // The other way round, with codes that are good.
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
    assert_eq!(outsider.post("/api/auth/verify-totp", body).await.unwrap().status, 200, "nothing was spent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_challenge_does_not_stand_for_a_password() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let good = challenge(&scene, "ada").await;
    let forge = Forge::new(&scene);
    let claims = good.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&BASE64.decode(claims).unwrap()).unwrap();
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        forge.sign(HEADER, &claims)
    };
    let (signed, _) = good.rsplit_once('.').unwrap();
    for (name, token) in [
        ("no signature", format!("{signed}.")),
        ("an access token's kind", with("type", json!("access"))),
        ("another's name", with("sub", json!(scene.admin.user_id()))),
        ("no such person", with("sub", json!("nobody"))),
        ("another password", with("sid", json!("x"))),
        ("run out", with("exp", json!(1))),
        ("another audience", with("aud", json!("elsewhere"))),
    ] {
        for code in [&device.code(1), &codes[0]] {
            let body = json!({ "totpToken": token, "code": code });
            let answer = RestClient::outsider(scene.url()).post("/api/auth/verify-totp", body).await.unwrap();
            assert_eq!(answer.status, 401, "{name}: {answer:?}");
        }
    }
}
