//! Replays a recorded session with the original broker, on a hub with an agents root.
//!
//! Every answer must be equal, or a listed and documented deviation.

use std::collections::BTreeSet;

use parlor_testkit::broker::Broker;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::agents_root::Root;

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

const RELATIVE: &str = "`path` is absolute";
const KEEPS_TITLE: &str = "a session keeps its title";
const TOOLS: &str = "other tools and descriptions";
const AGENT_ID: &str = "`send-message` treats `researcher/analyzer` as a path";
const ABORTED: &str = "the log of an aborted run ends with its reply";
const FIRST_ANSWER: &str = "a second answer to a question is queued";
/// Frames of the recording that the hub does not send: the request before them, and their type.
const NOT_SENT: [(&str, &str, &str); 1] =
    [("r37", "session.result", "`session.result` before the program has ended")];
/// Answers and pushes about sessions have a field that the recording does not have.
const WITH_AGENT: &str = "`session.*` pushes name the session only";
const AT_ONCE: &str = "the index follows the commit";
const IN_ORDER: &str = "the same list every time";
/// A request that finds the session of a stopped run active, until its program has ended. The replay cannot delay that end;
/// `broker_sessions` tests the answer.
const NOT_REPLAYED: &str = "r41-still-active";
/// Stands in for the Claude CLI: streams the recorded reply. Told to be slow, it then waits until it is stopped.
const CLI: &str = r#"read -r prompt
say() { printf '%s\n' "{\"type\":\"$1\",\"message\":{\"content\":[$2]},\"parent_tool_use_id\":null}"; }
say assistant '{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hello"}'
say assistant '{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"x"}}'
say user '{"type":"tool_result","tool_use_id":"t1","content":"ok"}'
case "$prompt" in *slow*) read -r interrupt; exit ;; esac
echo '{"type":"result","subtype":"success","result":"Hello"}'"#;
/// The session `slack-monitor` in the list of sessions, and in the list of conversations.
const LISTED: &str = r#"{"id":"slack-monitor","title":"slack-monitor","isDefault":false,
    "subscriptions":[{"pattern":"slack/team/#general","addedAt":"<ms>"}],"createdAt":"<ms>","lastUsedAt":"<ms>",
    "isActive":false,"activeSince":null,"activeMs":0}"#;
const CONVERSATION: &str = r#"{"agentId":"researcher","sessionId":"slack-monitor","id":"slack-monitor",
    "title":"slack-monitor","isDefault":false,
    "subscriptions":[{"pattern":"slack/team/#general","addedAt":"<ms>"}],"createdAt":"<ms>","lastUsedAt":"<ms>"}"#;
const ENTRIES: &str = r#"[{"role":"user","type":"prompt","text":"hello there","timestamp":"<ms>"},
    {"role":"assistant","type":"result","text":"Hello","durationMs":61,"timestamp":"<ms>"},
    {"role":"user","type":"prompt","text":"slow","timestamp":"<ms>"},
    {"role":"assistant","type":"result","text":"Hello","durationMs":61,"timestamp":"<ms>"},
    {"role":"system","type":"error","text":"cancelled","durationMs":61,"timestamp":"<ms>"}]"#;
const R12: &[&str] = &["r12-new-agent-not-autosubscribed"];

fn deviations() -> Vec<Deviation> {
    let mut all = vec![
        instead(&["r5"], "/agent/path", r#""researcher/analyzer""#, RELATIVE),
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
        instead(&["r45"], "/sessions/1", LISTED, KEEPS_TITLE),
        instead(&["r46"], "/entries", ENTRIES, ABORTED),
        instead(&["r53"], "/conversations/0", CONVERSATION, KEEPS_TITLE),
        instead(&["r48"], "/result/output/data/path", r#""agent/researcher/analyzer""#, AGENT_ID),
        instead(&["r48"], "/result/output/data/delivered", "true", AGENT_ID),
        instead(&["r48"], "/result/output/data/deliveredTo", r#"["researcher/analyzer"]"#, AGENT_ID),
        instead(&["r56"], "/type", r#""ask-user.response.error""#, FIRST_ANSWER),
        instead(&["r59"], "/tools", r#""<tools>""#, TOOLS),
    ];
    for field in ["questionId", "queuedForSession", "agentId", "sessionId"] {
        let place = Box::leak(format!("/{field}").into_boxed_str());
        all.push(absent(&["r56"], place, FIRST_ANSWER));
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
            (Value::Array(array), Some(json)) => {
                array[last.parse::<usize>().unwrap()] = serde_json::from_str(json).unwrap();
            }
            (other, _) => panic!("{place} is no field or element: {other}"),
        }
        applied.insert(place);
    }
    recorded
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_answers_as_recorded_from_the_original() {
    let root = Root::new();
    for (id, description) in [
        ("main", "Main agent"),
        ("researcher", "Finds things"),
        ("researcher/analyzer", "child"),
        ("writer", "Agent project."),
    ] {
        let host = json!({ "kind": "claude", "command": ["sh", "-c", CLI, "claude"] });
        root.write_agent(id, json!({ "description": description, "parlor": host }));
        root.write(&format!("{id}/CLAUDE.md"), "Be brief.\n");
    }
    let scene = root.start().await;
    let token = scene.admin.token().to_owned();
    let mut owner = Broker::connect(scene.url(), &token).await.unwrap();
    let (mut question, mut asked) = (Value::Null, String::new());
    let mut sockets = [
        Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap(),
        Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap(),
    ];
    let (mut kinds, mut applied) = (BTreeSet::new(), BTreeSet::new());
    for line in RECORDED.lines() {
        let mut frame: Value = serde_json::from_str(line).unwrap();
        let direction = frame.as_object_mut().unwrap().remove("dir").unwrap();
        let direction = direction.as_str().unwrap();
        if frame["reqId"] == NOT_REPLAYED {
            continue;
        }
        let socket = &mut sockets[usize::from(direction.ends_with('2'))];
        match direction.as_bytes()[0] {
            b'>' => {
                if frame["token"] == "test-token" {
                    frame["token"] = json!(token);
                }
                asked = frame["reqId"].as_str().unwrap_or_default().to_owned();
                match &*asked {
                    // An agent asks questions only during a run.
                    "r54" => {
                        let start = json!({ "type": "session.start", "agent": "writer", "id": "main", "prompt": "slow" });
                        owner.ask(start).await.unwrap();
                        let is_active =
                            |frame: &Value| frame["type"] == "session.text" && frame["agentId"] == "writer";
                        owner.wait_for(TEST_TIMEOUT, is_active).await.unwrap();
                    }
                    // The agent would answer its mail at a time that the recording does not determine.
                    "r10" => {
                        let config = json!({ "autoRun": false });
                        owner
                            .ok(json!({ "type": "agent.update", "id": "newbie", "config": config }))
                            .await
                            .unwrap();
                    }
                    "r55" | "r56" => frame["questionId"] = question.clone(),
                    _ => {}
                }
                let raw = frame["raw"].as_str().map(str::to_owned);
                socket.send_message(Message::text(raw.unwrap_or_else(|| frame.to_string()))).await.unwrap();
            }
            b'<' if NOT_SENT.iter().any(|(after, kind, _)| asked == *after && frame["type"] == *kind) => {}
            b'<' => {
                let frame = expected(frame, &mut applied);
                // A push may precede or follow the answer to the request that caused it.
                let kind = frame["type"].as_str().unwrap().to_owned();
                let mut actual = socket.wait_for_type(&kind).await.unwrap();
                for pointer in ["", "/message"] {
                    // Parlor adds the position of the message in the log.
                    if let Some(Value::Object(object)) = actual.pointer_mut(pointer) {
                        object.remove("position");
                    }
                }
                let has_agent = !frame["agentId"].is_null();
                if let Value::Object(object) = &mut actual
                    && kind.starts_with("session.")
                    && kind != "session.list.result"
                    && !has_agent
                    && frame["error"].is_null()
                {
                    assert!(object.remove("agentId").is_some(), "{kind} names the agent");
                }
                if asked == "r56" {
                    assert!(actual["error"].is_string(), "{actual}");
                    actual.as_object_mut().unwrap().remove("error");
                }
                if kind == "ask-user" {
                    question = actual["questionId"].clone();
                }
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
    assert!(kinds.len() >= 55, "{kinds:?}");
    scene.ends_well().await;
}

#[test]
fn every_deviation_from_the_recording_is_in_the_document() {
    let of_fields = deviations().into_iter().map(|deviation| (deviation.place, deviation.documented));
    let of_frames = NOT_SENT.iter().map(|(_, kind, documented)| (*kind, *documented));
    for (place, documented) in of_fields.chain(of_frames).chain([("/agentId", WITH_AGENT)]) {
        let rows = DOCUMENT.lines().filter(|line| line.starts_with('|') && line.contains(documented));
        assert_eq!(rows.count(), 1, "{place}: one row of the table says {documented:?}");
    }
}

/// Compares recursively; ids and times are masked in the recording and match any valid value.
fn matches_recording(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(mask), actual) if mask == "<uuid>" => actual.as_str().is_some_and(|id| !id.is_empty()),
        (Value::String(mask), actual) if mask == "<tools>" => actual.is_array(),
        (Value::String(mask), actual) if mask == "<ms>" => actual.as_u64().is_some(),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| matches_recording(expected, actual))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            expected.len() == actual.len()
                && expected.iter().all(|(key, value)| {
                    actual.get(key).is_some_and(|actual| match &**key {
                        // The recording contains the times of the original.
                        "durationMs" | "elapsedMs" => actual.is_u64(),
                        _ => matches_recording(value, actual),
                    })
                })
        }
        (expected, actual) => expected == actual,
    }
}
