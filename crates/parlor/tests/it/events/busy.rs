//! Messages to a busy agent: injected or queued, and prompted once, also when the hub crashes.

use super::live;
use crate::gateway::scenes::Room;
use crate::process::agents::TestGateway;
use crate::scene::Scene;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::{Gateway, auth};
use parlor_testkit::gateway_process::LossyProxy;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Connects a Parlor gateway whose agent `coder` accepts injections (capability `inject`).
async fn connect_injectable_agent(room: &Room) -> Gateway {
    let mut gateway = Gateway::open(room.scene.url()).await.unwrap();
    let mut hello = auth(room.alice.token(), "g1");
    hello["parlor"] = json!(true);
    gateway.send(&hello).await.unwrap();
    let agent = json!({ "id": "coder", "name": "coder", "type": "claude", "capabilities": ["inject"] });
    gateway.send(&json!({ "type": "gateway:register_agent", "agent": agent })).await.unwrap();
    gateway.settled().await.unwrap();
    room.add("coder").await;
    gateway
}

async fn chat(user: &RestClient, room: &str, agent: &str, message: &str) -> Value {
    let body = json!({ "agent_id": agent, "message": message, "session_id": room });
    let answer = user.post("/api/chat", body).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

async fn outcome(stream: &mut EventReader, run: &Value) -> Value {
    let ended = |message: &Value| message["phase"] == "outcome" && message["data"]["run_id"] == *run;
    stream.wait_for(ended).await.unwrap()["data"]["outcome"].clone()
}

async fn complete_run(gateway: &mut Gateway, run: &Value, reply: &str) {
    let frame = json!({ "type": "gateway:message_complete", "roomId": run["roomId"], "agentId": run["agentId"],
        "messageId": reply, "runId": run["runId"], "fullContent": reply });
    gateway.send(&frame).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_busy_agent_is_injected_into_the_active_run_or_becomes_the_next() {
    let room = Room::start().await;
    let mut gateway = connect_injectable_agent(&room).await;
    let mut stream = live(&room.alice).await;
    let first = chat(&room.alice, &room.room, "coder", "first").await;
    let run_frame = gateway.turn().await.unwrap();
    let second = chat(&room.alice, &room.room, "coder", "second").await;
    assert_eq!(second["status"], "queued", "{second}");
    let offer = gateway.wait_for_type("server:add_to_run").await.unwrap();
    for (field, expected) in [
        ("runId", &first["run_id"]),
        ("addedRunId", &second["run_id"]),
        ("roomId", &json!(room.room)),
        ("messageId", &second["message_id"]),
        ("content", &json!("second")),
        ("senderName", &json!("alice")),
        ("senderType", &json!("user")),
    ] {
        assert_eq!((field, &offer[field]), (field, expected), "{offer}");
    }
    // The second run stays queued until the gateway confirms the injection.
    let is_second = |message: &Value| message["data"]["items"][0]["id"] == second["run_id"];
    stream.wait_for(|message| message["kind"] == "queue" && is_second(message)).await.unwrap();
    // The gateway cannot confirm an injection into an unknown run.
    let mut confirmation = json!({ "type": "gateway:run_added", "agentId": "coder", "roomId": room.room,
        "runId": "nothing", "addedRunId": second["run_id"] });
    gateway.send(&confirmation).await.unwrap();
    gateway.wait_for_type("server:error").await.unwrap();
    confirmation["runId"] = first["run_id"].clone();
    gateway.send(&confirmation).await.unwrap();
    gateway.send(&confirmation).await.unwrap();
    let completed =
        |message: &Value| message["kind"] == "turn_complete" && message["data"]["run_id"] == second["run_id"];
    let events = stream.until(completed).await.unwrap();
    assert_eq!(
        events.last().unwrap()["data"]["parent_id"],
        first["run_id"],
        "the injected run is a child of the active run"
    );
    let path = format!("/api/agent-children?run_id={}", first["run_id"].as_str().unwrap());
    assert_eq!(
        room.alice.get(&path).await.unwrap().body,
        json!([]),
        "an injected run is not listed among the runs that the active run started"
    );
    let outcome_event = events.iter().find(|message| message["phase"] == "outcome").unwrap();
    assert_eq!(
        outcome_event["data"]["outcome"],
        json!({ "type": "none", "status": "completed", "handled": true })
    );
    let drained = |message: &Value| message["kind"] == "queue" && message["data"]["items"] == json!([]);
    if !events.iter().any(drained) {
        stream.wait_for(drained).await.unwrap();
    }

    // A message whose injection is not confirmed before the run ends becomes the next run.
    let third = chat(&room.alice, &room.room, "coder", "third").await;
    let offer = gateway.wait_for_type("server:add_to_run").await.unwrap();
    assert_eq!(offer["addedRunId"], third["run_id"]);
    complete_run(&mut gateway, &run_frame, "both").await;
    let next = gateway.turn().await.unwrap();
    assert_eq!(next["runId"], third["run_id"], "no other run starts in between: {next}");
    complete_run(&mut gateway, &next, "third").await;
    assert_eq!(outcome(&mut stream, &third["run_id"]).await["status"], "completed");

    // A message of another agent belongs to its own chain and is never injected.
    let fourth = chat(&room.alice, &room.room, "coder", "fourth").await;
    let run_frame = gateway.turn().await.unwrap();
    let mut other = Gateway::connect(&room.alice, "g2").await.unwrap();
    other.register("writer", "writer").await.unwrap();
    room.add("writer").await;
    chat(&room.alice, &room.room, "writer", "ask coder").await;
    let writer_run = other.turn().await.unwrap();
    other.complete(&writer_run, "r-w", "@coder what now?").await.unwrap();
    let queued = |message: &Value| message["kind"] == "queue" && message["data"]["items"][0].is_object();
    stream.wait_for(queued).await.unwrap();
    complete_run(&mut gateway, &run_frame, "fourth").await;
    assert_eq!(outcome(&mut stream, &fourth["run_id"]).await["status"], "completed");
    let frames = gateway.wait_for(TEST_TIMEOUT, |frame| {
        assert_ne!(frame["type"], "server:add_to_run", "{frame}");
        frame["type"] == "server:send_to_agent"
    });
    assert_eq!(frames.await.unwrap()["content"], "@coder what now?");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_to_a_busy_agent_is_queued_in_order_and_never_injected() {
    let room = Room::start().await;
    let mut gateway = connect_injectable_agent(&room).await;
    chat(&room.alice, &room.room, "coder", "first").await;
    let run_frame = gateway.turn().await.unwrap();
    let command = chat(&room.alice, &room.room, "coder", "/compact now").await;
    let after = chat(&room.alice, &room.room, "coder", "and then").await;
    assert_eq!((&command["status"], &after["status"]), (&json!("queued"), &json!("queued")));
    let path = chat(&room.alice, &room.room, "coder", "/etc/hosts is wrong").await;
    complete_run(&mut gateway, &run_frame, "first").await;
    let mut injected = Vec::new();
    for run in [&command, &after, &path] {
        let next = loop {
            let frame = gateway.frame(TEST_TIMEOUT).await.unwrap();
            match frame["type"].as_str() {
                Some("server:send_to_agent") => break frame,
                Some("server:add_to_run") => injected.push(frame["addedRunId"].clone()),
                _ => {}
            }
        };
        assert_eq!(next["runId"], run["run_id"], "queued runs start in order, one at a time: {next}");
        assert!(!injected.contains(&command["run_id"]), "a slash command is never injected: {injected:?}");
        complete_run(&mut gateway, &next, run["run_id"].as_str().unwrap()).await;
    }
    room.scene.ends_well().await;
}

/// A gateway process behind a lossy proxy, with one agent that records its prompts and works until it is
/// released.
struct Bench {
    room: Room,
    proxy: LossyProxy,
    hosted: TestGateway,
    agent: String,
    /// Receives a byte whenever the agent has recorded a prompt.
    recorded: pipe::Receiver,
    _gateway: parlor_testkit::gateway_process::ClientProcess,
}

impl Bench {
    async fn new(kind: &str, script: impl Fn(&Path) -> String) -> Self {
        let room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "120")]).await).await;
        let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
        let hosted = TestGateway::of_kind(proxy.url(), kind, &[("worker", &script)]);
        let fifo = hosted.place.path().join("recorded");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // Opened for reading and writing: the script never blocks, and the pipe never reports end of file.
        let recorded = pipe::OpenOptions::new().read_write(true).open_receiver(&fifo).unwrap();
        let gateway = hosted.join(&room, &["worker"]).await;
        let agent = hosted.gateway_launcher.agent("worker").unwrap();
        Self { room, proxy, hosted, agent, recorded, _gateway: gateway }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.hosted.place.path().join(name)
    }

    fn release(&self) {
        std::fs::write(self.file("go"), "").unwrap();
    }

    fn prompts(&self) -> Vec<String> {
        let prompts = std::fs::read_to_string(self.file("seen")).unwrap_or_default();
        prompts.lines().map(str::to_owned).collect()
    }

    /// Number of recorded prompt lines that contain this text.
    fn count_prompts(&self, text: &str) -> usize {
        self.prompts().iter().filter(|line| line.contains(text)).count()
    }

    async fn wait_for_prompt(&mut self, text: &str) {
        while self.count_prompts(text) == 0 {
            let signal = tokio::time::timeout(TEST_TIMEOUT, self.recorded.read_u8()).await;
            signal.unwrap_or_else(|_| panic!("no prompt contains {text:?}: {:?}", self.prompts())).unwrap();
        }
    }

    async fn say(&self, text: &str) -> Value {
        chat(&self.room.alice, &self.room.room, &self.agent, text).await["run_id"].clone()
    }

    async fn wait_until_running(&self, run: &Value) {
        // A late joiner receives the current activity of each agent, so a new stream also shows a run that
        // has started.
        let mut stream = live(&self.room.alice).await;
        let started = |message: &Value| message["kind"] == "activity" && message["data"]["run_id"] == *run;
        stream.wait_for(started).await.unwrap();
    }

    /// Crashes the hub, restarts it at a new address and points the proxy there; returns a live stream of
    /// Alice.
    async fn crash_hub(&mut self) -> EventReader {
        self.room.scene.crash_and_restart().await;
        self.room.alice = self.room.alice.at(self.room.scene.url());
        let stream = live(&self.room.alice).await;
        self.proxy.lead_to(self.room.scene.url());
        stream
    }
}

/// Script of an agent that records the last line of its prompt and works until the file `go` exists.
fn single_prompt_script(place: &Path) -> String {
    let place = place.display();
    format!(
        "tail -n 1 >> {place}/seen; echo > {place}/recorded; echo begun; while [ ! -e {place}/go ]; do sleep 0.02; done; echo done"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_message_is_prompted_once_when_the_hub_crashes() {
    let mut bench = Bench::new("command", single_prompt_script).await;
    let first = bench.say("first").await;
    bench.wait_for_prompt("first").await;
    let second = bench.say("second").await;
    let mut stream = bench.crash_hub().await;
    bench.release();
    for run in [&first, &second] {
        assert_eq!(outcome(&mut stream, run).await["status"], "completed");
    }
    assert_eq!(
        (bench.count_prompts("first"), bench.count_prompts("second")),
        (1, 1),
        "{:?}",
        bench.prompts()
    );
    bench.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_started_run_is_prompted_once_when_the_hub_crashes_before_the_gateway_receives_it() {
    let mut bench = Bench::new("command", single_prompt_script).await;
    let first = bench.say("first").await;
    bench.wait_for_prompt("first").await;
    let second = bench.say("second").await;
    bench.proxy.lose_what_is_heard();
    let mut stream = live(&bench.room.alice).await;
    bench.release();
    assert_eq!(outcome(&mut stream, &first).await["status"], "completed");
    bench.wait_until_running(&second).await;
    assert_eq!(bench.count_prompts("second"), 0, "the proxy dropped the request to start the run");
    let mut stream = bench.crash_hub().await;
    assert_eq!(outcome(&mut stream, &second).await["status"], "completed");
    assert_eq!(
        (bench.count_prompts("first"), bench.count_prompts("second")),
        (1, 1),
        "{:?}",
        bench.prompts()
    );
    bench.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_prompted_once_when_the_hub_crashes_before_it_receives_the_reply() {
    let mut bench = Bench::new("command", single_prompt_script).await;
    let first = bench.say("first").await;
    bench.wait_for_prompt("first").await;
    // The proxy drops the reply, so the hub does not know that the run has ended.
    bench.proxy.lose_what_is_said();
    bench.release();
    let mut stream = bench.crash_hub().await;
    assert_eq!(outcome(&mut stream, &first).await["status"], "completed");
    let second = bench.say("second").await;
    assert_eq!(outcome(&mut stream, &second).await["status"], "completed");
    assert_eq!(
        (bench.count_prompts("first"), bench.count_prompts("second")),
        (1, 1),
        "{:?}",
        bench.prompts()
    );
    bench.room.scene.ends_well().await;
}

/// Script that emulates the Claude CLI: records each input line and accepts a second one while it works.
fn claude_cli_script(place: &Path) -> String {
    let place = place.display();
    format!(
        r#"printf '{{"type":"system","subtype":"init","session_id":"0198d0a0-0000-7000-8000-000000000000"}}\n'
        while read -r line; do
            printf '%s\n' "$line" >> {place}/seen
            echo > {place}/recorded
            printf '%s\n' "$line"
            if [ -e {place}/go ]; then break; fi
            if [ "$(wc -l < {place}/seen)" -gt 1 ]; then
                while [ ! -e {place}/go ]; do sleep 0.02; done
                break
            fi
        done
        printf '{{"type":"result","subtype":"success","result":"done"}}\n'"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_injected_message_is_not_prompted_again_when_the_hub_crashes_before_the_confirmation() {
    let mut bench = Bench::new("claude", claude_cli_script).await;
    let first = bench.say("first").await;
    bench.wait_for_prompt("first").await;
    bench.wait_until_running(&first).await;
    bench.proxy.lose_what_is_said();
    let second = bench.say("second").await;
    bench.wait_for_prompt("second").await;
    let queue = bench.room.alice.get("/api/queue").await.unwrap().body;
    assert_eq!(
        queue["items"][0]["id"], second,
        "the proxy dropped the confirmation, so the run is still queued: {queue}"
    );
    let mut stream = bench.crash_hub().await;
    assert_eq!(outcome(&mut stream, &second).await["status"], "completed");
    bench.release();
    assert_eq!(outcome(&mut stream, &first).await["status"], "completed");
    let third = bench.say("third").await;
    assert_eq!(outcome(&mut stream, &third).await["status"], "completed");
    assert_eq!(
        bench.count_prompts("second"),
        2,
        "once as an injection, and once in the history of the third prompt"
    );
    let has_third: Vec<bool> = bench.prompts().iter().map(|line| line.contains("third")).collect();
    assert_eq!(
        has_third,
        [false, false, true],
        "the injected message started no run of its own: {:?}",
        bench.prompts()
    );
    bench.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_run_ends_its_process_before_the_agent_is_reported_idle() {
    let ignores_signals = |place: &Path| {
        let place = place.display();
        format!("trap '' TERM INT; echo $$ > {place}/seen; echo begun; while :; do sleep 1; done")
    };
    let bench = Bench::new("command", ignores_signals).await;
    let mut stream = live(&bench.room.bob).await;
    let run = bench.say("begin").await;
    stream.wait_for_kind("token").await.unwrap();
    let queued = bench.say("and then").await;
    let process = bench.prompts()[0].clone();
    assert!(Path::new("/proc").join(&process).exists());
    let cancelled = bench.room.alice.post("/api/agent-cancel", json!({ "run_id": run })).await.unwrap();
    assert_eq!(cancelled.body["cancelled_run_ids"], json!([run]), "{cancelled:?}");
    let idle = |message: &Value| {
        message["kind"] == "activity"
            && message["data"]["status"] == "idle"
            && message["data"]["run_id"] == run
    };
    let mut events = stream.until(idle).await.unwrap();
    assert!(
        !Path::new("/proc").join(&process).exists(),
        "the agent is reported idle while its process still exists"
    );
    if !events.iter().any(|message| message["phase"] == "outcome" && message["data"]["run_id"] == queued) {
        let ended = |message: &Value| message["phase"] == "outcome" && message["data"]["run_id"] == queued;
        events.extend(stream.until(ended).await.unwrap());
    }
    let queued_outcome =
        events.iter().find(|event| event["phase"] == "outcome" && event["data"]["run_id"] == queued);
    let outcome = &queued_outcome.unwrap()["data"]["outcome"];
    assert_eq!((&outcome["status"], &outcome["handled"]), (&json!("cancelled"), &json!(false)));
    assert_eq!(bench.prompts().len(), 1, "no queued run was started");
    bench.room.scene.ends_well().await;
}
