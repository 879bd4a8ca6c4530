//! Tests of the real Claude Code through a gateway, as kind `claude` and behind its adapter as `acp:claude`,
//! with a model of ours on loopback. Run by `cargo xtask test real-agents`, which fetches the programs.

use super::{TestGateway, outcome, parlor, parlor_in, registered, wait_for_text};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, Scene, following, next};
use parlor_testkit::anthropic_stub::{AnthropicStub, TOOL_COMMAND};
use parlor_testkit::gateway_process::{ClientProcess, GatewayLauncher, LossyProxy, gone};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Environment of Claude Code: a `PATH` that contains it, a separate home directory, and the model endpoint.
fn environment(home: &Path, model: &AnthropicStub) -> Vec<(&'static str, String)> {
    let programs = std::env::var("XTASK_REAL_AGENTS").expect("`cargo xtask test real-agents` sets it");
    vec![
        ("HOME", home.to_str().unwrap().to_owned()),
        ("PATH", format!("{programs}/node_modules/.bin:{}", std::env::var("PATH").unwrap())),
        ("ANTHROPIC_BASE_URL", model.url.clone()),
        ("ANTHROPIC_API_KEY", "any".to_owned()),
        ("NO_PROXY", "127.0.0.1".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
    ]
}

/// A gateway with Claude Code, connected to the hub through a proxy that can be redirected to another hub.
struct ClaudeMachine {
    room: Room,
    proxy: LossyProxy,
    hosted: TestGateway,
    work: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    _model: AnthropicStub,
}

impl ClaudeMachine {
    async fn new(kind: &str) -> Self {
        let room = Room::start().await;
        let proxy = LossyProxy::to(room.scene.url()).await.unwrap();
        let model = AnthropicStub::start().await.unwrap();
        let place = tempfile::tempdir().unwrap();
        let (home, work) = (place.path().join("home"), place.path().join("work"));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&work).unwrap();
        let agent = format!("coder={kind}:{}", work.display());
        let arguments = ["--user", "alice", "--agent", &agent].map(str::to_owned).to_vec();
        let environment = environment(&home, &model);
        let borrowed: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let gateway_launcher =
            GatewayLauncher::with_arguments(PARLOR, place.path(), &borrowed).at(proxy.url());
        let gateway_launcher = gateway_launcher.env("PARLOR_PASSWORD", PASSWORD);
        let gateway_launcher = environment
            .iter()
            .fold(gateway_launcher, |gateway_launcher, (name, value)| gateway_launcher.env(name, value));
        let hosted = TestGateway { place, gateway_launcher };
        Self { room, proxy, hosted, work, arguments, environment, _model: model }
    }

    async fn join(&self) -> ClientProcess {
        self.hosted.join(&self.room, &["coder"]).await
    }

    async fn reply_to(&mut self, question: &str) -> Value {
        self.room.say(question).await;
        let complete = |frame: &Value| frame["type"] == "server:message_complete";
        // The first start of a program of a hundred megabytes is slow.
        let frame = self.room.at_alice.wait_for(Duration::from_secs(90), complete).await.unwrap();
        frame["message"].clone()
    }

    /// Crashes the hub and restarts it at another address.
    async fn crash_and_restart_hub(&mut self) {
        self.room.scene.crash_and_restart().await;
        self.proxy.lead_to(self.room.scene.url());
        self.room.alice = self.room.alice.at(self.room.scene.url());
        self.room.at_alice = following(&self.room.alice, &self.room.room).await;
    }

    async fn ends_well(self, mut gateway: ClientProcess) {
        assert!(gateway.terminate().await.unwrap().success());
        assert!(!gateway.output().contains("panicked"), "{}", gateway.output());
        gone(&self.hosted.mark(), Duration::from_secs(5)).await.unwrap();
        self.room.scene.ends_well().await;
    }
}

macro_rules! with_both {
    ($($name:ident)+) => {
        mod claude {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(super::ClaudeMachine::new("claude").await).await; })+
        }
        mod acp {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(super::ClaudeMachine::new("acp:claude").await).await; })+
        }
    };
}

with_both! {
    a_mention_is_answered_and_the_slash_commands_are_registered
    a_tool_is_used_after_a_user_approves_it
    a_stop_ends_the_run_and_the_next_run_continues_the_session
    a_session_outlives_its_gateway_and_the_hub
    the_doctor_checks_pass
}

async fn a_mention_is_answered_and_the_slash_commands_are_registered(mut machine: ClaudeMachine) {
    let gateway = machine.join().await;
    let mention = machine.room.say("@coder Hello, who are you?").await;
    let mut text = String::new();
    wait_for_text(&mut machine.room, &mut text, |text| text.contains("Hello")).await;
    let reply = machine.room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("Hello from the model."), "complete"));
    let chunks = reply["chunks"].as_array().unwrap();
    assert!(chunks.iter().any(|chunk| chunk["type"] == "thinking" && chunk["content"] == "Let me see."));
    let run = &machine.room.deliveries(&mention).await[0];
    assert_eq!(run["status"], "answered", "{run}");
    let id = machine.hosted.gateway_launcher.agent("coder").unwrap();
    let registered = async {
        loop {
            let agent = machine.room.alice.get(&format!("/api/agents/{id}")).await.unwrap().data().unwrap();
            assert_eq!(agent["type"], "claude-code");
            if agent["slashCommands"].as_array().is_some_and(|commands| commands.len() > 2) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), registered)
        .await
        .expect("the slash commands are registered");
    machine.ends_well(gateway).await;
}

async fn a_tool_is_used_after_a_user_approves_it(mut machine: ClaudeMachine) {
    let gateway = machine.join().await;
    machine.room.say("@coder play:tool").await;
    let card = |frame: &Value| frame["type"] == "server:permission_request";
    let card = machine.room.at_alice.wait_for(Duration::from_secs(90), card).await.unwrap();
    assert_eq!((&card["toolName"], &card["toolInput"]["command"]), (&json!("Bash"), &json!(TOOL_COMMAND)));
    assert!(!machine.work.join("made-by-claude.txt").exists(), "the tool does not run before the approval");
    let yes =
        json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": "allow" });
    machine.room.at_alice.send(&yes).await.unwrap();
    let reply = next(&mut machine.room.at_alice, "server:message_complete").await["message"].clone();
    assert!(reply["content"].as_str().unwrap().ends_with("The tool said: made"), "{reply}");
    assert_eq!(std::fs::read_to_string(machine.work.join("made-by-claude.txt")).unwrap(), "made\n");
    let kinds: Vec<&str> =
        reply["chunks"].as_array().unwrap().iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"tool_use") && kinds.contains(&"tool_result"), "{kinds:?}");
    machine.ends_well(gateway).await;
}

/// Claude Code accepts injected messages during a run; its ACP adapter waits for the end of the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_during_a_run_is_injected_once() {
    let mut machine = ClaudeMachine::new("claude").await;
    let gateway = machine.join().await;
    machine.room.say("@coder play:tool").await;
    let card = |frame: &Value| frame["type"] == "server:permission_request";
    let card = machine.room.at_alice.wait_for(Duration::from_secs(90), card).await.unwrap();
    let injected = machine.room.say("@coder meanwhile:xylophone").await;
    let yes =
        json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": "allow" });
    machine.room.at_alice.send(&yes).await.unwrap();
    let reply = next(&mut machine.room.at_alice, "server:message_complete").await["message"].clone();
    assert!(reply["content"].as_str().unwrap().contains("xylophone"), "{reply}");
    let next = machine.reply_to("@coder play:again").await;
    assert_eq!(next["content"], "I have answered 2 times.", "the injected message started no run of its own");
    let delivered = &machine.room.deliveries(&injected).await[0];
    assert_eq!(delivered["status"], "answered", "{delivered}");
    machine.ends_well(gateway).await;
}

async fn a_stop_ends_the_run_and_the_next_run_continues_the_session(mut machine: ClaudeMachine) {
    let gateway = machine.join().await;
    assert_eq!(machine.reply_to("@coder Hello").await["content"], "Hello from the model.");
    machine.room.say("@coder play:slow").await;
    let slow = |frame: &Value| {
        frame["type"] == "server:message_chunk"
            && frame["chunk"]["content"].as_str().is_some_and(|text| text.contains("One"))
    };
    machine.room.at_alice.wait_for(Duration::from_secs(90), slow).await.unwrap();
    let agent = machine.hosted.gateway_launcher.agent("coder").unwrap();
    let stop = json!({ "type": "client:stop_generation", "roomId": machine.room.room, "agentId": agent });
    let began = Instant::now();
    machine.room.at_alice.send(&stop).await.unwrap();
    let reply = machine.room.reply().await;
    assert_eq!(outcome(&reply), "cancelled", "{reply}");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let third = machine.reply_to("@coder play:again").await;
    let text = third["content"].as_str().unwrap();
    assert!(text.starts_with("I have answered ") && text != "I have answered 0 times.", "{text}");
    machine.ends_well(gateway).await;
}

async fn a_session_outlives_its_gateway_and_the_hub(mut machine: ClaudeMachine) {
    let mut gateway = machine.join().await;
    assert_eq!(machine.reply_to("@coder Hello").await["content"], "Hello from the model.");
    assert_eq!(machine.reply_to("@coder play:again").await["content"], "I have answered 1 times.");
    assert!(gateway.terminate().await.unwrap().success());
    gone(&machine.hosted.mark(), Duration::from_secs(5)).await.unwrap();
    machine.crash_and_restart_hub().await;
    let gateway = machine.hosted.gateway_launcher.start().await.unwrap();
    registered(&machine.room.alice, "coder").await;
    assert_eq!(machine.reply_to("@coder play:again").await["content"], "I have answered 2 times.");
    // Only the hub crashes; the gateway keeps running.
    machine.crash_and_restart_hub().await;
    registered(&machine.room.alice, "coder").await;
    assert_eq!(machine.reply_to("@coder play:again").await["content"], "I have answered 3 times.");
    machine.ends_well(gateway).await;
}

async fn the_doctor_checks_pass(machine: ClaudeMachine) {
    let doctor = tokio::process::Command::new(PARLOR)
        .arg("gateway")
        .args(&machine.arguments)
        .arg("doctor")
        .envs(machine.environment.iter().map(|(name, value)| (name, value)))
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.status.success() && printed.contains("All checks passed"), "{printed}");
    // For a missing program, the doctor prints how to install it.
    let (passed, printed) = parlor(&["gateway", "--agent", "other=acp:gemini", "doctor"]).await;
    assert!(passed || printed.contains("npm install -g @google/gemini-cli"), "{printed}");
    machine.room.scene.ends_well().await;
}

/// Follows the steps of a new user: add the agent, add it to a room, mention it.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_agent_answers_within_a_minute_of_being_added() {
    let model = AnthropicStub::start().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let environment = environment(place.path(), &model);
    let variables: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut room = Room::on(Scene::process_set(&variables).await).await;
    let data = room.scene.data().to_str().unwrap().to_owned();
    for kind in ["claude", "acp:claude"] {
        let name = kind.replace(':', "-");
        let began = Instant::now();
        let arguments = ["agent", "add", &name, kind, "--owner", "alice", "--data", &data];
        let (added, printed) = parlor_in(place.path(), &variables, &arguments).await;
        assert!(added && printed.contains("It is online"), "{printed}");
        room.add(&registered(&room.alice, &name).await).await;
        room.say(&format!("@{name} hello")).await;
        let word =
            |frame: &Value| frame["type"] == "server:message_chunk" && frame["chunk"]["type"] == "text";
        room.at_alice.wait_for(Duration::from_secs(60), word).await.unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(60), "{kind} took {took:?}");
        assert_eq!(room.reply().await["content"], "Hello from the model.");
    }
    room.scene.ends_well().await;
}
