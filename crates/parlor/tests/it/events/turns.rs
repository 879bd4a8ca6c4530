//! Turns of agents, as the stream tells of them.

use super::{filtered, live, resumed, texts};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused, following, make_key, next};
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

fn is(message: &Value, kind: &str, phase: Option<&str>) -> bool {
    message["kind"] == kind && message["phase"].as_str() == phase
}

/// The first of a kind, without what differs each time.
#[track_caller]
fn first<'a>(told: &'a [Value], kind: &str, phase: Option<&str>) -> &'a Value {
    let found = told.iter().find(|message| is(message, kind, phase));
    found.unwrap_or_else(|| panic!("no {kind} {phase:?}"))
}

/// Everything of the guide's tour, which asks for a permission on its way.
pub async fn tour(scene: &Scene, ann: &RestClient) -> Vec<Value> {
    let mut stream = live(ann).await;
    let asked = ann.post_message("welcome", "@guide show everything").await.unwrap();
    let mut told = Vec::new();
    loop {
        let message = stream.next(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap().expect("not ended");
        if is(&message, "approval", Some("asked")) {
            let path = format!("/api/approvals/{}", message["data"]["request_id"].as_str().unwrap());
            assert_eq!(ann.post(&path, json!({ "decision": "allow" })).await.unwrap().status, 200);
        }
        told.push(message);
        let over = |message: &&Value| {
            is(message, "run", Some("outcome")) && message["data"]["message_id"] == asked["id"]
        };
        if let Some(over) = told.iter().find(over)
            && told.iter().any(|message| {
                is(message, "turn_complete", None) && message["data"]["run_id"] == over["data"]["run_id"]
            })
        {
            break;
        }
    }
    // What comes afterwards is not of this turn.
    ann.post_message("welcome", "thank you").await.unwrap();
    told.extend(stream.until(|message| message["text"] == "thank you").await.unwrap());
    scene.assert_never_panicked();
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_event_is_told_by_a_real_turn() {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ann = scene.person("ann").await;
    let told = tour(&scene, &ann).await;
    let outcome = told.iter().rfind(|message| is(message, "run", Some("outcome"))).unwrap();
    let run = outcome["data"]["run_id"].clone();
    let of_run: Vec<Value> =
        told.iter().filter(|message| message["data"]["run_id"] == run).cloned().collect();
    let last: Vec<&str> =
        of_run.iter().rev().take(2).map(|message| message["kind"].as_str().unwrap()).collect();
    assert_eq!(last, ["turn_complete", "run"], "nothing of a turn comes after its end");
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
            "compressed": false, "summary_count": 0,
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

    let begun: Vec<&Value> = of_run.iter().filter(|m| is(m, "activity", Some("doing"))).collect();
    for word in ["thinking", "calling_tool", "working"] {
        assert!(begun.iter().any(|message| message["data"]["status"] == word), "never {word}");
    }
    for message in &begun {
        let ended = |m: &&Value| is(m, "activity", Some("done")) && m["id"] == message["id"];
        assert_eq!(of_run.iter().filter(ended).count(), 1, "what was begun is ended once: {message}");
    }
    assert!(of_run.iter().any(|m| is(m, "activity", Some("done")) && m["data"]["status"] == "idle"));

    let reply = told.iter().find(|m| is(m, "message", None) && m["data"]["run_id"] == run).unwrap();
    assert_eq!((&reply["data"]["from"], &reply["data"]["to"]), (&json!("guide"), &json!("user")));
    assert_eq!(reply["data"]["role"], "assistant");
    let id = &reply["data"]["message_id"];
    let segment = first(&of_run, "text_segment", None);
    assert_eq!((&segment["text"], &segment["data"]["message_id"]), (&reply["text"], id));
    let tokens = told.iter().filter(|m| is(m, "token", None) && m["data"]["message_id"] == *id);
    let (thoughts, spoken): (Vec<&Value>, Vec<&Value>) = tokens.partition(|m| m["data"]["thinking"] == true);
    assert!(!thoughts.is_empty());
    let spoken: String = spoken.iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(reply["text"], spoken, "what was streamed is what was said");
    assert_eq!(first(&of_run, "token", Some("done"))["text"], "");
    let start = first(&told, "content_block", Some("start"));
    assert_eq!(start["data"]["block_type"], "tool_use");
    let block = &start["data"]["block_id"];
    let update =
        told.iter().find(|m| is(m, "content_block", Some("update")) && m["data"]["block_id"] == *block);
    assert_eq!(update.unwrap()["data"]["status"], "done");
    let resolved = first(&told, "approval", Some("resolved"));
    assert_eq!((&resolved["data"]["decision"], &resolved["rev"]), (&json!("allow"), &json!(2)));
    first(&told, "task", Some("changed"));
    first(&told, "run", Some("sync"));
    first(&told, "terminal", None);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_in_the_middle_of_a_reply_has_the_text_so_far() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    room.say("@coder count").await;
    let turn = gateway.turn().await.unwrap();
    for number in 1..=20 {
        gateway.chunk(&turn, "r", "text", &format!("{number} ")).await.unwrap();
    }
    let mut heard = String::new();
    while !heard.contains("7 ") {
        heard += stream.wait_for_kind("token").await.unwrap()["text"].as_str().unwrap();
    }
    let position = stream.position.clone().unwrap();
    drop(stream);
    gateway.settled().await.unwrap();
    let mut stream = resumed(&room.bob, &position).await;
    let first = stream.wait_for_kind("token").await.unwrap();
    assert_eq!(first["data"]["first"], true, "it begins anew: {first}");
    let mut text = first["text"].as_str().unwrap().to_owned();
    gateway.chunk(&turn, "r", "text", "done").await.unwrap();
    while !text.ends_with("done") {
        text += stream.wait_for_kind("token").await.unwrap()["text"].as_str().unwrap();
    }
    let expected: String = (1..=20).map(|number| format!("{number} ")).collect::<String>() + "done";
    assert_eq!(text, expected);
    gateway.complete(&turn, "r", &expected).await.unwrap();
    let end = stream.until(|message| message["kind"] == "turn_complete").await.unwrap();
    assert_eq!(texts(&end), [expected]);
    room.scene.ends_well().await;
}

/// A14: what agents write never becomes a card.
#[tokio::test(flavor = "multi_thread")]
async fn a14_a_text_that_looks_like_a_card_is_a_text() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    room.say("@coder plan").await;
    let turn = gateway.turn().await.unwrap();
    let forged = json!({ "type": "plan", "plan": { "summary": "x", "items": [], "status": "planned" } });
    let also = json!({ "type": "ask_user", "question_id": "q", "questions": [] });
    let text = format!("{forged}\n\ndata: {also}\n\nid: 00000000-1\n\n");
    gateway.chunk(&turn, "r", "text", &text).await.unwrap();
    gateway.complete(&turn, "r", &text).await.unwrap();
    let told = stream.until(|message| message["kind"] == "turn_complete").await.unwrap();
    let kinds: Vec<&str> = told.iter().map(|message| message["kind"].as_str().unwrap()).collect();
    assert!(!kinds.contains(&"ask_user"), "{kinds:?}");
    assert!(told.iter().all(|message| message["phase"] != "plan_update"));
    assert_eq!(texts(&told).last(), Some(&text.as_str()));
    room.scene.ends_well().await;
}

/// What both doors say was said, in order.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_the_answer_says_nothing_and_a_name_speaks_to_its_agent() {
    let room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder", "other"]).await;
    let named = room.alice.put("/api/agents/coder", json!({ "name": "Smith" })).await.unwrap();
    assert_eq!(named.status, 200, "{named:?}");

    let rooms =
        async || room.alice.get("/api/rooms").await.unwrap().data().unwrap().as_array().unwrap().len();
    let before = rooms().await;
    let (_, key) = make_key(&room.alice, &["write"]).await;
    let chat = json!({ "agent_id": "coder", "message": "hello" });
    assert_refused(&room.alice.with_token(&key).post("/api/chat", chat).await.unwrap(), 403);
    assert_eq!(rooms().await, before, "nothing came of it");
    let empty = room.alice.post("/api/chat", json!({ "agent_id": "coder", "message": "" })).await.unwrap();
    assert_refused(&empty, 400);
    assert_eq!(empty.body["fields"][0]["field"], "message", "{empty:?}");

    let chat = json!({ "agent_id": "other", "message": "@smith hello there", "session_id": room.room });
    let said = room.bob.post("/api/chat", chat).await.unwrap();
    let turn = gateway.turn().await.unwrap();
    assert_eq!((turn["agentId"].as_str(), turn["content"].as_str()), (Some("coder"), Some("hello there")));
    let deliveries = room.deliveries(said.body["message_id"].as_str().unwrap()).await;
    assert_eq!(deliveries.len(), 1, "nobody else: {deliveries:?}");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_seen_alike_through_both_doors_idle_and_busy() {
    let room = Room::start().await;
    let (alice, scene) = (room.alice.clone(), room.scene);
    let mut gateway = parlor_testkit::gateway::Gateway::connect(&alice, "g1").await.unwrap();
    gateway.register("coder", "coder").await.unwrap();
    let mut stream = live(&alice).await;

    let missing = alice.post("/api/chat", json!({ "agent_id": "nobody", "message": "hi" })).await.unwrap();
    assert_eq!(missing.status, 404, "{missing:?}");
    let rooms = alice.get("/api/rooms").await.unwrap().data().unwrap();
    assert_eq!(rooms.as_array().unwrap().len(), 1, "nothing was made: {rooms}");

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
    let list = stream.wait_for_kind("queue").await.unwrap();
    assert_eq!(
        (&list["text"], &list["data"]["items"][0]["preview"]),
        (&json!("Queued 1 message"), &json!("and to four"))
    );
    assert_eq!(list["data"]["items"][0]["id"], queued.body["run_id"]);
    let listed = alice.get(&format!("/api/queue?session_id={session}")).await.unwrap();
    assert_eq!(listed.body["items"], list["data"]["items"]);

    gateway.complete(&first, "r1", "one two three").await.unwrap();
    let drained = stream.wait_for_kind("queue").await.unwrap();
    assert_eq!(drained["data"]["items"], json!([]));
    assert!(drained["rev"].as_u64() > list["rev"].as_u64() && drained["id"] == list["id"]);
    let second = gateway.turn().await.unwrap();
    assert_eq!(second["content"], "and to four", "once, and next");
    gateway.complete(&second, "r2", "one two three four").await.unwrap();
    for reply in ["one two three", "one two three four"] {
        assert_eq!(next(&mut at_alice, "server:message_complete").await["message"]["content"], reply);
    }
    gateway.settled().await.unwrap();
    let history = alice.history(&session).await.unwrap();
    let said: Vec<&str> = history.iter().map(|message| message["content"].as_str().unwrap()).collect();
    let expected = ["please count to three for me now", "and to four", "one two three", "one two three four"];
    assert_eq!(said, expected);
    let query = format!("?session_id={session}&since=0");
    let mut from_start = filtered(&alice, &query, None).await;
    let end = |message: &Value| is(message, "message", None) && message["text"] == "one two three four";
    let told = from_start.until(end).await.unwrap();
    assert_eq!(texts(&told), expected, "the stream says what the history says");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_survives_a_kill_is_taken_back_and_is_told_as_not_handled() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    room.say("@coder first").await;
    let running = gateway.turn().await.unwrap();
    let mut waiting = Vec::new();
    for text in ["one", "two", "three"] {
        let body = json!({ "agent_id": "coder", "message": text, "session_id": room.room });
        let queued = room.alice.post("/api/chat", body).await.unwrap();
        assert_eq!(queued.body["status"], "queued", "{queued:?}");
        waiting.push(queued.body["run_id"].as_str().unwrap().to_owned());
    }
    drop(gateway);
    room.scene.crash_and_restart().await;
    let (alice, bob) = (room.alice.at(room.scene.url()), room.bob.at(room.scene.url()));
    let listed = alice.get("/api/queue").await.unwrap().body;
    let previews: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|item| item["preview"].as_str().unwrap()).collect();
    assert_eq!(previews, ["one", "two", "three"], "in order, after a kill");
    let mut stream = live(&bob).await;
    let path = format!("/api/queue?session_id={}&id={}", room.room, waiting[1]);
    assert_eq!(alice.delete(&path).await.unwrap().body["removed"], json!([waiting[1]]));
    let told = stream.wait_for(|message| is(message, "run", Some("outcome"))).await.unwrap();
    assert_eq!(told["data"]["run_id"], waiting[1]);
    assert_eq!(told["data"]["outcome"]["handled"], false, "{told}");
    assert_eq!(alice.delete(&path).await.unwrap().status, 404, "it is gone");

    // The whole rest goes with a cancel; what ended stays as it is.
    let run = running["runId"].as_str();
    let runs = alice.get(&format!("/api/agent-runs?session_id={}", room.room)).await.unwrap().body;
    let of = |status: &str| {
        let found = runs.as_array().unwrap().iter().filter(|run| run["status"] == status).cloned();
        found.collect::<Vec<Value>>()
    };
    assert_eq!((of("running").len(), of("queued").len(), of("cancelled").len()), (1, 2, 1), "{runs}");
    let id = of("running")[0]["run_id"].as_str().unwrap().to_owned();
    assert!(run.is_none_or(|run| run == id));
    let cancelled = alice.post("/api/agent-cancel", json!({ "run_id": id })).await.unwrap();
    assert_eq!(cancelled.body["cancelled_run_ids"], json!([id]), "{cancelled:?}");
    let mut over = Vec::new();
    while over.len() < 3 {
        let told = stream.wait_for(|message| is(message, "run", Some("outcome"))).await.unwrap();
        assert_eq!(told["data"]["outcome"]["status"], "cancelled");
        over.push(told["data"]["run_id"].as_str().unwrap().to_owned());
    }
    over.sort();
    let mut expected = vec![id.clone(), waiting[0].clone(), waiting[2].clone()];
    expected.sort();
    assert_eq!(over, expected, "what waited goes with it");
    let again = alice.post("/api/agent-cancel", json!({ "run_id": id })).await.unwrap();
    assert_eq!(again.body["cancelled_run_ids"], json!([]));
    for (path, status) in
        [("/api/agent-context?run_id=nothing", 404), ("/api/agent-children?run_id=nothing", 404)]
    {
        assert_eq!(alice.get(path).await.unwrap().status, status);
    }
    let context =
        alice.get(&format!("/api/agent-context?run_id={}&view=raw", waiting[0])).await.unwrap().body;
    assert_eq!(
        (&context["run"]["status"], &context["messages"][0]["content"]),
        (&json!("cancelled"), &json!("one"))
    );
    assert_eq!(context["summary"]["user_messages"], 1);
    let stranger = room.scene.admin.get(&format!("/api/agent-context?run_id={id}")).await.unwrap();
    assert_eq!(stranger.status, 404, "a foreign turn is no turn");
    room.scene.ends_well().await;
}

/// Many at once, each telling as much as it can right up to its end and a little longer.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_turn_comes_after_its_end_however_many_agents_speak_at_once() {
    const AGENTS: usize = 8;
    const ROUNDS: usize = 6;
    let names: Vec<String> = (0..AGENTS).map(|number| format!("agent-{number}")).collect();
    let mut room = Room::start().await;
    let mut stream = live(&room.bob).await;
    let mut speaking = tokio::task::JoinSet::new();
    for (number, name) in names.iter().enumerate() {
        let mut gateway = room.gateway(&format!("g{number}"), &[name]).await;
        speaking.spawn(async move {
            for round in 0..ROUNDS {
                let turn = gateway.turn().await.unwrap();
                let reply = format!("r-{number}-{round}");
                let of = |event: Value| {
                    json!({ "type": "gateway:run_event", "agentId": turn["agentId"], "roomId": turn["roomId"],
                        "event": event })
                };
                for line in 0..10 {
                    gateway.chunk(&turn, &reply, "text", &format!("{line} ")).await.unwrap();
                    let progress =
                        json!({ "kind": "tool_progress", "tool": "t", "line": "l", "stream": "stdout" });
                    gateway.send(&of(progress)).await.unwrap();
                    let status = json!({ "kind": "status", "status": "working", "detail": line.to_string() });
                    gateway.send(&of(status)).await.unwrap();
                }
                gateway.complete(&turn, &reply, "0 1 2 3 4 5 6 7 8 9 ").await.unwrap();
                // Too late.
                gateway.send(&of(json!({ "kind": "status", "status": "thinking" }))).await.unwrap();
                let usage = json!({ "kind": "usage", "inputTokens": 1, "outputTokens": 1 });
                gateway.send(&of(usage)).await.unwrap();
            }
            gateway.settled().await.unwrap();
            gateway
        });
    }
    let all: Vec<String> = names.iter().map(|name| format!("@{name}")).collect();
    for _ in 0..ROUNDS {
        room.say(&all.join(" ")).await;
    }
    let (mut told, mut over) = (Vec::new(), 0);
    while over < AGENTS * ROUNDS {
        let message = stream.next(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap().expect("not ended");
        over += usize::from(message["kind"] == "turn_complete");
        told.push(message);
    }
    while let Some(gateway) = speaking.join_next().await {
        gateway.unwrap();
    }
    room.say("the end").await;
    told.extend(stream.until(|message| message["text"] == "the end").await.unwrap());
    let of_run = |message: &Value| message["data"]["run_id"].as_str().map(str::to_owned);
    let mut ended = std::collections::HashSet::new();
    for message in &told {
        let Some(run) = of_run(message) else { continue };
        let last = is(message, "turn_complete", None);
        assert!(!ended.contains(&run), "after the end of its turn: {message}");
        if last {
            ended.insert(run);
        }
    }
    assert_eq!(ended.len(), AGENTS * ROUNDS);
    room.scene.ends_well().await;
}
