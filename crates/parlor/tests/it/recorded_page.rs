//! The calls and frames of the real AgentIM web page, replayed in their order: each answer is one it can use.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene};

const RECORDED: &str = include_str!("../fixtures/agentim-web.jsonl");

/// Whether a program that was written for `recorded` finds in `ours` what it looks for: every field, of the same
/// kind. What was `null` may be anything, for it meant that there was nothing yet.
pub fn usable(recorded: &Value, ours: &Value, place: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{place}: {what}, recorded {recorded}, now {ours}"));
    match (recorded, ours) {
        (Value::Null, _) => Ok(()),
        (Value::Object(recorded), Value::Object(ours)) => recorded.iter().try_for_each(|(key, value)| {
            let place = format!("{place}/{key}");
            match ours.get(key) {
                Some(found) => usable(value, found, &place),
                None if value.is_null() => Ok(()),
                None => Err(format!("{place} is missing")),
            }
        }),
        (Value::Array(recorded), Value::Array(ours)) => match (recorded.first(), ours.first()) {
            (Some(recorded), Some(ours)) => usable(recorded, ours, &format!("{place}/0")),
            (Some(_), None) => wrong("empty"),
            (None, _) => Ok(()),
        },
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_)) => Ok(()),
        _ => wrong("of another kind"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_web_page_gets_answers_it_can_use() {
    let scene = Scene::start().await;
    let person = scene.person("page").await;
    let room = person.make_room("Test Room", &[]).await.unwrap();
    person.post_message(&room, "something to be seen in the list").await.unwrap();
    let mut owner = Broker::connect(scene.url(), person.token()).await.unwrap();
    owner.ok(json!({ "type": "agent.create", "id": "webbot" })).await.unwrap();
    let agent = json!({ "memberId": "webbot", "memberType": "agent" });
    person.post(&format!("/api/rooms/{room}/members"), agent).await.unwrap().data().unwrap();
    let mine = |text: &str| {
        let text = text.replace("<room>", &room).replace("<user>", person.user_id());
        text.replace("<token>", person.token())
            .replace("ChangeMe123!x", PASSWORD)
            .replace(r#""admin""#, r#""page""#)
    };
    let mut page = None;
    // What two people's doings bring about comes in either order.
    let mut unread: Vec<Value> = Vec::new();
    let outsider = RestClient::outsider(scene.url());
    for line in RECORDED.lines() {
        let step: Value = serde_json::from_str(&mine(line)).unwrap();
        if let Some(frame) = step.get("sent") {
            // Opened when it is used, as the page does: what has not said who it is may not wait for long.
            if page.is_none() {
                page = Some(Client::open(scene.url()).await.unwrap());
            }
            let page = page.as_mut().unwrap();
            page.send(frame).await.unwrap();
            if frame["type"] == "client:join_room" {
                // Calls go another way, and one that came first would bring nothing into a room not joined yet.
                page.send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
                page.wait_for_type("server:pong").await.unwrap();
            }
        } else if let Some(frame) = step.get("heard") {
            let page = page.as_mut().unwrap();
            let heard = loop {
                match unread.iter().position(|heard| heard["type"] == frame["type"]) {
                    Some(at) => break unread.remove(at),
                    None => unread.push(page.frame(TEST_TIMEOUT).await.unwrap()),
                }
            };
            usable(frame, &heard, frame["type"].as_str().unwrap()).unwrap();
        } else {
            let call = step["call"].as_str().unwrap();
            let (method, path) = call.split_once(' ').unwrap();
            let caller = if step["signed"] == true { &person } else { &outsider };
            let mut request = caller.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
            if let Some(body) = step.get("body") {
                request = request.json(body);
            }
            let answer = RestResponse::of(request).await.unwrap();
            assert_eq!(answer.status, step["status"].as_u64().unwrap() as u16, "{call}: {answer:?}");
            usable(step.get("answer").unwrap_or(&Value::Null), &answer.body, call).unwrap();
        }
    }
}
