//! Owners, admins and members of a room; giving it away; what becomes of it when its owner goes.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused};

async fn role(anyone: &RestClient, room: &str, person: &RestClient) -> Value {
    let members = anyone.get(&format!("/api/rooms/{room}/members")).await.unwrap().data().unwrap();
    let found = members.as_array().unwrap().iter().find(|member| member["memberId"] == person.user_id());
    found.map_or(json!(null), |member| member["role"].clone())
}

fn member_path(room: &str, person: &RestClient) -> String {
    format!("/api/rooms/{room}/members/{}", person.user_id())
}

fn member(person: &RestClient) -> Value {
    json!({ "memberId": person.user_id(), "memberType": "user" })
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_admin_and_member_may_what_their_role_says() {
    let scene = Scene::start().await;
    let (owner, helper) = (scene.person("owner").await, scene.person("helper").await);
    let (plain, guest) = (scene.person("plain").await, scene.person("guest").await);
    let room = owner.make_room("a room", &[&helper, &plain]).await.unwrap();
    let path = format!("/api/rooms/{room}");
    let members = format!("{path}/members");

    let raised = owner.put(&member_path(&room, &helper), json!({ "role": "admin" })).await.unwrap();
    assert_eq!((raised.status.as_u16(), &raised.body["data"]["role"]), (200, &json!("admin")));
    // A member: nothing but talk, and leave.
    assert_refused(&plain.put(&path, json!({ "name": "mine" })).await.unwrap(), 403);
    assert_refused(&plain.post(&members, member(&guest)).await.unwrap(), 403);
    assert_refused(&plain.delete(&member_path(&room, &helper)).await.unwrap(), 403);
    assert_refused(&plain.put(&member_path(&room, &plain), json!({ "role": "admin" })).await.unwrap(), 403);
    assert_refused(&plain.delete(&path).await.unwrap(), 403);
    // An admin: names and members, but not other admins, roles or the end.
    assert_eq!(helper.put(&path, json!({ "name": "renamed" })).await.unwrap().status, 200);
    assert_eq!(helper.post(&members, member(&guest)).await.unwrap().status, 201);
    assert_refused(&helper.post(&members, member(&guest)).await.unwrap(), 409);
    assert_refused(&helper.put(&member_path(&room, &guest), json!({ "role": "admin" })).await.unwrap(), 403);
    assert_refused(&helper.delete(&member_path(&room, &owner)).await.unwrap(), 409);
    assert_refused(&helper.delete(&path).await.unwrap(), 403);
    assert_eq!(helper.delete(&member_path(&room, &guest)).await.unwrap().status, 200);
    let mut as_admin = member(&guest);
    as_admin["role"] = json!("admin");
    assert_refused(&helper.post(&members, as_admin.clone()).await.unwrap(), 403);
    assert_eq!(owner.post(&members, as_admin).await.unwrap().status, 201);
    assert_refused(&helper.delete(&member_path(&room, &guest)).await.unwrap(), 403);
    let mut as_owner = member(&scene.admin);
    as_owner["role"] = json!("owner");
    assert_refused(&owner.post(&members, as_owner).await.unwrap(), 403);

    for body in [
        json!({ "memberId": "0190aaaa", "memberType": "user" }),
        json!({ "memberId": "no-agent", "memberType": "agent" }),
    ] {
        assert_refused(&owner.post(&members, body).await.unwrap(), 404);
    }
    assert_refused(
        &owner.post(&members, json!({ "memberId": "x", "memberType": "robot" })).await.unwrap(),
        400,
    );
    assert_refused(&owner.put(&member_path(&room, &plain), json!({ "role": "king" })).await.unwrap(), 400);
    assert_refused(&owner.delete(&member_path(&room, &scene.admin)).await.unwrap(), 404);
    assert_eq!(plain.delete(&member_path(&room, &plain)).await.unwrap().status, 200, "anyone may leave");
    assert_refused(&owner.delete(&member_path(&room, &owner)).await.unwrap(), 409);
    // The admin of the site is an outsider to the room.
    assert_refused(&scene.admin.delete(&path).await.unwrap(), 404);
    assert_refused(&scene.admin.post(&members, member(&scene.admin)).await.unwrap(), 404);
    assert_eq!(owner.delete(&path).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_gives_the_room_away_and_stays_as_an_admin() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let mut watching = Client::connect(&bob).await.unwrap();
    watching.join(&room).await.unwrap();
    let given = ada.put(&member_path(&room, &bob), json!({ "role": "owner" })).await.unwrap();
    assert_eq!(given.status, 200, "{given:?}");
    assert_eq!(
        (role(&bob, &room, &bob).await, role(&bob, &room, &ada).await),
        (json!("owner"), json!("admin"))
    );
    let told = watching.wait_for_type("server:room_update").await.unwrap();
    assert_eq!(
        told["members"].as_array().unwrap().iter().filter(|member| member["role"] == "owner").count(),
        1
    );
    assert_refused(&ada.delete(&format!("/api/rooms/{room}")).await.unwrap(), 403);
    assert_refused(&ada.delete(&member_path(&room, &bob)).await.unwrap(), 409);
    assert_eq!(ada.delete(&member_path(&room, &ada)).await.unwrap().status, 200, "now she can leave");
    assert_eq!(bob.delete(&format!("/api/rooms/{room}")).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rooms_of_a_removed_person_pass_on_with_what_was_said() {
    let scene = Scene::start().await;
    let (ada, bob, eve) = (scene.person("ada").await, scene.person("bob").await, scene.person("eve").await);
    let shared = ada.make_room("shared", &[&bob, &eve]).await.unwrap();
    ada.put(&member_path(&shared, &eve), json!({ "role": "admin" })).await.unwrap().data().unwrap();
    let plain = ada.make_room("plain", &[&bob, &eve]).await.unwrap();
    let alone = ada.make_room("alone", &[]).await.unwrap();
    let guest = bob.make_room("bob's", &[&ada]).await.unwrap();
    ada.post_message(&shared, "remember me").await.unwrap();
    let mut watching = Client::connect(&bob).await.unwrap();
    watching.join(&shared).await.unwrap();
    assert_eq!(scene.admin.delete(&format!("/api/users/{}", ada.user_id())).await.unwrap().status, 200);

    assert_eq!(role(&bob, &shared, &eve).await, "owner", "the highest in rank");
    assert_eq!(role(&bob, &plain, &bob).await, "owner", "the first among equals");
    assert_eq!(role(&bob, &guest, &bob).await, "owner");
    for room in [&shared, &plain, &guest] {
        assert_eq!(role(&bob, room, &ada).await, json!(null), "she is in none of them");
    }
    let told = watching.wait_for_type("server:room_update").await.unwrap();
    assert_eq!(told["room"]["id"], shared.as_str());
    let history = bob.history(&shared).await.unwrap();
    assert_eq!((&history[0]["content"], &history[0]["senderName"]), (&json!("remember me"), &json!("ada")));
    assert_refused(&bob.get(&format!("/api/rooms/{alone}")).await.unwrap(), 404);
    assert_eq!(eve.delete(&format!("/api/rooms/{shared}")).await.unwrap().status, 200, "the heir decides");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_needs_a_name_and_members_who_exist() {
    let scene = Scene::start().await;
    for (body, status) in [
        (json!({}), 400),
        (json!({ "name": "" }), 400),
        (json!({ "name": "  " }), 400),
        (json!({ "name": "x".repeat(101) }), 400),
        (json!({ "name": "a\nb" }), 400),
        (json!({ "name": "a\u{202e}b" }), 400),
        (json!({ "name": "fine", "type": "secret" }), 400),
        (json!({ "name": "fine", "agentCommandRole": "king" }), 400),
        (json!({ "name": "fine", "systemPrompt": "x".repeat(10_001) }), 400),
        (json!({ "name": "fine", "memberIds": ["0190aaaa"] }), 404),
    ] {
        assert_refused(&scene.admin.post("/api/rooms", body).await.unwrap(), status);
    }
    assert_eq!(scene.admin.get("/api/rooms").await.unwrap().data().unwrap(), json!([]));
}
