//! Tools of agents: the token that the programs of runs get, what it permits and when it ends, and `parlor tool`
//! within a run.

use super::{parlor, registered, wait_for_text};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, auth_error, until_closed};
use parlor_testkit::broker::Broker;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::socket::{Socket, TEST_TIMEOUT};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A room with a command agent of Alice that the hub hosts itself.
struct Hosted {
    room: Room,
    agent: String,
    place: TempDir,
}

impl Hosted {
    /// Adds the agent `coder`, whose program is this shell script. `$PLACE` is a folder for its files.
    async fn start(script: &str) -> Self {
        let mut room = Room::start().await;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("agent.sh");
        fs::write(&path, format!("PLACE='{}'\n{script}\n", place.path().display())).unwrap();
        let (data, path) = (room.scene.data().to_str().unwrap().to_owned(), path.display().to_string());
        let add =
            ["agent", "add", "coder", "command", "--owner", "alice", "--data", &data, "--", "sh", &path];
        let (added, printed) = parlor(&add).await;
        assert!(added, "{printed}");
        let agent = registered(&room.alice, "coder").await;
        room.add(&agent).await;
        room.say("@coder go").await;
        Self { room, agent, place }
    }

    /// Starts a run that writes its environment to a file and lasts until [`Self::finish`].
    async fn waiting() -> Self {
        let script = "env > \"$PLACE/env\"; echo up; while [ ! -e \"$PLACE/done\" ]; do sleep 0.02; done";
        let mut hosted = Self::start(script).await;
        wait_for_text(&mut hosted.room, &mut String::new(), |text| text.contains("up")).await;
        hosted
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A variable of the run's program.
    fn variable(&self, name: &str) -> Option<String> {
        let environment = fs::read_to_string(self.file("env")).unwrap();
        let line = environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(ToOwned::to_owned)
    }

    async fn connect(&self) -> Broker {
        Broker::connect(self.room.scene.url(), &self.variable("PARLOR_TOKEN").unwrap()).await.unwrap()
    }

    /// A connection of the agent's owner.
    async fn owner(&self) -> Broker {
        Broker::connect(self.room.scene.url(), self.room.alice.token()).await.unwrap()
    }

    /// Lets the program end, and waits for the reply.
    async fn finish(&mut self) -> Value {
        fs::write(self.file("done"), "").unwrap();
        self.room.reply().await
    }

    /// Asserts that the hub does not accept the token any more.
    async fn assert_refused(&self) {
        let mut socket = Socket::open(self.room.scene.url(), "/ws/broker", &[]).await.unwrap();
        let token = self.variable("PARLOR_TOKEN").unwrap();
        socket.send(&json!({ "type": "auth", "token": token })).await.unwrap();
        let (frames, code) = until_closed(&mut socket).await;
        assert_eq!((frames[0]["error"].as_str(), code), (Some("Invalid token"), 4003), "{frames:?}");
    }
}

async fn refused(broker: &mut Broker, frame: Value, sentence: &str) {
    let reply = broker.ask(frame.clone()).await.unwrap();
    let error = reply["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(sentence), "{frame} got {reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_run_acts_as_its_agent_and_does_nothing_else() {
    let mut hosted = Hosted::waiting().await;
    assert_eq!(hosted.variable("PARLOR_URL").as_deref(), Some(hosted.room.scene.url()));
    assert_eq!(hosted.variable("TOOL_AGENT_ID").as_ref(), Some(&hosted.agent));
    assert_eq!(hosted.variable("PARLOR_KEY"), None);
    let mut owner = hosted.owner().await;
    owner.create_agent("writer", &[]).await.unwrap();
    let (mut program, agent) = (hosted.connect().await, hosted.agent.clone());

    let sent = program.ok(json!({ "type": "msg.send", "from": agent, "to": "writer" })).await.unwrap();
    assert_eq!(sent["message"]["deliveredTo"], json!(["writer"]));
    let posted =
        program.route(&agent, &format!("room/{}", hosted.room.room), json!({ "text": "hello" })).await;
    assert_eq!(posted.unwrap()["delivered"], true);
    owner.ok(json!({ "type": "msg.send", "from": "writer", "to": agent })).await.unwrap();
    program.listen(&agent).await.unwrap();
    let senders: Vec<Value> =
        program.receive(&agent).await.unwrap().iter().map(|message| message["from"].clone()).collect();
    assert_eq!(senders, [json!(hosted.room.alice.user_id()), json!("writer")], "the mention and the message");
    program.ok(json!({ "type": "msg.history", "agentId": agent })).await.unwrap();

    let room = hosted.room.room.clone();
    for frame in [
        json!({ "type": "msg.send", "from": "writer", "to": agent }),
        json!({ "type": "msg.route", "from": "slack-bridge", "path": "slack/team" }),
        json!({ "type": "msg.receive", "agentId": "writer" }),
        json!({ "type": "msg.listen", "agentId": "writer" }),
        json!({ "type": "msg.history", "agentId": "writer" }),
        json!({ "type": "msg.session.receive", "agentId": agent, "sessionId": "main" }),
        json!({ "type": "msg.session.listen", "agentId": agent, "sessionId": "main" }),
    ] {
        refused(&mut program, frame, "Agent not found").await;
    }
    for frame in [
        json!({ "type": "agent.list" }),
        json!({ "type": "agent.get", "id": agent }),
        json!({ "type": "agent.create", "id": "another" }),
        json!({ "type": "agent.update", "id": agent, "config": {} }),
        json!({ "type": "agent.delete", "id": agent }),
        json!({ "type": "msg.sub.add", "agentId": agent, "pattern": "slack/**" }),
        json!({ "type": "msg.sub.list", "agentId": agent }),
        json!({ "type": "msg.unmatched" }),
        json!({ "type": "msg.unmatched.clear" }),
        json!({ "type": "msg.room.listen", "roomId": room }),
        json!({ "type": "msg.room.history", "roomId": room }),
        json!({ "type": "msg.relay", "roomId": room, "author": "x", "text": "x" }),
    ] {
        refused(&mut program, frame, "Not allowed").await;
    }
    hosted.finish().await;
    hosted.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_run_works_on_no_other_protocol() {
    let mut hosted = Hosted::waiting().await;
    let program = hosted.room.alice.with_token(&hosted.variable("PARLOR_TOKEN").unwrap());
    let agent = format!("/api/agents/{}", hosted.agent);
    for path in
        ["/api/auth/me", "/api/rooms", "/api/agents", "/api/settings", "/api/keys", "/api/events", &agent]
    {
        assert_eq!(program.get(path).await.unwrap().status, 401, "{path}");
    }
    assert_eq!(
        program.post("/api/keys", json!({ "name": "x", "scopes": ["read"] })).await.unwrap().status,
        401
    );
    assert_eq!(program.delete(&agent).await.unwrap().status, 401);
    auth_error(&program).await;
    assert!(Gateway::connect(&program, "g").await.is_err());
    hosted.finish().await;
    hosted.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_ends_with_its_run() {
    let mut hosted = Hosted::waiting().await;
    let mut program = hosted.connect().await;
    program.listen(&hosted.agent).await.unwrap();
    hosted.finish().await;
    let (_, code) = until_closed(&mut program).await;
    assert_eq!(code, 1008);
    hosted.assert_refused().await;
    hosted.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_ends_when_its_owner_signs_out_everywhere_or_the_agent_is_removed() {
    let mut hosted = Hosted::waiting().await;
    let mut program = hosted.connect().await;
    let alice = &hosted.room.alice;
    assert_eq!(alice.delete("/api/auth/sessions").await.unwrap().status, 200);
    let (_, code) = until_closed(&mut program).await;
    assert_eq!(code, 1008);
    hosted.assert_refused().await;
    hosted.finish().await;

    let hosted = Hosted::waiting().await;
    let mut program = hosted.connect().await;
    hosted.owner().await.ok(json!({ "type": "agent.delete", "id": hosted.agent })).await.unwrap();
    let (_, code) = until_closed(&mut program).await;
    assert_eq!(code, 1008);
    hosted.assert_refused().await;
    fs::write(hosted.file("done"), "").unwrap();
    hosted.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_sends_a_message_and_lists_tools_with_parlor_tool() {
    let script = format!(
        "while [ ! -e \"$PLACE/go\" ]; do sleep 0.02; done\n\
         '{PARLOR}' tool list | grep -c '\"name\"'\n\
         '{PARLOR}' tool call send-message --input '{{\"to\":\"inbox\",\"command\":\"go\",\"text\":\"hi\"}}'\n\
         echo '{{\"query\":\"kitchen\"}}' | '{PARLOR}' tool call search-messages --input - > /dev/null && echo found\n\
         '{PARLOR}' tool call list-agents | grep -o '\"id\":\"inbox\"'\n\
         '{PARLOR}' tool call send-message --input '{{}}' || echo refused\n\
         '{PARLOR}' tool call ghost 2>&1\n\
         '{PARLOR}' tool list --agent inbox 2>&1\n\
         true"
    );
    let mut hosted = Hosted::start(&script).await;
    let mut owner = hosted.owner().await;
    owner.create_agent("inbox", &[]).await.unwrap();
    owner.listen("inbox").await.unwrap();
    fs::write(hosted.file("go"), "").unwrap();
    let message = owner.pushed().await.unwrap();
    let expected = json!([hosted.agent, "agent/inbox", "go", { "text": "hi" }]);
    assert_eq!(json!([message["from"], message["path"], message["command"], message["payload"]]), expected);
    let reply = hosted.room.reply().await["content"].as_str().unwrap().to_owned();
    let mut lines = reply.lines();
    assert_eq!(lines.next(), Some("4"), "{reply}");
    let sent: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let data = &sent["data"];
    let found = json!([sent["ok"], sent["tool"], data["from"], data["deliveredTo"], data["delivered"]]);
    assert_eq!(found, json!([true, "send-message", hosted.agent, ["inbox"], true]), "{reply}");
    assert_eq!((lines.next(), lines.next()), (Some("found"), Some("\"id\":\"inbox\"")), "{reply}");
    let failed: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(
        (&failed["ok"], &failed["error"]["code"]),
        (&json!(false), &json!("invalid_input")),
        "{reply}"
    );
    assert_eq!(lines.next(), Some("refused"), "{reply}");
    let unknown = format!("Tool not found: ghost (agent: {})", hosted.agent);
    assert_eq!(lines.next(), Some(&*unknown), "{reply}");
    assert!(lines.next().unwrap().starts_with("Agent not found"), "{reply}");
    hosted.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_asks_a_user_and_receives_the_answer() {
    let script = format!(
        "'{PARLOR}' tool call ask-user --input '{{\"question\":\"Deploy?\",\"options\":[\"yes\",\"no\"]}}'"
    );
    let mut hosted = Hosted::start(&script).await;
    // Polls, because the question is asked by another process.
    let asked = async {
        loop {
            let open = hosted.room.alice.get("/api/ask-user").await.unwrap().body;
            if let [question] = &open.as_array().unwrap()[..] {
                return question.clone();
            }
        }
    };
    let question = tokio::time::timeout(TEST_TIMEOUT, asked).await.expect("the agent asks");
    let answers = json!([{ "question_index": 0, "selected": ["yes"] }]);
    let body = json!({ "question_id": question["question_id"], "answers": answers });
    let answered = hosted.room.alice.post("/api/ask-user-response", body).await.unwrap();
    assert_eq!(answered.status, 200, "{answered:?}");
    let reply = hosted.room.reply().await["content"].as_str().unwrap().to_owned();
    let output: Value = serde_json::from_str(reply.trim()).unwrap();
    assert_eq!(json!([output["ok"], output["data"]]), json!([true, "yes"]), "{reply}");
    hosted.room.scene.ends_well().await;
}
