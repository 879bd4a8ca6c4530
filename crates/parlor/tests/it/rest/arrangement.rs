//! How one keeps a room for oneself, and that nobody else learns of it.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contents, following, next, so_far};

async fn listed(person: &RestClient, room: &str) -> Value {
    let rooms = person.get("/api/rooms").await.unwrap().data().unwrap();
    rooms.as_array().unwrap().iter().find(|found| found["id"] == room).unwrap().clone()
}

async fn member(asking: &RestClient, room: &str, of: &RestClient) -> Value {
    let members = asking.get(&format!("/api/rooms/{room}/members")).await.unwrap().data().unwrap();
    members.as_array().unwrap().iter().find(|found| found["memberId"] == of.user_id()).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn pinned_archived_and_quiet_are_for_oneself_and_one_s_other_devices() {
    let mut scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let path = format!("/api/rooms/{room}");
    let mut other_device = Client::connect(&ada).await.unwrap();
    let mut watching = following(&bob, &room).await;
    let position = watching.join(&room).await.unwrap();

    let put = async |what: &str, body: Value| ada.put(&format!("{path}/{what}"), body).await.unwrap();
    assert_eq!(put("pin", json!({})).await.data().unwrap(), json!({ "pinned": true }));
    let told = next(&mut other_device, "server:room_state").await;
    assert_eq!(
        (&told["roomId"], &told["pinned"], &told["archived"]),
        (&json!(room), &json!(true), &json!(false))
    );
    assert!(told["pinnedAt"].is_string() && told.get("archivedAt").is_none(), "{told}");
    assert_eq!(put("archive", json!({})).await.data().unwrap(), json!({ "archived": true }));
    let quiet = put("notification-pref", json!({ "pref": "mentions" })).await.data().unwrap();
    assert_eq!(quiet, json!({ "pref": "mentions" }));
    for body in [json!({ "pref": "never" }), json!({}), json!({ "pref": null })] {
        assert_refused(&put("notification-pref", body).await, 400);
    }
    for found in [listed(&ada, &room).await, member(&ada, &room, &ada).await] {
        assert!(found["pinnedAt"].is_string() && found["archivedAt"].is_string(), "{found}");
        assert_eq!((&found["notificationPref"], &found["clearedAt"]), (&json!("mentions"), &json!(null)));
    }
    for found in [listed(&bob, &room).await, member(&bob, &room, &ada).await] {
        assert_eq!((&found["pinnedAt"], &found["archivedAt"]), (&json!(null), &json!(null)), "{found}");
        assert_eq!(found["notificationPref"], "all");
    }
    let shown = bob.get(&path).await.unwrap().data().unwrap();
    assert!(
        shown["members"].as_array().unwrap().iter().all(|member| member["pinnedAt"].is_null()),
        "{shown}"
    );

    // A change that everybody is told tells nothing of it either, live or later; her own devices get it all.
    let renamed = json!({ "roleDescription": "keeps order" });
    ada.put(&format!("{path}/members/{}", bob.user_id()), renamed).await.unwrap().data().unwrap();
    let update = next(&mut watching, "server:room_update").await;
    let told = so_far(&mut watching).await;
    assert!(told.iter().all(|frame| frame["type"] != "server:room_state"), "{told:?}");
    let members = update["members"].as_array().unwrap();
    assert!(members.iter().all(|member| member.get("pinnedAt").is_none()), "{update}");
    assert!(members.iter().all(|member| member["notificationPref"] == "all"), "{update}");
    let kinds = async |person: &RestClient| {
        let mut late = Client::connect(person).await.unwrap();
        late.join_since(&room, &position).await.unwrap();
        let missed = so_far(&mut late).await;
        missed.iter().filter(|frame| frame["type"] == "server:room_state").count()
    };
    assert_eq!((kinds(&ada).await, kinds(&bob).await), (3, 0));

    assert_eq!(put("pin", json!({})).await.data().unwrap(), json!({ "pinned": false }));
    assert_eq!(put("archive", json!({})).await.data().unwrap(), json!({ "archived": false }));
    assert_eq!(listed(&ada, &room).await["pinnedAt"], json!(null));
    // The same from the store, when nothing is in memory any more.
    scene.crash_and_restart().await;
    let (ada, bob) = (ada.at(scene.url()), bob.at(scene.url()));
    assert_eq!((kinds(&ada).await, kinds(&bob).await), (5, 0));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_cleared_is_gone_for_oneself_alone() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("a room", &[&bob]).await.unwrap();
    let old = bob.post_message(&room, "old").await.unwrap();
    let id = old["id"].as_str().unwrap();
    let body = json!({ "content": "old answer", "replyToId": id });
    bob.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap();
    for person in [&ada, &bob] {
        person.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap().data().unwrap();
    }
    bob.post(&format!("/api/messages/{id}/pin"), json!({})).await.unwrap().data().unwrap();
    let mut other_device = Client::connect(&ada).await.unwrap();
    let mut watching = following(&bob, &room).await;

    let cleared = ada.put(&format!("/api/rooms/{room}/clear"), json!({})).await.unwrap().data().unwrap();
    let told = next(&mut other_device, "server:room_cleared").await;
    assert_eq!((&told["roomId"], &told["clearedAt"]), (&json!(room), &cleared["clearedAt"]));
    assert_eq!(listed(&ada, &room).await["clearedAt"], cleared["clearedAt"]);
    let entry = |recent: Value| recent[&room].clone();
    let recent =
        async |person: &RestClient| entry(person.get("/api/messages/recent").await.unwrap().data().unwrap());
    assert_eq!(recent(&ada).await, json!(null), "nothing said, nothing unread");
    assert!(ada.history(&room).await.unwrap().is_empty());
    for path in [format!("/api/messages/rooms/{room}"), format!("/api/messages/rooms/{room}?after=0")] {
        assert_eq!(ada.get(&path).await.unwrap().data().unwrap()["items"], json!([]));
    }
    for of in ["thread", "replies/count", "history"] {
        assert_refused(&ada.get(&format!("/api/messages/{id}/{of}")).await.unwrap(), 404);
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
    let told = so_far(&mut watching).await;
    assert!(told.iter().all(|frame| frame["type"] != "server:room_cleared"), "{told:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_say_what_somebody_is_there_for() {
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
    let raised = ada.put(&path, json!({ "role": "admin" })).await.unwrap().data().unwrap();
    assert_eq!((&raised["role"], &raised["roleDescription"]), (&json!("admin"), &json!("takes notes")));
    // An admin may say it, also of the owner, and cannot give a role by it.
    let owner = format!("{members}/{}", ada.user_id());
    let said = cyd.put(&owner, json!({ "roleDescription": "decides" })).await.unwrap().data().unwrap();
    assert_eq!((&said["role"], &said["roleDescription"]), (&json!("owner"), &json!("decides")));
    let role = json!({ "role": "admin", "roleDescription": "rises" });
    assert_refused(&cyd.put(&format!("{members}/{}", bob.user_id()), role).await.unwrap(), 403);
    let taken = ada.put(&path, json!({ "roleDescription": null })).await.unwrap().data().unwrap();
    assert_eq!((&taken["role"], &taken["roleDescription"]), (&json!("admin"), &json!(null)));
    scene.ends_well().await;
}
