//! Roles in a room (owner, admin, member), transfer of ownership, and the new owner when the owner's account
//! is deleted.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused};

async fn role(caller: &RestClient, room: &str, user: &RestClient) -> Value {
    let members = caller.get(&format!("/api/rooms/{room}/members")).await.unwrap().data().unwrap();
    let found = members.as_array().unwrap().iter().find(|member| member["memberId"] == user.user_id());
    found.map_or(json!(null), |member| member["role"].clone())
}

fn member_path(room: &str, user: &RestClient) -> String {
    format!("/api/rooms/{room}/members/{}", user.user_id())
}

fn member(user: &RestClient) -> Value {
    json!({ "memberId": user.user_id(), "memberType": "user" })
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_admin_and_member_have_the_permissions_of_their_role() {
    let scene = Scene::start().await;
    let (owner, admin) = (scene.person("owner").await, scene.person("helper").await);
    let (regular, invited) = (scene.person("plain").await, scene.person("guest").await);
    let room = owner.make_room("a room", &[&admin, &regular]).await.unwrap();
    let path = format!("/api/rooms/{room}");
    let members = format!("{path}/members");

    let promoted = owner.put(&member_path(&room, &admin), json!({ "role": "admin" })).await.unwrap();
    assert_eq!((promoted.status.as_u16(), &promoted.body["data"]["role"]), (200, &json!("admin")));
    // A member may only post and leave.
    assert_refused(&regular.put(&path, json!({ "name": "mine" })).await.unwrap(), 403);
    assert_refused(&regular.post(&members, member(&invited)).await.unwrap(), 403);
    assert_refused(&regular.delete(&member_path(&room, &admin)).await.unwrap(), 403);
    assert_refused(
        &regular.put(&member_path(&room, &regular), json!({ "role": "admin" })).await.unwrap(),
        403,
    );
    assert_refused(&regular.delete(&path).await.unwrap(), 403);
    // An admin may rename the room and manage members, but not other admins, roles or the deletion of the
    // room.
    assert_eq!(admin.put(&path, json!({ "name": "renamed" })).await.unwrap().status, 200);
    assert_eq!(admin.post(&members, member(&invited)).await.unwrap().status, 201);
    assert_refused(&admin.post(&members, member(&invited)).await.unwrap(), 409);
    assert_refused(&admin.put(&member_path(&room, &invited), json!({ "role": "admin" })).await.unwrap(), 403);
    assert_refused(&admin.delete(&member_path(&room, &owner)).await.unwrap(), 409);
    assert_refused(&admin.delete(&path).await.unwrap(), 403);
    assert_eq!(admin.delete(&member_path(&room, &invited)).await.unwrap().status, 200);
    let mut as_admin = member(&invited);
    as_admin["role"] = json!("admin");
    assert_refused(&admin.post(&members, as_admin.clone()).await.unwrap(), 403);
    assert_eq!(owner.post(&members, as_admin).await.unwrap().status, 201);
    assert_refused(&admin.delete(&member_path(&room, &invited)).await.unwrap(), 403);
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
    assert_refused(&owner.put(&member_path(&room, &regular), json!({ "role": "king" })).await.unwrap(), 400);
    assert_refused(&owner.delete(&member_path(&room, &scene.admin)).await.unwrap(), 404);
    assert_eq!(regular.delete(&member_path(&room, &regular)).await.unwrap().status, 200, "anyone may leave");
    assert_refused(&owner.delete(&member_path(&room, &owner)).await.unwrap(), 409);
    // A site admin who is not a member has no access to the room.
    assert_refused(&scene.admin.delete(&path).await.unwrap(), 404);
    assert_refused(&scene.admin.post(&members, member(&scene.admin)).await.unwrap(), 404);
    assert_eq!(owner.delete(&path).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_transfers_the_room_and_becomes_an_admin() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let mut watching = Client::connect(&bob).await.unwrap();
    watching.join(&room).await.unwrap();
    let transferred = ada.put(&member_path(&room, &bob), json!({ "role": "owner" })).await.unwrap();
    assert_eq!(transferred.status, 200, "{transferred:?}");
    assert_eq!(
        (role(&bob, &room, &bob).await, role(&bob, &room, &ada).await),
        (json!("owner"), json!("admin"))
    );
    let frame = watching.wait_for_type("server:room_update").await.unwrap();
    assert_eq!(
        frame["members"].as_array().unwrap().iter().filter(|member| member["role"] == "owner").count(),
        1
    );
    assert_refused(&ada.delete(&format!("/api/rooms/{room}")).await.unwrap(), 403);
    assert_refused(&ada.delete(&member_path(&room, &bob)).await.unwrap(), 409);
    assert_eq!(ada.delete(&member_path(&room, &ada)).await.unwrap().status, 200, "a former owner may leave");
    assert_eq!(bob.delete(&format!("/api/rooms/{room}")).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rooms_of_a_deleted_user_get_a_new_owner_and_keep_their_messages() {
    let scene = Scene::start().await;
    let (ada, bob, eve) = (scene.person("ada").await, scene.person("bob").await, scene.person("eve").await);
    let shared = ada.make_room("shared", &[&bob, &eve]).await.unwrap();
    ada.put(&member_path(&shared, &eve), json!({ "role": "admin" })).await.unwrap().data().unwrap();
    let without_admins = ada.make_room("plain", &[&bob, &eve]).await.unwrap();
    let without_members = ada.make_room("alone", &[]).await.unwrap();
    let owned_by_bob = bob.make_room("bob's", &[&ada]).await.unwrap();
    ada.post_message(&shared, "remember me").await.unwrap();
    let mut watching = Client::connect(&bob).await.unwrap();
    watching.join(&shared).await.unwrap();
    assert_eq!(scene.admin.delete(&format!("/api/users/{}", ada.user_id())).await.unwrap().status, 200);

    assert_eq!(role(&bob, &shared, &eve).await, "owner", "the member with the highest role");
    assert_eq!(role(&bob, &without_admins, &bob).await, "owner", "the earliest member of equal role");
    assert_eq!(role(&bob, &owned_by_bob, &bob).await, "owner");
    for room in [&shared, &without_admins, &owned_by_bob] {
        assert_eq!(role(&bob, room, &ada).await, json!(null), "a deleted user is a member of no room");
    }
    let of_shared = |frame: &Value| frame["type"] == "server:room_update" && frame["room"]["id"] == *shared;
    watching.wait_for(TEST_TIMEOUT, of_shared).await.unwrap();
    let history = bob.history(&shared).await.unwrap();
    assert_eq!((&history[0]["content"], &history[0]["senderName"]), (&json!("remember me"), &json!("ada")));
    assert_refused(&bob.get(&format!("/api/rooms/{without_members}")).await.unwrap(), 404);
    assert_eq!(
        eve.delete(&format!("/api/rooms/{shared}")).await.unwrap().status,
        200,
        "the new owner may delete the room"
    );
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
