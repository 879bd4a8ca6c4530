//! Tests that a gateway has ended the programs of its agents when `stop` returns, also those of removed and
//! replaced agents. The program is the scripted ACP agent of the test kit, whose session ids contain its
//! process id.

use parlor_agents::gateway::store::GatewayStore;
use parlor_agents::gateway::{AgentSpec, Gateway, SpawnPolicy};
use parlor_agents::kinds::AgentConfig;
use parlor_agents::{FrameChannel, frame_channel};
use parlor_model::AgentId;
use parlor_testkit::program::program;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Timeout for each step of a test.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

struct Host {
    gateway: Gateway,
    runs: u32,
    _directory: TempDir,
}

impl Host {
    /// Creates a gateway that hosts the agent `actor`.
    fn new(spec: AgentSpec) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = Arc::new(GatewayStore::open(directory.path()).unwrap());
        let mut gateway = Gateway::new(data, SpawnPolicy::default(), mpsc::channel(1).0).unwrap();
        gateway.add(spec).unwrap();
        Self { gateway, runs: 0, _directory: directory }
    }

    /// Starts a run over a new connection, serves it until a frame of the type `until` arrives, and returns
    /// the text of the reply so far.
    async fn run(&mut self, script: &str, until: &str) -> String {
        let (mut hub, channel) = frame_channel(64);
        self.runs += 1;
        let run = format!("run-{}", self.runs);
        let request = json!({ "type": "server:send_to_agent", "agentId": "actor", "roomId": "r", "messageId": "m",
            "runId": run, "content": script, "senderName": "Ada", "senderType": "user", "routingMode": "direct",
            "conversationId": "c", "depth": 0 });
        hub.outgoing.send(request.to_string()).await.unwrap();
        let text = tokio::select! {
            () = self.gateway.serve(channel) => panic!("the gateway closed the connection"),
            text = text_until(&mut hub, until) => text,
        };
        text
    }

    /// Starts a run that the agent completes, and returns the process id of its program.
    async fn process(&mut self) -> u32 {
        process_id(&self.run("count", "gateway:message_complete").await)
    }

    async fn stop(&mut self) {
        timeout(STEP_TIMEOUT, self.gateway.stop()).await.expect("the gateway stops in time");
    }
}

async fn text_until(hub: &mut FrameChannel, until: &str) -> String {
    let mut text = String::new();
    loop {
        let frame = timeout(STEP_TIMEOUT, hub.incoming.recv()).await.expect("a frame arrives in time");
        let frame: Value = serde_json::from_str(&frame.expect("the gateway stays connected")).unwrap();
        if frame["chunk"]["type"] == "text" {
            text += frame["chunk"]["content"].as_str().unwrap();
        }
        if frame["type"] == until {
            return text;
        }
    }
}

fn actor(options: &[&str]) -> AgentSpec {
    with_command([&[program("acp-actor").to_str().unwrap()], options].concat())
}

/// A program that ignores SIGTERM, which a process inherits through `exec`.
fn stubborn() -> AgentSpec {
    with_command(vec!["sh", "-c", "trap '' TERM; exec \"$0\"", program("acp-actor").to_str().unwrap()])
}

fn with_command(command: Vec<&str>) -> AgentSpec {
    let command = command.into_iter().map(str::to_owned).collect();
    let agent_config = AgentConfig { kind: "acp".into(), command, ..AgentConfig::default() };
    AgentSpec { id: AgentId::parse("actor").unwrap(), name: "actor".into(), agent_config }
}

/// Reads the process id from a text such as `turn 1 of s1-4711`.
fn process_id(text: &str) -> u32 {
    text.rsplit('-').next().unwrap().parse().unwrap_or_else(|_| panic!("no process id in {text:?}"))
}

/// Whether the process exists, also as a zombie that its parent has not awaited.
fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[tokio::test]
async fn the_program_of_a_removed_agent_has_ended_when_the_gateway_has_stopped() {
    for spec in [actor(&[]), stubborn()] {
        let mut host = Host::new(spec);
        let process = host.process().await;
        assert!(exists(process));
        host.gateway.keep_only(&[]);
        host.stop().await;
        assert!(!exists(process));
    }
}

#[tokio::test]
async fn the_program_of_an_agent_that_was_removed_during_a_run_has_ended() {
    for script in ["count hang", "count deaf"] {
        let mut host = Host::new(actor(&[]));
        let process = process_id(&host.run(script, "gateway:message_chunk").await);
        assert!(exists(process));
        host.gateway.keep_only(&[]);
        host.stop().await;
        assert!(!exists(process), "{script}");
    }
}

#[tokio::test]
async fn the_program_of_a_hosted_agent_has_ended_when_the_gateway_has_stopped() {
    for spec in [actor(&[]), stubborn()] {
        let mut host = Host::new(spec);
        let process = host.process().await;
        assert!(exists(process));
        host.stop().await;
        assert!(!exists(process));
    }
}

#[tokio::test]
async fn an_agent_with_a_new_configuration_gets_a_new_program_and_the_old_one_ends() {
    let mut host = Host::new(actor(&[]));
    let first = host.process().await;
    host.gateway.add(actor(&["--resume"])).unwrap();
    let second = host.process().await;
    assert_ne!(first, second);
    host.stop().await;
    assert_eq!((exists(first), exists(second)), (false, false));
}

#[tokio::test]
async fn an_agent_that_is_added_again_unchanged_keeps_its_program() {
    let mut host = Host::new(actor(&[]));
    let first = host.process().await;
    host.gateway.add(actor(&[])).unwrap();
    assert_eq!(host.process().await, first);
    host.stop().await;
    assert!(!exists(first));
}
