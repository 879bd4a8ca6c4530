//! Settings that admins change while the hub runs (`/api/settings`, `/api/admin/settings`).

use parlor_testkit::rest::RestClient;
use serde_json::json;

use crate::scene::{PASSWORD, Scene, assert_refused, make_key};
use crate::sign_in::second_factor::Device;

#[tokio::test(flavor = "multi_thread")]
async fn users_read_settings_and_admins_change_them_durably() {
    let mut scene = Scene::with(&[("PARLOR_LOCKOUT_FAILURES", "7")]).await;
    let ada = scene.person("ada").await;
    let initial =
        json!({ "hubName": "Parlor", "invitations": true, "lockoutFailures": 7, "lockoutSeconds": 900 });
    assert_eq!(ada.get("/api/settings").await.unwrap().body, initial);
    assert_refused(&RestClient::outsider(scene.url()).get("/api/settings").await.unwrap(), 401);
    assert_refused(&ada.post("/api/settings", json!({ "hubName": "Mine" })).await.unwrap(), 403);
    assert_refused(&ada.get("/api/admin/settings").await.unwrap(), 403);
    let (_, key) = make_key(&scene.admin, &["read"]).await;
    assert_refused(&scene.admin.with_token(&key).post("/api/settings", json!({})).await.unwrap(), 403);

    let changes = json!({ "hubName": "Salon", "lockoutFailures": 2 });
    let changed = scene.admin.post("/api/settings", changes).await.unwrap();
    let expected =
        json!({ "hubName": "Salon", "invitations": true, "lockoutFailures": 2, "lockoutSeconds": 900 });
    assert_eq!(changed.body, expected);
    scene.crash_and_restart().await;
    let after_restart = scene.admin.get("/api/admin/settings").await.unwrap();
    assert_eq!(
        after_restart.body,
        json!({ "ok": true, "data": expected }),
        "changes override the start-up settings and survive a restart"
    );
    let body = json!({ "changes": { "lockoutFailures": null } });
    let reset = scene.admin.put("/api/admin/settings", body).await.unwrap().data().unwrap();
    assert_eq!((&reset["lockoutFailures"], &reset["hubName"]), (&json!(7), &json!("Salon")));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_takes_effect_at_once() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let invitation = scene.admin.post("/api/invites", json!({ "uses": 5 })).await.unwrap().data().unwrap();
    let register = async |name: &str| {
        let body = json!({ "token": invitation["token"], "username": name, "password": PASSWORD });
        RestClient::outsider(scene.url()).post("/api/auth/register", body).await.unwrap()
    };
    let set = async |changes| scene.admin.post("/api/settings", changes).await.unwrap().status;
    assert_eq!(set(json!({ "invitations": false })).await, 200);
    assert_refused(&register("bob").await, 404);
    assert_refused(&scene.admin.post("/api/invites", json!({})).await.unwrap(), 403);
    assert_eq!(set(json!({ "invitations": null, "hubName": "Our Salon", "lockoutFailures": 1 })).await, 200);
    assert_eq!(register("bob").await.status, 200);

    let offered = ada.post("/api/auth/setup-totp", json!({})).await.unwrap().data().unwrap();
    assert!(offered["uri"].as_str().unwrap().starts_with("otpauth://totp/Our%20Salon:ada?"), "{offered}");
    assert_eq!(Device::new(offered["secret"].as_str().unwrap()).code(0).len(), 6);
    let login = async |password: &str| {
        let body = json!({ "username": "bob", "password": password });
        RestClient::outsider(scene.url()).post("/api/auth/login", body).await.unwrap()
    };
    assert_refused(&login("Wrong-guess-1").await, 401);
    assert_refused(&login(PASSWORD).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_invalid_settings_are_refused_and_change_nothing() {
    let scene = Scene::start().await;
    let before = scene.admin.get("/api/settings").await.unwrap().body;
    for (body, field) in [
        (json!({ "tokenSecret": "x" }), "body"),
        (json!({ "hubName": "Salon", "port": 1 }), "body"),
        (json!({ "hubName": "" }), "hubName"),
        (json!({ "hubName": "two\nlines" }), "hubName"),
        (json!({ "hubName": "x".repeat(61) }), "hubName"),
        (json!({ "lockoutFailures": 0 }), "lockoutFailures"),
        (json!({ "lockoutFailures": 1001, "hubName": "Salon" }), "lockoutFailures"),
        (json!({ "lockoutSeconds": 0 }), "lockoutSeconds"),
        (json!({ "lockoutSeconds": 2_592_001 }), "lockoutSeconds"),
        (json!({ "lockoutSeconds": "long" }), "body"),
        (json!({ "invitations": "off" }), "body"),
    ] {
        let answer = scene.admin.post("/api/settings", body.clone()).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], field, "{body} {answer:?}");
        let answer = scene.admin.put("/api/admin/settings", json!({ "changes": body })).await.unwrap();
        assert_refused(&answer, 400);
    }
    assert_eq!(scene.admin.get("/api/settings").await.unwrap().body, before);
}
