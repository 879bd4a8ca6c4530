//! Every row of the documented table is produced by real work, has its form in the schema, and there are no others.

use super::turns::tour;
use super::{live, resumed};
use crate::gateway::scenes::Room;
use crate::process::agents::Hosted;
use crate::scene::{Scene, following};
use parlor_testkit::rest::{RestClient, RestResponse};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../../docs/protocols/chat-events.md");
const SCHEMA: &str = include_str!("../../../../../docs/protocols/chat-events.schema.json");

type Row = (String, Option<String>);

/// The words in code font in a cell.
fn words(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn documented() -> BTreeSet<Row> {
    let table = DOCUMENT.split("| `kind` | `phase` | when |").nth(1).expect("the table of kinds");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut all = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let phases = words(cells[2]);
        for kind in words(cells[1]) {
            match phases.is_empty() {
                true => drop(all.insert((kind, None))),
                false => all.extend(phases.iter().map(|phase| (kind.clone(), Some(phase.clone())))),
            }
        }
    }
    // Said in words, in the row of what it ends.
    all.insert(("token".into(), Some("done".into())));
    all
}

fn of_schema() -> BTreeSet<Row> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let titles = schema["oneOf"].as_array().unwrap().iter().map(|form| form["title"].as_str().unwrap());
    let row = |title: &str| match title.split_once('/') {
        Some((kind, phase)) => (kind.to_owned(), Some(phase.to_owned())),
        None => (title.to_owned(), None),
    };
    titles.map(row).collect()
}

fn rows(told: &[Value]) -> BTreeSet<Row> {
    let row = |message: &Value| {
        (message["kind"].as_str().unwrap().to_owned(), message["phase"].as_str().map(str::to_owned))
    };
    told.iter().map(row).collect()
}

fn ok(answer: RestResponse) -> Value {
    assert!(answer.status.is_success(), "{answer:?}");
    answer.body
}

/// Does with a room of one's own everything that is told of.
async fn live_in(person: &RestClient, other: &RestClient) {
    let room = person.make_room("kitchen", &[other]).await.unwrap();
    let said = person.post_message(&room, "hello").await.unwrap();
    let id = said["id"].as_str().unwrap();
    ok(person.put(&format!("/api/messages/{id}"), json!({ "content": "hello!" })).await.unwrap());
    ok(person.post(&format!("/api/messages/{id}/reactions"), json!({ "emoji": "👍" })).await.unwrap());
    ok(person.post(&format!("/api/messages/{id}/pin"), json!({})).await.unwrap());
    ok(person.delete(&format!("/api/messages/{id}/pin")).await.unwrap());
    ok(person.post("/api/bookmarks", json!({ "messageId": id })).await.unwrap());
    ok(person.delete(&format!("/api/bookmarks/{id}")).await.unwrap());
    ok(other.post(&format!("/api/messages/rooms/{room}/read"), json!({})).await.unwrap());
    let task = ok(person.post(&format!("/api/tasks/rooms/{room}"), json!({ "title": "tea" })).await.unwrap());
    ok(person.delete(&format!("/api/tasks/{}", task["data"]["id"].as_str().unwrap())).await.unwrap());
    ok(person.put(&format!("/api/rooms/{room}"), json!({ "name": "the kitchen" })).await.unwrap());
    ok(person.put(&format!("/api/rooms/{room}/pin"), json!({})).await.unwrap());
    ok(person.put(&format!("/api/rooms/{room}/clear"), json!({})).await.unwrap());
    let mut client = following(other, &room).await;
    client.send(&json!({ "type": "client:typing", "roomId": room })).await.unwrap();
    client.say_and_wait(&room, "there", "c1").await.unwrap();
    ok(person.delete(&format!("/api/messages/{id}")).await.unwrap());
    ok(person.delete(&format!("/api/rooms/{room}/members/{}", other.user_id())).await.unwrap());
    ok(person.delete(&format!("/api/rooms/{room}")).await.unwrap());
}

/// Works in a folder that git keeps.
fn worker(place: &Path) -> String {
    let place = place.display();
    format!(
        "cd {place}/work; echo two > kept; echo new > made; rm gone; echo x > secret; echo begun; \
        while [ ! -e {place}/go ]; do sleep 0.02; done; echo done"
    )
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = std::process::Command::new("git");
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    assert!(git.args(who).args(arguments).current_dir(folder).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_table_is_told_by_real_work_and_has_its_form() {
    assert_eq!(documented(), of_schema(), "the table and the schema have the same rows");
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ann = scene.person("ann").await;
    let mut told = tour(&scene, &ann).await;

    let room = Room::on(scene).await;
    let mut stream = live(&room.alice).await;
    live_in(&room.alice, &room.bob).await;
    let hosted = Hosted::of_kind(room.scene.url(), "command", &[("worker", &worker)]);
    let work = hosted.place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for (file, content) in [("kept", "one\n"), ("gone", "x\n"), ("mine", "x\n"), (".gitignore", "secret\n")] {
        std::fs::write(work.join(file), content).unwrap();
    }
    git(&work, &["init", "-q"]);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "x"]);
    // What was there before the turn is not of the turn.
    std::fs::write(work.join("mine"), "y\n").unwrap();
    std::fs::write(work.join("own"), "y\n").unwrap();
    let gateway = hosted.in_folder("work").join(&room, &["worker"]).await;
    let agent = hosted.gateway_launcher.agent("worker").unwrap();
    let chat = async |message: &str| {
        let body = json!({ "agent_id": agent, "message": message, "session_id": room.room });
        ok(room.alice.post("/api/chat", body).await.unwrap())
    };
    let first = chat("work").await;
    told.extend(stream.until(|message| message["kind"] == "token").await.unwrap());
    let second = chat("and again").await;
    told.extend(stream.until(|message| message["kind"] == "queue").await.unwrap());
    std::fs::write(hosted.place.path().join("go"), "").unwrap();
    let over =
        |message: &Value| message["kind"] == "turn_complete" && message["data"]["run_id"] == second["run_id"];
    told.extend(stream.until(over).await.unwrap());
    let report = |message: &&Value| {
        message["phase"] == "change_report" && message["data"]["run_id"] == first["run_id"]
    };
    let report = &told.iter().find(report).expect("what changed is told")["data"];
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

    // Taking back what was said, and a position that nobody knows.
    let mut client = following(&room.alice, &room.room).await;
    let rewind =
        json!({ "type": "client:rewind_room", "roomId": room.room, "messageId": second["message_id"] });
    client.send(&rewind).await.unwrap();
    told.extend(stream.until(|message| message["phase"] == "rewound").await.unwrap());
    told.push(resumed(&room.alice, "00000001-0").await.wait_for_kind("run").await.unwrap());

    let told = rows(&told);
    let missing: Vec<Row> = documented().difference(&told).cloned().collect();
    assert!(missing.is_empty(), "never told: {missing:?}");
    drop(gateway);
    room.scene.ends_well().await;
}
