//! Compares every documented kind of chat event field by field, as published by real runs.

use super::roots::{set_root, with_project_root};
use super::{live, resumed};
use crate::gateway::scenes::Room;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// Placeholder that matches any value except null, for values that differ on each run of the test, such as
/// times.
const ANY: &str = "<any>";

/// Reads a stream and compares each event with the expected one.
struct EventChecker {
    stream: EventReader,
    room: String,
    root: String,
    /// Lower bound for the time of all events, in Unix milliseconds.
    since_ms: u64,
    /// Numbers in the ids of activities, in order of appearance.
    activities: Vec<String>,
    /// Kind and phase of every event that was compared.
    rows: BTreeSet<(String, Option<String>)>,
    /// Queue events not yet compared: their order relative to other events is not fixed.
    queues: VecDeque<Value>,
    /// Events of all kinds except queue and presence that were read but not yet compared.
    others: VecDeque<Value>,
}

impl EventChecker {
    /// Asserts that the next event has exactly these fields, plus this room and project root.
    async fn expect(&mut self, mut expected: Value) -> Value {
        expected["session_id"] = self.room.clone().into();
        expected["project_root"] = self.root.clone().into();
        self.expect_exact(expected).await
    }

    /// Asserts that the next event has exactly these fields, except for its number and time.
    async fn expect_exact(&mut self, mut expected: Value) -> Value {
        if expected.get("rev").is_none() {
            expected["rev"] = 1.into();
        }
        let event = self.next(expected["kind"] == "queue").await;
        let mut actual = event.clone();
        let fields = actual.as_object_mut().unwrap();
        let (seq, ts_ms) = (fields.remove("seq").unwrap(), fields.remove("ts_ms").unwrap());
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
        assert!((self.since_ms..=now).contains(&ts_ms.as_u64().unwrap()), "{event}");
        actual["id"] = self.comparable_id(event["id"].as_str().unwrap(), seq.as_u64().unwrap()).into();
        assert!(matches_expected(&expected, &actual), "\nexpected {expected:#}\nbut was {actual:#}");
        let owned_text = |value: &Value| value.as_str().map(str::to_owned);
        self.rows.insert((owned_text(&event["kind"]).unwrap(), owned_text(&event["phase"])));
        event
    }

    async fn next(&mut self, queue: bool) -> Value {
        loop {
            let buffered = if queue { self.queues.pop_front() } else { self.others.pop_front() };
            if let Some(event) = buffered {
                return event;
            }
            let event = self.stream.next(TEST_TIMEOUT).await.unwrap().expect("the stream has not ended");
            match event["kind"].as_str() {
                // Presence is not compared: it depends on when other clients connect.
                Some("presence") => {}
                Some("queue") => self.queues.push_back(event),
                _ => self.others.push_back(event),
            }
        }
    }

    /// Makes an id comparable: replaces the number of its own event by `#`, and the number of an activity by
    /// its order of appearance.
    fn comparable_id(&mut self, id: &str, seq: u64) -> String {
        if let Some(number) = id.strip_prefix("status-") {
            let index = self.activities.iter().position(|existing| existing == number).unwrap_or_else(|| {
                assert_eq!(number, seq.to_string(), "a new activity has the number of its first event");
                self.activities.push(number.to_owned());
                self.activities.len() - 1
            });
            return format!("status-{}", index + 1);
        }
        // Ids of logged events contain the `Seq`: the number of the event without its lowest 20 bits.
        for own in [seq.to_string(), (seq >> 20).to_string()] {
            if let Some(name) = id.strip_suffix(&format!("-{own}")) {
                return format!("{name}-#");
            }
        }
        id.to_owned()
    }
}

/// Compares recursively; [`ANY`] in `expected` matches every value except null.
fn matches_expected(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(any), actual) if any == ANY => !actual.is_null(),
        (Value::Object(expected), Value::Object(actual)) => {
            expected.len() == actual.len()
                && expected.iter().all(|(name, value)| {
                    actual.get(name).is_some_and(|actual| matches_expected(value, actual))
                })
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| matches_expected(expected, actual))
        }
        (expected, actual) => expected == actual,
    }
}

async fn send_run_event(gateway: &mut Gateway, room: &Room, event: Value) {
    let frame =
        json!({ "type": "gateway:run_event", "agentId": "coder", "roomId": room.room, "event": event });
    gateway.send(&frame).await.unwrap();
}

async fn chunk(gateway: &mut Gateway, run: &Value, kind: &str, content: &str, metadata: Value) {
    let chunk = json!({ "type": kind, "content": content, "metadata": metadata });
    let frame = json!({ "type": "gateway:message_chunk", "roomId": run["roomId"], "agentId": run["agentId"],
        "messageId": "r1", "chunk": chunk });
    gateway.send(&frame).await.unwrap();
}

fn activity(index: usize, rev: u64, phase: &str, status: &str, text: &str, run: &Value) -> Value {
    json!({ "id": format!("status-{index}"), "rev": rev, "kind": "activity", "phase": phase, "text": text,
        "agent_id": "coder", "data": { "status": status, "run_id": run, "parent_id": null } })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_event_has_exactly_the_documented_fields() {
    let (room, _folders, root) = with_project_root().await;
    set_root(&room, &*root).await.data().unwrap();
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut checker = EventChecker {
        since_ms: std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64,
        stream: live(&room.bob).await,
        room: room.room.clone(),
        root,
        activities: Vec::new(),
        rows: BTreeSet::new(),
        queues: VecDeque::new(),
        others: VecDeque::new(),
    };
    let chat = async |message: &str| {
        let body = json!({ "agent_id": "coder", "message": message, "session_id": room.room });
        let response = room.bob.post("/api/chat", body).await.unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        response.body
    };
    let user_message = |id: &Value, text: &str| {
        json!({ "id": format!("msg-{}", id.as_str().unwrap()), "kind": "message", "text": text, "agent_id": "coder",
            "data": { "message_id": id, "from": "user", "to": "coder", "role": "user", "name": "bob",
                "sender_id": room.bob.user_id(), "sender_type": "user" } })
    };

    // StateUpdated.
    room.alice.put(&format!("/api/rooms/{}", room.room), json!({ "name": "pantry" })).await.unwrap();
    let room_data = json!({ "id": room.room, "name": "pantry", "kind": "group", "policy": "mention", "frozen": false,
        "project_root": checker.root });
    let changed =
        json!({ "id": "room-#", "kind": "room", "phase": "changed", "data": { "room": room_data } });
    let sync = json!({ "id": "run-sync-#", "kind": "run", "phase": "sync", "text": "State updated" });
    checker.expect(changed.clone()).await;
    checker.expect(sync.clone()).await;

    // IdlePromptTriggered.
    let agents = json!([{ "id": "coder", "idle_prompt": "Look" }]);
    let body = json!({ "session_id": room.room, "text": "Tea", "agents": agents });
    assert_eq!(room.alice.post("/api/mission", body).await.unwrap().body, json!({ "ok": true }));
    checker.expect(changed.clone()).await;
    checker.expect(sync.clone()).await;
    let mission = room.bob.get(&format!("/api/mission?session_id={}", room.room)).await.unwrap().body;
    let idle = checker
        .expect(json!({ "id": ANY, "kind": "activity", "phase": "doing", "text": "Idle prompt triggered",
            "agent_id": "coder", "data": { "status": "idle_prompt_triggered", "mission_id": mission["id"] } }))
        .await;
    let prompt = checker.next(false).await;
    assert_eq!(idle["id"], format!("idle-trigger-{}", prompt["data"]["message_id"].as_str().unwrap()));
    let run_frame = gateway.turn().await.unwrap();
    gateway.complete(&run_frame, "r0", "It is warm.").await.unwrap();
    while checker.next(false).await["kind"] != "turn_complete" {}
    let ended = room.alice.delete(&format!("/api/mission?session_id={}", room.room)).await.unwrap();
    assert_eq!(ended.body, json!({ "ok": true }));
    checker.expect(changed).await;
    checker.expect(sync).await;

    // Message, AgentStatus, Token.
    let response = chat("Make tea").await;
    let (run, message) = (&response["run_id"], &response["message_id"]);
    checker.expect(user_message(message, "Make tea")).await;
    let run_frame = gateway.turn().await.unwrap();
    checker.expect(activity(1, 1, "doing", "working", "Working", run)).await;
    send_run_event(
        &mut gateway,
        &room,
        json!({ "kind": "status", "status": "model_loading", "detail": "big" }),
    )
    .await;
    checker.expect(activity(1, 2, "done", "working", "Working", run)).await;
    checker.expect(activity(2, 1, "doing", "model_loading", "big", run)).await;
    chunk(&mut gateway, &run_frame, "thinking", "Hm", Value::Null).await;
    checker.expect(activity(2, 2, "done", "model_loading", "big", run)).await;
    checker.expect(activity(3, 1, "doing", "thinking", "Thinking", run)).await;
    let token = |text: &str, data: Value| json!({ "id": "token-coder-#", "kind": "token", "text": text, "agent_id": "coder", "data": data });
    checker.expect(token("Hm", json!({ "message_id": "r1", "thinking": true, "first": true }))).await;

    // ContentBlockStart, ToolProgress, ContentBlockUpdate.
    send_run_event(
        &mut gateway,
        &room,
        json!({ "kind": "status", "status": "calling_tool", "detail": "Reading a.rs" }),
    )
    .await;
    checker.expect(activity(3, 2, "done", "thinking", "Thinking", run)).await;
    checker.expect(activity(4, 1, "doing", "calling_tool", "Reading a.rs", run)).await;
    chunk(
        &mut gateway,
        &run_frame,
        "tool_use",
        r#"{"path":"a.rs"}"#,
        json!({ "toolName": "Read", "toolId": "t1" }),
    )
    .await;
    checker
        .expect(
            json!({ "id": "cb-start-r1-t1", "kind": "content_block", "phase": "start", "agent_id": "coder",
            "data": { "block_id": "r1-t1", "message_id": "r1", "block_type": "tool_use", "tool": "Read",
                "args": r#"{"path":"a.rs"}"#, "parent_id": null } }),
        )
        .await;
    send_run_event(
        &mut gateway,
        &room,
        json!({ "kind": "tool_progress", "tool": "Read", "line": "line 1", "stream": "stdout" }),
    )
    .await;
    checker
        .expect(json!({ "id": format!("tool-progress-{}-#", run.as_str().unwrap()), "kind": "tool_progress",
            "text": "line 1", "agent_id": "coder",
            "data": { "tool": "Read", "line": "line 1", "stream": "stdout", "run_id": run } }))
        .await;
    chunk(&mut gateway, &run_frame, "tool_result", "42 lines", json!({ "toolName": "Read", "toolId": "t1" }))
        .await;
    checker
        .expect(
            json!({ "id": "cb-update-r1-t1-#", "kind": "content_block", "phase": "update", "text": "42 lines",
            "agent_id": "coder", "data": { "block_id": "r1-t1", "message_id": "r1", "status": "done",
                "summary": "42 lines", "is_error": false, "parent_id": null } }),
        )
        .await;

    // SubagentSpawned, SubagentResult.
    send_run_event(
        &mut gateway,
        &room,
        json!({ "kind": "subagent", "subagentId": "scout", "phase": "spawned", "task": "Look" }),
    )
    .await;
    checker
        .expect(json!({ "id": format!("run-subagent-spawned-{}-#", run.as_str().unwrap()), "kind": "run",
            "phase": "subagent_spawned", "text": "Spawned subagent scout", "agent_id": "coder",
            "data": { "subagent_id": "scout", "task": "Look", "parent_id": null, "run_id": run } }))
        .await;
    let returned = json!({ "kind": "subagent", "subagentId": "scout", "phase": "result", "outcome": "complete",
        "result": "Found" });
    send_run_event(&mut gateway, &room, returned).await;
    checker
        .expect(json!({ "id": format!("run-subagent-result-{}-#", run.as_str().unwrap()), "kind": "run",
            "phase": "subagent_result", "text": "Subagent scout returned", "agent_id": "coder",
            "data": { "subagent_id": "scout", "parent_id": null, "run_id": run,
                "outcome": { "type": "none", "status": "complete", "result": "Found" } } }))
        .await;

    // PlanUpdate, AskUser.
    let item = json!({ "title": "Boil", "description": "water", "status": "in_progress" });
    let plan = json!({ "kind": "plan", "summary": "Tea", "status": "executing", "items": [item], "planText": "# Tea" });
    send_run_event(&mut gateway, &room, plan).await;
    checker
        .expect(json!({ "id": format!("run-plan-{}", run.as_str().unwrap()), "kind": "run", "phase": "plan_update",
            "text": "Plan updated", "agent_id": "coder", "data": { "run_id": run, "plan": {
                "summary": "Tea", "items": [item], "status": "executing", "plan_text": "# Tea" } } }))
        .await;
    let option = |label: &str| json!({ "label": label, "description": "d", "preview": "p" });
    let question = json!({ "question": "Which?", "header": "Drink", "multiSelect": false,
        "options": [option("Green"), option("Black")] });
    send_run_event(
        &mut gateway,
        &room,
        json!({ "kind": "question", "questionId": "q1", "questions": [question] }),
    )
    .await;
    let ask_event = checker
        .expect(json!({ "id": ANY, "kind": "ask_user", "agent_id": "coder", "data": {
            "question_id": ANY, "run_id": run, "agent_name": "coder", "expires_at": ANY, "questions": [{
                "question": "Which?", "header": "Drink", "multi_select": false,
                "options": [option("Green"), option("Black")] }] } }))
        .await;
    let question = ask_event["data"]["question_id"].as_str().unwrap();
    assert_eq!(ask_event["id"], format!("ask-user-{question}"));
    let answers = json!([{ "question_index": 0, "selected": ["Green"] }]);
    let body = json!({ "question_id": question, "answers": answers });
    assert_eq!(room.bob.post("/api/ask-user-response", body).await.unwrap().status, 200);
    checker
        .expect(json!({ "id": ask_event["id"], "rev": 2, "kind": "ask_user", "phase": "resolved", "agent_id": "coder",
            "data": { "question_id": question, "run_id": run, "status": "answered", "answers": answers,
                "answered_by": room.bob.user_id(), "answered_by_name": "bob" } }))
        .await;

    // ContextUsage, ModelFallback, ChangeReport.
    let context = json!({ "stage": "pre", "messageCount": 3, "charCount": 40, "estimatedTokens": 10,
        "tokenLimit": 1000, "actualPromptTokens": 11, "actualCompletionTokens": 12, "compressed": true,
        "summaryCount": 2 });
    let usage = json!({ "kind": "usage", "inputTokens": 20, "outputTokens": 10, "costMicros": 30, "context": context });
    send_run_event(&mut gateway, &room, usage).await;
    checker
        .expect(json!({ "id": format!("run-context-{}", run.as_str().unwrap()), "kind": "run", "phase": "context_usage",
            "agent_id": "coder", "data": { "run_id": run, "stage": "pre", "message_count": 3, "char_count": 40,
                "estimated_tokens": 10, "token_limit": 1000, "actual_prompt_tokens": 11,
                "actual_completion_tokens": 12, "cost_micros": 30, "compressed": true, "summary_count": 2 } }))
        .await;
    let fallback = json!({ "kind": "model_fallback", "preferredModel": "big", "actualModel": "small", "reason": "busy" });
    send_run_event(&mut gateway, &room, fallback).await;
    checker
        .expect(
            json!({ "id": format!("model-fallback-{}-#", run.as_str().unwrap()), "kind": "model_fallback",
            "text": "Using small model (big unavailable: busy)", "agent_id": "coder",
            "data": { "preferred_model": "big", "actual_model": "small", "reason": "busy", "run_id": run } }),
        )
        .await;
    let files = json!([{ "path": "a.rs", "summary": "Modified", "diff": "+x" }]);
    send_run_event(&mut gateway, &room, json!({ "kind": "changes", "files": files, "truncatedCount": 7 }))
        .await;
    checker
        .expect(json!({ "id": format!("run-change-report-{}", run.as_str().unwrap()), "kind": "run",
            "phase": "change_report", "text": "Change report", "agent_id": "coder",
            "data": { "files": files, "truncated_count": 7, "run_id": run } }))
        .await;

    // QueueUpdated.
    let second = chat("And milk").await;
    checker.expect(user_message(&second["message_id"], "And milk")).await;
    let queue = |text: &str, items: Value| {
        json!({ "id": format!("queue-{}|coder", room.room), "rev": ANY, "kind": "queue", "text": text,
            "agent_id": "coder", "data": { "items": items } })
    };
    let queued_items = json!([{ "id": second["run_id"], "agent_id": "coder", "session_id": room.room,
        "message_id": second["message_id"], "preview": "And milk", "timestamp": ANY, "status": "queued" }]);
    let queued = checker.expect(queue("Queued 1 message", queued_items)).await;
    let seconds = queued["data"]["items"][0]["timestamp"].as_u64().unwrap();
    assert!(seconds.abs_diff(queued["ts_ms"].as_u64().unwrap() / 1000) <= 60, "{queued}");

    // TextSegment, the agent's Message, Outcome, TurnComplete.
    gateway.chunk(&run_frame, "r1", "text", "It is ready.").await.unwrap();
    checker.expect(token("It is ready.", json!({ "message_id": "r1" }))).await;
    gateway.complete(&run_frame, "r1", "It is ready.").await.unwrap();
    let reply_ref = json!({ "run_id": run, "message_id": "r1" });
    checker
        .expect(json!({ "id": format!("token-{}-done", run.as_str().unwrap()), "kind": "token", "phase": "done", "text": "",
            "agent_id": "coder", "data": reply_ref }))
        .await;
    checker
        .expect(
            json!({ "id": "text-seg-r1", "kind": "text_segment", "text": "It is ready.", "agent_id": "coder",
            "data": reply_ref }),
        )
        .await;
    checker
        .expect(
            json!({ "id": "msg-r1", "kind": "message", "text": "It is ready.", "agent_id": "coder", "data": {
            "message_id": "r1", "from": "coder", "to": "user", "role": "assistant", "name": "coder",
            "sender_id": "coder", "sender_type": "agent", "run_id": run,
            "outcome": "complete" } }),
        )
        .await;
    checker.expect(activity(4, 2, "done", "calling_tool", "Reading a.rs", run)).await;
    checker
        .expect(json!({ "id": format!("act-{}", run.as_str().unwrap()), "kind": "activity", "phase": "done",
            "agent_id": "coder", "data": { "status": "idle", "run_id": run, "parent_id": null } }))
        .await;
    checker
        .expect(
            json!({ "id": format!("run-outcome-{}", run.as_str().unwrap()), "kind": "run", "phase": "outcome",
            "text": "Run outcome", "agent_id": "coder", "data": { "run_id": run, "message_id": message,
                "outcome": { "type": "none", "status": "completed", "handled": true } } }),
        )
        .await;
    let complete = checker
        .expect(json!({ "id": format!("turn-complete-{}", run.as_str().unwrap()), "kind": "turn_complete",
            "agent_id": "coder", "data": { "run_id": run, "duration_ms": ANY, "context_tokens": 30,
                "parent_id": null } }))
        .await;
    let took = complete["ts_ms"].as_u64().unwrap() - checker.since_ms;
    assert!(complete["data"]["duration_ms"].as_u64().unwrap() <= took, "{complete}");
    let drained = checker.expect(queue("Queued 0 messages", json!([]))).await;
    assert_eq!(drained["rev"].as_u64(), queued["rev"].as_u64().map(|rev| rev + 1));
    let run_frame = gateway.turn().await.unwrap();
    gateway.complete(&run_frame, "r2", "And milk.").await.unwrap();
    while checker.next(false).await["kind"] != "turn_complete" {}

    // Resync.
    checker.stream = resumed(&room.bob, "00000001-0").await;
    checker.others.clear();
    let data = json!({ "reason": "new_epoch", "lagged_count": null, "position": ANY });
    let resync = json!({ "id": "run-resync-#", "kind": "run", "phase": "resync", "text": "Resync required",
        "data": data });
    checker.expect_exact(resync).await;

    let row = |(kind, phase): &(&str, &str)| {
        (kind.to_string(), Some(*phase).filter(|phase| !phase.is_empty()).map(str::to_owned))
    };
    let missing: Vec<_> = REQUIRED_ROWS.iter().map(row).filter(|row| !checker.rows.contains(row)).collect();
    assert!(missing.is_empty(), "these kinds were never compared: {missing:?}");
    room.scene.ends_well().await;
}

/// Kinds and phases that must be compared: those that existing clients of chat events rely on.
const REQUIRED_ROWS: [(&str, &str); 22] = [
    ("run", "sync"),
    ("run", "outcome"),
    ("run", "resync"),
    ("run", "context_usage"),
    ("run", "subagent_spawned"),
    ("run", "subagent_result"),
    ("run", "plan_update"),
    ("run", "change_report"),
    ("message", ""),
    ("activity", "doing"),
    ("activity", "done"),
    ("queue", ""),
    ("token", ""),
    ("token", "done"),
    ("text_segment", ""),
    ("ask_user", ""),
    ("ask_user", "resolved"),
    ("model_fallback", ""),
    ("tool_progress", ""),
    ("content_block", "start"),
    ("content_block", "update"),
    ("turn_complete", ""),
];
