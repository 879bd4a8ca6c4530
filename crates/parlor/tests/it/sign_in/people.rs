//! User management by admins: create, list, change and delete users, and the last-admin rule.

use parlor_testkit::agentim::Client;
use serde_json::json;

use crate::scene::{PASSWORD, Scene, assert_refused, assert_revoked};

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_creates_lists_changes_and_deletes_users() {
    let scene = Scene::start().await;
    let body = json!({ "username": "ada", "password": PASSWORD, "displayName": "Ada L.", "role": "user" });
    let created = scene.admin.post("/api/users", body.clone()).await.unwrap();
    assert_eq!(created.status, 200);
    let created = created.data().unwrap();
    assert_eq!((&created["username"], &created["displayName"]), (&json!("ada"), &json!("Ada L.")));
    let duplicate = scene.admin.post("/api/users", body).await.unwrap();
    assert_refused(&duplicate, 409);
    assert_eq!(duplicate.body["error"], "Username already taken");
    let body = json!({ "username": "ADA", "password": PASSWORD });
    assert_refused(&scene.admin.post("/api/users", body).await.unwrap(), 409);

    let listed = scene.admin.get("/api/users").await.unwrap();
    assert_eq!(listed.body["total"], 2);
    let page = scene.admin.get("/api/users?limit=1&offset=1").await.unwrap();
    assert_eq!((&page.body["total"], &page.body["data"][0]["username"]), (&json!(2), &json!("ada")));
    assert_eq!(page.body["data"].as_array().unwrap().len(), 1);

    let path = format!("/api/users/{}", created["id"].as_str().unwrap());
    let body = json!({ "displayName": "Countess", "role": "admin", "maxConnections": 3 });
    let changed = scene.admin.put(&path, body).await.unwrap().data().unwrap();
    assert_eq!((&changed["displayName"], &changed["role"]), (&json!("Countess"), &json!("admin")));
    assert_eq!(changed["maxConnections"], 3);
    let changed = scene.admin.put(&path, json!({ "maxConnections": null })).await.unwrap().data().unwrap();
    assert_eq!(changed["maxConnections"], json!(null));
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    assert_refused(&scene.admin.delete(&path).await.unwrap(), 404);
    assert_refused(&scene.admin.put(&path, json!({ "displayName": "x" })).await.unwrap(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_errors_name_the_field() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    for (body, field) in [
        (json!({ "username": "ab", "password": PASSWORD }), "username"),
        (json!({ "username": "x".repeat(51), "password": PASSWORD }), "username"),
        (json!({ "username": "with space", "password": PASSWORD }), "username"),
        (json!({ "username": "fine", "password": "weak" }), "password"),
        (json!({ "username": "fine", "password": PASSWORD, "role": "god" }), "role"),
        (json!({ "username": "fine", "password": PASSWORD, "displayName": "a\u{202e}b" }), "displayName"),
        (json!({ "username": "fine" }), "password"),
        (json!({ "password": PASSWORD }), "username"),
    ] {
        let answer = scene.admin.post("/api/users", body.clone()).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], field, "{body}: {answer:?}");
    }
    let path = format!("/api/users/{}", ada.user_id());
    for body in [json!({ "maxConnections": 0 }), json!({ "maxConnections": -1 }), json!({ "role": "" })] {
        assert_refused(&scene.admin.put(&path, body).await.unwrap(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_manage_users_and_a_demotion_applies_at_once() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let bob = scene.person("bob").await;
    let path_of_bob = format!("/api/users/{}", bob.user_id());
    let path_of_ada = format!("/api/users/{}", ada.user_id());
    for change in [json!({ "role": "admin" }), json!({ "password": "Taken-over-13" })] {
        assert_refused(&ada.put(&path_of_ada, change.clone()).await.unwrap(), 403);
        assert_refused(&ada.put(&path_of_bob, change).await.unwrap(), 403);
    }
    assert_refused(&ada.get("/api/users").await.unwrap(), 403);
    assert_refused(&ada.delete(&path_of_bob).await.unwrap(), 403);
    // A user cannot change their own role through the profile.
    let body = json!({ "displayName": "Ada", "role": "admin" });
    assert_eq!(ada.put("/api/users/me", body).await.unwrap().data().unwrap()["role"], "user");

    scene.admin.put(&path_of_ada, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    assert_eq!(ada.get("/api/users").await.unwrap().status, 200);
    scene.admin.put(&path_of_ada, json!({ "role": "user" })).await.unwrap().data().unwrap();
    assert_refused(&ada.get("/api/users").await.unwrap(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_admin_must_remain() {
    let scene = Scene::start().await;
    let path = format!("/api/users/{}", scene.admin.user_id());
    let answer = scene.admin.delete(&path).await.unwrap();
    assert_refused(&answer, 409);
    assert_eq!(answer.body["error"], "The last admin must remain");
    assert_refused(&scene.admin.put(&path, json!({ "role": "user" })).await.unwrap(), 409);
    let ada = scene.person("ada").await;
    let other = format!("/api/users/{}", ada.user_id());
    scene.admin.put(&other, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    // When two admins delete each other concurrently, one of them remains.
    let (first, second) = tokio::join!(scene.admin.delete(&other), ada.delete(&path));
    let statuses = [first.unwrap().status.as_u16(), second.unwrap().status.as_u16()];
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connection_limit_of_a_user_overrides_the_limit_of_the_hub() {
    let scene = Scene::start_with(|command| {
        command.env("PARLOR_LIMITS", "on").env("PARLOR_MAX_WS_CONNECTIONS_PER_USER", "1")
    })
    .await;
    let ada = scene.person("ada").await;
    let first = Client::connect(&ada).await.unwrap();
    let refused = Client::connect(&ada).await.err().unwrap();
    assert!(refused.to_string().contains("Too many connections"), "{refused}");
    let path = format!("/api/users/{}", ada.user_id());
    scene.admin.put(&path, json!({ "maxConnections": 2 })).await.unwrap().data().unwrap();
    let second = Client::connect(&ada).await.unwrap();
    assert!(Client::connect(&ada).await.is_err());
    drop((first, second));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_user_closes_their_sockets_and_frees_the_name() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let mut client = Client::connect(&ada).await.unwrap();
    assert_eq!(scene.admin.delete(&format!("/api/users/{}", ada.user_id())).await.unwrap().status, 200);
    assert_revoked(&mut client).await;
    let recreated = scene.person("ada").await;
    assert_ne!(recreated.user_id(), ada.user_id());
    assert_refused(&ada.get("/api/users/me").await.unwrap(), 401);
}
