//! The second factor (TOTP): set-up, sign-in with codes or backup codes, lockout, and removal.

use std::time::{Duration, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use parlor_testkit::rest::{RestClient, RestResponse};
use serde_json::{Value, json};
use sha1::Sha1;

use crate::scene::{PASSWORD, Scene, assert_refused, make_key, parlor_command};

/// TOTP authenticator, implemented from RFC 6238 independently of the hub.
pub struct Device {
    secret: Vec<u8>,
    /// 30-second time step in which the device was created. Codes are relative to it, so that none changes
    /// during a test.
    creation_step: i64,
}

impl Device {
    pub fn new(secret: &str) -> Self {
        let value = |c: u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".iter().position(|digit| *digit == c).unwrap();
        let bits: String = secret.bytes().map(|c| format!("{:05b}", value(c))).collect();
        let bytes = bits.as_bytes().chunks_exact(8);
        let parse_byte = |byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap();
        let creation_step = UNIX_EPOCH.elapsed().unwrap().as_secs() as i64 / 30;
        Self { secret: bytes.map(parse_byte).collect(), creation_step }
    }

    /// Code of the time step `ahead` steps after the creation of the device. Step 1 is valid for at least a
    /// minute, because the hub accepts adjacent steps.
    pub fn code(&self, ahead: i64) -> String {
        let step = self.creation_step + ahead;
        let mac = Hmac::<Sha1>::new_from_slice(&self.secret).unwrap().chain_update(step.to_be_bytes());
        let mac = mac.finalize().into_bytes();
        let offset = usize::from(mac[19] % 16);
        let number = u32::from_be_bytes(mac[offset..offset + 4].try_into().unwrap()) % (1 << 31);
        format!("{:06}", number % 1_000_000)
    }

    /// A code of this secret that is not valid near the current time.
    pub fn wrong_code(&self) -> String {
        let near = [-2, -1, 0, 1, 2, 3, 4].map(|ahead| self.code(ahead));
        (100..).map(|ahead| self.code(ahead)).find(|code| !near.contains(code)).unwrap()
    }
}

/// Enables the second factor; returns the device and the backup codes.
pub async fn turn_on(user: &RestClient) -> (Device, Vec<String>) {
    let offered = user.post("/api/auth/setup-totp", json!({})).await.unwrap().data().unwrap();
    let device = Device::new(offered["secret"].as_str().unwrap());
    let body = json!({ "code": device.code(0) });
    let codes = user.post("/api/auth/verify-totp-setup", body).await.unwrap().data().unwrap();
    let codes = codes["backupCodes"].as_array().unwrap().iter();
    (device, codes.map(|code| code.as_str().unwrap().to_owned()).collect())
}

async fn login(scene: &Scene, username: &str, password: &str) -> RestResponse {
    let body = json!({ "username": username, "password": password });
    RestClient::outsider(scene.url()).post("/api/auth/login", body).await.unwrap()
}

pub async fn challenge(scene: &Scene, username: &str) -> String {
    let response = login(scene, username, PASSWORD).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.headers.get("set-cookie").is_none(), "{response:?}");
    let data = response.data().unwrap();
    assert_eq!(data.as_object().unwrap().len(), 2, "the response contains only the challenge: {data}");
    assert_eq!(data["totpRequired"], true);
    data["totpToken"].as_str().unwrap().to_owned()
}

async fn verify(scene: &Scene, token: &str, code: &str) -> RestResponse {
    let body = json!({ "totpToken": token, "code": code });
    RestClient::outsider(scene.url()).post("/api/auth/verify-totp", body).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_second_factor_a_password_yields_only_a_challenge() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let offered = ada.post("/api/auth/setup-totp", json!({})).await.unwrap().data().unwrap();
    let secret = offered["secret"].as_str().unwrap();
    assert_eq!(offered["uri"], format!("otpauth://totp/Parlor:ada?secret={secret}&issuer=Parlor"));
    assert_eq!(
        login(&scene, "ada", PASSWORD).await.data().unwrap()["user"]["totpEnabled"],
        false,
        "the set-up is not confirmed yet"
    );
    let device = Device::new(secret);
    let wrong = json!({ "code": device.wrong_code() });
    assert_refused(&ada.post("/api/auth/verify-totp-setup", wrong).await.unwrap(), 401);
    let (device, codes) = turn_on(&ada).await;
    assert_eq!(codes.len(), 10);
    assert_eq!(ada.get("/api/users/me").await.unwrap().data().unwrap()["totpEnabled"], true);
    assert_refused(&ada.post("/api/auth/setup-totp", json!({})).await.unwrap(), 409);

    let token = challenge(&scene, "ada").await;
    let session = verify(&scene, &token, &device.code(1)).await;
    assert_eq!(session.status, 200, "{session:?}");
    assert!(session.headers["set-cookie"].to_str().unwrap().starts_with("parlor_rt=plr_"));
    let session = session.data().unwrap();
    assert_eq!(
        (&session["user"]["username"], &session["user"]["totpEnabled"]),
        (&json!("ada"), &json!(true))
    );
    let signed_in = ada.with_token(session["accessToken"].as_str().unwrap());
    assert_eq!(signed_in.get("/api/users/me").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_accepted_once_even_for_concurrent_requests() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (device, codes) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    // The code that confirmed the set-up is used up.
    assert_refused(&verify(&scene, &token, &device.code(0)).await, 401);
    let code = device.code(1);
    let (first, second) = tokio::join!(verify(&scene, &token, &code), verify(&scene, &token, &code));
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    let backup_code = &codes[3];
    let (first, second) =
        tokio::join!(verify(&scene, &token, backup_code), verify(&scene, &token, backup_code));
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    let reformatted = codes[4].to_uppercase().replace('-', " ");
    assert_eq!(
        verify(&scene, &token, &reformatted).await.status,
        200,
        "case and separators of a backup code do not matter"
    );
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
    assert_eq!((right.status.as_u16(), &right.body), (401, &wrong_password.body), "the account is locked");
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    assert_refused(&login(&scene, "ada", PASSWORD).await, 401);
    let users = scene.admin.get("/api/users").await.unwrap().data().unwrap();
    assert_eq!(users[1]["locked"], true);
    let path = format!("/api/users/{}", ada.user_id());
    scene.admin.put(&path, json!({ "password": "Given-anew-12" })).await.unwrap().data().unwrap();
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    let challenge = login(&scene, "ada", "Given-anew-12").await.data().unwrap();
    assert_eq!(challenge["totpRequired"], true, "a new password does not disable the second factor");
    let token = challenge["totpToken"].as_str().unwrap();
    assert_eq!(
        verify(&scene, token, &codes[0]).await.status,
        200,
        "a refused attempt does not use up the code"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_needs_the_password_and_invalidates_the_codes() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    assert_refused(&ada.post("/api/auth/disable-totp", json!({ "password": PASSWORD })).await.unwrap(), 404);
    assert_refused(&ada.post("/api/auth/verify-totp-setup", json!({ "code": "123456" })).await.unwrap(), 401);
    let (_, codes) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    let wrong = json!({ "password": "Wrong-guess-1" });
    assert_refused(&ada.post("/api/auth/disable-totp", wrong).await.unwrap(), 401);
    let disabled = ada.post("/api/auth/disable-totp", json!({ "password": PASSWORD })).await.unwrap();
    assert_eq!(disabled.body, json!({ "ok": true }));
    assert!(login(&scene, "ada", PASSWORD).await.data().unwrap()["accessToken"].is_string());
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    let (_, new_codes) = turn_on(&ada).await;
    let token = challenge(&scene, "ada").await;
    assert_refused(&verify(&scene, &token, &codes[0]).await, 401);
    assert_eq!(verify(&scene, &token, &new_codes[0]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_work_without_the_second_factor_and_cannot_change_it() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&ada, &["read", "write", "admin"]).await;
    let key_client = ada.with_token(&key);
    assert_refused(&key_client.post("/api/auth/setup-totp", json!({})).await.unwrap(), 403);
    turn_on(&ada).await;
    assert_eq!(key_client.get("/api/users/me").await.unwrap().status, 200);
    let body = json!({ "password": PASSWORD });
    assert_refused(&key_client.post("/api/auth/disable-totp", body).await.unwrap(), 403);
    for path in ["setup-totp", "verify-totp-setup", "disable-totp"] {
        let body = json!({ "code": "123456", "password": PASSWORD });
        let path = format!("/api/auth/{path}");
        assert_refused(&RestClient::outsider(scene.url()).post(&path, body).await.unwrap(), 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn used_codes_survive_a_restart_and_the_cli_disables_the_second_factor() {
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
        let mut command = parlor_command();
        command.args(["admin", "user", "disable-second-factor", name, "--data"]).arg(scene.data());
        tokio::time::timeout(Duration::from_secs(20), command.output()).await.unwrap().unwrap()
    };
    let output = disable("ada").await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Disabled the second factor of ada.\n");
    let session: Value = login(&scene, "ada", PASSWORD).await.data().unwrap();
    assert_eq!(session["user"]["totpEnabled"], false);
    let repeated = disable("ada").await;
    assert!(!repeated.status.success());
    assert!(String::from_utf8_lossy(&repeated.stderr).contains("Second factor not found"), "{repeated:?}");
}
