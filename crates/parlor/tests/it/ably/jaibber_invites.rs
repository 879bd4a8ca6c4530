//! Invitations to projects: links with which one user joins a room.

use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, make_key};

async fn listed(admin: &RestClient, invites: &str) -> Vec<Value> {
    let list = admin.get(invites).await.unwrap();
    assert_eq!(list.status, 200, "{list:?}");
    list.body["invites"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_joins_a_project_with_an_invitation_which_works_once() {
    let scene = Scene::start().await;
    let (ann, bob, cyd) = (scene.person("ann").await, scene.person("bob").await, scene.person("cyd").await);
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    let invites = format!("/api/projects/{room}/invites");
    let made = ann.post(&invites, json!({ "role": "admin", "expiresInHours": 24 })).await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let invite = made.body["invite"].clone();
    assert_eq!((&invite["role"], &invite["projectId"]), (&json!("admin"), &json!(room)));
    assert_eq!(made.body["invites"], json!([invite]));
    assert_eq!(listed(&ann, &invites).await, std::slice::from_ref(&invite), "the list has the token");

    let link = format!("/api/invites/project/{}", invite["token"].as_str().unwrap());
    let shown = bob.get(&link).await.unwrap();
    assert_eq!((&shown.body["projectId"], &shown.body["projectName"]), (&json!(room), &json!("kitchen")));
    assert_refused(&bob.get(&invites).await.unwrap(), 404);
    assert_refused(&RestClient::outsider(scene.url()).get(&link).await.unwrap(), 401);
    let accept = format!("{link}/accept");
    assert_refused(&ann.post(&accept, json!({})).await.unwrap(), 409);
    let joined = bob.post(&accept, json!({})).await.unwrap();
    assert_eq!(joined.status, 200, "{joined:?}");
    let project = &joined.body["project"];
    assert_eq!((&project["id"], &project["role"]), (&json!(room), &json!("admin")));
    assert_refused(&cyd.post(&accept, json!({})).await.unwrap(), 404);
    assert_refused(&cyd.get(&link).await.unwrap(), 404);
    assert_eq!(listed(&bob, &invites).await, [Value::Null; 0]);

    let members = bob.get(&format!("/api/projects/{room}/members")).await.unwrap().body;
    let names = members["members"].as_array().unwrap().iter().map(|member| member["username"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["ann", "bob"]);
    let history = ann.post_message(&room, "welcome").await.unwrap();
    assert_eq!(bob.history(&room).await.unwrap()[0]["id"], history["id"]);
    let audit = scene.admin.get("/api/audit?limit=20").await.unwrap().data().unwrap();
    let actions = audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap());
    let actions: Vec<_> = actions.collect();
    assert!(actions.contains(&"invitation_created") && actions.contains(&"member_added"), "{actions:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_invite_and_a_revoked_invitation_ends() {
    let scene = Scene::start().await;
    let (ann, bob, cyd) = (scene.person("ann").await, scene.person("bob").await, scene.person("cyd").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let other = cyd.make_room("den", &[]).await.unwrap();
    let invites = format!("/api/projects/{room}/invites");
    assert_refused(&bob.post(&invites, json!({})).await.unwrap(), 403);
    assert_refused(&cyd.post(&invites, json!({})).await.unwrap(), 404);
    for body in
        [json!({ "role": "owner" }), json!({ "expiresInHours": 0 }), json!({ "expiresInHours": 99999 })]
    {
        assert_refused(&ann.post(&invites, body).await.unwrap(), 400);
    }
    let (_, reader) = make_key(&ann, &["read"]).await;
    let reader = ann.with_token(&reader);
    assert_refused(&reader.get(&invites).await.unwrap(), 403);

    let invite = ann.post(&invites, json!({})).await.unwrap().body["invite"].clone();
    assert_eq!(invite["role"], "member");
    let id = invite["id"].as_str().unwrap();
    // An admin of another room cannot revoke it through that room.
    assert_refused(&cyd.delete(&format!("/api/projects/{other}/invites/{id}")).await.unwrap(), 404);
    assert_refused(&bob.delete(&format!("{invites}/{id}")).await.unwrap(), 403);
    assert_eq!(ann.delete(&format!("{invites}/{id}")).await.unwrap().status, 200);
    let accept = format!("/api/invites/project/{}/accept", invite["token"].as_str().unwrap());
    assert_refused(&cyd.post(&accept, json!({})).await.unwrap(), 404);
    // The id of an invitation is not its token.
    let second = ann.post(&invites, json!({})).await.unwrap().body["invite"].clone();
    let accept = format!("/api/invites/project/{}/accept", second["id"].as_str().unwrap());
    assert_refused(&cyd.post(&accept, json!({})).await.unwrap(), 404);
    scene.ends_well().await;
}
