//! Replays the recorded REST calls and frames of the original AgentIM web page in order and checks that each
//! response has the fields that the page uses.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene};

const RECORDED: &str = include_str!("../fixtures/agentim-web.jsonl");

/// Checks that `ours` has every field of `recorded` with the same JSON type, so that a program written for
/// `recorded` can use it. A recorded `null` matches any value, because its type is unknown. `place` is the
/// path for error messages.
pub fn usable(recorded: &Value, ours: &Value, place: &str) -> Result<(), String> {
    let mismatch = |reason: &str| Err(format!("{place}: {reason}, recorded {recorded}, now {ours}"));
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
            (Some(_), None) => mismatch("empty"),
            (None, _) => Ok(()),
        },
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_)) => Ok(()),
        _ => mismatch("another type"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_web_page_gets_responses_it_can_use() {
    let scene = Scene::start().await;
    let user = scene.person("page").await;
    let room = user.make_room("Test Room", &[]).await.unwrap();
    user.post_message(&room, "something to be seen in the list").await.unwrap();
    let mut owner = Broker::connect(scene.url(), user.token()).await.unwrap();
    owner.ok(json!({ "type": "agent.create", "id": "webbot" })).await.unwrap();
    let agent = json!({ "memberId": "webbot", "memberType": "agent" });
    user.post(&format!("/api/rooms/{room}/members"), agent).await.unwrap().data().unwrap();
    let substitute = |text: &str| {
        let text = text.replace("<room>", &room).replace("<user>", user.user_id());
        text.replace("<token>", user.token())
            .replace("ChangeMe123!x", PASSWORD)
            .replace(r#""admin""#, r#""page""#)
    };
    let mut page = None;
    // Frames caused by different users arrive in either order, so unmatched frames are kept.
    let mut unread: Vec<Value> = Vec::new();
    let anonymous = RestClient::outsider(scene.url());
    for line in RECORDED.lines() {
        let step: Value = serde_json::from_str(&substitute(line)).unwrap();
        if let Some(frame) = step.get("sent") {
            // Opened on first use, as the page does: the hub closes a connection that does not authenticate
            // in time.
            if page.is_none() {
                page = Some(Client::open(scene.url()).await.unwrap());
            }
            let page = page.as_mut().unwrap();
            page.send(frame).await.unwrap();
            if frame["type"] == "client:join_room" {
                // REST calls use another connection; a call before the join would cause no frame for this
                // client.
                page.send(&json!({ "type": "client:ping", "ts": 1 })).await.unwrap();
                page.wait_for_type("server:pong").await.unwrap();
            }
        } else if let Some(frame) = step.get("heard") {
            let page = page.as_mut().unwrap();
            let received = loop {
                match unread.iter().position(|received| received["type"] == frame["type"]) {
                    Some(at) => break unread.remove(at),
                    None => unread.push(page.frame(TEST_TIMEOUT).await.unwrap()),
                }
            };
            usable(frame, &received, frame["type"].as_str().unwrap()).unwrap();
        } else {
            let call = step["call"].as_str().unwrap();
            let (method, path) = call.split_once(' ').unwrap();
            let caller = if step["signed"] == true { &user } else { &anonymous };
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
