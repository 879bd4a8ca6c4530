//! A second factor: turning it on, signing in with it, losing it.

use std::time::{Duration, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use parlor_testkit::rest::{RestClient, RestResponse};
use serde_json::{Value, json};
use sha1::Sha1;

use crate::scene::{PARLOR, PASSWORD, Scene, assert_refused, make_key};

/// A device that makes codes: the standard, written down once more.
pub struct Device {
    secret: Vec<u8>,
    /// The half minute in which it was made. Codes count from there, so that no code changes during a test.
    made_in: i64,
}

impl Device {
    pub fn new(secret: &str) -> Self {
        let value = |c: u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|own| *own == c).unwrap();
        let bits: String = secret.bytes().map(|c| format!("{:05b}", value(c))).collect();
        let bytes = bits.as_bytes().chunks_exact(8);
        let number = |byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap();
        let made_in = UNIX_EPOCH.elapsed().unwrap().as_secs() as i64 / 30;
        Self { secret: bytes.map(number).collect(), made_in }
    }

    /// The code so many half minutes after it was made. One ahead is good, and stays so for a minute.
    pub fn code(&self, ahead: i64) -> String {
        let step = self.made_in + ahead;
        let mac = Hmac::<Sha1>::new_from_slice(&self.secret).unwrap().chain_update(step.to_be_bytes());
        let mac = mac.finalize().into_bytes();
        let at = usize::from(mac[19] % 16);
        let number = u32::from_be_bytes(mac[at..at + 4].try_into().unwrap()) % (1 << 31);
        format!("{:06}", number % 1_000_000)
    }

    /// A code of this secret, but not of this time.
    pub fn wrong_code(&self) -> String {
        let near = [-2, -1, 0, 1, 2, 3, 4].map(|ahead| self.code(ahead));
        (100..).map(|ahead| self.code(ahead)).find(|code| !near.contains(code)).unwrap()
    }
}

/// Turns it on; gives the device and the codes on paper.
pub async fn turn_on(person: &RestClient) -> (Device, Vec<String>) {
    let offered = person.post("/api/auth/setup-totp", json!({})).await.unwrap().data().unwrap();
    let device = Device::new(offered["secret"].as_str().unwrap());
    let body = json!({ "code": device.code(0) });
    let codes = person.post("/api/auth/verify-totp-setup", body).await.unwrap().data().unwrap();
    let codes = codes["backupCodes"].as_array().unwrap().iter();
    (device, codes.map(|code| code.as_str().unwrap().to_owned()).collect())
}

async fn login(scene: &Scene, username: &str, password: &str) -> RestResponse {
    let body = json!({ "username": username, "password": password });
    RestClient::outsider(scene.url()).post("/api/auth/login", body).await.unwrap()
}

pub async fn challenge(scene: &Scene, username: &str) -> String {
    let asked = login(scene, username, PASSWORD).await;
    assert_eq!(asked.status, 200, "{asked:?}");
    assert!(asked.headers.get("set-cookie").is_none(), "{asked:?}");
    let data = asked.data().unwrap();
    assert_eq!(data.as_object().unwrap().len(), 2, "nothing but the question: {data}");
    assert_eq!(data["totpRequired"], true);
    data["totpToken"].as_str().unwrap().to_owned()
}

async fn verify(scene: &Scene, token: &str, code: &str) -> RestResponse {
    let body = json!({ "totpToken": token, "code": code });
    RestClient::outsider(scene.url()).post("/api/auth/verify-totp", body).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_second_factor_a_password_only_gets_a_question() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let offered = ada.post("/api/auth/setup-totp", json!({})).await.unwrap().data().unwrap();
    let secret = offered["secret"].as_str().unwrap();
    assert_eq!(offered["uri"], format!("otpauth://totp/Parlor:ada?secret={secret}&issuer=Parlor"));
    assert_eq!(
        login(&scene, "ada", PASSWORD).await.data().unwrap()["user"]["totpEnabled"],
        false,
        "offered only"
    );
    let device = Device::new(secret);
    let wrong = json!({ "code": device.wrong_code() });
    assert_refused(&ada.post("/api/auth/verify-totp-setup", wrong).await.unwrap(), 401);
    let (device, codes) = turn_on(&ada).await;
    assert_eq!(codes.len(), 10);
    assert_eq!(ada.get("/api/users/me").await.unwrap().data().unwrap()["totpEnabled"], true);
    assert_refused(&ada.post("/api/auth/setup-totp", json!({})).await.unwrap(), 409);

    let token = challenge(&scene, "ada").await;
    let signed = verify(&scene, &token, &device.code(1)).await;
    assert_eq!(signed.status, 200, "{signed:?}");
    assert!(signed.headers["set-cookie"].to_str().unwrap().starts_with("parlor_rt=plr_"));
    let signed = signed.data().unwrap();
    assert_eq!((&signed["user"]["username"], &signed["user"]["totpEnabled"]), (&json!("ada"), &json!(true)));
    let again = ada.with_token(signed["accessToken"].as_str().unwrap());
    assert_eq!(again.get("/api/users/me").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_good_once_also_for_many_at_once() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    // The code that turned it on is spent.
    assert_refused(&verify(&scene, &token, &device.code(0)).await, 401);
    let code = device.code(1);
    let (one, other) = tokio::join!(verify(&scene, &token, &code), verify(&scene, &token, &code));
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    let paper = &codes[3];
    let (one, other) = tokio::join!(verify(&scene, &token, paper), verify(&scene, &token, paper));
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    let shouted = codes[4].to_uppercase().replace('-', " ");
    assert_eq!(verify(&scene, &token, &shouted).await.status, 200, "however it is typed");
    assert_refused(&verify(&scene, &token, "not-a-code-of-ours").await, 401);
    assert_refused(&verify(&scene, &token, "").await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_lock_the_account_and_look_like_wrong_passwords() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let wrong_password = login(&scene, "ada", "Wrong-guess-1").await;
    let token = challenge(&scene, "ada").await;
    for _ in 0..4 {
        assert_eq!(verify(&scene, &token, &device.wrong_code()).await.body, wrong_password.body);
    }
    let right = verify(&scene, &token, &device.code(1)).await;
    assert_eq!((right.status.as_u16(), &right.body), (401, &wrong_password.body), "locked");
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    assert_refused(&login(&scene, "ada", PASSWORD).await, 401);
    let users = scene.admin.get("/api/users").await.unwrap().data().unwrap();
    assert_eq!(users[1]["locked"], true);
    let path = format!("/api/users/{}", ada.user_id());
    scene.admin.put(&path, json!({ "password": "Given-anew-12" })).await.unwrap().data().unwrap();
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    let asked = login(&scene, "ada", "Given-anew-12").await.data().unwrap();
    assert_eq!(asked["totpRequired"], true, "a new password leaves the second factor");
    let token = asked["totpToken"].as_str().unwrap();
    assert_eq!(verify(&scene, token, &codes[0]).await.status, 200, "what was refused spent nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_turned_off_with_the_password_and_its_codes_are_gone() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    assert_refused(&ada.post("/api/auth/disable-totp", json!({ "password": PASSWORD })).await.unwrap(), 404);
    assert_refused(&ada.post("/api/auth/verify-totp-setup", json!({ "code": "123456" })).await.unwrap(), 401);
    let (_, codes) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    let wrong = json!({ "password": "Wrong-guess-1" });
    assert_refused(&ada.post("/api/auth/disable-totp", wrong).await.unwrap(), 401);
    let off = ada.post("/api/auth/disable-totp", json!({ "password": PASSWORD })).await.unwrap();
    assert_eq!(off.body, json!({ "ok": true }));
    assert!(login(&scene, "ada", PASSWORD).await.data().unwrap()["accessToken"].is_string());
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    let (_, newer) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    assert_eq!(verify(&scene, &token, &newer[0]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_go_on_without_it_and_cannot_touch_it() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&ada, &["read", "write", "admin"]).await;
    let program = ada.with_token(&key);
    assert_refused(&program.post("/api/auth/setup-totp", json!({})).await.unwrap(), 403);
    turn_on(&ada).await;
    assert_eq!(program.get("/api/users/me").await.unwrap().status, 200);
    let body = json!({ "password": PASSWORD });
    assert_refused(&program.post("/api/auth/disable-totp", body).await.unwrap(), 403);
    for path in ["setup-totp", "verify-totp-setup", "disable-totp"] {
        let body = json!({ "code": "123456", "password": PASSWORD });
        let path = format!("/api/auth/{path}");
        assert_refused(&RestClient::outsider(scene.url()).post(&path, body).await.unwrap(), 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_helps_who_lost_the_device_and_a_restart_forgets_nothing() {
    let mut scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, codes) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    assert_eq!(verify(&scene, &token, &codes[0]).await.status, 200);
    scene.crash_and_restart().await;
    let token = challenge(&scene, "ada").await;
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    assert_eq!(verify(&scene, &token, &codes[1]).await.status, 200);

    let disable = async |name: &str| {
        let mut command = tokio::process::Command::new(PARLOR);
        command.args(["admin", "user", "disable-second-factor", name, "--data"]).arg(scene.data());
        tokio::time::timeout(Duration::from_secs(20), command.output()).await.unwrap().unwrap()
    };
    let done = disable("ada").await;
    assert_eq!(String::from_utf8_lossy(&done.stdout), "ada signs in with the password alone.\n");
    let signed: Value = login(&scene, "ada", PASSWORD).await.data().unwrap();
    assert_eq!(signed["user"]["totpEnabled"], false);
    let twice = disable("ada").await;
    assert!(!twice.status.success());
    assert!(String::from_utf8_lossy(&twice.stderr).contains("Second factor not found"), "{twice:?}");
}
