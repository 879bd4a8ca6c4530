//! The audit log: what it tells, to whom, and what it never holds.

use std::time::Duration;

use parlor_testkit::rest::RestClient;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PARLOR, PASSWORD, Scene, assert_refused, make_key};
use crate::sign_in::second_factor::turn_on;

async fn entries(admin: &RestClient, query: &str) -> Vec<Value> {
    let page = admin.get(&format!("/api/audit?{query}")).await.unwrap().data().unwrap();
    page["items"].as_array().unwrap().clone()
}

/// `actor action subject detail`, oldest first.
fn told(entries: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |entry: &Value| {
        let actor = entry["actor"].get("name").unwrap_or(&entry["actor"]["kind"]);
        let subject = entry["subject"].get("name").map_or("-".into(), text);
        format!("{} {} {subject} {}", text(actor), text(&entry["action"]), text(&entry["detail"]))
    };
    entries.iter().rev().map(line).collect()
}

async fn login(scene: &Scene, username: &str, password: &str) -> u16 {
    let body = json!({ "username": username, "password": password });
    RestClient::outsider(scene.url()).post("/api/auth/login", body).await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_an_account_can_be_read_from_it() {
    let scene = Scene::start().await;
    let admin = &scene.admin;
    let ada = scene.person("ada").await;
    let id = ada.user_id().to_owned();
    let room = admin.make_room("Secret plans", &[&ada]).await.unwrap();
    let member = format!("/api/rooms/{room}/members/{id}");
    admin.put(&member, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    assert_eq!(admin.delete(&member).await.unwrap().status, 200);
    let (key, _) = make_key(&ada, &["read", "write"]).await;
    assert_eq!(ada.delete(&format!("/api/keys/{key}")).await.unwrap().status, 200);
    turn_on(&ada).await;
    ada.post("/api/auth/disable-totp", json!({ "password": PASSWORD })).await.unwrap();
    let user = format!("/api/users/{id}");
    let body = json!({ "role": "admin", "displayName": "Countess" });
    admin.put(&user, body).await.unwrap().data().unwrap();
    assert_eq!(ada.post("/api/auth/logout", json!({})).await.unwrap().status, 200);
    admin.put(&user, json!({ "password": "Given-anew-12" })).await.unwrap().data().unwrap();
    assert_eq!(admin.delete(&user).await.unwrap().status, 200);

    let session = |line: &String| line.split(" session ").next().unwrap().to_owned();
    let about: Vec<String> =
        told(&entries(admin, "subject=ada&limit=200").await).iter().map(session).collect();
    assert_eq!(
        about,
        [
            "admin user_created ada as user".to_owned(),
            "ada signed_in ada -".to_owned(),
            format!("admin member_added ada in room {room}, as member"),
            format!("admin member_changed ada in room {room}, as admin"),
            format!("admin member_removed ada in room {room}"),
            "ada second_factor_on ada -".to_owned(),
            "ada second_factor_off ada -".to_owned(),
            "admin role_changed ada from user to admin".to_owned(),
            "admin user_changed ada -".to_owned(),
            "ada signed_out ada".to_owned(),
            "admin password_changed ada -".to_owned(),
            "admin user_removed ada -".to_owned(),
        ]
    );
    let keys = told(&entries(admin, &format!("subject={key}")).await);
    assert_eq!(
        keys,
        [
            format!("ada key_created a program for {id}: read write"),
            format!("ada key_revoked a program of {id}")
        ]
    );
    let all = admin.get("/api/audit?limit=200").await.unwrap().body.to_string();
    assert!(!all.contains("Secret plans") && !all.contains("Countess"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invitations_settings_and_the_command_line_are_noted_with_who_and_whence() {
    let scene = Scene::start().await;
    let (_, key) = make_key(&scene.admin, &["admin", "read"]).await;
    let program = scene.admin.with_token(&key);
    let made = program.post("/api/invites", json!({ "note": "for Joan" })).await.unwrap().data().unwrap();
    let body = json!({ "token": made["token"], "username": "joan", "password": PASSWORD });
    RestClient::outsider(scene.url()).post("/api/auth/register", body).await.unwrap().data().unwrap();
    let path = format!("/api/invites/{}", made["id"].as_str().unwrap());
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    let changes = json!({ "hubName": "Salon", "lockoutSeconds": 60, "invitations": null });
    assert_eq!(scene.admin.post("/api/settings", changes).await.unwrap().status, 200);
    let run = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(PARLOR);
        command.arg("admin").args(arguments).arg("--data").arg(scene.data());
        let output = tokio::time::timeout(Duration::from_secs(20), command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["user", "remove", "joan"]).await;
    let all = entries(&scene.admin, "").await;
    let newest: Vec<String> = told(&all).split_off(all.len() - 6);
    let invitation = made["id"].as_str().unwrap();
    assert_eq!(
        newest,
        [
            "admin invitation_created for Joan as user, 1 times".to_owned(),
            format!("nobody user_created joan as user, by invitation {invitation}"),
            "joan signed_in joan -".to_owned(),
            "admin invitation_revoked for Joan -".to_owned(),
            "admin settings_changed - hubName: Salon; invitations: as started; lockoutSeconds: 60".to_owned(),
            "operator user_removed joan -".to_owned(),
        ]
    );
    let by_key = &all[5]["actor"];
    assert_eq!((&by_key["kind"], by_key["keyId"].is_string()), (&json!("key"), true), "{by_key}");
    assert!(all[1..6].iter().all(|entry| entry["address"] == "127.0.0.1"), "{all:?}");
    assert!(all[0].get("address").is_none(), "the operator comes from nowhere");

    let printed = run(&["audit", "--subject", "joan", "--limit", "2"]).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("WHEN") && lines.len() == 3, "{printed}");
    assert!(lines[1].contains("operator") && lines[1].contains("user_removed  user joan"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sign_ins_are_counted_together_and_an_unknown_name_is_not_kept() {
    let scene = Scene::start().await;
    scene.person("ada").await;
    // People type their password where the name belongs.
    for _ in 0..7 {
        assert_eq!(login(&scene, "Canary-in-the-wrong-field-1", PASSWORD).await, 401);
    }
    for _ in 0..7 {
        assert_eq!(login(&scene, "ada", "Wrong-guess-1").await, 401);
    }
    // A failure is answered before it is stored, and stored before what comes after it.
    assert_eq!(scene.admin.post("/api/messages/mark-all-read", json!({})).await.unwrap().status, 200);
    let failed = entries(&scene.admin, "action=sign_in_failed").await;
    let counts: Vec<(String, u64)> = told(&failed)
        .into_iter()
        .zip(failed.iter().rev().map(|entry| entry["count"].as_u64().unwrap()))
        .collect();
    let line = |text: &str, count| (format!("nobody sign_in_failed {text}"), count);
    assert_eq!(
        counts,
        [line("- no such name", 7), line("ada wrong password", 5), line("ada while locked", 2)]
    );
    let locked = entries(&scene.admin, "action=account_locked").await;
    assert_eq!(locked.len(), 1);
    let all = scene.admin.get("/api/audit?limit=200").await.unwrap().body.to_string();
    assert!(!all.contains("Canary"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_read_it_page_by_page_and_nobody_writes_it() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&scene.admin, &["read", "write"]).await;
    assert_refused(&ada.get("/api/audit").await.unwrap(), 403);
    assert_refused(&scene.admin.with_token(&key).get("/api/audit").await.unwrap(), 403);
    assert_refused(&RestClient::outsider(scene.url()).get("/api/audit").await.unwrap(), 401);
    let whole = entries(&scene.admin, "limit=200").await;
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = scene.admin.get(&format!("/api/audit?limit=2{cursor}")).await.unwrap().data().unwrap();
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(whole.len() > 3 && paged == whole, "{paged:?} {whole:?}");
    let from = whole[1]["at"].as_str().unwrap();
    assert_eq!(entries(&scene.admin, &format!("from={from}")).await.len(), 2);
    assert_eq!(entries(&scene.admin, &format!("to={from}&limit=200")).await.len(), whole.len() - 1);
    for (query, field) in
        [("action=party", "action"), ("cursor=x", "cursor"), ("from=yesterday", "from"), ("to=-", "to")]
    {
        let refused = scene.admin.get(&format!("/api/audit?{query}")).await.unwrap();
        assert_refused(&refused, 400);
        assert_eq!(refused.body["fields"][0]["field"], field);
    }
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let answer = scene.admin.request(method, "/api/audit").send().await.unwrap();
        assert_eq!(answer.status(), 405);
    }
}
