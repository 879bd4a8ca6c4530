//! Tests the real Claude Code, as kind `claude` and through its ACP adapter as kind `acp`, with a stub
//! model on loopback.

use crate::stage::{ActiveRun, run_input};
use parlor_agents::finding::Health;
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_agents::run::{AgentOutput, RunResult};
use parlor_model::{ChunkKind, RunEvent, Usage};
use parlor_testkit::anthropic_stub::{AnthropicStub, TOOL_COMMAND};
use parlor_wire::agentim::gateway::host::ingress::PermissionOutcome;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A home directory, a working directory and a stub model.
struct World {
    folder: TempDir,
    model: AnthropicStub,
    kind: &'static str,
}

impl World {
    async fn new(kind: &'static str) -> Self {
        let folder = TempDir::new().unwrap();
        for part in ["home", "work"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        Self { folder, model: AnthropicStub::start().await.unwrap(), kind }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn agent_config(&self) -> AgentConfig {
        let programs = std::env::var("XTASK_REAL_AGENTS").expect("`cargo xtask test real-agents` sets it");
        let program = if self.kind == "claude" { "claude" } else { "claude-agent-acp" };
        let home = self.folder.path().join("home");
        let environment = [
            ("HOME", home.to_str().unwrap()),
            ("ANTHROPIC_BASE_URL", &self.model.url),
            ("ANTHROPIC_API_KEY", "any"),
            ("NO_PROXY", "127.0.0.1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ];
        AgentConfig {
            kind: self.kind.into(),
            directory: Some(self.work()),
            command: vec![format!("{programs}/node_modules/.bin/{program}")],
            environment: environment.map(|(name, value)| (name.into(), value.into())).into(),
            ..AgentConfig::default()
        }
    }

    /// A new agent process with the home directory of the earlier ones.
    fn agent(&self) -> Arc<AgentKind> {
        Arc::new(AgentKind::new(&self.agent_config()).unwrap())
    }
}

macro_rules! with_both {
    ($($(#[$doc:meta])* $name:ident)+) => {
        mod claude {
            $(#[tokio::test] async fn $name() { super::$name(super::World::new("claude").await).await; })+
        }
        mod acp {
            $(#[tokio::test] async fn $name() { super::$name(super::World::new("acp").await).await; })+
        }
    };
}

with_both! {
    an_answer_is_streamed_once
    an_approved_tool_call_is_executed
    a_denied_tool_call_is_not_executed
    a_stop_ends_the_run_and_keeps_the_session
    another_process_resumes_a_session
    a_lost_session_is_replaced_by_a_new_one
    a_request_to_a_busy_model_is_retried
    a_rejected_request_fails_the_run_with_its_message
    an_examination_of_a_working_agent_succeeds
}

async fn an_answer_is_streamed_once(world: World) {
    let agent = world.agent();
    let finished_run =
        ActiveRun::begin(&agent, run_input("room", "Hello, who are you?", None)).end().await.finished();
    assert_eq!(finished_run.text(), "Hello from the model.");
    assert_eq!(finished_run.of(ChunkKind::Thinking), "Let me see.");
    assert!(
        finished_run.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Text).count() > 1,
        "{:?}",
        finished_run.chunks
    );
    let spent = finished_run.events.iter().find_map(|event| match event {
        RunEvent::Usage(report) => report.spent,
        _ => None,
    });
    let Some(Usage { input_tokens: 10.., output_tokens: 7.., cost: Some(1..) }) = spent else {
        panic!("{spent:?}")
    };
    assert!(!agent.commands().is_empty());
}

async fn an_approved_tool_call_is_executed(world: World) {
    let mut active_run = ActiveRun::begin(&world.agent(), run_input("room", "play:tool", None));
    let (tool, input, answer) = active_run.permission_request().await;
    assert_eq!((&*tool, &input["command"]), ("Bash", &json!(TOOL_COMMAND)));
    assert!(!world.work().join("made-by-claude.txt").exists());
    answer.send(PermissionOutcome::Allowed).unwrap();
    let finished_run = active_run.end().await.finished();
    assert!(finished_run.text().ends_with("The tool said: made"), "{}", finished_run.text());
    assert_eq!(std::fs::read_to_string(world.work().join("made-by-claude.txt")).unwrap(), "made\n");
    // `permission_request` has already consumed the chunk with the tool's input.
    let results = finished_run.tools();
    let (_, output, metadata) = results.iter().find(|(kind, ..)| *kind == ChunkKind::ToolResult).unwrap();
    assert!(output.contains("made"), "{output}");
    assert_eq!((&metadata["toolName"], &metadata["isError"]), (&json!("Bash"), &json!(false)));
}

async fn a_denied_tool_call_is_not_executed(world: World) {
    let mut active_run = ActiveRun::begin(&world.agent(), run_input("room", "play:tool", None));
    let (_, _, answer) = active_run.permission_request().await;
    answer.send(PermissionOutcome::Denied { reason: Some("Not on a Friday.".into()) }).unwrap();
    let finished_run = active_run.end().await;
    assert!(!world.work().join("made-by-claude.txt").exists());
    if world.kind == "claude" {
        assert_eq!(finished_run.finished().text(), "The tool said: Not on a Friday.");
    }
}

async fn a_stop_ends_the_run_and_keeps_the_session(world: World) {
    let agent = world.agent();
    let first = ActiveRun::begin(&agent, run_input("room", "Hello", None)).end().await.finished();
    let mut active_run = ActiveRun::begin(&agent, run_input("room", "play:slow", first.session.as_deref()));
    active_run.until("One ").await;
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
    let third = ActiveRun::begin(&agent, run_input("room", "play:again", first.session.as_deref()))
        .end()
        .await
        .finished();
    assert!(third.text().starts_with("I have answered "), "{}", third.text());
    assert_ne!(third.text(), "I have answered 0 times.");
}

async fn another_process_resumes_a_session(world: World) {
    let first = ActiveRun::begin(&world.agent(), run_input("room", "Hello", None)).end().await.finished();
    let second = ActiveRun::begin(&world.agent(), run_input("room", "play:again", first.session.as_deref()))
        .end()
        .await;
    let second = second.finished();
    assert_eq!(second.text(), "I have answered 1 times.");
    assert_eq!(second.session, None, "the session is unchanged");
}

async fn a_lost_session_is_replaced_by_a_new_one(world: World) {
    let lost = Some("0b9c1f5e-1111-4222-8333-444455556666");
    let finished_run =
        ActiveRun::begin(&world.agent(), run_input("room", "play:again", lost)).end().await.finished();
    assert_eq!(finished_run.text(), "I have answered 0 times.");
    assert!(finished_run.session.is_some_and(|session| Some(&*session) != lost));
}

async fn a_request_to_a_busy_model_is_retried(world: World) {
    let mut active_run = ActiveRun::begin(&world.agent(), run_input("room", "play:busy", None));
    if world.kind == "claude" {
        loop {
            match active_run.next().await.unwrap() {
                AgentOutput::Event(RunEvent::Status { detail: Some(detail), .. })
                    if detail.contains("; retrying in ") =>
                {
                    break;
                }
                _ => continue,
            }
        }
    }
    assert_eq!(active_run.end().await.finished().text(), "Hello from the model.");
}

async fn a_rejected_request_fails_the_run_with_its_message(world: World) {
    let finished_run = ActiveRun::begin(&world.agent(), run_input("room", "play:broken", None)).end().await;
    assert!(finished_run.why_failed().contains("not now"), "{}", finished_run.why_failed());
}

async fn an_examination_of_a_working_agent_succeeds(world: World) {
    let findings = world.agent().examine().await;
    assert_eq!((findings.len(), findings[0].state), (1, Health::Ok), "{findings:?}");
    if world.kind == "claude" {
        let mut signed_out = world.agent_config();
        signed_out.environment.remove("ANTHROPIC_API_KEY");
        let findings = AgentKind::new(&signed_out).unwrap().examine().await;
        assert_eq!(findings[0].state, Health::Failure);
        assert!(findings[0].what.ends_with("is not signed in."), "{findings:?}");
    }
}
