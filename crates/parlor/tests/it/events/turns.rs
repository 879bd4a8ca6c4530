//! Tests of runs on the event stream: their events, streaming replies, chats, queues and cancellation.

use super::{filtered, live, resumed, texts};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, following, make_key, next};
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

fn is(message: &Value, kind: &str, phase: Option<&str>) -> bool {
    message["kind"] == kind && message["phase"].as_str() == phase
}

/// Returns the first event of this kind and phase.
#[track_caller]
fn first<'a>(events: &'a [Value], kind: &str, phase: Option<&str>) -> &'a Value {
    let found = events.iter().find(|message| is(message, kind, phase));
    found.unwrap_or_else(|| panic!("no {kind} {phase:?}"))
}

/// Runs the tour of the guide agent, approves its permission request, and returns all events.
pub async fn tour(scene: &Scene, ann: &RestClient) -> Vec<Value> {
    let mut stream = live(ann).await;
    let request = ann.post_message("welcome", "@guide show everything").await.unwrap();
    let mut events = Vec::new();
    loop {
        let message = stream
            .next(parlor_testkit::socket::TEST_TIMEOUT)
            .await
            .unwrap()
            .expect("the stream has not ended");
        if is(&message, "approval", Some("asked")) {
            let path = format!("/api/approvals/{}", message["data"]["request_id"].as_str().unwrap());
            assert_eq!(ann.post(&path, json!({ "decision": "allow" })).await.unwrap().status, 200);
        }
        events.push(message);
        let outcome = |message: &&Value| {
            is(message, "run", Some("outcome")) && message["data"]["message_id"] == request["id"]
        };
        if let Some(outcome) = events.iter().find(outcome)
            && events.iter().any(|message| {
                is(message, "turn_complete", None) && message["data"]["run_id"] == outcome["data"]["run_id"]
            })
        {
            break;
        }
    }
    // A marker message, to collect events that wrongly follow the end of the run.
    ann.post_message("welcome", "thank you").await.unwrap();
    events.extend(stream.until(|message| message["text"] == "thank you").await.unwrap());
    scene.assert_never_panicked();
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_event_is_published_by_a_real_run() {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ann = scene.person("ann").await;
    let events = tour(&scene, &ann).await;
    let outcome = events.iter().rfind(|message| is(message, "run", Some("outcome"))).unwrap();
    let run = outcome["data"]["run_id"].clone();
    let of_run: Vec<Value> =
        events.iter().filter(|message| message["data"]["run_id"] == run).cloned().collect();
    let last: Vec<&str> =
        of_run.iter().rev().take(2).map(|message| message["kind"].as_str().unwrap()).collect();
    assert_eq!(last, ["turn_complete", "run"], "no event of a run follows its end");
    assert!(of_run.iter().all(|m| m["agent_id"] == "guide" && m["session_id"] == "welcome"), "{of_run:?}");

    assert_eq!(outcome["data"]["outcome"], json!({ "type": "none", "status": "completed", "handled": true }));
    assert_eq!(outcome["text"], "Run outcome");
    let complete = first(&of_run, "turn_complete", None);
    assert!(complete["data"]["duration_ms"].as_u64().unwrap() > 0, "{complete}");
    assert_eq!(complete["data"]["context_tokens"], 1540);
    let context = first(&of_run, "run", Some("context_usage"));
    assert_eq!(
        context["data"],
        json!({
            "run_id": run, "stage": "post", "message_count": 8, "char_count": 4600, "estimated_tokens": 1150,
            "token_limit": 200000, "actual_prompt_tokens": 1200, "actual_completion_tokens": 340,
            "cost_micros": 5100, "compressed": false, "summary_count": 0,
        })
    );
    let spawned = first(&of_run, "run", Some("subagent_spawned"));
    let subagent = spawned["data"]["subagent_id"].as_str().unwrap();
    assert_eq!(spawned["text"], format!("Spawned subagent {subagent}"));
    let returned = first(&of_run, "run", Some("subagent_result"));
    assert_eq!(returned["text"], format!("Subagent {subagent} returned"));
    assert_eq!(returned["data"]["outcome"]["status"], "complete");
    let plans: Vec<&Value> = of_run.iter().filter(|m| is(m, "run", Some("plan_update"))).collect();
    assert_eq!(plans[0]["data"]["plan"]["summary"], "Make a cup of tea");
    assert_eq!(plans[0]["data"]["plan"]["items"][0]["title"], "Put the kettle on");
    let revisions: Vec<u64> = plans.iter().map(|plan| plan["rev"].as_u64().unwrap()).collect();
    assert!(revisions.iter().copied().eq(1..=plans.len() as u64), "{revisions:?}");
    assert!(plans.iter().all(|plan| plan["id"] == plans[0]["id"]));
    let report = first(&of_run, "run", Some("change_report"));
    assert_eq!(report["data"]["files"][0]["path"], "recipes/tea.md");
    assert_eq!(report["data"]["truncated_count"], 0);
    let ask = first(&of_run, "ask_user", None);
    assert_eq!(ask["data"]["questions"][0]["header"], "Drink");
    assert_eq!(ask["data"]["questions"][1]["multi_select"], true);
    assert_eq!(ask["id"], format!("ask-user-{}", ask["data"]["question_id"].as_str().unwrap()));
    let fallback = first(&of_run, "model_fallback", None);
    let words = |field: &str| fallback["data"][field].as_str().unwrap().to_owned();
    let (preferred, actual) = (words("preferred_model"), words("actual_model"));
    let reason = words("reason");
    assert_eq!(fallback["text"], format!("Using {actual} model ({preferred} unavailable: {reason})"));
    let progress = first(&of_run, "tool_progress", None);
    assert_eq!(progress["text"], progress["data"]["line"]);
    assert_eq!(progress["data"]["stream"], "stdout");

    let started: Vec<&Value> = of_run.iter().filter(|m| is(m, "activity", Some("doing"))).collect();
    for status in ["thinking", "calling_tool", "working"] {
        assert!(started.iter().any(|message| message["data"]["status"] == status), "never {status}");
    }
    for message in &started {
        let ended = |m: &&Value| is(m, "activity", Some("done")) && m["id"] == message["id"];
        assert_eq!(of_run.iter().filter(ended).count(), 1, "each activity ends exactly once: {message}");
    }
    assert!(of_run.iter().any(|m| is(m, "activity", Some("done")) && m["data"]["status"] == "idle"));

    let reply = events.iter().find(|m| is(m, "message", None) && m["data"]["run_id"] == run).unwrap();
    assert_eq!((&reply["data"]["from"], &reply["data"]["to"]), (&json!("guide"), &json!("user")));
    assert_eq!(reply["data"]["role"], "assistant");
    let id = &reply["data"]["message_id"];
    let segment = first(&of_run, "text_segment", None);
    assert_eq!((&segment["text"], &segment["data"]["message_id"]), (&reply["text"], id));
    let tokens = events.iter().filter(|m| is(m, "token", None) && m["data"]["message_id"] == *id);
    let (thoughts, spoken): (Vec<&Value>, Vec<&Value>) = tokens.partition(|m| m["data"]["thinking"] == true);
    assert!(!thoughts.is_empty());
    let spoken: String = spoken.iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(reply["text"], spoken, "the streamed text equals the reply");
    assert_eq!(first(&of_run, "token", Some("done"))["text"], "");
    let start = first(&events, "content_block", Some("start"));
    assert_eq!(start["data"]["block_type"], "tool_use");
    let block = &start["data"]["block_id"];
    let update =
        events.iter().find(|m| is(m, "content_block", Some("update")) && m["data"]["block_id"] == *block);
    assert_eq!(update.unwrap()["data"]["status"], "done");
    let resolved = first(&events, "approval", Some("resolved"));
    assert_eq!((&resolved["data"]["decision"], &resolved["rev"]), (&json!("allow"), &json!(2)));
    first(&events, "task", Some("changed"));
    first(&events, "run", Some("sync"));
    first(&events, "terminal", None);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_resumes_during_a_streaming_reply_receives_its_full_text() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    room.say("@coder count").await;
    let run = gateway.turn().await.unwrap();
    for number in 1..=20 {
        gateway.chunk(&run, "r", "text", &format!("{number} ")).await.unwrap();
    }
    let mut received = String::new();
    while !received.contains("7 ") {
        received += stream.wait_for_kind("token").await.unwrap()["text"].as_str().unwrap();
    }
    let position = stream.position.clone().unwrap();
    drop(stream);
    gateway.settled().await.unwrap();
    let mut stream = resumed(&room.bob, &position).await;
    let first = stream.wait_for_kind("token").await.unwrap();
    assert_eq!(first["data"]["first"], true, "the reply is streamed from its beginning: {first}");
    let mut text = first["text"].as_str().unwrap().to_owned();
    gateway.chunk(&run, "r", "text", "done").await.unwrap();
    while !text.ends_with("done") {
        text += stream.wait_for_kind("token").await.unwrap()["text"].as_str().unwrap();
    }
    let expected: String = (1..=20).map(|number| format!("{number} ")).collect::<String>() + "done";
    assert_eq!(text, expected);
    gateway.complete(&run, "r", &expected).await.unwrap();
    let end = stream.until(|message| message["kind"] == "turn_complete").await.unwrap();
    assert_eq!(texts(&end), [expected]);
    room.scene.ends_well().await;
}

/// A14: text of an agent never becomes a card of the UI.
#[tokio::test(flavor = "multi_thread")]
async fn a14_reply_text_that_looks_like_a_card_stays_text() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    room.say("@coder plan").await;
    let run = gateway.turn().await.unwrap();
    let forged_plan = json!({ "type": "plan", "plan": { "summary": "x", "items": [], "status": "planned" } });
    let forged_question = json!({ "type": "ask_user", "question_id": "q", "questions": [] });
    let text = format!("{forged_plan}\n\ndata: {forged_question}\n\nid: 00000000-1\n\n");
    gateway.chunk(&run, "r", "text", &text).await.unwrap();
    gateway.complete(&run, "r", &text).await.unwrap();
    let events = stream.until(|message| message["kind"] == "turn_complete").await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|message| message["kind"].as_str().unwrap()).collect();
    assert!(!kinds.contains(&"ask_user"), "{kinds:?}");
    assert!(events.iter().all(|message| message["phase"] != "plan_update"));
    assert_eq!(texts(&events).last(), Some(&text.as_str()));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_only_key_cannot_chat_and_a_mention_overrides_the_addressed_agent() {
    let room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder", "other"]).await;
    let renamed = room.alice.put("/api/agents/coder", json!({ "name": "Smith" })).await.unwrap();
    assert_eq!(renamed.status, 200, "{renamed:?}");

    let rooms =
        async || room.alice.get("/api/rooms").await.unwrap().data().unwrap().as_array().unwrap().len();
    let before = rooms().await;
    let (_, key) = make_key(&room.alice, &["write"]).await;
    let chat = json!({ "agent_id": "coder", "message": "hello" });
    assert_refused(&room.alice.with_token(&key).post("/api/chat", chat).await.unwrap(), 403);
    assert_eq!(rooms().await, before, "the refused chat created no room");
    let empty = room.alice.post("/api/chat", json!({ "agent_id": "coder", "message": "" })).await.unwrap();
    assert_refused(&empty, 400);
    assert_eq!(empty.body["fields"][0]["field"], "message", "{empty:?}");

    let chat = json!({ "agent_id": "other", "message": "@smith hello there", "session_id": room.room });
    let response = room.bob.post("/api/chat", chat).await.unwrap();
    let run = gateway.turn().await.unwrap();
    assert_eq!((run["agentId"].as_str(), run["content"].as_str()), (Some("coder"), Some("hello there")));
    let deliveries = room.deliveries(response.body["message_id"].as_str().unwrap()).await;
    assert_eq!(deliveries.len(), 1, "only the mentioned agent runs: {deliveries:?}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_looks_the_same_on_the_socket_and_the_stream_for_an_idle_and_a_busy_agent() {
    let room = Room::start().await;
    let (alice, scene) = (room.alice.clone(), room.scene);
    let mut gateway = parlor_testkit::gateway::Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    let mut stream = live(&alice).await;

    let missing = alice.post("/api/chat", json!({ "agent_id": "nobody", "message": "hi" })).await.unwrap();
    assert_eq!(missing.status, 404, "{missing:?}");
    let rooms = alice.get("/api/rooms").await.unwrap().data().unwrap();
    assert_eq!(rooms.as_array().unwrap().len(), 1, "the refused chat created no room: {rooms}");

    let body = json!({ "agent_id": "coder", "message": "please count to three for me now" });
    let started = alice.post("/api/chat", body).await.unwrap();
    assert_eq!((started.status.as_u16(), &started.body["status"]), (200, &json!("started")), "{started:?}");
    let session = started.body["session_id"].as_str().unwrap().to_owned();
    let shown = alice.get(&format!("/api/rooms/{session}")).await.unwrap().data().unwrap();
    assert_eq!(shown["name"], "please count to three for me");
    let mut at_alice = following(&alice, &session).await;
    let first = gateway.turn().await.unwrap();
    assert_eq!(
        (&first["content"], &first["roomId"]),
        (&json!("please count to three for me now"), &json!(session))
    );

    let body = json!({ "agent_id": "coder", "message": "and to four", "session_id": session });
    let queued = alice.post("/api/chat", body).await.unwrap();
    assert_eq!(queued.body["status"], "queued", "{queued:?}");
    let queue = stream.wait_for_kind("queue").await.unwrap();
    assert_eq!(
        (&queue["text"], &queue["data"]["items"][0]["preview"]),
        (&json!("Queued 1 message"), &json!("and to four"))
    );
    assert_eq!(queue["data"]["items"][0]["id"], queued.body["run_id"]);
    let listed = alice.get(&format!("/api/queue?session_id={session}")).await.unwrap();
    assert_eq!(listed.body["items"], queue["data"]["items"]);

    gateway.complete(&first, "r1", "one two three").await.unwrap();
    let drained = stream.wait_for_kind("queue").await.unwrap();
    assert_eq!(drained["data"]["items"], json!([]));
    assert!(drained["rev"].as_u64() > queue["rev"].as_u64() && drained["id"] == queue["id"]);
    let second = gateway.turn().await.unwrap();
    assert_eq!(second["content"], "and to four", "the queued run starts next");
    gateway.complete(&second, "r2", "one two three four").await.unwrap();
    for reply in ["one two three", "one two three four"] {
        assert_eq!(next(&mut at_alice, "server:message_complete").await["message"]["content"], reply);
    }
    gateway.settled().await.unwrap();
    let history = alice.history(&session).await.unwrap();
    let contents: Vec<&str> = history.iter().map(|message| message["content"].as_str().unwrap()).collect();
    let expected = ["please count to three for me now", "and to four", "one two three", "one two three four"];
    assert_eq!(contents, expected);
    let query = format!("?session_id={session}&since=0");
    let mut from_start = filtered(&alice, &query, None).await;
    let end = |message: &Value| is(message, "message", None) && message["text"] == "one two three four";
    let events = from_start.until(end).await.unwrap();
    assert_eq!(texts(&events), expected, "the stream replays the history");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_runs_survive_a_crash_can_be_removed_and_are_cancelled_with_the_active_run() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder first").await;
    let running = gateway.turn().await.unwrap();
    let mut queued_ids = Vec::new();
    for text in ["one", "two", "three"] {
        let body = json!({ "agent_id": "coder", "message": text, "session_id": room.room });
        let queued = room.alice.post("/api/chat", body).await.unwrap();
        assert_eq!(queued.body["status"], "queued", "{queued:?}");
        queued_ids.push(queued.body["run_id"].as_str().unwrap().to_owned());
    }
    drop(gateway);
    room.scene.crash_and_restart().await;
    let (alice, bob) = (room.alice.at(room.scene.url()), room.bob.at(room.scene.url()));
    let listed = alice.get("/api/queue").await.unwrap().body;
    let previews: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|item| item["preview"].as_str().unwrap()).collect();
    assert_eq!(previews, ["one", "two", "three"], "the queue survives the crash in order");
    let mut stream = live(&bob).await;
    let path = format!("/api/queue?session_id={}&id={}", room.room, queued_ids[1]);
    assert_eq!(alice.delete(&path).await.unwrap().body["removed"], json!([queued_ids[1]]));
    let outcome = stream.wait_for(|message| is(message, "run", Some("outcome"))).await.unwrap();
    assert_eq!(outcome["data"]["run_id"], queued_ids[1]);
    assert_eq!(outcome["data"]["outcome"]["handled"], false, "{outcome}");
    assert_eq!(alice.delete(&path).await.unwrap().status, 404, "the run is not queued any more");

    // Cancelling the active run cancels all queued runs too; ended runs keep their outcome.
    let run = running["runId"].as_str();
    let runs = alice.get(&format!("/api/agent-runs?session_id={}", room.room)).await.unwrap().body;
    let with_status = |status: &str| {
        let found = runs.as_array().unwrap().iter().filter(|run| run["status"] == status).cloned();
        found.collect::<Vec<Value>>()
    };
    assert_eq!(
        (with_status("running").len(), with_status("queued").len(), with_status("cancelled").len()),
        (1, 2, 1),
        "{runs}"
    );
    let id = with_status("running")[0]["run_id"].as_str().unwrap().to_owned();
    assert!(run.is_none_or(|run| run == id));
    let cancelled = alice.post("/api/agent-cancel", json!({ "run_id": id })).await.unwrap();
    assert_eq!(cancelled.body["cancelled_run_ids"], json!([id]), "{cancelled:?}");
    let mut cancelled_ids = Vec::new();
    while cancelled_ids.len() < 3 {
        let outcome = stream.wait_for(|message| is(message, "run", Some("outcome"))).await.unwrap();
        assert_eq!(outcome["data"]["outcome"]["status"], "cancelled");
        cancelled_ids.push(outcome["data"]["run_id"].as_str().unwrap().to_owned());
    }
    cancelled_ids.sort();
    let mut expected = vec![id.clone(), queued_ids[0].clone(), queued_ids[2].clone()];
    expected.sort();
    assert_eq!(cancelled_ids, expected, "queued runs are cancelled with the active run");
    let again = alice.post("/api/agent-cancel", json!({ "run_id": id })).await.unwrap();
    assert_eq!(again.body["cancelled_run_ids"], json!([]));
    for (path, status) in
        [("/api/agent-context?run_id=nothing", 404), ("/api/agent-children?run_id=nothing", 404)]
    {
        assert_eq!(alice.get(path).await.unwrap().status, status);
    }
    let context =
        alice.get(&format!("/api/agent-context?run_id={}&view=raw", queued_ids[0])).await.unwrap().body;
    assert_eq!(
        (&context["run"]["status"], &context["messages"][0]["content"]),
        (&json!("cancelled"), &json!("one"))
    );
    assert_eq!(context["summary"]["user_messages"], 1);
    let foreign = room.scene.admin.get(&format!("/api/agent-context?run_id={id}")).await.unwrap();
    assert_eq!(foreign.status, 404, "a foreign run looks like an unknown run");
    room.scene.ends_well().await;
}

/// Many agents publish events at a high rate until, and shortly after, the end of each of their runs.
#[tokio::test(flavor = "multi_thread")]
async fn no_event_of_a_run_follows_its_end_with_many_concurrent_agents() {
    const AGENTS: usize = 8;
    const ROUNDS: usize = 6;
    let names: Vec<String> = (0..AGENTS).map(|number| format!("agent-{number}")).collect();
    let mut room = Room::start().await;
    let mut stream = live(&room.bob).await;
    let mut agents = tokio::task::JoinSet::new();
    for (number, name) in names.iter().enumerate() {
        let mut gateway = room.gateway(&format!("g{number}"), &[name]).await;
        agents.spawn(async move {
            for round in 0..ROUNDS {
                let run = gateway.turn().await.unwrap();
                let reply = format!("r-{number}-{round}");
                let run_event = |event: Value| {
                    json!({ "type": "gateway:run_event", "agentId": run["agentId"], "roomId": run["roomId"],
                        "event": event })
                };
                for line in 0..10 {
                    gateway.chunk(&run, &reply, "text", &format!("{line} ")).await.unwrap();
                    let progress =
                        json!({ "kind": "tool_progress", "tool": "t", "line": "l", "stream": "stdout" });
                    gateway.send(&run_event(progress)).await.unwrap();
                    let status = json!({ "kind": "status", "status": "working", "detail": line.to_string() });
                    gateway.send(&run_event(status)).await.unwrap();
                }
                gateway.complete(&run, &reply, "0 1 2 3 4 5 6 7 8 9 ").await.unwrap();
                // Events after the end of the run, which the hub must drop.
                gateway.send(&run_event(json!({ "kind": "status", "status": "thinking" }))).await.unwrap();
                let usage = json!({ "kind": "usage", "inputTokens": 1, "outputTokens": 1 });
                gateway.send(&run_event(usage)).await.unwrap();
            }
            gateway.settled().await.unwrap();
            gateway
        });
    }
    let all: Vec<String> = names.iter().map(|name| format!("@{name}")).collect();
    for _ in 0..ROUNDS {
        room.say(&all.join(" ")).await;
    }
    let (mut events, mut completed) = (Vec::new(), 0);
    while completed < AGENTS * ROUNDS {
        let message = stream
            .next(parlor_testkit::socket::TEST_TIMEOUT)
            .await
            .unwrap()
            .expect("the stream has not ended");
        completed += usize::from(message["kind"] == "turn_complete");
        events.push(message);
    }
    while let Some(gateway) = agents.join_next().await {
        gateway.unwrap();
    }
    room.say("the end").await;
    events.extend(stream.until(|message| message["text"] == "the end").await.unwrap());
    let of_run = |message: &Value| message["data"]["run_id"].as_str().map(str::to_owned);
    let mut ended = std::collections::HashSet::new();
    for message in &events {
        let Some(run) = of_run(message) else { continue };
        let last = is(message, "turn_complete", None);
        assert!(!ended.contains(&run), "an event follows the end of its run: {message}");
        if last {
            ended.insert(run);
        }
    }
    assert_eq!(ended.len(), AGENTS * ROUNDS);
    room.scene.ends_well().await;
}
