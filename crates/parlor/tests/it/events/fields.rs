//! Every row of the kinds that chat events were made for, told by one real turn and compared field by field.

use super::roots::{set_root, with_folder};
use super::{live, resumed};
use crate::gateway::scenes::Room;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// What stands for a value that no test can know beforehand, such as a time.
const SOME: &str = "<some>";

struct Heard {
    stream: EventReader,
    room: String,
    root: String,
    /// By when everything was told that is heard.
    since_ms: u64,
    /// The numbers by which activities are named, as they came.
    activities: Vec<String>,
    rows: BTreeSet<(String, Option<String>)>,
    /// Lists of what waits come beside everything else.
    lists: VecDeque<Value>,
    others: VecDeque<Value>,
}

impl Heard {
    /// The next message is this, in this room and folder, and has no other field.
    async fn is(&mut self, mut expected: Value) -> Value {
        expected["session_id"] = self.room.clone().into();
        expected["project_root"] = self.root.clone().into();
        self.is_just(expected).await
    }

    async fn is_just(&mut self, mut expected: Value) -> Value {
        if expected.get("rev").is_none() {
            expected["rev"] = 1.into();
        }
        let told = self.next(expected["kind"] == "queue").await;
        let mut seen = told.clone();
        let fields = seen.as_object_mut().unwrap();
        let (seq, at) = (fields.remove("seq").unwrap(), fields.remove("ts_ms").unwrap());
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
        assert!((self.since_ms..=now).contains(&at.as_u64().unwrap()), "{told}");
        seen["id"] = self.named(told["id"].as_str().unwrap(), seq.as_u64().unwrap()).into();
        assert!(fits(&expected, &seen), "\nexpected {expected:#}\nbut was {seen:#}");
        let word = |value: &Value| value.as_str().map(str::to_owned);
        self.rows.insert((word(&told["kind"]).unwrap(), word(&told["phase"])));
        told
    }

    async fn next(&mut self, list: bool) -> Value {
        loop {
            let kept = if list { self.lists.pop_front() } else { self.others.pop_front() };
            if let Some(told) = kept {
                return told;
            }
            let told = self.stream.next(TEST_TIMEOUT).await.unwrap().expect("not ended");
            match told["kind"].as_str() {
                // Who is there is told as it comes.
                Some("presence") => {}
                Some("queue") => self.lists.push_back(told),
                _ => self.others.push_back(told),
            }
        }
    }

    /// An id with `#` for the number of its own event, and activities by their order.
    fn named(&mut self, id: &str, seq: u64) -> String {
        if let Some(number) = id.strip_prefix("status-") {
            let place = self.activities.iter().position(|known| known == number).unwrap_or_else(|| {
                assert_eq!(number, seq.to_string(), "it is named by where it began");
                self.activities.push(number.to_owned());
                self.activities.len() - 1
            });
            return format!("status-{}", place + 1);
        }
        // What is in the log has the number of its place there.
        for own in [seq.to_string(), (seq >> 20).to_string()] {
            if let Some(name) = id.strip_suffix(&format!("-{own}")) {
                return format!("{name}-#");
            }
        }
        id.to_owned()
    }
}

fn fits(expected: &Value, is: &Value) -> bool {
    match (expected, is) {
        (Value::String(some), is) if some == SOME => !is.is_null(),
        (Value::Object(expected), Value::Object(is)) => {
            expected.len() == is.len()
                && expected.iter().all(|(name, value)| is.get(name).is_some_and(|is| fits(value, is)))
        }
        (Value::Array(expected), Value::Array(is)) => {
            expected.len() == is.len() && expected.iter().zip(is).all(|(expected, is)| fits(expected, is))
        }
        (expected, is) => expected == is,
    }
}

async fn tells(gateway: &mut Gateway, room: &Room, event: Value) {
    let frame =
        json!({ "type": "gateway:run_event", "agentId": "coder", "roomId": room.room, "event": event });
    gateway.send(&frame).await.unwrap();
}

async fn chunk(gateway: &mut Gateway, turn: &Value, kind: &str, content: &str, metadata: Value) {
    let chunk = json!({ "type": kind, "content": content, "metadata": metadata });
    let frame = json!({ "type": "gateway:message_chunk", "roomId": turn["roomId"], "agentId": turn["agentId"],
        "messageId": "r1", "chunk": chunk });
    gateway.send(&frame).await.unwrap();
}

fn activity(place: usize, rev: u64, phase: &str, status: &str, text: &str, run: &Value) -> Value {
    json!({ "id": format!("status-{place}"), "rev": rev, "kind": "activity", "phase": phase, "text": text,
        "agent_id": "coder", "data": { "status": status, "run_id": run, "parent_id": null } })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_of_the_table_of_kinds_has_the_fields_that_are_documented() {
    let (room, _folders, root) = with_folder().await;
    set_root(&room, &*root).await.data().unwrap();
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut heard = Heard {
        since_ms: std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64,
        stream: live(&room.bob).await,
        room: room.room.clone(),
        root,
        activities: Vec::new(),
        rows: BTreeSet::new(),
        lists: VecDeque::new(),
        others: VecDeque::new(),
    };
    let chat = async |message: &str| {
        let body = json!({ "agent_id": "coder", "message": message, "session_id": room.room });
        let said = room.bob.post("/api/chat", body).await.unwrap();
        assert_eq!(said.status, 200, "{said:?}");
        said.body
    };
    let asked = |id: &Value, text: &str| {
        json!({ "id": format!("msg-{}", id.as_str().unwrap()), "kind": "message", "text": text, "agent_id": "coder",
            "data": { "message_id": id, "from": "user", "to": "coder", "role": "user", "name": "bob",
                "sender_id": room.bob.user_id(), "sender_type": "user" } })
    };

    // StateUpdated.
    room.alice.put(&format!("/api/rooms/{}", room.room), json!({ "name": "pantry" })).await.unwrap();
    let about = json!({ "id": room.room, "name": "pantry", "kind": "group", "policy": "mention", "frozen": false,
        "project_root": heard.root });
    let changed = json!({ "id": "room-#", "kind": "room", "phase": "changed", "data": { "room": about } });
    let sync = json!({ "id": "run-sync-#", "kind": "run", "phase": "sync", "text": "State updated" });
    heard.is(changed.clone()).await;
    heard.is(sync.clone()).await;

    // IdlePromptTriggered.
    let agents = json!([{ "id": "coder", "idle_prompt": "Look" }]);
    let body = json!({ "session_id": room.room, "text": "Tea", "agents": agents });
    assert_eq!(room.alice.post("/api/mission", body).await.unwrap().body, json!({ "ok": true }));
    heard.is(changed.clone()).await;
    heard.is(sync.clone()).await;
    let mission = room.bob.get(&format!("/api/mission?session_id={}", room.room)).await.unwrap().body;
    let idle = heard
        .is(json!({ "id": SOME, "kind": "activity", "phase": "doing", "text": "Idle prompt triggered",
            "agent_id": "coder", "data": { "status": "idle_prompt_triggered", "mission_id": mission["id"] } }))
        .await;
    let prompt = heard.next(false).await;
    assert_eq!(idle["id"], format!("idle-trigger-{}", prompt["data"]["message_id"].as_str().unwrap()));
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "r0", "It is warm.").await.unwrap();
    while heard.next(false).await["kind"] != "turn_complete" {}
    let ended = room.alice.delete(&format!("/api/mission?session_id={}", room.room)).await.unwrap();
    assert_eq!(ended.body, json!({ "ok": true }));
    heard.is(changed).await;
    heard.is(sync).await;

    // Message, AgentStatus, Token.
    let said = chat("Make tea").await;
    let (run, message) = (&said["run_id"], &said["message_id"]);
    heard.is(asked(message, "Make tea")).await;
    let turn = gateway.turn().await.unwrap();
    heard.is(activity(1, 1, "doing", "working", "Working", run)).await;
    tells(&mut gateway, &room, json!({ "kind": "status", "status": "model_loading", "detail": "big" })).await;
    heard.is(activity(1, 2, "done", "working", "Working", run)).await;
    heard.is(activity(2, 1, "doing", "model_loading", "big", run)).await;
    chunk(&mut gateway, &turn, "thinking", "Hm", Value::Null).await;
    heard.is(activity(2, 2, "done", "model_loading", "big", run)).await;
    heard.is(activity(3, 1, "doing", "thinking", "Thinking", run)).await;
    let token = |text: &str, data: Value| json!({ "id": "token-coder-#", "kind": "token", "text": text, "agent_id": "coder", "data": data });
    heard.is(token("Hm", json!({ "message_id": "r1", "thinking": true, "first": true }))).await;

    // ContentBlockStart, ToolProgress, ContentBlockUpdate.
    tells(
        &mut gateway,
        &room,
        json!({ "kind": "status", "status": "calling_tool", "detail": "Reading a.rs" }),
    )
    .await;
    heard.is(activity(3, 2, "done", "thinking", "Thinking", run)).await;
    heard.is(activity(4, 1, "doing", "calling_tool", "Reading a.rs", run)).await;
    chunk(
        &mut gateway,
        &turn,
        "tool_use",
        r#"{"path":"a.rs"}"#,
        json!({ "toolName": "Read", "toolId": "t1" }),
    )
    .await;
    heard
        .is(json!({ "id": "cb-start-r1-t1", "kind": "content_block", "phase": "start", "agent_id": "coder",
            "data": { "block_id": "r1-t1", "message_id": "r1", "block_type": "tool_use", "tool": "Read",
                "args": r#"{"path":"a.rs"}"#, "parent_id": null } }))
        .await;
    tells(
        &mut gateway,
        &room,
        json!({ "kind": "tool_progress", "tool": "Read", "line": "line 1", "stream": "stdout" }),
    )
    .await;
    heard
        .is(json!({ "id": format!("tool-progress-{}-#", run.as_str().unwrap()), "kind": "tool_progress",
            "text": "line 1", "agent_id": "coder",
            "data": { "tool": "Read", "line": "line 1", "stream": "stdout", "run_id": run } }))
        .await;
    chunk(&mut gateway, &turn, "tool_result", "42 lines", json!({ "toolName": "Read", "toolId": "t1" }))
        .await;
    heard
        .is(
            json!({ "id": "cb-update-r1-t1-#", "kind": "content_block", "phase": "update", "text": "42 lines",
            "agent_id": "coder", "data": { "block_id": "r1-t1", "message_id": "r1", "status": "done",
                "summary": "42 lines", "is_error": false, "parent_id": null } }),
        )
        .await;

    // SubagentSpawned, SubagentResult.
    tells(
        &mut gateway,
        &room,
        json!({ "kind": "subagent", "subagentId": "scout", "phase": "spawned", "task": "Look" }),
    )
    .await;
    heard
        .is(json!({ "id": format!("run-subagent-spawned-{}-#", run.as_str().unwrap()), "kind": "run",
            "phase": "subagent_spawned", "text": "Spawned subagent scout", "agent_id": "coder",
            "data": { "subagent_id": "scout", "task": "Look", "parent_id": null, "run_id": run } }))
        .await;
    let returned = json!({ "kind": "subagent", "subagentId": "scout", "phase": "result", "outcome": "complete",
        "result": "Found" });
    tells(&mut gateway, &room, returned).await;
    heard
        .is(json!({ "id": format!("run-subagent-result-{}-#", run.as_str().unwrap()), "kind": "run",
            "phase": "subagent_result", "text": "Subagent scout returned", "agent_id": "coder",
            "data": { "subagent_id": "scout", "parent_id": null, "run_id": run,
                "outcome": { "type": "none", "status": "complete", "result": "Found" } } }))
        .await;

    // PlanUpdate, AskUser.
    let item = json!({ "title": "Boil", "description": "water", "status": "in_progress" });
    let plan = json!({ "kind": "plan", "summary": "Tea", "status": "executing", "items": [item], "planText": "# Tea" });
    tells(&mut gateway, &room, plan).await;
    heard
        .is(json!({ "id": format!("run-plan-{}", run.as_str().unwrap()), "kind": "run", "phase": "plan_update",
            "text": "Plan updated", "agent_id": "coder", "data": { "run_id": run, "plan": {
                "summary": "Tea", "items": [item], "status": "executing", "plan_text": "# Tea" } } }))
        .await;
    let option = |label: &str| json!({ "label": label, "description": "d", "preview": "p" });
    let question = json!({ "question": "Which?", "header": "Drink", "multiSelect": false,
        "options": [option("Green"), option("Black")] });
    tells(&mut gateway, &room, json!({ "kind": "question", "questionId": "q1", "questions": [question] }))
        .await;
    let told = heard
        .is(json!({ "id": SOME, "kind": "ask_user", "agent_id": "coder", "data": {
            "question_id": SOME, "run_id": run, "agent_name": "coder", "expires_at": SOME, "questions": [{
                "question": "Which?", "header": "Drink", "multi_select": false,
                "options": [option("Green"), option("Black")] }] } }))
        .await;
    let question = told["data"]["question_id"].as_str().unwrap();
    assert_eq!(told["id"], format!("ask-user-{question}"));
    let answers = json!([{ "question_index": 0, "selected": ["Green"] }]);
    let body = json!({ "question_id": question, "answers": answers });
    assert_eq!(room.bob.post("/api/ask-user-response", body).await.unwrap().status, 200);
    heard
        .is(json!({ "id": told["id"], "rev": 2, "kind": "ask_user", "phase": "resolved", "agent_id": "coder",
            "data": { "question_id": question, "run_id": run, "status": "answered", "answers": answers,
                "answered_by": room.bob.user_id(), "answered_by_name": "bob" } }))
        .await;

    // ContextUsage, ModelFallback, ChangeReport.
    let context = json!({ "stage": "pre", "messageCount": 3, "charCount": 40, "estimatedTokens": 10,
        "tokenLimit": 1000, "actualPromptTokens": 11, "actualCompletionTokens": 12, "compressed": true,
        "summaryCount": 2 });
    let usage = json!({ "kind": "usage", "inputTokens": 20, "outputTokens": 10, "context": context });
    tells(&mut gateway, &room, usage).await;
    heard
        .is(json!({ "id": format!("run-context-{}", run.as_str().unwrap()), "kind": "run", "phase": "context_usage",
            "agent_id": "coder", "data": { "run_id": run, "stage": "pre", "message_count": 3, "char_count": 40,
                "estimated_tokens": 10, "token_limit": 1000, "actual_prompt_tokens": 11,
                "actual_completion_tokens": 12, "compressed": true, "summary_count": 2 } }))
        .await;
    let fallback = json!({ "kind": "model_fallback", "preferredModel": "big", "actualModel": "small", "reason": "busy" });
    tells(&mut gateway, &room, fallback).await;
    heard
        .is(json!({ "id": format!("model-fallback-{}-#", run.as_str().unwrap()), "kind": "model_fallback",
            "text": "Using small model (big unavailable: busy)", "agent_id": "coder",
            "data": { "preferred_model": "big", "actual_model": "small", "reason": "busy", "run_id": run } }))
        .await;
    let files = json!([{ "path": "a.rs", "summary": "Modified", "diff": "+x" }]);
    tells(&mut gateway, &room, json!({ "kind": "changes", "files": files, "truncatedCount": 7 })).await;
    heard
        .is(json!({ "id": format!("run-change-report-{}", run.as_str().unwrap()), "kind": "run",
            "phase": "change_report", "text": "Change report", "agent_id": "coder",
            "data": { "files": files, "truncated_count": 7, "run_id": run } }))
        .await;

    // QueueUpdated.
    let second = chat("And milk").await;
    heard.is(asked(&second["message_id"], "And milk")).await;
    let queue = |text: &str, items: Value| {
        json!({ "id": format!("queue-{}|coder", room.room), "rev": SOME, "kind": "queue", "text": text,
            "agent_id": "coder", "data": { "items": items } })
    };
    let waiting = json!([{ "id": second["run_id"], "agent_id": "coder", "session_id": room.room,
        "message_id": second["message_id"], "preview": "And milk", "timestamp": SOME, "status": "queued" }]);
    let list = heard.is(queue("Queued 1 message", waiting)).await;
    let seconds = list["data"]["items"][0]["timestamp"].as_u64().unwrap();
    assert!(seconds.abs_diff(list["ts_ms"].as_u64().unwrap() / 1000) <= 60, "{list}");

    // TextSegment, the agent's Message, Outcome, TurnComplete.
    gateway.chunk(&turn, "r1", "text", "It is ready.").await.unwrap();
    heard.is(token("It is ready.", json!({ "message_id": "r1" }))).await;
    gateway.complete(&turn, "r1", "It is ready.").await.unwrap();
    let said_in = json!({ "run_id": run, "message_id": "r1" });
    heard
        .is(json!({ "id": format!("token-{}-done", run.as_str().unwrap()), "kind": "token", "phase": "done", "text": "",
            "agent_id": "coder", "data": said_in }))
        .await;
    heard
        .is(json!({ "id": "text-seg-r1", "kind": "text_segment", "text": "It is ready.", "agent_id": "coder",
            "data": said_in }))
        .await;
    heard
        .is(json!({ "id": "msg-r1", "kind": "message", "text": "It is ready.", "agent_id": "coder", "data": {
            "message_id": "r1", "from": "coder", "to": "user", "role": "assistant", "name": "coder",
            "sender_id": "coder", "sender_type": "agent", "run_id": run,
            "outcome": "complete" } }))
        .await;
    heard.is(activity(4, 2, "done", "calling_tool", "Reading a.rs", run)).await;
    heard
        .is(json!({ "id": format!("act-{}", run.as_str().unwrap()), "kind": "activity", "phase": "done",
            "agent_id": "coder", "data": { "status": "idle", "run_id": run, "parent_id": null } }))
        .await;
    heard
        .is(
            json!({ "id": format!("run-outcome-{}", run.as_str().unwrap()), "kind": "run", "phase": "outcome",
            "text": "Run outcome", "agent_id": "coder", "data": { "run_id": run, "message_id": message,
                "outcome": { "type": "none", "status": "completed", "handled": true } } }),
        )
        .await;
    let complete = heard
        .is(json!({ "id": format!("turn-complete-{}", run.as_str().unwrap()), "kind": "turn_complete",
            "agent_id": "coder", "data": { "run_id": run, "duration_ms": SOME, "context_tokens": 30,
                "parent_id": null } }))
        .await;
    let took = complete["ts_ms"].as_u64().unwrap() - heard.since_ms;
    assert!(complete["data"]["duration_ms"].as_u64().unwrap() <= took, "{complete}");
    let drained = heard.is(queue("Queued 0 messages", json!([]))).await;
    assert_eq!(drained["rev"].as_u64(), list["rev"].as_u64().map(|rev| rev + 1));
    let turn = gateway.turn().await.unwrap();
    gateway.complete(&turn, "r2", "And milk.").await.unwrap();
    while heard.next(false).await["kind"] != "turn_complete" {}

    // Resync.
    heard.stream = resumed(&room.bob, "00000001-0").await;
    heard.others.clear();
    let data = json!({ "reason": "new_epoch", "lagged_count": null, "position": SOME });
    let resync = json!({ "id": "run-resync-#", "kind": "run", "phase": "resync", "text": "Resync required",
        "data": data });
    heard.is_just(resync).await;

    let row = |(kind, phase): &(&str, &str)| {
        (kind.to_string(), Some(*phase).filter(|phase| !phase.is_empty()).map(str::to_owned))
    };
    let missing: Vec<_> = SEED.iter().map(row).filter(|row| !heard.rows.contains(row)).collect();
    assert!(missing.is_empty(), "never compared: {missing:?}");
    room.scene.ends_well().await;
}

/// The kinds and phases that clients of chat events were written for.
const SEED: [(&str, &str); 22] = [
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
