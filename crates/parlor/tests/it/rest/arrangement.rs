//! Room preferences of a member (pin, archive, clear, notifications): they reach the member's other devices
//! and no other user. Also the role description of members.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contents, following, next, so_far};

async fn listed(user: &RestClient, room: &str) -> Value {
    let rooms = user.get("/api/rooms").await.unwrap().data().unwrap();
    rooms.as_array().unwrap().iter().find(|room_entry| room_entry["id"] == room).unwrap().clone()
}

async fn member(caller: &RestClient, room: &str, user: &RestClient) -> Value {
    let members = caller.get(&format!("/api/rooms/{room}/members")).await.unwrap().data().unwrap();
    members.as_array().unwrap().iter().find(|found| found["memberId"] == user.user_id()).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn pin_archive_and_notification_preferences_reach_only_the_user_s_own_devices() {
    let mut scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let path = format!("/api/rooms/{room}");
    let mut other_device = Client::connect(&ada).await.unwrap();
    let mut watching = following(&bob, &room).await;
    let position = watching.join(&room).await.unwrap();

    let put =
        async |preference: &str, body: Value| ada.put(&format!("{path}/{preference}"), body).await.unwrap();
    assert_eq!(put("pin", json!({})).await.data().unwrap(), json!({ "pinned": true }));
    let frame = next(&mut other_device, "server:room_state").await;
    assert_eq!(
        (&frame["roomId"], &frame["pinned"], &frame["archived"]),
        (&json!(room), &json!(true), &json!(false))
    );
    assert!(frame["pinnedAt"].is_string() && frame.get("archivedAt").is_none(), "{frame}");
    assert_eq!(put("archive", json!({})).await.data().unwrap(), json!({ "archived": true }));
    let notification_pref = put("notification-pref", json!({ "pref": "mentions" })).await.data().unwrap();
    assert_eq!(notification_pref, json!({ "pref": "mentions" }));
    for body in [json!({ "pref": "never" }), json!({}), json!({ "pref": null })] {
        assert_refused(&put("notification-pref", body).await, 400);
    }
    for entry in [listed(&ada, &room).await, member(&ada, &room, &ada).await] {
        assert!(entry["pinnedAt"].is_string() && entry["archivedAt"].is_string(), "{entry}");
        assert_eq!((&entry["notificationPref"], &entry["clearedAt"]), (&json!("mentions"), &json!(null)));
    }
    for entry in [listed(&bob, &room).await, member(&bob, &room, &ada).await] {
        assert_eq!((&entry["pinnedAt"], &entry["archivedAt"]), (&json!(null), &json!(null)), "{entry}");
        assert_eq!(entry["notificationPref"], "all");
    }
    let room_details = bob.get(&path).await.unwrap().data().unwrap();
    assert!(
        room_details["members"].as_array().unwrap().iter().all(|member| member["pinnedAt"].is_null()),
        "{room_details}"
    );

    // A room update for all members does not reveal Ada's preferences, neither live nor on resume. Her own
    // devices receive every change.
    let body = json!({ "roleDescription": "keeps order" });
    ada.put(&format!("{path}/members/{}", bob.user_id()), body).await.unwrap().data().unwrap();
    let update = next(&mut watching, "server:room_update").await;
    let frames = so_far(&mut watching).await;
    assert!(frames.iter().all(|frame| frame["type"] != "server:room_state"), "{frames:?}");
    let members = update["members"].as_array().unwrap();
    assert!(members.iter().all(|member| member.get("pinnedAt").is_none()), "{update}");
    assert!(members.iter().all(|member| member["notificationPref"] == "all"), "{update}");
    let missed_room_states = async |user: &RestClient| {
        let mut resumed = Client::connect(user).await.unwrap();
        resumed.join_since(&room, &position).await.unwrap();
        let missed = so_far(&mut resumed).await;
        missed.iter().filter(|frame| frame["type"] == "server:room_state").count()
    };
    assert_eq!((missed_room_states(&ada).await, missed_room_states(&bob).await), (3, 0));

    assert_eq!(put("pin", json!({})).await.data().unwrap(), json!({ "pinned": false }));
    assert_eq!(put("archive", json!({})).await.data().unwrap(), json!({ "archived": false }));
    assert_eq!(listed(&ada, &room).await["pinnedAt"], json!(null));
    // After a restart the replay buffer is empty and the events are read from the store.
    scene.crash_and_restart().await;
    let (ada, bob) = (ada.at(scene.url()), bob.at(scene.url()));
    assert_eq!((missed_room_states(&ada).await, missed_room_states(&bob).await), (5, 0));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_a_room_hides_its_history_for_the_caller_only() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let old = bob.post_message(&room, "old").await.unwrap();
    let id = old["id"].as_str().unwrap();
    let body = json!({ "content": "old answer", "replyToId": id });
    bob.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap();
    for user in [&ada, &bob] {
        user.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap().data().unwrap();
    }
    bob.post(&format!("/api/messages/{id}/pin"), json!({})).await.unwrap().data().unwrap();
    let mut other_device = Client::connect(&ada).await.unwrap();
    let mut watching = following(&bob, &room).await;

    let cleared = ada.put(&format!("/api/rooms/{room}/clear"), json!({})).await.unwrap().data().unwrap();
    let frame = next(&mut other_device, "server:room_cleared").await;
    assert_eq!((&frame["roomId"], &frame["clearedAt"]), (&json!(room), &cleared["clearedAt"]));
    assert_eq!(listed(&ada, &room).await["clearedAt"], cleared["clearedAt"]);
    let entry = |recent: Value| recent[&room].clone();
    let recent =
        async |user: &RestClient| entry(user.get("/api/messages/recent").await.unwrap().data().unwrap());
    assert_eq!(recent(&ada).await, json!(null), "a cleared room has no last message and no unread count");
    assert!(ada.history(&room).await.unwrap().is_empty());
    for path in [format!("/api/messages/rooms/{room}"), format!("/api/messages/rooms/{room}?after=0")] {
        assert_eq!(ada.get(&path).await.unwrap().data().unwrap()["items"], json!([]));
    }
    for endpoint in ["thread", "replies/count", "history"] {
        assert_refused(&ada.get(&format!("/api/messages/{id}/{endpoint}")).await.unwrap(), 404);
    }
    assert_refused(
        &ada.post(&format!("/api/messages/{id}/reactions"), json!({ "emoji": "+1" })).await.unwrap(),
        404,
    );
    assert_eq!(ada.get("/api/bookmarks").await.unwrap().data().unwrap()["items"], json!([]));
    assert_eq!(ada.get(&format!("/api/rooms/{room}/pins")).await.unwrap().data().unwrap(), json!([]));
    assert_eq!(member(&bob, &room, &ada).await["clearedAt"], json!(null));

    bob.post_message(&room, "new").await.unwrap();
    assert_eq!(contents(&ada.history(&room).await.unwrap()), ["new"]);
    assert_eq!((&recent(&ada).await["unread"], &recent(&ada).await["content"]), (&json!(1), &json!("new")));
    assert_eq!(contents(&bob.history(&room).await.unwrap()), ["old", "old answer", "new"]);
    assert_eq!(bob.get("/api/bookmarks").await.unwrap().data().unwrap()["items"][0]["messageId"], id);
    let frames = so_far(&mut watching).await;
    assert!(frames.iter().all(|frame| frame["type"] != "server:room_cleared"), "{frames:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_admins_set_the_role_description_of_members() {
    let scene = Scene::start().await;
    let (ada, bob, cyd) = (scene.person("ada").await, scene.person("bob").await, scene.person("cyd").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let members = format!("/api/rooms/{room}/members");
    let body = json!({ "memberId": cyd.user_id(), "memberType": "user", "roleDescription": "takes notes" });
    assert_eq!(ada.post(&members, body).await.unwrap().data().unwrap()["roleDescription"], "takes notes");
    assert_eq!(member(&bob, &room, &cyd).await["roleDescription"], "takes notes");
    assert_eq!(listed(&cyd, &room).await["roleDescription"], "takes notes");
    let path = format!("{members}/{}", cyd.user_id());
    assert_refused(&bob.put(&path, json!({ "roleDescription": "mine" })).await.unwrap(), 403);
    for body in
        [json!({}), json!({ "roleDescription": "x".repeat(501) }), json!({ "roleDescription": "a\nb" })]
    {
        assert_refused(&ada.put(&path, body).await.unwrap(), 400);
    }
    let promoted = ada.put(&path, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    assert_eq!((&promoted["role"], &promoted["roleDescription"]), (&json!("admin"), &json!("takes notes")));
    // An admin may set the role description of every member, including the owner, but may not change roles.
    let owner = format!("{members}/{}", ada.user_id());
    let described = cyd.put(&owner, json!({ "roleDescription": "decides" })).await.unwrap().data().unwrap();
    assert_eq!((&described["role"], &described["roleDescription"]), (&json!("owner"), &json!("decides")));
    let role = json!({ "role": "admin", "roleDescription": "rises" });
    assert_refused(&cyd.put(&format!("{members}/{}", bob.user_id()), role).await.unwrap(), 403);
    let cleared = ada.put(&path, json!({ "roleDescription": null })).await.unwrap().data().unwrap();
    assert_eq!((&cleared["role"], &cleared["roleDescription"]), (&json!("admin"), &json!(null)));
    scene.ends_well().await;
}
