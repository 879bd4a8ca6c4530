//! The caller's own profile: display name, avatar, and linked OAuth accounts.

use parlor_testkit::rest::form;
use serde_json::json;

use crate::scene::{Scene, assert_refused, make_key};

#[tokio::test(flavor = "multi_thread")]
async fn users_change_their_display_name_and_avatar_and_nothing_else() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let bob = scene.person("bob").await;
    let png = b"\x89PNG\r\n\x1a\n and the rest";
    let uploaded = ada.send_form("/api/upload/avatar", form(&[("file", "me.png", png)])).await.unwrap();
    let avatar = uploaded.data().unwrap()["avatarUrl"].clone();
    let body = json!({ "displayName": "Ada L.", "avatarUrl": avatar });
    assert_refused(&bob.put("/api/users/me", body.clone()).await.unwrap(), 400);
    let changed = ada.put("/api/users/me", body).await.unwrap().data().unwrap();
    assert_eq!((&changed["displayName"], &changed["role"]), (&json!("Ada L."), &json!("user")));
    let me = ada.get("/api/users/me").await.unwrap().data().unwrap();
    assert_eq!((&me["avatarUrl"], &me["totpEnabled"]), (&avatar, &json!(false)));
    let found = bob.get("/api/users/search?q=ada").await.unwrap().data().unwrap();
    assert_eq!(found[0]["avatarUrl"], avatar);

    let renamed = ada.put("/api/users/me", json!({ "displayName": "Ada" })).await.unwrap().data().unwrap();
    assert_eq!(renamed["avatarUrl"], avatar, "an absent field is unchanged");
    let body = json!({ "avatarUrl": null, "role": "admin", "username": "root" });
    let cleared = ada.put("/api/users/me", body).await.unwrap().data().unwrap();
    assert_eq!((&cleared["avatarUrl"], &cleared["displayName"]), (&json!(null), &json!("Ada")));
    assert_eq!((&cleared["role"], &cleared["username"]), (&json!("user"), &json!("ada")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_avatar_must_be_an_upload_on_this_hub() {
    let scene = Scene::start().await;
    let long = format!("/uploads/{}", "x".repeat(200));
    for url in [
        "https://elsewhere.example/me.png",
        "//elsewhere.example/me.png",
        "/uploads/",
        "/uploads/never-sent",
        "/uploads/../api/health",
        "/uploads/a//b",
        "/uploads/.hidden",
        "/uploads/a?token=x",
        "/uploads/a b",
        "/elsewhere/a",
        "javascript:alert(1)",
        "",
        &long,
    ] {
        let answer = scene.admin.put("/api/users/me", json!({ "avatarUrl": url })).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], "avatarUrl", "{url}");
    }
    let me = scene.admin.get("/api/users/me").await.unwrap().data().unwrap();
    assert_eq!(me["avatarUrl"], json!(null), "the avatar is unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_oauth_accounts_is_empty() {
    let scene = Scene::start().await;
    let accounts = scene.admin.get("/api/users/me/oauth-accounts").await.unwrap();
    assert_eq!(accounts.body, json!({ "ok": true, "data": [] }));
    let (_, key) = make_key(&scene.admin, &["write"]).await;
    let key_client = scene.admin.with_token(&key);
    assert_refused(&key_client.get("/api/users/me/oauth-accounts").await.unwrap(), 403);
}
