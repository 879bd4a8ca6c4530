//! Registration with an invitation: roles, number of uses, expiry, revocation, and concurrent registrations.

use parlor_testkit::rest::{RestClient, RestResponse};
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene, assert_refused, bytes_in, contains, make_key};

async fn invite(admin: &RestClient, body: Value) -> Value {
    let answer = admin.post("/api/invites", body).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.data().unwrap()
}

async fn register(scene: &Scene, token: &str, username: &str) -> RestResponse {
    let body = json!({ "token": token, "username": username, "password": PASSWORD });
    RestClient::outsider(scene.url()).post("/api/auth/register", body).await.unwrap()
}

fn token(invitation: &Value) -> &str {
    invitation["token"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_creates_one_account_and_signs_it_in() {
    let scene = Scene::start().await;
    let invitation = invite(&scene.admin, json!({ "note": "for Ada" })).await;
    let link = format!("{}/register#token={}", scene.url(), token(&invitation));
    assert_eq!(invitation["url"], link.as_str());
    let page = reqwest::get(format!("{}/register", scene.url())).await.unwrap();
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");

    let body = json!({
        "invite": token(&invitation), "username": "ada", "password": PASSWORD, "displayName": "Ada L.", "role": "admin"
    });
    let answer = RestClient::outsider(scene.url()).post("/api/auth/register", body).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.headers["set-cookie"].to_str().unwrap().starts_with("parlor_rt=plr_"));
    let session = answer.data().unwrap();
    let user = &session["user"];
    assert_eq!((&user["username"], &user["displayName"]), (&json!("ada"), &json!("Ada L.")));
    assert_eq!(user["role"], "user", "the invitation decides the role");
    let ada = scene.admin.with_token(session["accessToken"].as_str().unwrap());
    assert_eq!(ada.get("/api/users/me").await.unwrap().status, 200);

    let reused = register(&scene, token(&invitation), "bob").await;
    assert_refused(&reused, 404);
    let listed = scene.admin.get("/api/invites").await.unwrap();
    assert_eq!(
        (&listed.body["data"][0]["usesLeft"], &listed.body["data"][0]["note"]),
        (&json!(0), &json!("for Ada"))
    );
    assert!(!listed.body.to_string().contains(token(&invitation)), "the token is returned only once");
    assert!(!contains(&bytes_in(scene.data()), token(&invitation)), "the token is stored as a hash");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_grants_its_role_for_its_number_of_uses() {
    let scene = Scene::start().await;
    let invitation = invite(&scene.admin, json!({ "role": "admin", "uses": 2, "expiresIn": 60 })).await;
    assert_eq!(register(&scene, token(&invitation), "ada").await.data().unwrap()["user"]["role"], "admin");
    let taken = register(&scene, token(&invitation), "ADA").await;
    assert_refused(&taken, 409);
    assert_eq!(taken.body["error"], "Username already taken");
    assert_eq!(
        register(&scene, token(&invitation), "bob").await.status,
        200,
        "a taken username does not use up the invitation"
    );
    assert_refused(&register(&scene, token(&invitation), "cyd").await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_registrations_with_one_invitation_create_one_account() {
    let scene = Scene::start().await;
    let invitation = invite(&scene.admin, json!({})).await;
    let names: Vec<String> = (0..8).map(|n| format!("racer{n}")).collect();
    let mut registrations = tokio::task::JoinSet::new();
    for name in names {
        let (url, token) = (scene.url().to_owned(), token(&invitation).to_owned());
        registrations.spawn(async move {
            let body = json!({ "token": token, "username": name, "password": PASSWORD });
            RestClient::outsider(&url).post("/api/auth/register", body).await.unwrap().status.as_u16()
        });
    }
    let mut statuses = registrations.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404, 404, 404, 404, 404, 404, 404]);
    assert_eq!(scene.admin.get("/api/users").await.unwrap().body["total"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_invalid_invitation_gets_the_same_refusal() {
    let scene = Scene::start().await;
    let spent = invite(&scene.admin, json!({})).await;
    assert_eq!(register(&scene, token(&spent), "ada").await.status, 200);
    let revoked = invite(&scene.admin, json!({})).await;
    let path = format!("/api/invites/{}", revoked["id"].as_str().unwrap());
    assert_eq!(scene.admin.delete(&path).await.unwrap().status, 200);
    assert_refused(&scene.admin.delete(&path).await.unwrap(), 404);
    let expired = invite(&scene.admin, json!({ "expiresIn": 600 })).await;
    let boss = scene.person("boss").await;
    let boss_path = format!("/api/users/{}", boss.user_id());
    scene.admin.put(&boss_path, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    let by_demoted = invite(&boss, json!({})).await;
    scene.admin.put(&boss_path, json!({ "role": "user" })).await.unwrap().data().unwrap();

    let wrong = register(&scene, "pli_wrong", "bob").await;
    assert_refused(&wrong, 404);
    // The username is not checked without a valid invitation, so that the response does not reveal existing
    // names.
    assert_eq!(register(&scene, "pli_wrong", "ada").await.body, wrong.body);
    for invalid in [&spent, &revoked, &by_demoted] {
        assert_eq!(register(&scene, token(invalid), "bob").await.body, wrong.body);
    }
    let setup = register(&scene, scene.admin.token(), "bob").await;
    assert_eq!(setup.body, wrong.body, "an access token is not an invitation");
    // With a valid invitation a weak password is reported, and does not use it up.
    let weak = json!({ "token": token(&expired), "username": "bob", "password": "weak" });
    let anonymous = RestClient::outsider(scene.url());
    assert_eq!(anonymous.post("/api/auth/register", weak.clone()).await.unwrap().status, 400);
    scene.advance(std::time::Duration::from_secs(601));
    assert_eq!(anonymous.post("/api/auth/register", weak).await.unwrap().status, 404);
    assert_eq!(register(&scene, token(&expired), "bob").await.body, wrong.body);
    assert_eq!(scene.admin.get("/api/users").await.unwrap().body["total"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_invite_and_their_input_is_validated() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let (_, key) = make_key(&scene.admin, &["read", "write"]).await;
    let invitation = invite(&scene.admin, json!({})).await;
    let path = format!("/api/invites/{}", invitation["id"].as_str().unwrap());
    for other in [&ada, &scene.admin.with_token(&key)] {
        assert_refused(&other.post("/api/invites", json!({})).await.unwrap(), 403);
        assert_refused(&other.get("/api/invites").await.unwrap(), 403);
        assert_refused(&other.delete(&path).await.unwrap(), 403);
    }
    assert_refused(&RestClient::outsider(scene.url()).get("/api/invites").await.unwrap(), 401);
    for (body, field) in [
        (json!({ "role": "owner" }), "role"),
        (json!({ "uses": 0 }), "uses"),
        (json!({ "uses": 1001 }), "uses"),
        (json!({ "expiresIn": 0 }), "expiresAt"),
        (json!({ "expiresIn": 40_000_000 }), "expiresAt"),
        (json!({ "expiresIn": u64::MAX }), "expiresAt"),
        (json!({ "expiresAt": "tomorrow" }), "expiresAt"),
        (json!({ "expiresAt": "2001-01-01T00:00:00Z" }), "expiresAt"),
        (json!({ "expiresAt": "2101-01-01T00:00:00Z", "expiresIn": 5 }), "expiresAt"),
        (json!({ "note": "two\nlines" }), "note"),
        (json!({ "note": "x".repeat(201) }), "note"),
    ] {
        let answer = scene.admin.post("/api/invites", body.clone()).await.unwrap();
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], field, "{body}");
    }
    let weak = json!({ "token": token(&invitation), "username": "bob", "password": "short" });
    assert_refused(&RestClient::outsider(scene.url()).post("/api/auth/register", weak).await.unwrap(), 400);
    let short = json!({ "token": token(&invitation), "username": "b", "password": PASSWORD });
    assert_refused(&RestClient::outsider(scene.url()).post("/api/auth/register", short).await.unwrap(), 400);
    assert_eq!(
        register(&scene, token(&invitation), "bob").await.status,
        200,
        "a refused registration does not use up the invitation"
    );
}
