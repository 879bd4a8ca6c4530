//! Keeps the recording that `web/tests/recorded.test.ts` replays in line with the hub: repeats the recorded
//! session and compares the shape of every frame, field by field. After a change of a frame, record again
//! with `npm run record` and run the web tests.

use crate::scene::{Scene, so_far};
use parlor_testkit::agentim::{Client, message};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const RECORDED: &str = include_str!("../../../../web/tests/fixtures/everything.jsonl");
const ROOM: &str = "welcome";

/// Path of every field in every type of frame, with the JSON types of its values.
type Shapes = BTreeMap<String, BTreeSet<&'static str>>;

#[tokio::test(flavor = "multi_thread")]
async fn recorded_frames_have_the_shape_of_current_frames() {
    let recorded: Vec<Value> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let recorded = shapes_of(&recorded);
    let current = shapes_of(&replay_session().await);
    let paths: BTreeSet<&String> = recorded.keys().chain(current.keys()).collect();
    let changed = paths.into_iter().filter(|path| recorded.get(*path) != current.get(*path));
    let changed: Vec<String> = changed
        .map(|path| format!("{path}: {:?}, now {:?}", recorded.get(path), current.get(path)))
        .collect();
    assert!(changed.is_empty(), "record it again with `npm run record`:\n{}", changed.join("\n"));
}

/// Repeats the recorded session: connects like the web page and has the guide demonstrate everything. Returns
/// all received frames, followed by the history of the room.
async fn replay_session() -> Vec<Value> {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ada = &scene.admin;
    let mut page = PageClient { client: Client::open(scene.url()).await.unwrap(), frames: Vec::new() };
    page.client.send(&json!({ "type": "client:auth", "token": ada.token() })).await.unwrap();
    // Only the page that makes its user come online receives this frame.
    page.wait_for(|frame| frame["type"] == "server:presence").await;
    page.client.send(&json!({ "type": "client:follow" })).await.unwrap();
    page.wait_for(|frame| frame["type"] == "server:following").await;
    if ada.history(ROOM).await.unwrap().is_empty() {
        // The recording begins after the greeting of the guide.
        let recorded = page.frames.len();
        page.wait_for(|frame| frame["event"]["kind"] == "turn_complete").await;
        page.frames.truncate(recorded);
    }
    ada.post(&format!("/api/messages/rooms/{ROOM}/read"), json!({})).await.unwrap();
    page.wait_for(|frame| frame["type"] == "server:read_receipt").await;
    page.client.send(&message(ROOM, "@guide everything", "c1")).await.unwrap();
    let request = page.wait_for(|frame| frame["type"] == "server:permission_request").await;
    let answer = json!({
        "type": "client:permission_response",
        "requestId": request["requestId"],
        "decision": "allow",
        "inputDigest": request["inputDigest"],
    });
    page.client.send(&answer).await.unwrap();
    let request = page.wait_for(|frame| frame["event"]["kind"] == "ask_user").await;
    let custom_answer =
        |index: usize, text: &str| json!({ "question_index": index, "selected": [], "custom_text": text });
    let answers = [custom_answer(0, "Tea"), custom_answer(1, "Now")];
    let body = json!({ "question_id": request["event"]["data"]["question_id"], "answers": answers });
    ada.post("/api/ask-user-response", body).await.unwrap();
    page.wait_for(|frame| frame["event"]["kind"] == "turn_complete").await;
    page.frames.extend(so_far(&mut page.client).await);
    let history = ada.get(&format!("/api/messages/rooms/{ROOM}?limit=50")).await.unwrap().data().unwrap();
    page.frames.push(json!({ "history": history }));
    page.frames
}

struct PageClient {
    client: Client,
    frames: Vec<Value>,
}

impl PageClient {
    async fn wait_for(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.client.frame(TEST_TIMEOUT).await.unwrap();
            self.frames.push(frame.clone());
            if matches(&frame) {
                return frame;
            }
        }
    }
}

fn shapes_of(frames: &[Value]) -> Shapes {
    let mut shapes = Shapes::new();
    for frame in frames {
        let labels =
            ["/type", "/event/kind", "/event/phase", "/chunk/type"].map(|pointer| frame.pointer(pointer));
        let name: Vec<&str> = labels.into_iter().flatten().filter_map(Value::as_str).collect();
        add_shape(frame, &name.join(" "), &mut shapes);
    }
    shapes
}

fn add_shape(value: &Value, path: &str, shapes: &mut Shapes) {
    let json_type = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            items.iter().for_each(|item| add_shape(item, &format!("{path}[]"), shapes));
            "array"
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| add_shape(value, &format!("{path}.{key}"), shapes));
            "object"
        }
    };
    shapes.entry(path.to_owned()).or_default().insert(json_type);
}
