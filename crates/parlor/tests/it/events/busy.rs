//! What is said to an agent that is at work: it has it once, whatever happens to the hub on the way.

use super::live;
use crate::gateway::scenes::Room;
use crate::process::agents::Hosted;
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

/// A host of ours with an agent that takes more while it is at work.
async fn attentive(room: &Room) -> Gateway {
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

async fn chat(person: &RestClient, room: &str, agent: &str, message: &str) -> Value {
    let body = json!({ "agent_id": agent, "message": message, "session_id": room });
    let answer = person.post("/api/chat", body).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

async fn outcome(stream: &mut EventReader, run: &Value) -> Value {
    let over = |message: &Value| message["phase"] == "outcome" && message["data"]["run_id"] == *run;
    stream.wait_for(over).await.unwrap()["data"]["outcome"].clone()
}

async fn end(gateway: &mut Gateway, turn: &Value, reply: &str) {
    let frame = json!({ "type": "gateway:message_complete", "roomId": turn["roomId"], "agentId": turn["agentId"],
        "messageId": reply, "runId": turn["runId"], "fullContent": reply });
    gateway.send(&frame).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_meanwhile_goes_into_the_running_turn_or_is_run_next_once() {
    let room = Room::start().await;
    let mut gateway = attentive(&room).await;
    let mut stream = live(&room.alice).await;
    let first = chat(&room.alice, &room.room, "coder", "first").await;
    let turn = gateway.turn().await.unwrap();
    let second = chat(&room.alice, &room.room, "coder", "second").await;
    assert_eq!(second["status"], "queued", "{second}");
    let offer = gateway.wait_for_type("server:add_to_run").await.unwrap();
    for (field, is) in [
        ("runId", &first["run_id"]),
        ("addedRunId", &second["run_id"]),
        ("roomId", &json!(room.room)),
        ("messageId", &second["message_id"]),
        ("content", &json!("second")),
        ("senderName", &json!("alice")),
        ("senderType", &json!("user")),
    ] {
        assert_eq!((field, &offer[field]), (field, is), "{offer}");
    }
    // It waits until the agent has it.
    let waits = |message: &Value| message["data"]["items"][0]["id"] == second["run_id"];
    stream.wait_for(|message| message["kind"] == "queue" && waits(message)).await.unwrap();
    // What is not its own, or not at all, cannot be taken.
    let mut taken = json!({ "type": "gateway:run_added", "agentId": "coder", "roomId": room.room,
        "runId": "nothing", "addedRunId": second["run_id"] });
    gateway.send(&taken).await.unwrap();
    gateway.wait_for_type("server:error").await.unwrap();
    taken["runId"] = first["run_id"].clone();
    gateway.send(&taken).await.unwrap();
    gateway.send(&taken).await.unwrap();
    let over =
        |message: &Value| message["kind"] == "turn_complete" && message["data"]["run_id"] == second["run_id"];
    let told = stream.until(over).await.unwrap();
    assert_eq!(told.last().unwrap()["data"]["parent_id"], first["run_id"], "it is part of that turn now");
    let path = format!("/api/agent-children?run_id={}", first["run_id"].as_str().unwrap());
    assert_eq!(room.alice.get(&path).await.unwrap().body, json!([]), "and no turn that it set off");
    let ended = told.iter().find(|message| message["phase"] == "outcome").unwrap();
    assert_eq!(ended["data"]["outcome"], json!({ "type": "none", "status": "completed", "handled": true }));
    let drained = |message: &Value| message["kind"] == "queue" && message["data"]["items"] == json!([]);
    if !told.iter().any(drained) {
        stream.wait_for(drained).await.unwrap();
    }

    // What is not taken while the turn runs is the next one.
    let third = chat(&room.alice, &room.room, "coder", "third").await;
    let offer = gateway.wait_for_type("server:add_to_run").await.unwrap();
    assert_eq!(offer["addedRunId"], third["run_id"]);
    end(&mut gateway, &turn, "both").await;
    let next = gateway.turn().await.unwrap();
    assert_eq!(next["runId"], third["run_id"], "and nothing in between: {next}");
    end(&mut gateway, &next, "third").await;
    assert_eq!(outcome(&mut stream, &third["run_id"]).await["status"], "completed");

    // What another agent says has a chain of its own, and is never mixed in.
    let fourth = chat(&room.alice, &room.room, "coder", "fourth").await;
    let turn = gateway.turn().await.unwrap();
    let mut other = Gateway::connect(&room.alice, "g2").await.unwrap();
    other.register("writer", "writer").await.unwrap();
    room.add("writer").await;
    chat(&room.alice, &room.room, "writer", "ask coder").await;
    let asked = other.turn().await.unwrap();
    other.complete(&asked, "r-w", "@coder what now?").await.unwrap();
    let queued = |message: &Value| message["kind"] == "queue" && message["data"]["items"][0].is_object();
    stream.wait_for(queued).await.unwrap();
    end(&mut gateway, &turn, "fourth").await;
    assert_eq!(outcome(&mut stream, &fourth["run_id"]).await["status"], "completed");
    let frames = gateway.wait_for(TEST_TIMEOUT, |frame| {
        assert_ne!(frame["type"], "server:add_to_run", "{frame}");
        frame["type"] == "server:send_to_agent"
    });
    assert_eq!(frames.await.unwrap()["content"], "@coder what now?");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_to_an_agent_at_work_is_run_next_and_not_overtaken() {
    let room = Room::start().await;
    let mut gateway = attentive(&room).await;
    chat(&room.alice, &room.room, "coder", "first").await;
    let turn = gateway.turn().await.unwrap();
    let command = chat(&room.alice, &room.room, "coder", "/compact now").await;
    let after = chat(&room.alice, &room.room, "coder", "and then").await;
    assert_eq!((&command["status"], &after["status"]), (&json!("queued"), &json!("queued")));
    let path = chat(&room.alice, &room.room, "coder", "/etc/hosts is wrong").await;
    end(&mut gateway, &turn, "first").await;
    let mut offered = Vec::new();
    for run in [&command, &after, &path] {
        let next = loop {
            let frame = gateway.frame(TEST_TIMEOUT).await.unwrap();
            match frame["type"].as_str() {
                Some("server:send_to_agent") => break frame,
                Some("server:add_to_run") => offered.push(frame["addedRunId"].clone()),
                _ => {}
            }
        };
        assert_eq!(next["runId"], run["run_id"], "in order, each by itself: {next}");
        assert!(!offered.contains(&command["run_id"]), "a command is no text: {offered:?}");
        end(&mut gateway, &next, run["run_id"].as_str().unwrap()).await;
    }
    room.scene.ends_well().await;
}

/// A machine with one agent that writes down what it is asked and works until it is let go.
struct Bench {
    room: Room,
    proxy: LossyProxy,
    hosted: Hosted,
    agent: String,
    /// Rings whenever the agent wrote something down.
    told: pipe::Receiver,
    _gateway: parlor_testkit::gateway_process::GatewayProcess,
}

impl Bench {
    async fn new(kind: &str, script: impl Fn(&Path) -> String) -> Self {
        let room = Room::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "120")]).await).await;
        let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
        let hosted = Hosted::of_kind(proxy.url(), kind, &[("worker", &script)]);
        let bell = hosted.place.path().join("told");
        assert!(std::process::Command::new("mkfifo").arg(&bell).status().unwrap().success());
        // Open for both, so that whoever writes never waits and the end never comes.
        let told = pipe::OpenOptions::new().read_write(true).open_receiver(&bell).unwrap();
        let gateway = hosted.join(&room, &["worker"]).await;
        let agent = hosted.gateway_launcher.agent("worker").unwrap();
        Self { room, proxy, hosted, agent, told, _gateway: gateway }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.hosted.place.path().join(name)
    }

    fn let_go(&self) {
        std::fs::write(self.file("go"), "").unwrap();
    }

    fn seen(&self) -> Vec<String> {
        let seen = std::fs::read_to_string(self.file("seen")).unwrap_or_default();
        seen.lines().map(str::to_owned).collect()
    }

    /// How often the agent was asked this.
    fn times(&self, words: &str) -> usize {
        self.seen().iter().filter(|line| line.contains(words)).count()
    }

    async fn until_seen(&mut self, words: &str) {
        while self.times(words) == 0 {
            let rung = tokio::time::timeout(TEST_TIMEOUT, self.told.read_u8()).await;
            rung.unwrap_or_else(|_| panic!("{words}: {:?}", self.seen())).unwrap();
        }
    }

    async fn say(&self, words: &str) -> Value {
        chat(&self.room.alice, &self.room.room, &self.agent, words).await["run_id"].clone()
    }

    async fn until_running(&self, run: &Value) {
        // Whoever comes later is shown what agents are at.
        let mut stream = live(&self.room.alice).await;
        let begun = |message: &Value| message["kind"] == "activity" && message["data"]["run_id"] == *run;
        stream.wait_for(begun).await.unwrap();
    }

    /// The hub is killed and comes back elsewhere.
    async fn kill_the_hub(&mut self) -> EventReader {
        self.room.scene.crash_and_restart().await;
        self.room.alice = self.room.alice.at(self.room.scene.url());
        let stream = live(&self.room.alice).await;
        self.proxy.lead_to(self.room.scene.url());
        stream
    }
}

/// Takes one prompt, of which the last line is what it is to answer.
fn one_prompt(place: &Path) -> String {
    let place = place.display();
    format!(
        "tail -n 1 >> {place}/seen; echo > {place}/told; echo begun; while [ ! -e {place}/go ]; do sleep 0.02; done; echo done"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_seen_once_when_the_hub_is_killed_meanwhile() {
    let mut bench = Bench::new("command", one_prompt).await;
    let first = bench.say("first").await;
    bench.until_seen("first").await;
    let second = bench.say("second").await;
    let mut stream = bench.kill_the_hub().await;
    bench.let_go();
    for run in [&first, &second] {
        assert_eq!(outcome(&mut stream, run).await["status"], "completed");
    }
    assert_eq!((bench.times("first"), bench.times("second")), (1, 1), "{:?}", bench.seen());
    bench.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_just_begun_is_seen_once_when_the_hub_is_killed_before_it_arrives() {
    let mut bench = Bench::new("command", one_prompt).await;
    let first = bench.say("first").await;
    bench.until_seen("first").await;
    let second = bench.say("second").await;
    bench.proxy.lose_what_is_heard();
    let mut stream = live(&bench.room.alice).await;
    bench.let_go();
    assert_eq!(outcome(&mut stream, &first).await["status"], "completed");
    bench.until_running(&second).await;
    assert_eq!(bench.times("second"), 0, "it was lost on the way");
    let mut stream = bench.kill_the_hub().await;
    assert_eq!(outcome(&mut stream, &second).await["status"], "completed");
    assert_eq!((bench.times("first"), bench.times("second")), (1, 1), "{:?}", bench.seen());
    bench.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_just_begun_is_seen_once_when_the_hub_is_killed_after_it_arrived() {
    let mut bench = Bench::new("command", one_prompt).await;
    let first = bench.say("first").await;
    bench.until_seen("first").await;
    // The hub hears nothing of it, and does not know when it comes back.
    bench.proxy.lose_what_is_said();
    bench.let_go();
    let mut stream = bench.kill_the_hub().await;
    assert_eq!(outcome(&mut stream, &first).await["status"], "completed");
    let second = bench.say("second").await;
    assert_eq!(outcome(&mut stream, &second).await["status"], "completed");
    assert_eq!((bench.times("first"), bench.times("second")), (1, 1), "{:?}", bench.seen());
    bench.room.scene.ends_well().await;
}

/// Speaks as the Claude CLI does, and listens while it is at work.
fn listening(place: &Path) -> String {
    let place = place.display();
    format!(
        r#"printf '{{"type":"system","subtype":"init","session_id":"0198d0a0-0000-7000-8000-000000000000"}}\n'
        while read -r line; do
            printf '%s\n' "$line" >> {place}/seen
            echo > {place}/told
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
async fn what_was_taken_meanwhile_is_seen_once_when_the_hub_is_killed_before_it_knows() {
    let mut bench = Bench::new("claude", listening).await;
    let first = bench.say("first").await;
    bench.until_seen("first").await;
    bench.until_running(&first).await;
    bench.proxy.lose_what_is_said();
    let second = bench.say("second").await;
    bench.until_seen("second").await;
    let waiting = bench.room.alice.get("/api/queue").await.unwrap().body;
    assert_eq!(waiting["items"][0]["id"], second, "the hub was not told: {waiting}");
    let mut stream = bench.kill_the_hub().await;
    assert_eq!(outcome(&mut stream, &second).await["status"], "completed");
    bench.let_go();
    assert_eq!(outcome(&mut stream, &first).await["status"], "completed");
    let third = bench.say("third").await;
    assert_eq!(outcome(&mut stream, &third).await["status"], "completed");
    assert_eq!(bench.times("second"), 2, "as it was said, and in what was said before the third");
    let asked: Vec<bool> = bench.seen().iter().map(|line| line.contains("third")).collect();
    assert_eq!(asked, [false, false, true], "no turn of its own: {:?}", bench.seen());
    bench.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_the_process_before_the_agent_is_idle() {
    let obstinate = |place: &Path| {
        let place = place.display();
        format!("trap '' TERM INT; echo $$ > {place}/seen; echo begun; while :; do sleep 1; done")
    };
    let bench = Bench::new("command", obstinate).await;
    let mut stream = live(&bench.room.bob).await;
    let run = bench.say("begin").await;
    stream.wait_for_kind("token").await.unwrap();
    let waiting = bench.say("and then").await;
    let process = bench.seen()[0].clone();
    assert!(Path::new("/proc").join(&process).exists());
    let cancelled = bench.room.alice.post("/api/agent-cancel", json!({ "run_id": run })).await.unwrap();
    assert_eq!(cancelled.body["cancelled_run_ids"], json!([run]), "{cancelled:?}");
    let idle = |message: &Value| {
        message["kind"] == "activity"
            && message["data"]["status"] == "idle"
            && message["data"]["run_id"] == run
    };
    let mut told = stream.until(idle).await.unwrap();
    assert!(!Path::new("/proc").join(&process).exists(), "it is idle, and its process is there");
    if !told.iter().any(|message| message["phase"] == "outcome" && message["data"]["run_id"] == waiting) {
        let over = |message: &Value| message["phase"] == "outcome" && message["data"]["run_id"] == waiting;
        told.extend(stream.until(over).await.unwrap());
    }
    let of_waiting = told.iter().find(|one| one["phase"] == "outcome" && one["data"]["run_id"] == waiting);
    let left = &of_waiting.unwrap()["data"]["outcome"];
    assert_eq!((&left["status"], &left["handled"]), (&json!("cancelled"), &json!(false)));
    assert_eq!(bench.seen().len(), 1, "and nothing else began");
    bench.room.scene.ends_well().await;
}
