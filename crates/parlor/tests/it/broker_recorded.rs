//! Replays a recorded session with the original broker.
//!
//! Every answer must be equal, or a listed and documented deviation.

use std::collections::BTreeSet;

use parlor_testkit::broker::Broker;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::scene::Scene;

const RECORDED: &str = include_str!("../fixtures/broker-ws.jsonl");
const DOCUMENT: &str = include_str!("../../../../docs/protocols/broker.md");

/// A place where Parlor's answer differs from the recording.
struct Deviation {
    /// `reqId`s of the answers concerned.
    answers: &'static [&'static str],
    /// JSON pointer to the field.
    place: &'static str,
    /// Parlor's value as JSON, or `None` if Parlor has no such field.
    instead: Option<&'static str>,
    /// Phrase of the row in the protocol document that describes the deviation.
    documented: &'static str,
}

const fn absent(
    answers: &'static [&'static str],
    place: &'static str,
    documented: &'static str,
) -> Deviation {
    Deviation { answers, place, instead: None, documented }
}

const fn instead(
    answers: &'static [&'static str],
    place: &'static str,
    json: &'static str,
    documented: &'static str,
) -> Deviation {
    Deviation { answers, place, instead: Some(json), documented }
}

const NO_FILES: &str = "an agent is no directory of files";
const AT_ONCE: &str = "the index follows the commit";
const IN_ORDER: &str = "the same list every time";
const LIST: [&str; 4] = ["/agents/0", "/agents/1", "/agents/2", "/agents/3"];
const R12: &[&str] = &["r12-new-agent-not-autosubscribed"];

fn deviations() -> Vec<Deviation> {
    let mut all = vec![
        absent(&["r5"], "/agent/path", NO_FILES),
        absent(&["r5"], "/agent/hasClaudeMd", NO_FILES),
        absent(&["r5"], "/agent/hasTools", NO_FILES),
        instead(R12, "/message/delivered", "true", AT_ONCE),
        instead(R12, "/message/deliveredTo", r#"["newbie"]"#, AT_ONCE),
        instead(R12, "/message/messageIds", r#"["<uuid>"]"#, AT_ONCE),
        instead(R12, "/message/unmatched", "false", AT_ONCE),
        instead(&["r18"], "/deliveredTo", r#"["researcher","writer"]"#, IN_ORDER),
        instead(
            &["r19"],
            "/message/deliveredTo",
            r#"["main","newbie","researcher","researcher/analyzer"]"#,
            AT_ONCE,
        ),
        instead(&["r19"], "/message/messageIds", r#"["<uuid>","<uuid>","<uuid>","<uuid>"]"#, AT_ONCE),
        absent(&["r33"], "/messages/1", AT_ONCE),
        instead(
            &["r36-subs-lost-after-saveSession"],
            "/subscriptions",
            r#"[{"pattern":"slack/team/#general","addedAt":"<ms>"}]"#,
            "a session keeps its subscriptions",
        ),
    ];
    for agent in LIST {
        for field in ["hasClaudeMd", "hasTools"] {
            let place = Box::leak(format!("{agent}/{field}").into_boxed_str());
            all.push(absent(&["r4"], place, NO_FILES));
        }
    }
    all
}

/// Applies the deviations to a recorded answer; adds the place of each applied deviation to `applied`.
fn expected(mut recorded: Value, applied: &mut BTreeSet<&'static str>) -> Value {
    for Deviation { answers, place, instead, .. } in deviations() {
        if !answers.iter().any(|answer| recorded["reqId"] == *answer) {
            continue;
        }
        let found = recorded.pointer(place);
        assert!(found.is_some(), "the recording has no field {place} in {recorded}");
        let (parent, last) = place.rsplit_once('/').unwrap();
        match (recorded.pointer_mut(parent).unwrap(), instead) {
            (Value::Object(object), None) => drop(object.remove(last)),
            (Value::Array(array), None) => drop(array.remove(last.parse().unwrap())),
            (Value::Object(object), Some(json)) => object[last] = serde_json::from_str(json).unwrap(),
            (other, _) => panic!("{place} is no field or element: {other}"),
        }
        applied.insert(place);
    }
    recorded
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_answers_as_recorded_from_the_original() {
    let scene = Scene::start().await;
    let token = scene.admin.token().to_owned();
    let mut owner = Broker::connect(scene.url(), &token).await.unwrap();
    for (id, description) in [
        ("main", "Main agent"),
        ("researcher", "Finds things"),
        ("researcher/analyzer", "child"),
        ("writer", "Agent project."),
    ] {
        let config = json!({ "description": description });
        owner.ok(json!({ "type": "agent.create", "id": id, "config": config })).await.unwrap();
    }
    let mut sockets = [
        Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap(),
        Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap(),
    ];
    let (mut kinds, mut applied) = (BTreeSet::new(), BTreeSet::new());
    for line in RECORDED.lines() {
        let mut frame: Value = serde_json::from_str(line).unwrap();
        let direction = frame.as_object_mut().unwrap().remove("dir").unwrap();
        let direction = direction.as_str().unwrap();
        let socket = &mut sockets[usize::from(direction.ends_with('2'))];
        match direction.as_bytes()[0] {
            b'>' => {
                if frame["token"] == "test-token" {
                    frame["token"] = json!(token);
                }
                let raw = frame["raw"].as_str().map(str::to_owned);
                socket.send_message(Message::text(raw.unwrap_or_else(|| frame.to_string()))).await.unwrap();
            }
            b'<' => {
                // A push may precede or follow the answer to the request that caused it.
                let kind = frame["type"].as_str().unwrap().to_owned();
                let mut actual = socket.wait_for_type(&kind).await.unwrap();
                for pointer in ["", "/message"] {
                    // Parlor adds the position of the message in the log.
                    if let Some(Value::Object(object)) = actual.pointer_mut(pointer) {
                        object.remove("position");
                    }
                }
                let frame = expected(frame, &mut applied);
                assert!(matches_recording(&frame, &actual), "expected {frame}\ngot      {actual}");
                kinds.insert(kind);
            }
            _ => assert_eq!(json!(socket.closed(TEST_TIMEOUT).await.unwrap()), frame["code"]),
        }
    }
    assert_eq!(
        applied.len(),
        deviations().iter().map(|deviation| deviation.place).collect::<BTreeSet<_>>().len()
    );
    assert!(kinds.len() >= 30, "{kinds:?}");
    scene.ends_well().await;
}

#[test]
fn every_deviation_from_the_recording_is_in_the_document() {
    for Deviation { place, documented, .. } in deviations() {
        let rows = DOCUMENT.lines().filter(|line| line.starts_with('|') && line.contains(documented));
        assert_eq!(rows.count(), 1, "{place}: one row of the table says {documented:?}");
    }
}

/// Compares recursively; ids and times are masked in the recording and match any valid value.
fn matches_recording(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(mask), actual) if mask == "<uuid>" => actual.as_str().is_some_and(|id| !id.is_empty()),
        (Value::String(mask), actual) if mask == "<ms>" => actual.as_u64().is_some(),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| matches_recording(expected, actual))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            expected.len() == actual.len()
                && expected.iter().all(|(key, value)| {
                    actual.get(key).is_some_and(|actual| matches_recording(value, actual))
                })
        }
        (expected, actual) => expected == actual,
    }
}
