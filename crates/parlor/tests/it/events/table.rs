//! Completeness of the event documentation: every row of its table is in the schema and is published by real
//! work.

use super::turns::tour;
use super::{live, resumed};
use crate::gateway::scenes::Room;
use crate::process::agents::TestGateway;
use crate::scene::{Scene, following};
use parlor_testkit::rest::{RestClient, RestResponse};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../../docs/protocols/chat-events.md");
const SCHEMA: &str = include_str!("../../../../../docs/protocols/chat-events.schema.json");

/// Kind and phase of an event.
type Row = (String, Option<String>);

/// Returns the code spans of a table cell.
fn code_spans(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows_of_document() -> BTreeSet<Row> {
    let table =
        DOCUMENT.split("| `kind` | `phase` | when |").nth(1).expect("the document has a table of kinds");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut all = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let phases = code_spans(cells[2]);
        for kind in code_spans(cells[1]) {
            match phases.is_empty() {
                true => drop(all.insert((kind, None))),
                false => all.extend(phases.iter().map(|phase| (kind.clone(), Some(phase.clone())))),
            }
        }
    }
    // `token/done` is described in the text of another row, where the parser does not find it.
    all.insert(("token".into(), Some("done".into())));
    all
}

fn rows_of_schema() -> BTreeSet<Row> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let titles = schema["oneOf"].as_array().unwrap().iter().map(|form| form["title"].as_str().unwrap());
    let row = |title: &str| match title.split_once('/') {
        Some((kind, phase)) => (kind.to_owned(), Some(phase.to_owned())),
        None => (title.to_owned(), None),
    };
    titles.map(row).collect()
}

fn rows(events: &[Value]) -> BTreeSet<Row> {
    let row = |message: &Value| {
        (message["kind"].as_str().unwrap().to_owned(), message["phase"].as_str().map(str::to_owned))
    };
    events.iter().map(row).collect()
}

fn ok(answer: RestResponse) -> Value {
    assert!(answer.status.is_success(), "{answer:?}");
    answer.body
}

/// Creates a room and triggers every event that users can cause there.
async fn trigger_user_events(user: &RestClient, other: &RestClient) {
    let room = user.make_room("kitchen", &[other]).await.unwrap();
    let message = user.post_message(&room, "hello").await.unwrap();
    let id = message["id"].as_str().unwrap();
    ok(user.put(&format!("/api/messages/{id}"), json!({ "content": "hello!" })).await.unwrap());
    ok(user.post(&format!("/api/messages/{id}/reactions"), json!({ "emoji": "👍" })).await.unwrap());
    ok(user.post(&format!("/api/messages/{id}/pin"), json!({})).await.unwrap());
    ok(user.delete(&format!("/api/messages/{id}/pin")).await.unwrap());
    ok(user.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap());
    ok(user.delete(&format!("/api/bookmarks/{id}")).await.unwrap());
    ok(other.post(&format!("/api/messages/rooms/{room}/read"), json!({})).await.unwrap());
    let task = ok(user.post(&format!("/api/tasks/rooms/{room}"), json!({ "title": "tea" })).await.unwrap());
    ok(user.delete(&format!("/api/tasks/{}", task["data"]["id"].as_str().unwrap())).await.unwrap());
    ok(user.put(&format!("/api/rooms/{room}"), json!({ "name": "the kitchen" })).await.unwrap());
    ok(user.put(&format!("/api/rooms/{room}/pin"), json!({})).await.unwrap());
    ok(user.put(&format!("/api/rooms/{room}/clear"), json!({})).await.unwrap());
    let mut client = following(other, &room).await;
    client.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    client.say_and_wait(&room, "there", "c1").await.unwrap();
    ok(user.delete(&format!("/api/messages/{id}")).await.unwrap());
    ok(user.delete(&format!("/api/rooms/{room}/members/{}", other.user_id())).await.unwrap());
    ok(user.delete(&format!("/api/rooms/{room}")).await.unwrap());
}

/// Script that changes, adds, deletes and ignores files of a git repository, then waits for the file `go`.
fn worker_script(place: &Path) -> String {
    let place = place.display();
    format!(
        "cd {place}/work; echo two > kept; echo new > made; rm gone; echo x > secret; echo begun; \
        while [ ! -e {place}/go ]; do sleep 0.02; done; echo done"
    )
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    assert!(git.args(author).args(arguments).current_dir(folder).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_event_is_published_by_real_work_and_matches_the_schema() {
    assert_eq!(
        rows_of_document(),
        rows_of_schema(),
        "the documented table and the schema list the same events"
    );
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ann = scene.person("ann").await;
    let mut events = tour(&scene, &ann).await;

    let room = Room::on(scene).await;
    let mut stream = live(&room.alice).await;
    trigger_user_events(&room.alice, &room.bob).await;
    let hosted = TestGateway::of_kind(room.scene.url(), "command", &[("worker", &worker_script)]);
    let work = hosted.place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for (file, content) in [("kept", "one\n"), ("gone", "x\n"), ("mine", "x\n"), (".gitignore", "secret\n")] {
        std::fs::write(work.join(file), content).unwrap();
    }
    git(&work, &["init", "-q"]);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "x"]);
    // Changes from before the run are not part of its change report.
    std::fs::write(work.join("mine"), "y\n").unwrap();
    std::fs::write(work.join("own"), "y\n").unwrap();
    let gateway = hosted.in_folder("work").join(&room, &["worker"]).await;
    let agent = hosted.gateway_launcher.agent("worker").unwrap();
    let chat = async |message: &str| {
        let body = json!({ "agent_id": agent, "message": message, "session_id": room.room });
        ok(room.alice.post("/api/chat", body).await.unwrap())
    };
    let first = chat("work").await;
    events.extend(stream.until(|message| message["kind"] == "token").await.unwrap());
    let second = chat("and again").await;
    events.extend(stream.until(|message| message["kind"] == "queue").await.unwrap());
    std::fs::write(hosted.place.path().join("go"), "").unwrap();
    let completed =
        |message: &Value| message["kind"] == "turn_complete" && message["data"]["run_id"] == second["run_id"];
    events.extend(stream.until(completed).await.unwrap());
    let report = |message: &&Value| {
        message["phase"] == "change_report" && message["data"]["run_id"] == first["run_id"]
    };
    let report = &events.iter().find(report).expect("the run publishes a change report")["data"];
    assert_eq!(report["truncated_count"], 0, "{report}");
    let files = report["files"].as_array().unwrap();
    let summaries: Vec<(&str, &str)> = files
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["summary"].as_str().unwrap()))
        .collect();
    assert_eq!(summaries, [("gone", "Deleted"), ("kept", "Modified"), ("made", "Added")], "{report}");
    let diff = files[1]["diff"].as_str().unwrap();
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    assert!(files[2]["diff"].as_str().unwrap().contains("+new"), "{report}");

    // Rewind the room, and resume from an unknown position.
    let mut client = following(&room.alice, &room.room).await;
    let rewind =
        json!({ "type": "client:rewind_room", "roomId": room.room, "messageId": second["message_id"] });
    client.send(&rewind).await.unwrap();
    events.extend(stream.until(|message| message["phase"] == "rewound").await.unwrap());
    events.push(resumed(&room.alice, "00000001-0").await.wait_for_kind("run").await.unwrap());

    let published = rows(&events);
    let missing: Vec<Row> = rows_of_document().difference(&published).cloned().collect();
    assert!(missing.is_empty(), "these events were never published: {missing:?}");
    drop(gateway);
    room.scene.ends_well().await;
}
