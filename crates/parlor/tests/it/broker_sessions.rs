//! Sessions of agents over the broker protocol: starting and stopping their runs, their pushes, conversation logs and
//! questions.

use parlor_testkit::broker::Broker;
use parlor_testkit::gateway::{Gateway, auth};
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, make_key};

/// A Parlor gateway that executes runs in sessions as the test tells it.
pub struct Host(pub Gateway);

impl Host {
    pub async fn start(owner: &RestClient, agents: &[&str]) -> Self {
        let mut gateway = Gateway::open(owner.url()).await.unwrap();
        let mut hello = auth(owner.token(), "host");
        hello["parlor"] = json!(true);
        gateway.send(&hello).await.unwrap();
        gateway.wait_for_type("server:gateway_auth_result").await.unwrap();
        for agent in agents {
            gateway.register(agent, agent).await.unwrap();
        }
        Self(gateway)
    }

    /// Waits for the next run.
    pub async fn run(&mut self) -> Value {
        self.0.turn().await.unwrap()
    }

    pub async fn chunk(&mut self, run: &Value, kind: &str, content: &str, metadata: Value) {
        let mut chunk = json!({ "type": kind, "content": content });
        if !metadata.is_null() {
            chunk["metadata"] = metadata;
        }
        self.send(run, json!({ "type": "gateway:message_chunk", "chunk": chunk })).await;
    }

    pub async fn end(&mut self, run: &Value, outcome: &str, content: &str) {
        let frame = json!({ "type": "gateway:message_complete", "fullContent": content, "outcome": outcome });
        self.send(run, frame).await;
    }

    /// Waits until the hub stops a run.
    pub async fn stopped(&mut self) -> Value {
        self.0.wait_for_type("server:stop_agent").await.unwrap()
    }

    /// Asks the owner of the agent one question.
    pub async fn ask(&mut self, run: &Value, id: &str, question: &str, labels: &[&str]) {
        let options: Vec<Value> = labels.iter().map(|label| json!({ "label": label })).collect();
        let question = json!({ "question": question, "header": "Q", "options": options });
        let event = json!({ "kind": "question", "questionId": id, "questions": [question] });
        let frame = json!({ "type": "gateway:run_event", "messageId": reply(run), "event": event });
        self.send(run, frame).await;
    }

    /// Streams the reply that the recorded session contains, without its end.
    pub async fn say_hello(&mut self, run: &Value) {
        let call = json!({ "toolId": "t1", "toolName": "Read" });
        self.chunk(run, "thinking", "hm", Value::Null).await;
        self.chunk(run, "text", "Hello", Value::Null).await;
        self.chunk(run, "tool_use", r#"{"file_path":"x"}"#, call).await;
        let result = json!({ "toolId": "t1", "toolName": "Read", "isError": false });
        self.chunk(run, "tool_result", "ok", result).await;
    }

    /// Requests permission for the tool `Bash`.
    pub async fn request_permission(&mut self, run: &Value, id: &str, timeout_ms: u64) {
        let frame = json!({ "type": "gateway:permission_request", "requestId": id, "toolName": "Bash",
            "toolInput": { "command": "rm -rf ./secret" }, "timeoutMs": timeout_ms });
        self.send(run, frame).await;
        self.0.settled().await.unwrap();
    }

    /// Waits until the hub answers a permission request.
    pub async fn decision(&mut self, id: &str) -> Value {
        let matches =
            |frame: &Value| frame["type"] == "server:permission_response" && frame["requestId"] == id;
        self.0.wait_for(parlor_testkit::socket::TEST_TIMEOUT, matches).await.unwrap()
    }

    async fn send(&mut self, run: &Value, mut frame: Value) {
        for field in ["agentId", "sessionId", "runId"] {
            frame[field] = run[field].clone();
        }
        frame["messageId"] = json!(reply(run));
        self.0.send(&frame).await.unwrap();
    }
}

/// Id of the message with the reply of a run.
fn reply(run: &Value) -> String {
    format!("reply-{}", run["runId"].as_str().unwrap())
}

pub async fn connect(user: &RestClient) -> Broker {
    Broker::connect(user.url(), user.token()).await.unwrap()
}

fn start(session: &str, prompt: &str) -> Value {
    json!({ "type": "session.start", "agent": "coder", "id": session, "prompt": prompt })
}

/// The next pushes, without the fields that differ each time.
async fn pushes(broker: &mut Broker, count: usize) -> Vec<Value> {
    let mut pushes = Vec::new();
    for _ in 0..count {
        let mut push = broker.frame(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap();
        for time in ["startedAt", "endedAt", "durationMs"] {
            if let Some(value) = push.get_mut(time) {
                assert!(value.is_u64(), "{time} is no time: {value}");
                *value = json!(0);
            }
        }
        pushes.push(push);
    }
    pushes
}

/// A push about the session `s1` of the agent `coder`.
fn about(kind: &str, fields: Value) -> Value {
    let mut push = json!({ "type": kind, "agentId": "coder", "sessionId": "s1" });
    push.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    push
}

fn working(sessions: &[&str]) -> Value {
    json!({ "type": "agent.status", "agentId": "coder", "isWorking": !sessions.is_empty(),
        "activeCount": sessions.len(), "activeSessions": sessions })
}

/// A user with the agent `coder` and a gateway that hosts it.
pub struct Studio {
    pub scene: Scene,
    pub ada: RestClient,
    pub broker: Broker,
    pub host: Host,
}

impl Studio {
    pub async fn open() -> Self {
        Self::on(Scene::start().await).await
    }

    pub async fn on(scene: Scene) -> Self {
        let ada = scene.person("ada").await;
        let mut broker = connect(&ada).await;
        broker.create_agent("coder", &[]).await.unwrap();
        let host = Host::start(&ada, &["coder"]).await;
        Self { scene, ada, broker, host }
    }

    /// Starts a run in the session `s1` that streams nothing.
    pub async fn begin(&mut self) -> Value {
        let started = self.broker.ask(start("s1", "go")).await.unwrap();
        assert_eq!(started["type"], "session.started", "{started}");
        self.host.run().await
    }

    /// Waits until the run in the session `s1` has ended, and returns the reason.
    pub async fn ended(&mut self) -> Value {
        let stopped = |frame: &Value| frame["type"] == "session.status" && frame["status"] == "stopped";
        self.broker.wait_for(parlor_testkit::socket::TEST_TIMEOUT, stopped).await.unwrap()["reason"].clone()
    }

    /// Types and texts of the entries in the conversation log of the session `s1`.
    pub async fn log(&mut self) -> Vec<(String, String)> {
        let history = json!({ "type": "conversation.history", "agent": "coder", "sessionId": "s1" });
        let history = self.broker.ask(history).await.unwrap();
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
        let entries = history["entries"].as_array().unwrap().iter();
        entries.map(|entry| (text(entry, "type"), text(entry, "text"))).collect()
    }

    async fn error(&mut self, frame: Value) -> Value {
        let answer = self.broker.ask(frame.clone()).await.unwrap();
        assert!(answer["error"].is_string(), "{frame} got {answer}");
        answer["error"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_of_the_owner_receives_the_run_in_order() {
    let Studio { scene, ada, mut broker, mut host } = Studio::open().await;
    let mut other = connect(&ada).await;
    let started = broker.ask(start("s1", "hello there")).await.unwrap();
    assert_eq!(started["type"], "session.started");
    let run = host.run().await;
    assert_eq!((&run["sessionId"], &run["roomId"]), (&json!("s1"), &Value::Null));
    host.say_hello(&run).await;
    host.end(&run, "complete", "Hello").await;
    let expected = [
        about(
            "session.status",
            json!({ "status": "running", "startedAt": 0, "promptPreview": "hello there" }),
        ),
        about("session.title", json!({ "title": "hello there" })),
        working(&["s1"]),
        about("session.thinking", json!({ "text": "hm" })),
        about("session.text", json!({ "text": "Hello" })),
        about("session.tool_use", json!({ "toolId": "t1", "name": "Read", "input": { "file_path": "x" } })),
        about("session.tool_result", json!({ "toolId": "t1", "content": "ok", "isError": false })),
        about("session.result", json!({ "text": "Hello" })),
        about("session.done", json!({ "durationMs": 0 })),
        about(
            "session.status",
            json!({ "status": "stopped", "startedAt": 0, "endedAt": 0, "durationMs": 0,
                "reason": "done", "error": null }),
        ),
        working(&[]),
    ];
    assert_eq!(pushes(&mut other, expected.len()).await, expected);
    assert_eq!(pushes(&mut broker, expected.len()).await, expected);

    let history = json!({ "type": "conversation.history", "agent": "coder", "sessionId": "s1" });
    let history = broker.ask(history).await.unwrap();
    let entries = history["entries"].as_array().unwrap();
    let entry = |entry: &Value| (entry["role"].clone(), entry["type"].clone(), entry["text"].clone());
    assert_eq!(
        entries.iter().map(entry).collect::<Vec<_>>(),
        [
            (json!("user"), json!("prompt"), json!("hello there")),
            (json!("assistant"), json!("result"), json!("Hello"))
        ]
    );
    let log = "/api/agents/coder/sessions/s1/log?limit=1";
    let newest = ada.get(log).await.unwrap().data().unwrap();
    let result = &newest["items"][0];
    assert_eq!(entry(result), (json!("assistant"), json!("result"), json!("Hello")));
    assert_eq!(result["runId"], run["runId"], "{newest}");
    assert_eq!((&newest["hasMore"], &newest["nextCursor"]), (&json!(true), &json!("2")));
    let first = ada.get(&format!("{log}&cursor=2")).await.unwrap().data().unwrap();
    assert_eq!(entry(&first["items"][0]), (json!("user"), json!("prompt"), json!("hello there")));
    assert_eq!((&first["hasMore"], first.get("nextCursor")), (&json!(false), None));
    let search = |query: &str| json!({ "type": "logs.search", "options": { "query": query } });
    let found = broker.ask(search("^HELLO$")).await.unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(
        (&found["results"][0]["sessionId"], &found["results"][0]["lineNumber"]),
        (&json!("s1"), &json!(2))
    );
    assert_eq!(broker.ask(search("hello(")).await.unwrap()["results"], json!([]));
    let conversations = broker.ask(json!({ "type": "logs.conversations" })).await.unwrap();
    let latest = &conversations["conversations"][0];
    assert_eq!((&latest["agentId"], &latest["id"]), (&json!("coder"), &json!("s1")));
    assert!(latest["lastUsedAt"].as_u64() > latest["createdAt"].as_u64().map(|at| at - 1));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_one_run_at_a_time_and_any_connection_of_the_owner_stops_it() {
    let mut studio = Studio::open().await;
    let run = studio.begin().await;
    assert_eq!(studio.error(start("s1", "again")).await, "Session ID already active");
    let again = json!({ "type": "session.continue", "agent": "coder", "sessionId": "s1", "prompt": "again" });
    assert_eq!(studio.error(again.clone()).await, "Session ID already active");
    let listed = studio.broker.ask(json!({ "type": "session.list", "agent": "coder" })).await.unwrap();
    let active = |listed: &Value| {
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.map(|session| (session["id"].clone(), session["isActive"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(active(&listed), [(json!("main"), json!(false)), (json!("s1"), json!(true))]);
    let agents = studio.broker.ask(json!({ "type": "agent.list" })).await.unwrap();
    assert_eq!(agents["agents"][0]["isWorking"], true, "{agents}");
    assert_eq!(agents["agents"][0]["activeSessions"], json!(["s1"]));
    let status = studio.broker.ask(json!({ "type": "status.active" })).await.unwrap();
    assert_eq!(status["sessions"][0]["status"], "running", "{status}");
    assert_eq!(status["agents"][0]["activeCount"], 1);

    // Another connection stops the run; a session of another agent of the same name is not affected.
    let mut other = connect(&studio.ada).await;
    let unknown = json!({ "type": "session.abort", "sessionId": "zzz" });
    let refused = other.ask(unknown).await.unwrap();
    assert_eq!((&refused["type"], &refused["error"]), (&json!("error"), &json!("No active session: zzz")));
    let aborted = other.ask(json!({ "type": "session.abort", "sessionId": "s1" })).await.unwrap();
    assert_eq!((&aborted["type"], &aborted["agentId"]), (&json!("session.aborted"), &json!("coder")));
    let stop = studio.host.stopped().await;
    assert_eq!((&stop["agentId"], &stop["sessionId"]), (&json!("coder"), &json!("s1")));
    // The session is busy until the program has ended.
    assert_eq!(studio.error(again.clone()).await, "Session ID already active");
    studio.host.end(&run, "cancelled", "").await;
    let stopped = |frame: &Value| frame["type"] == "session.status" && frame["status"] == "stopped";
    let ended = studio.broker.wait_for(parlor_testkit::socket::TEST_TIMEOUT, stopped).await.unwrap();
    assert_eq!((&ended["reason"], &ended["error"]), (&json!("aborted_by_user"), &Value::Null));
    let started = studio.broker.ask(again).await.unwrap();
    assert_eq!(started["type"], "session.started");
    studio.host.run().await;
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_without_the_connection_that_started_it() {
    let Studio { scene, ada, mut broker, mut host } = Studio::open().await;
    broker.ask(start("s1", "go")).await.unwrap();
    let run = host.run().await;
    host.chunk(&run, "text", "first ", Value::Null).await;
    broker.wait_for_type("session.text").await.unwrap();
    drop(broker);
    // A new connection receives the text so far, and then the rest.
    let mut later = connect(&ada).await;
    assert_eq!(later.wait_for_type("session.text").await.unwrap()["text"], "first ");
    host.chunk(&run, "text", "second", Value::Null).await;
    assert_eq!(later.wait_for_type("session.text").await.unwrap()["text"], "second");
    host.end(&run, "complete", "first second").await;
    assert_eq!(later.wait_for_type("session.result").await.unwrap()["text"], "first second");
    later.wait_for_type("session.done").await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_ends_with_its_reason() {
    let mut studio = Studio::open().await;
    let run = studio.begin().await;
    let mut failed = json!({ "type": "gateway:message_complete", "outcome": "failed", "reason": "no memory",
        "fullContent": "" });
    for field in ["agentId", "sessionId", "runId"] {
        failed[field] = run[field].clone();
    }
    failed["messageId"] = json!(reply(&run));
    studio.host.0.send(&failed).await.unwrap();
    let error = studio.broker.wait_for_type("session.error").await.unwrap();
    assert_eq!((&error["sessionId"], &error["error"]), (&json!("s1"), &json!("no memory")));
    let stopped = |frame: &Value| frame["type"] == "session.status" && frame["status"] == "stopped";
    let status = studio.broker.wait_for(parlor_testkit::socket::TEST_TIMEOUT, stopped).await.unwrap();
    assert_eq!((&status["reason"], &status["error"]), (&json!("error"), &json!("no memory")));
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_neither_sees_nor_controls_sessions() {
    let mut studio = Studio::open().await;
    let person = studio.scene.person("eve").await;
    let mut eve = connect(&person).await;
    let mut admin = connect(&studio.scene.admin).await;
    let run = studio.begin().await;
    for other in [&person, &studio.scene.admin] {
        let refused = other.get("/api/agents/coder/sessions/s1/log").await.unwrap();
        assert_eq!(refused.status, 404, "{}", refused.body);
    }
    studio.host.say_hello(&run).await;
    studio.host.ask(&run, "q1", "Deploy?", &["yes", "no"]).await;
    let question = studio.broker.wait_for_type("ask-user").await.unwrap();
    let agent = "Agent not found: coder";
    for (frame, sentence) in [
        (json!({ "type": "session.list", "agent": "coder" }), agent),
        (
            json!({ "type": "session.start", "agent": "coder", "prompt": "x" }),
            "Agent error: Agent not found: coder",
        ),
        (
            json!({ "type": "session.continue", "agent": "coder", "sessionId": "s1", "prompt": "x" }),
            "Agent error: Agent not found: coder",
        ),
        (json!({ "type": "session.abort", "sessionId": "s1" }), "No active session: s1"),
        (json!({ "type": "session.abort", "agent": "coder", "sessionId": "s1" }), agent),
        (json!({ "type": "status.active", "agentId": "coder" }), agent),
        (json!({ "type": "conversation.history", "agent": "coder", "sessionId": "s1" }), agent),
        (json!({ "type": "agent.claudemd.get", "id": "coder" }), agent),
        (json!({ "type": "agent.claudemd.set", "id": "coder", "content": "x" }), agent),
        (json!({ "type": "agent.tools.list", "agentId": "coder" }), agent),
        (
            json!({ "type": "agent.tool.execute", "agentId": "coder", "toolName": "list-agents", "input": {} }),
            agent,
        ),
        (
            json!({ "type": "ask-user.response", "questionId": question["questionId"], "answer": "yes" }),
            "No pending question with that ID (may have timed out)",
        ),
    ] {
        let answer = eve.ask(frame.clone()).await.unwrap();
        assert_eq!(answer["error"], sentence, "{frame} got {answer}");
    }
    for frame in [json!({ "type": "status.active" }), json!({ "type": "logs.conversations" })] {
        let answer = eve.ask(frame).await.unwrap();
        let text = answer.to_string();
        assert!(!text.contains("coder"), "{text}");
    }
    let found = json!({ "type": "logs.search", "options": { "query": "." } });
    assert_eq!(eve.ask(found).await.unwrap()["results"], json!([]));
    studio.host.end(&run, "complete", "Hello").await;
    studio.broker.wait_for_type("session.done").await.unwrap();
    // Answers to later requests are the only frames that other accounts have received, site admins included.
    for other in [&mut eve, &mut admin] {
        other.send(&json!({ "type": "ping" })).await.unwrap();
        let next = other.frame(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap();
        assert_eq!(next, json!({ "type": "pong" }));
    }
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_needs_the_scope_for_agents() {
    let mut studio = Studio::open().await;
    let (_, reader) = make_key(&studio.ada, &["read"]).await;
    let (_, worker) = make_key(&studio.ada, &["agents"]).await;
    let mut reader = Broker::connect(studio.ada.url(), &reader).await.unwrap();
    let mut worker = Broker::connect(studio.ada.url(), &worker).await.unwrap();
    let run = studio.begin().await;
    let requests = [
        json!({ "type": "session.list", "agent": "coder" }),
        start("s2", "x"),
        json!({ "type": "session.continue", "agent": "coder", "sessionId": "s1", "prompt": "x" }),
        json!({ "type": "session.abort", "sessionId": "s1" }),
        json!({ "type": "status.active" }),
        json!({ "type": "conversation.history", "agent": "coder", "sessionId": "s1" }),
        json!({ "type": "logs.search", "options": { "query": "x" } }),
        json!({ "type": "logs.conversations" }),
        json!({ "type": "agent.claudemd.get", "id": "coder" }),
        json!({ "type": "agent.tools.list", "agentId": "coder" }),
        json!({ "type": "agent.tool.execute", "agentId": "coder", "toolName": "list-agents", "input": {} }),
        json!({ "type": "rebuild" }),
    ];
    for frame in requests {
        let answer = reader.ask(frame.clone()).await.unwrap();
        assert_eq!(answer["error"], "Not allowed", "{frame} got {answer}");
    }
    studio.host.say_hello(&run).await;
    // A program with the scope receives the run. It may not answer questions, because the agent itself may have its key.
    assert_eq!(worker.wait_for_type("session.text").await.unwrap()["text"], "Hello");
    studio.host.ask(&run, "q1", "Deploy?", &["yes", "no"]).await;
    let question = worker.wait_for_type("ask-user").await.unwrap()["questionId"].clone();
    let answer = json!({ "type": "ask-user.response", "questionId": question, "answer": "yes" });
    assert_eq!(worker.ask(answer).await.unwrap()["error"], "Not allowed");
    reader.send(&json!({ "type": "ping" })).await.unwrap();
    let next = reader.frame(parlor_testkit::socket::TEST_TIMEOUT).await.unwrap();
    assert_eq!(next, json!({ "type": "pong" }), "a key without the scope receives no run");
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_sessions_are_one_segment() {
    let mut studio = Studio::open().await;
    for id in ["../../../escape", "a/b", "a:b", ".", "..", "", "a b", &"x".repeat(65)] {
        let sentence = format!("Invalid session ID: {id}");
        for frame in [
            start(id, "x"),
            json!({ "type": "session.continue", "agent": "coder", "sessionId": id, "prompt": "x" }),
            json!({ "type": "session.abort", "sessionId": id }),
            json!({ "type": "conversation.history", "agent": "coder", "sessionId": id }),
            json!({ "type": "agent.tool.execute", "agentId": "coder", "toolName": "x", "sessionId": id }),
        ] {
            assert_eq!(studio.error(frame).await, sentence);
        }
    }
    let missing = json!({ "type": "session.continue", "agent": "coder", "sessionId": "s9", "prompt": "x" });
    assert_eq!(studio.error(missing).await, "Session not found: s9");
    let long = json!({ "type": "session.start", "agent": "coder", "prompt": "x".repeat(100_001) });
    let answer = studio.broker.ask(long).await.unwrap();
    assert_eq!(answer["type"], "session.error", "{answer}");
    // Without an id, the hub chooses one.
    let new = json!({ "type": "session.start", "agent": "coder", "prompt": "x" });
    let started = studio.broker.ask(new).await.unwrap();
    assert_eq!(started["type"], "session.started");
    assert_eq!(studio.host.run().await["sessionId"], started["sessionId"]);
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_pushed_and_answered_once() {
    let Studio { scene, ada, mut broker, mut host } = Studio::open().await;
    broker.ask(start("s1", "go")).await.unwrap();
    let run = host.run().await;
    host.ask(&run, "q1", "Deploy?", &["yes", "no"]).await;
    let question = broker.wait_for_type("ask-user").await.unwrap();
    let id = question["questionId"].clone();
    assert_eq!(
        question,
        about(
            "ask-user",
            json!({ "questionId": id, "question": "Deploy?", "options": ["yes", "no"], "context": null })
        )
    );
    // A new connection receives the open question, and REST lists it.
    let mut later = connect(&ada).await;
    assert_eq!(later.wait_for_type("ask-user").await.unwrap()["questionId"], id);
    assert_eq!(ada.get("/api/ask-user").await.unwrap().body[0]["question_id"], id);
    let answer = |text: &str| json!({ "type": "ask-user.response", "questionId": id, "answer": text });
    let answered = later.ok(answer("yes")).await.unwrap();
    assert_eq!(answered["questionId"], id);
    let response = host.0.wait_for_type("server:question_response").await.unwrap();
    assert_eq!(response["answers"], json!([{ "questionIndex": 0, "selected": ["yes"] }]));
    let late = broker.ask(answer("no")).await.unwrap();
    assert_eq!(late["error"], "This question was answered already");

    host.ask(&run, "q2", "Which name?", &["a", "b"]).await;
    let second = broker.wait_for_type("ask-user").await.unwrap()["questionId"].clone();
    let free = json!({ "type": "ask-user.response", "questionId": second, "answer": "another" });
    broker.ok(free).await.unwrap();
    let response = host.0.wait_for_type("server:question_response").await.unwrap();
    assert_eq!(response["answers"][0]["customText"], "another");

    host.ask(&run, "q3", "Still there?", &["a", "b"]).await;
    let third = broker.wait_for_type("ask-user").await.unwrap()["questionId"].clone();
    host.end(&run, "complete", "done").await;
    broker.wait_for_type("session.done").await.unwrap();
    let late = json!({ "type": "ask-user.response", "questionId": third, "answer": "a" });
    assert_eq!(broker.ask(late).await.unwrap()["error"], "This question is no longer open");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_folder_has_no_instructions() {
    let mut studio = Studio::open().await;
    for frame in [
        json!({ "type": "agent.claudemd.get", "id": "coder" }),
        json!({ "type": "agent.claudemd.set", "id": "coder", "content": "# Coder" }),
    ] {
        let answer = studio.broker.ask(frame).await.unwrap();
        assert_eq!(answer["type"], "agent.claudemd.error");
        assert_eq!(answer["error"], "This hub has no agents root");
    }
    let found = studio.broker.ask(json!({ "type": "agent.get", "id": "coder" })).await.unwrap();
    let agent = &found["agent"];
    assert_eq!((&agent["path"], &agent["hasClaudeMd"]), (&Value::Null, &json!(false)));
    assert_eq!(agent["hasTools"], true, "the hub has built-in tools");
    studio.broker.ok(json!({ "type": "rebuild" })).await.unwrap();
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_runs_beside_later_requests() {
    let mut studio = Studio::open().await;
    let tools = studio.broker.ask(json!({ "type": "agent.tools.list", "agentId": "coder" })).await.unwrap();
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"ask-user") && names.contains(&"send-message"), "{names:?}");
    studio.broker.ok(json!({ "type": "agent.tools.refresh" })).await.unwrap();
    studio.begin().await;
    // The tool waits for the answer that the same connection sends.
    let call = json!({ "type": "agent.tool.execute", "agentId": "coder", "toolName": "ask-user", "sessionId": "s1",
        "input": { "question": "Deploy?", "options": ["yes", "no"] }, "reqId": "call" });
    studio.broker.send(&call).await.unwrap();
    let question = studio.broker.wait_for_type("ask-user").await.unwrap()["questionId"].clone();
    let answer = json!({ "type": "ask-user.response", "questionId": question, "answer": "yes" });
    studio.broker.ok(answer).await.unwrap();
    let result = studio.broker.wait_for_type("agent.tool.result").await.unwrap();
    assert_eq!((&result["reqId"], &result["toolName"]), (&json!("call"), &json!("ask-user")));
    assert_eq!(result["result"]["output"]["data"], "yes", "{result}");
    // The name in the document of the original broker is an alias.
    let alias =
        json!({ "type": "agent.tools.execute", "agentId": "coder", "toolName": "ghost", "input": {} });
    let refused = studio.broker.ask(alias).await.unwrap();
    assert_eq!(refused["type"], "agent.tool.error");
    assert_eq!(refused["error"], "Tool not found: ghost (agent: coder)");
    studio.scene.ends_well().await;
}
