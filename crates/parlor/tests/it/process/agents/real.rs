//! Claude Code itself through a gateway, as kind `claude` and behind its adapter as `acp:claude`, with a model of ours
//! on loopback. Run by `cargo xtask test real-agents`, which fetches the programs.

use super::{Hosted, outcome, parlor, parlor_in, registered, until_said};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, Scene, following, next};
use parlor_testkit::anthropic_stub::{AnthropicStub, TOOL_COMMAND};
use parlor_testkit::gateway_process::{GatewayLauncher, GatewayProcess, LossyProxy, gone};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where Claude Code finds itself, a home of its own, and a model.
fn surroundings(home: &Path, model: &AnthropicStub) -> Vec<(&'static str, String)> {
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

/// A machine on which Claude Code is installed and signed in, at the end of a line that can be led elsewhere.
struct Desk {
    room: Room,
    proxy: LossyProxy,
    hosted: Hosted,
    work: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    _model: AnthropicStub,
}

impl Desk {
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
        let environment = surroundings(&home, &model);
        let given: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let gateway_launcher = GatewayLauncher::with_arguments(PARLOR, place.path(), &given).at(proxy.url());
        let gateway_launcher = gateway_launcher.env("PARLOR_PASSWORD", PASSWORD);
        let gateway_launcher = environment
            .iter()
            .fold(gateway_launcher, |gateway_launcher, (name, value)| gateway_launcher.env(name, value));
        let hosted = Hosted { place, gateway_launcher };
        Self { room, proxy, hosted, work, arguments, environment, _model: model }
    }

    async fn join(&self) -> GatewayProcess {
        self.hosted.join(&self.room, &["coder"]).await
    }

    async fn asked(&mut self, question: &str) -> Value {
        self.room.say(question).await;
        let complete = |frame: &Value| frame["type"] == "server:message_complete";
        // The first start of a program of a hundred megabytes takes its time.
        let told = self.room.at_alice.wait_for(Duration::from_secs(90), complete).await.unwrap();
        told["message"].clone()
    }

    /// The hub dies and comes back elsewhere.
    async fn hub_again(&mut self) {
        self.room.scene.crash_and_restart().await;
        self.proxy.lead_to(self.room.scene.url());
        self.room.alice = self.room.alice.at(self.room.scene.url());
        self.room.at_alice = following(&self.room.alice, &self.room.room).await;
    }

    async fn ends_well(self, mut gateway: GatewayProcess) {
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
            async fn $name() { super::$name(super::Desk::new("claude").await).await; })+
        }
        mod acp {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(super::Desk::new("acp:claude").await).await; })+
        }
    };
}

with_both! {
    a_mention_is_answered_and_its_commands_are_known
    a_tool_is_used_when_somebody_in_the_room_allows_it
    a_stop_ends_the_turn_and_the_next_one_goes_on
    a_session_outlives_its_gateway_and_the_hub
    the_doctor_finds_it_well
}

async fn a_mention_is_answered_and_its_commands_are_known(mut desk: Desk) {
    let gateway = desk.join().await;
    let asked = desk.room.say("@coder Hello, who are you?").await;
    let mut text = String::new();
    until_said(&mut desk.room, &mut text, |text| text.contains("Hello")).await;
    let reply = desk.room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("Hello from the model."), "complete"));
    let chunks = reply["chunks"].as_array().unwrap();
    assert!(chunks.iter().any(|chunk| chunk["type"] == "thinking" && chunk["content"] == "Let me see."));
    let run = &desk.room.deliveries(&asked).await[0];
    assert_eq!(run["status"], "answered", "{run}");
    let id = desk.hosted.gateway_launcher.agent("coder").unwrap();
    let known = async {
        loop {
            let agent = desk.room.alice.get(&format!("/api/agents/{id}")).await.unwrap().data().unwrap();
            assert_eq!(agent["type"], "claude-code");
            if agent["slashCommands"].as_array().is_some_and(|commands| commands.len() > 2) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), known).await.expect("what it understands after a slash");
    desk.ends_well(gateway).await;
}

async fn a_tool_is_used_when_somebody_in_the_room_allows_it(mut desk: Desk) {
    let gateway = desk.join().await;
    desk.room.say("@coder play:tool").await;
    let card = |frame: &Value| frame["type"] == "server:permission_request";
    let card = desk.room.at_alice.wait_for(Duration::from_secs(90), card).await.unwrap();
    assert_eq!((&card["toolName"], &card["toolInput"]["command"]), (&json!("Bash"), &json!(TOOL_COMMAND)));
    assert!(!desk.work.join("made-by-claude.txt").exists(), "nobody allowed it yet");
    let yes =
        json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": "allow" });
    desk.room.at_alice.send(&yes).await.unwrap();
    let reply = next(&mut desk.room.at_alice, "server:message_complete").await["message"].clone();
    assert!(reply["content"].as_str().unwrap().ends_with("The tool said: made"), "{reply}");
    assert_eq!(std::fs::read_to_string(desk.work.join("made-by-claude.txt")).unwrap(), "made\n");
    let kinds: Vec<&str> =
        reply["chunks"].as_array().unwrap().iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"tool_use") && kinds.contains(&"tool_result"), "{kinds:?}");
    desk.ends_well(gateway).await;
}

/// Claude Code takes words in while it works; its adapter waits for the end of the turn.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_it_while_it_works_is_heard_once_and_before_it_ends() {
    let mut desk = Desk::new("claude").await;
    let gateway = desk.join().await;
    desk.room.say("@coder play:tool").await;
    let card = |frame: &Value| frame["type"] == "server:permission_request";
    let card = desk.room.at_alice.wait_for(Duration::from_secs(90), card).await.unwrap();
    let joined = desk.room.say("@coder meanwhile:xylophone").await;
    let yes =
        json!({ "type": "client:permission_response", "requestId": card["requestId"], "decision": "allow" });
    desk.room.at_alice.send(&yes).await.unwrap();
    let reply = next(&mut desk.room.at_alice, "server:message_complete").await["message"].clone();
    assert!(reply["content"].as_str().unwrap().contains("xylophone"), "{reply}");
    let asked_again = desk.asked("@coder play:again").await;
    assert_eq!(asked_again["content"], "I have answered 2 times.", "nothing was said to it twice");
    let delivered = &desk.room.deliveries(&joined).await[0];
    assert_eq!(delivered["status"], "answered", "{delivered}");
    desk.ends_well(gateway).await;
}

async fn a_stop_ends_the_turn_and_the_next_one_goes_on(mut desk: Desk) {
    let gateway = desk.join().await;
    assert_eq!(desk.asked("@coder Hello").await["content"], "Hello from the model.");
    desk.room.say("@coder play:slow").await;
    let slow = |frame: &Value| {
        frame["type"] == "server:message_chunk"
            && frame["chunk"]["content"].as_str().is_some_and(|text| text.contains("One"))
    };
    desk.room.at_alice.wait_for(Duration::from_secs(90), slow).await.unwrap();
    let agent = desk.hosted.gateway_launcher.agent("coder").unwrap();
    let stop = json!({ "type": "client:stop_generation", "roomId": desk.room.room, "agentId": agent });
    let began = Instant::now();
    desk.room.at_alice.send(&stop).await.unwrap();
    let reply = desk.room.reply().await;
    assert_eq!(outcome(&reply), "cancelled", "{reply}");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let third = desk.asked("@coder play:again").await;
    let text = third["content"].as_str().unwrap();
    assert!(text.starts_with("I have answered ") && text != "I have answered 0 times.", "{text}");
    desk.ends_well(gateway).await;
}

async fn a_session_outlives_its_gateway_and_the_hub(mut desk: Desk) {
    let mut gateway = desk.join().await;
    assert_eq!(desk.asked("@coder Hello").await["content"], "Hello from the model.");
    assert_eq!(desk.asked("@coder play:again").await["content"], "I have answered 1 times.");
    assert!(gateway.terminate().await.unwrap().success());
    gone(&desk.hosted.mark(), Duration::from_secs(5)).await.unwrap();
    desk.hub_again().await;
    let gateway = desk.hosted.gateway_launcher.start().await.unwrap();
    registered(&desk.room.alice, "coder").await;
    assert_eq!(desk.asked("@coder play:again").await["content"], "I have answered 2 times.");
    // The gateway lives, the hub does not.
    desk.hub_again().await;
    registered(&desk.room.alice, "coder").await;
    assert_eq!(desk.asked("@coder play:again").await["content"], "I have answered 3 times.");
    desk.ends_well(gateway).await;
}

async fn the_doctor_finds_it_well(desk: Desk) {
    let doctor = tokio::process::Command::new(PARLOR)
        .arg("gateway")
        .args(&desk.arguments)
        .arg("doctor")
        .envs(desk.environment.iter().map(|(name, value)| (name, value)))
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.status.success() && printed.contains("All is well"), "{printed}");
    // Where there is no program, it says which and how to get it.
    let (well, printed) = parlor(&["gateway", "--agent", "other=acp:gemini", "doctor"]).await;
    assert!(well || printed.contains("npm install -g @google/gemini-cli"), "{printed}");
    desk.room.scene.ends_well().await;
}

/// As a new user does it: one command, into a room, a mention.
#[tokio::test(flavor = "multi_thread")]
async fn from_adding_it_to_the_first_word_takes_less_than_a_minute() {
    let model = AnthropicStub::start().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let surroundings = surroundings(place.path(), &model);
    let known: Vec<(&str, &str)> = surroundings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut room = Room::on(Scene::with(&known).await).await;
    let data = room.scene.data().to_str().unwrap().to_owned();
    for kind in ["claude", "acp:claude"] {
        let name = kind.replace(':', "-");
        let began = Instant::now();
        let words = ["agent", "add", &name, kind, "--owner", "alice", "--data", &data];
        let (added, printed) = parlor_in(place.path(), &known, &words).await;
        assert!(added && printed.contains("It is there now"), "{printed}");
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
