//! The first admin: by a link that works once, or by the settings.

use parlor_testkit::hub::{Hub, HubCommand};
use parlor_testkit::rest::RestClient;
use serde_json::json;

use crate::scene::{PARLOR, PASSWORD, assert_refused, bytes_in, contains};

/// The token in the link that the hub prints.
pub async fn setup_token(hub: &mut Hub) -> String {
    let url = hub.url().to_owned();
    let link = hub.printed(|line| {
        let link = line.split_whitespace().find(|word| word.contains("/setup#"))?;
        assert!(link.starts_with(&url), "{link}");
        // Behind the `#` it reaches neither a server, nor its log, nor a referrer.
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
async fn the_setup_link_makes_one_admin_and_then_there_is_no_such_page() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let token = setup_token(&mut hub).await;
    assert!(!contains(&bytes_in(data.path()), &token), "kept as a hash");
    let outsider = RestClient::outsider(hub.url());
    assert_eq!(outsider.get("/setup").await.unwrap().status, 200);
    for wrong in ["", "pls_guess", &token[..token.len() - 1], &token.to_lowercase()] {
        assert_refused(&outsider.post("/api/setup", account(wrong, "intruder")).await.unwrap(), 404);
    }
    // A password that breaks the rules does not use the link up.
    let weak = json!({ "token": token, "username": "first", "password": "weak" });
    let answer = outsider.post("/api/setup", weak).await.unwrap();
    assert_refused(&answer, 400);
    assert_eq!(answer.body["fields"][0]["field"], "password");

    let signed = outsider.post("/api/setup", account(&token, "first")).await.unwrap();
    assert!(signed.headers["set-cookie"].to_str().unwrap().starts_with("parlor_rt="), "signed in at once");
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
async fn a_restart_gives_a_new_link_and_the_old_one_is_void() {
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
async fn an_expired_link_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = without_admin(&data).start().await.unwrap();
    let token = setup_token(&mut hub).await;
    // The shortest lifetime is a minute; ageing the offer is quicker than waiting.
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
async fn two_who_use_the_link_at_once_make_one_admin() {
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
async fn the_settings_make_the_first_admin_and_never_a_second() {
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

    // With an admin there, the settings change nobody: neither the password nor the number of admins.
    hub.crash().await.unwrap();
    let hub = command.env("PARLOR_ADMIN_USER", "another").start().await.unwrap();
    assert!(hub.sign_in("another", PASSWORD).await.is_err());
    assert!(hub.sign_in("chief", PASSWORD).await.is_err());
    hub.sign_in("chief", "Own-choice-1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_password_that_breaks_the_rules_stops_the_start_without_repeating_it() {
    let data = tempfile::tempdir().unwrap();
    let error = without_admin(&data).env("PARLOR_ADMIN_PASSWORD", "allcanary").start().await.err().unwrap();
    let said = error.to_string();
    assert!(said.contains("password") && !said.contains("allcanary"), "{said}");
}
