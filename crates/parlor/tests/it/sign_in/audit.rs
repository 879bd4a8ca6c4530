//! The audit log: which actions it records, who may read it, and that it never contains secrets or message
//! text.

use std::time::Duration;

use parlor_testkit::rest::RestClient;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene, assert_refused, make_key, parlor_command};
use crate::sign_in::second_factor::turn_on;

async fn entries(admin: &RestClient, query: &str) -> Vec<Value> {
    let page = admin.get(&format!("/api/audit?{query}")).await.unwrap().data().unwrap();
    page["items"].as_array().unwrap().clone()
}

/// Formats each entry as `actor action subject detail`, oldest first.
fn format_entries(entries: &[Value]) -> Vec<String> {
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
async fn every_change_of_an_account_is_recorded() {
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

    let without_session = |line: &String| line.split(" session ").next().unwrap().to_owned();
    let lines: Vec<String> =
        format_entries(&entries(admin, "subject=ada&limit=200").await).iter().map(without_session).collect();
    assert_eq!(
        lines,
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
    let keys = format_entries(&entries(admin, &format!("subject={key}")).await);
    assert_eq!(
        keys,
        [
            format!("ada key_created a program for {id}: read write"),
            format!("ada key_revoked a program of {id}")
        ]
    );
    let response = admin.get("/api/audit?limit=200").await.unwrap().body.to_string();
    assert!(!response.contains("Secret plans") && !response.contains("Countess"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invitations_settings_and_cli_actions_are_recorded_with_actor_and_address() {
    let scene = Scene::start().await;
    let (_, key) = make_key(&scene.admin, &["admin", "read"]).await;
    let key_client = scene.admin.with_token(&key);
    let invitation =
        key_client.post("/api/invites", json!({ "note": "for Joan" })).await.unwrap().data().unwrap();
    let body = json!({ "token": invitation["token"], "username": "joan", "password": PASSWORD });
    RestClient::outsider(scene.url()).post("/api/auth/register", body).await.unwrap().data().unwrap();
    let path = format!("/api/invites/{}", invitation["id"].as_str().unwrap());
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    let changes = json!({ "hubName": "Salon", "lockoutSeconds": 60, "invitations": null });
    assert_eq!(scene.admin.post("/api/settings", changes).await.unwrap().status, 200);
    let run = async |arguments: &[&str]| {
        let mut command = parlor_command();
        command.arg("admin").args(arguments).arg("--data").arg(scene.data());
        let output = tokio::time::timeout(Duration::from_secs(20), command.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["user", "remove", "joan"]).await;
    let recorded = entries(&scene.admin, "").await;
    let newest: Vec<String> = format_entries(&recorded).split_off(recorded.len() - 6);
    let invitation_id = invitation["id"].as_str().unwrap();
    assert_eq!(
        newest,
        [
            "admin invitation_created for Joan as user, 1 times".to_owned(),
            format!("nobody user_created joan as user, by invitation {invitation_id}"),
            "joan signed_in joan -".to_owned(),
            "admin invitation_revoked for Joan -".to_owned(),
            "admin settings_changed - hubName: Salon; invitations: as started; lockoutSeconds: 60".to_owned(),
            "operator user_removed joan -".to_owned(),
        ]
    );
    let by_key = &recorded[5]["actor"];
    assert_eq!((&by_key["kind"], by_key["keyId"].is_string()), (&json!("key"), true), "{by_key}");
    assert!(recorded[1..6].iter().all(|entry| entry["address"] == "127.0.0.1"), "{recorded:?}");
    assert!(recorded[0].get("address").is_none(), "an action of the operator has no remote address");

    let printed = run(&["audit", "--subject", "joan", "--limit", "2"]).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("TIME") && lines.len() == 3, "{printed}");
    assert!(lines[1].contains("operator") && lines[1].contains("user_removed  user joan"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_sign_ins_share_an_entry_and_an_unknown_name_is_not_stored() {
    let scene = Scene::start().await;
    scene.person("ada").await;
    // Users sometimes type their password into the username field.
    for _ in 0..7 {
        assert_eq!(login(&scene, "Canary-in-the-wrong-field-1", PASSWORD).await, 401);
    }
    for _ in 0..7 {
        assert_eq!(login(&scene, "ada", "Wrong-guess-1").await, 401);
    }
    // A failed sign-in is answered before it is stored. A later command commits after it, so this one waits
    // for it.
    assert_eq!(scene.admin.post("/api/messages/mark-all-read", json!({})).await.unwrap().status, 200);
    let failed = entries(&scene.admin, "action=sign_in_failed").await;
    let counts: Vec<(String, u64)> = format_entries(&failed)
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
async fn only_admins_read_the_audit_log_and_it_cannot_be_written() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&scene.admin, &["read", "write"]).await;
    assert_refused(&ada.get("/api/audit").await.unwrap(), 403);
    assert_refused(&scene.admin.with_token(&key).get("/api/audit").await.unwrap(), 403);
    assert_refused(&RestClient::outsider(scene.url()).get("/api/audit").await.unwrap(), 401);
    let all = entries(&scene.admin, "limit=200").await;
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
    assert!(all.len() > 3 && paged == all, "{paged:?} {all:?}");
    let from = all[1]["at"].as_str().unwrap();
    assert_eq!(entries(&scene.admin, &format!("from={from}")).await.len(), 2);
    assert_eq!(entries(&scene.admin, &format!("to={from}&limit=200")).await.len(), all.len() - 1);
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
