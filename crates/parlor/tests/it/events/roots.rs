//! Tests of project roots of rooms.
//!
//! Permission to set them, allowed folders, filters by project root, and workspace files.

use super::{filtered, live};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// Starts a hub whose `project_roots` allows only the folder `free`, beside a folder `freedom`; its admin
/// joins the room. Returns the canonical path of `free`.
pub async fn with_project_root() -> (Room, TempDir, String) {
    let folders = tempfile::tempdir().unwrap();
    let allowed = folders.path().join("free");
    std::fs::create_dir_all(allowed.join("app")).unwrap();
    std::fs::create_dir_all(folders.path().join("freedom")).unwrap();
    let scene = Scene::with(&[("PARLOR_PROJECT_ROOTS", allowed.to_str().unwrap())]).await;
    let room = Room::on(scene).await;
    let body = json!({ "memberId": room.scene.admin.user_id() });
    let added = room.alice.post(&format!("/api/rooms/{}/members", room.room), body).await.unwrap();
    assert_eq!(added.status, 201, "{added:?}");
    let root = std::fs::canonicalize(&allowed).unwrap().to_str().unwrap().to_owned();
    (room, folders, root)
}

pub async fn set_root(room: &Room, root: impl Into<Value>) -> parlor_testkit::rest::RestResponse {
    let path = format!("/api/rooms/{}/project-root", room.room);
    room.scene.admin.put(&path, json!({ "projectRoot": root.into() })).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_site_admin_in_the_room_sets_its_project_root_to_an_allowed_folder() {
    let (mut room, folders, root) = with_project_root().await;
    let beside = |name: &str| folders.path().join(name).to_str().unwrap().to_owned();
    std::os::unix::fs::symlink("/etc", folders.path().join("free/out")).unwrap();
    std::os::unix::fs::symlink(Path::new(&root).join("app"), folders.path().join("in")).unwrap();
    std::fs::write(folders.path().join("free/file"), "").unwrap();

    assert_eq!(room.scene.admin.get("/api/project-roots").await.unwrap().body, json!({ "roots": [root] }));
    assert_refused(&room.alice.get("/api/project-roots").await.unwrap(), 403);
    let path = format!("/api/rooms/{}/project-root", room.room);
    // The room's owner may not set the project root, nor a site admin who is no member of the room.
    assert_refused(&room.alice.put(&path, json!({ "projectRoot": root })).await.unwrap(), 403);
    let other = room.alice.make_room("study", &[]).await.unwrap();
    let elsewhere = format!("/api/rooms/{other}/project-root");
    assert_refused(&room.scene.admin.put(&elsewhere, json!({ "projectRoot": root })).await.unwrap(), 404);
    let parent_path = format!("{root}/../freedom");
    let outside = [
        "/",
        "/etc",
        &beside("freedom"),
        &beside("free/out"),
        &parent_path,
        &beside("free/file"),
        &beside("free/no"),
    ];
    for outside in outside {
        assert_refused(&set_root(&room, outside).await, 403);
    }
    for invalid in ["", "free", "./free"] {
        assert_refused(&set_root(&room, invalid).await, 400);
    }
    let missing = room.scene.admin.put(&path, json!({})).await.unwrap();
    assert_refused(&missing, 400);
    assert_eq!(missing.body["fields"][0], json!({ "field": "projectRoot", "message": "is required" }));
    let shown = room.bob.get(&format!("/api/rooms/{}", room.room)).await.unwrap().data().unwrap();
    assert!(shown.get("projectRoot").is_none(), "{shown}");

    // A symbolic link is resolved, and a folder below an allowed folder is allowed.
    let set = set_root(&room, beside("in")).await.data().unwrap();
    assert_eq!(set["projectRoot"], format!("{root}/app"));
    assert_eq!(set_root(&room, &*root).await.data().unwrap()["projectRoot"], *root);
    let audit = room.scene.admin.get("/api/audit?action=project_root_set").await.unwrap().data().unwrap();
    assert_eq!(audit["items"][0]["detail"], *root, "{audit}");
    room.scene.crash_and_restart().await;
    let bob = room.bob.at(room.scene.url());
    let shown = bob.get(&format!("/api/rooms/{}", room.room)).await.unwrap().data().unwrap();
    assert_eq!(shown["projectRoot"], *root);
    assert!(set_root(&room, Value::Null).await.data().unwrap().get("projectRoot").is_none());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_the_project_root_of_their_room_and_can_be_filtered_by_it() {
    let (room, _folders, root) = with_project_root().await;
    let other = room.alice.make_room("study", &[&room.bob]).await.unwrap();
    let filter = format!("?project_root={root}");
    // A folder that is no project root of a room of the caller is refused, whether it is allowed or not.
    for (user, status) in [(&room.bob, 403), (&room.scene.admin, 403)] {
        assert_refused(&user.get(&format!("/api/events{filter}")).await.unwrap(), status);
    }
    set_root(&room, &*root).await.data().unwrap();
    let outsider = room.scene.person("stranger").await;
    for call in ["events", "agent-runs", "plan"] {
        assert_refused(&outsider.get(&format!("/api/{call}{filter}")).await.unwrap(), 403);
        assert_refused(&room.bob.get(&format!("/api/{call}?project_root=/etc")).await.unwrap(), 403);
    }

    let mut all = live(&room.bob).await;
    let from = all.position.clone();
    let mut by_root = filtered(&room.bob, &filter, from.as_deref()).await;
    room.alice.post_message(&other, "elsewhere").await.unwrap();
    room.alice.post_message(&room.room, "here").await.unwrap();
    let text = |text: &'static str| move |message: &Value| message["text"] == text;
    assert!(all.wait_for(text("elsewhere")).await.unwrap().get("project_root").is_none());
    assert_eq!(all.wait_for(text("here")).await.unwrap()["project_root"], *root);
    let events = by_root.until(text("here")).await.unwrap();
    assert!(events.iter().all(|message| message["project_root"] == *root), "{events:?}");
    set_root(&room, Value::Null).await.data().unwrap();
    let changed = |message: &Value| message["kind"] == "room" && message["phase"] == "changed";
    let changed = all.wait_for(changed).await.unwrap();
    assert!(changed.get("project_root").is_none() && changed["data"]["room"]["project_root"].is_null());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_of_a_project_root_receives_a_sync_when_a_room_leaves_it() {
    let (room, _folders, root) = with_project_root().await;
    set_root(&room, &*root).await.data().unwrap();
    let mut by_root = filtered(&room.bob, &format!("?project_root={root}"), None).await;
    room.alice.post_message(&room.room, "here").await.unwrap();
    by_root.wait_for(|event| event["text"] == "here").await.unwrap();
    set_root(&room, Value::Null).await.data().unwrap();
    let event = by_root.wait_for(|event| event["kind"] == "run" && event["phase"] == "sync").await.unwrap();
    assert!(event.get("session_id").is_none(), "{event}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_with_another_project_root_than_that_of_its_room_is_refused() {
    let (room, _folders, root) = with_project_root().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = live(&room.bob).await;
    let chat = |root: &str, session: Option<&str>| {
        let mut body = json!({ "agent_id": "coder", "message": "hello", "project_root": root });
        if let Some(session) = session {
            body["session_id"] = session.into();
        }
        body
    };
    let here = Some(&*room.room);
    assert_refused(&room.bob.post("/api/chat", chat(&root, here)).await.unwrap(), 403);
    set_root(&room, &*root).await.data().unwrap();
    assert_refused(&room.bob.post("/api/chat", chat("/etc", here)).await.unwrap(), 403);
    // A chat without a session creates a room, and a new room has no project root.
    assert_refused(&room.bob.post("/api/chat", chat(&root, None)).await.unwrap(), 400);
    let response = room.bob.post("/api/chat", chat(&root, here)).await.unwrap();
    assert_eq!(response.body["status"], "started", "{response:?}");
    let run = gateway.turn().await.unwrap();
    gateway.chunk(&run, "m1", "text", "so").await.unwrap();
    let token = at_bob.wait_for_kind("token").await.unwrap();
    assert_eq!(token["project_root"], *root, "{token}");
    gateway.complete(&run, "m1", "so it is").await.unwrap();
    let done = at_bob.wait_for_kind("turn_complete").await.unwrap();
    assert_eq!(done["project_root"], *root);
    let runs = room.bob.get(&format!("/api/agent-runs?project_root={root}")).await.unwrap().body;
    assert_eq!((runs.as_array().unwrap().len(), &runs[0]["repo_path"]), (1, &json!(root)), "{runs}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_the_files_of_the_project_root_and_the_agents_working_on_them() {
    let (mut room, folders, root) = with_project_root().await;
    std::fs::write(folders.path().join("free/app/main.rs"), "fn main() {}").unwrap();
    std::fs::write(folders.path().join("free/app/other.rs"), "").unwrap();
    std::fs::write(folders.path().join("free/.gitignore"), "*.log\n").unwrap();
    std::fs::write(folders.path().join("free/secret.log"), "").unwrap();
    std::os::unix::fs::symlink("/etc", folders.path().join("free/out")).unwrap();
    let of_room = format!("/api/workspace/tree?session_id={}", room.room);
    assert_refused(&room.bob.get(&of_room).await.unwrap(), 404);
    set_root(&room, &*root).await.data().unwrap();
    let tree = room.bob.get(&of_room).await.unwrap();
    assert_eq!(tree.status, 200, "{tree:?}");
    let free = &tree.body["free"];
    assert_eq!((&free["type"], &free["path"]), (&json!("dir"), &json!(root)));
    let names: Vec<&String> = free["children"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["app", "out"], "ignored and hidden files are not listed");
    let main = &free["children"]["app"]["children"]["main.rs"];
    assert_eq!((&main["path"], &main["size"], main.get("agent")), (&json!("app/main.rs"), &json!(12), None));
    let by_root = room.bob.get(&format!("/api/workspace/tree?project_root={root}&path=app")).await.unwrap();
    assert_eq!(by_root.body["app"]["children"]["main.rs"]["path"], "app/main.rs", "{by_root:?}");
    for path in ["..", "out", "/etc", "app/main.rs", "nowhere"] {
        assert_refused(&room.bob.get(&format!("{of_room}&path={path}")).await.unwrap(), 404);
    }
    let outsider = room.scene.person("stranger").await;
    assert_refused(&outsider.get(&of_room).await.unwrap(), 404);
    assert_refused(&outsider.get(&format!("/api/workspace/tree?project_root={root}")).await.unwrap(), 403);
    assert_refused(&room.bob.get("/api/workspace/tree?project_root=/etc").await.unwrap(), 403);

    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = live(&room.bob).await;
    room.say("@coder look").await;
    let run = gateway.turn().await.unwrap();
    let input = json!({ "file_path": format!("{root}/app/main.rs") }).to_string();
    gateway.chunk(&run, "m1", "tool_use", &input).await.unwrap();
    at_bob.wait_for_kind("content_block").await.unwrap();
    let tree = room.bob.get(&of_room).await.unwrap().body;
    let app = &tree["free"]["children"]["app"]["children"];
    assert_eq!((&app["main.rs"]["agent"], &app["main.rs"]["status"]), (&json!("coder"), &json!("working")));
    assert!(app["other.rs"].get("agent").is_none());
    gateway.complete(&run, "m1", "done").await.unwrap();
    at_bob.wait_for_kind("turn_complete").await.unwrap();
    let tree = room.bob.get(&of_room).await.unwrap().body;
    assert!(!tree.to_string().contains("working"), "{tree}");

    // After a restart `project_roots` does not list the folder any more.
    room.scene.command = room.scene.command.clone().env("PARLOR_PROJECT_ROOTS", "/nowhere");
    room.scene.crash_and_restart().await;
    let bob = room.bob.at(room.scene.url());
    assert_refused(&bob.get(&of_room).await.unwrap(), 403);
    for call in [
        "events?",
        "agent-runs?",
        "plan?",
        "mission?",
        "missions?",
        "workspace/tree?",
        "agent-override?agent_id=coder&",
    ] {
        assert_refused(&bob.get(&format!("/api/{call}project_root={root}")).await.unwrap(), 403);
    }
    room.scene.ends_well().await;
}
