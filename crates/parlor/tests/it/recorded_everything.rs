//! What the web page is tested with is what a hub tells: `web/tests/recorded.test.ts` replays a file, and here the same
//! is done anew and compared with it, place by place. Whoever changes a frame records it again (`npm run record`), and
//! sees there what the page makes of it.

use crate::scene::{Scene, so_far};
use parlor_testkit::agentim::{Client, message};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const RECORDED: &str = include_str!("../../../../web/tests/fixtures/everything.jsonl");
const ROOM: &str = "welcome";

/// Each place of each kind of frame, with the kinds of values that were there.
type Forms = BTreeMap<String, BTreeSet<&'static str>>;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_page_is_tested_with_has_the_form_of_what_is_told() {
    let recorded: Vec<Value> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let recorded = forms_of(&recorded);
    let now = forms_of(&everything().await);
    let places: BTreeSet<&String> = recorded.keys().chain(now.keys()).collect();
    let changed = places.into_iter().filter(|place| recorded.get(*place) != now.get(*place));
    let changed: Vec<String> = changed
        .map(|place| format!("{place}: {:?}, now {:?}", recorded.get(place), now.get(place)))
        .collect();
    assert!(changed.is_empty(), "record it again with `npm run record`:\n{}", changed.join("\n"));
}

/// A person has the guide show everything, as the page does it; what was told, and the history in the end.
async fn everything() -> Vec<Value> {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ada = &scene.admin;
    let mut page = Page { client: Client::open(scene.url()).await.unwrap(), told: Vec::new() };
    page.client.send(&json!({ "type": "client:auth", "token": ada.token() })).await.unwrap();
    // Whoever asked for events before this was told would hear of it twice.
    page.until(|frame| frame["type"] == "server:presence").await;
    page.client.send(&json!({ "type": "client:join_room", "roomId": ROOM, "since": "now" })).await.unwrap();
    page.until(|frame| frame["type"] == "server:room_joined").await;
    if ada.history(ROOM).await.unwrap().is_empty() {
        // The guide has the first word.
        page.until(|frame| frame["type"] == "server:message_complete").await;
    }
    page.client.send(&json!({ "type": "client:subscribe_events" })).await.unwrap();
    page.until(|frame| frame["type"] == "server:events_subscribed").await;
    ada.post(&format!("/api/messages/rooms/{ROOM}/read"), json!({})).await.unwrap();
    page.until(|frame| frame["type"] == "server:read_receipt").await;
    page.client.send(&message(ROOM, "@guide everything", "c1")).await.unwrap();
    let asked = page.until(|frame| frame["type"] == "server:permission_request").await;
    let answer = json!({
        "type": "client:permission_response",
        "requestId": asked["requestId"],
        "decision": "allow",
        "inputDigest": asked["inputDigest"],
    });
    page.client.send(&answer).await.unwrap();
    let asked = page.until(|frame| frame["event"]["kind"] == "ask_user").await;
    let own =
        |index: usize, text: &str| json!({ "question_index": index, "selected": [], "custom_text": text });
    let answers = [own(0, "Tea"), own(1, "Now")];
    let body = json!({ "question_id": asked["event"]["data"]["question_id"], "answers": answers });
    ada.post("/api/ask-user-response", body).await.unwrap();
    page.until(|frame| frame["event"]["kind"] == "turn_complete").await;
    page.told.extend(so_far(&mut page.client).await);
    let history = ada.get(&format!("/api/messages/rooms/{ROOM}?limit=50")).await.unwrap().data().unwrap();
    page.told.push(json!({ "history": history }));
    page.told
}

struct Page {
    client: Client,
    told: Vec<Value>,
}

impl Page {
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.client.frame(TEST_TIMEOUT).await.unwrap();
            self.told.push(frame.clone());
            if wanted(&frame) {
                return frame;
            }
        }
    }
}

fn forms_of(told: &[Value]) -> Forms {
    let mut forms = Forms::new();
    for frame in told {
        let words = ["/type", "/event/kind", "/event/phase", "/chunk/type"].map(|word| frame.pointer(word));
        let name: Vec<&str> = words.into_iter().flatten().filter_map(Value::as_str).collect();
        note(frame, &name.join(" "), &mut forms);
    }
    forms
}

fn note(value: &Value, place: &str, forms: &mut Forms) {
    let kind = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "yes or no",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(items) => {
            items.iter().for_each(|item| note(item, &format!("{place}[]"), forms));
            "a list"
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| note(value, &format!("{place}.{key}"), forms));
            "an object"
        }
    };
    forms.entry(place.to_owned()).or_default().insert(kind);
}
