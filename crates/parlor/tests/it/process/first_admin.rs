//! Tests of creating the first admin: with the one-time setup link, or from the settings.

use parlor_testkit::hub::{Hub, HubCommand};
use parlor_testkit::rest::RestClient;
use serde_json::json;

use crate::scene::{PARLOR, PASSWORD, assert_refused, bytes_in, contains};

/// Returns the token in the setup link that the hub prints.
pub async fn setup_token(hub: &mut Hub) -> String {
    let url = hub.url().to_owned();
    let link = hub.printed(|line| {
        let link = line.split_whitespace().find(|word| word.contains("/setup#"))?;
        assert!(link.starts_with(&url), "{link}");
        // A token in the fragment is sent neither to a server, nor in a `Referer` header, and is not logged.
        Some(link.split_once("#token=").expect("the token is in the fragment").1.to_owned())
    });
    link.await.unwrap()
}

fn without_admin(data: &tempfile::TempDir) -> HubCommand {
    HubCommand::process(PARLOR, data.path()).env_remove("PARLOR_ADMIN_PASSWORD")
}

fn account(token: &str, username: &str) -> serde_json::Value {
    json!({ "token": token, "username": username, "password": PASSWORD })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setup_link_creates_one_admin_and_then_returns_404() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let token = setup_token(&mut hub).await;
    assert!(!contains(&bytes_in(data.path()), &token), "only the hash is stored");
    let outsider = RestClient::outsider(hub.url());
    assert_eq!(outsider.get("/setup").await.unwrap().status, 200);
    for wrong in ["", "pls_guess", &token[..token.len() - 1], &token.to_lowercase()] {
        assert_refused(&outsider.post("/api/setup", account(wrong, "intruder")).await.unwrap(), 404);
    }
    // An invalid password does not consume the link.
    let weak = json!({ "token": token, "username": "first", "password": "weak" });
    let answer = outsider.post("/api/setup", weak).await.unwrap();
    assert_refused(&answer, 400);
    assert_eq!(answer.body["fields"][0]["field"], "password");

    let signed = outsider.post("/api/setup", account(&token, "first")).await.unwrap();
    assert!(
        signed.headers["set-cookie"].to_str().unwrap().starts_with("parlor_rt="),
        "the new admin is signed in"
    );
    let signed = signed.data().unwrap();
    assert_eq!((&signed["user"]["username"], &signed["user"]["role"]), (&json!("first"), &json!("admin")));
    let first = outsider.with_token(signed["accessToken"].as_str().unwrap());
    assert_eq!(first.get("/api/users").await.unwrap().body["total"], 1);

    assert_refused(&outsider.get("/setup").await.unwrap(), 404);
    assert_refused(&outsider.post("/api/setup", account(&token, "second")).await.unwrap(), 404);
    assert_eq!(first.get("/api/users").await.unwrap().body["total"], 1);
    assert!(!contains(&bytes_in(data.path()), &token));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_prints_a_new_link_and_invalidates_the_old_one() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let old = setup_token(&mut hub).await;
    hub.crash().await.unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let new = setup_token(&mut hub).await;
    assert_ne!(old, new);
    let outsider = RestClient::outsider(hub.url());
    assert_refused(&outsider.post("/api/setup", account(&old, "first")).await.unwrap(), 404);
    assert_eq!(outsider.post("/api/setup", account(&new, "first")).await.unwrap().status, 200);
    hub.crash().await.unwrap();
    let hub = without_admin(&data).start().await.unwrap();
    let outsider = RestClient::outsider(hub.url());
    assert_refused(&outsider.get("/setup").await.unwrap(), 404);
    hub.sign_in("first", PASSWORD).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_setup_link_is_rejected() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let token = setup_token(&mut hub).await;
    // The minimum lifetime is one minute. Moving the expiry in the database is faster than waiting.
    let database = rusqlite::Connection::open(data.path().join("parlor.db")).unwrap();
    database.busy_timeout(parlor_testkit::socket::TEST_TIMEOUT).unwrap();
    let aged =
        database.execute("UPDATE meta SET value = value - 86400000000 WHERE key = 'setup_expires'", []);
    assert_eq!(aged.unwrap(), 1);
    let outsider = RestClient::outsider(hub.url());
    assert_refused(&outsider.post("/api/setup", account(&token, "first")).await.unwrap(), 404);
    assert_eq!(outsider.get("/setup").await.unwrap().status, 200, "there is still no admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uses_of_the_setup_link_create_one_admin() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let token = setup_token(&mut hub).await;
    let outsider = RestClient::outsider(hub.url());
    let attempts = (0..6).map(|n| {
        let (outsider, body) = (outsider.clone(), account(&token, &format!("admin-{n}")));
        tokio::spawn(async move { outsider.post("/api/setup", body).await.unwrap().status.as_u16() })
    });
    let attempts: Vec<_> = attempts.collect();
    let mut statuses = Vec::new();
    for attempt in attempts {
        statuses.push(attempt.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404, 404, 404, 404, 404]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_create_the_first_admin_and_never_a_second() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("password.txt");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let hub_data = tempfile::tempdir().unwrap();
    let command = without_admin(&hub_data)
        .env("PARLOR_ADMIN_PASSWORD_FILE", file.to_str().unwrap())
        .env("PARLOR_ADMIN_USER", "chief");
    let mut hub = command.start().await.unwrap();
    let chief = hub.sign_in("chief", PASSWORD).await.unwrap();
    assert_eq!(chief.get("/api/users/me").await.unwrap().data().unwrap()["role"], "admin");
    assert!(!hub.stdout().contains("/setup"), "{}", hub.stdout());
    assert_refused(&chief.get("/setup").await.unwrap(), 404);
    let body = json!({ "currentPassword": PASSWORD, "newPassword": "Own-choice-1" });
    assert_eq!(chief.put("/api/users/me/password", body).await.unwrap().status, 200);

    // Once an admin exists, the settings change neither the password nor the number of admins.
    hub.crash().await.unwrap();
    let hub = command.env("PARLOR_ADMIN_USER", "another").start().await.unwrap();
    assert!(hub.sign_in("another", PASSWORD).await.is_err());
    assert!(hub.sign_in("chief", PASSWORD).await.is_err());
    hub.sign_in("chief", "Own-choice-1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_admin_password_stops_the_start_without_being_printed() {
    let data = tempfile::tempdir().unwrap();
    let error = without_admin(&data).env("PARLOR_ADMIN_PASSWORD", "allcanary").start().await.err().unwrap();
    let message = error.to_string();
    assert!(message.contains("password") && !message.contains("allcanary"), "{message}");
}
