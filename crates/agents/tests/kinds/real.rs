//! Claude Code itself, as kind `claude` and behind its adapter as kind `acp`, with a model of ours on loopback.

use crate::stage::{Playing, turn};
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

/// A home, a folder to work in, and a model.
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

    fn recipe(&self) -> AgentConfig {
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

    /// A new process, with all that the earlier ones left in their home.
    fn agent(&self) -> Arc<AgentKind> {
        Arc::new(AgentKind::new(&self.recipe()).unwrap())
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
    a_tool_is_used_when_people_allow_it
    a_tool_is_not_used_when_people_do_not
    a_stop_ends_the_turn_and_the_session_goes_on
    a_session_is_taken_up_by_another_process
    a_session_that_is_lost_gives_way_to_a_new_one
    a_model_that_is_busy_is_asked_again
    a_model_that_refuses_is_a_failure_with_its_words
    the_doctor_finds_it_well
}

async fn an_answer_is_streamed_once(world: World) {
    let agent = world.agent();
    let played = Playing::begin(&agent, turn("room", "Hello, who are you?", None)).end().await.finished();
    assert_eq!(played.text(), "Hello from the model.");
    assert_eq!(played.of(ChunkKind::Thinking), "Let me see.");
    assert!(
        played.chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Text).count() > 1,
        "{:?}",
        played.chunks
    );
    let spent = played.events.iter().find_map(|event| match event {
        RunEvent::Usage(report) => report.spent,
        _ => None,
    });
    let Some(Usage { input_tokens: 10.., output_tokens: 7.., cost: Some(1..) }) = spent else {
        panic!("{spent:?}")
    };
    assert!(!agent.commands().is_empty());
}

async fn a_tool_is_used_when_people_allow_it(world: World) {
    let mut playing = Playing::begin(&world.agent(), turn("room", "play:tool", None));
    let (tool, input, answer) = playing.question().await;
    assert_eq!((&*tool, &input["command"]), ("Bash", &json!(TOOL_COMMAND)));
    assert!(!world.work().join("made-by-claude.txt").exists());
    answer.send(PermissionOutcome::Allowed).unwrap();
    let played = playing.end().await.finished();
    assert!(played.text().ends_with("The tool said: made"), "{}", played.text());
    assert_eq!(std::fs::read_to_string(world.work().join("made-by-claude.txt")).unwrap(), "made\n");
    // What went in came before the question.
    let results = played.tools();
    let (_, output, metadata) = results.iter().find(|(kind, ..)| *kind == ChunkKind::ToolResult).unwrap();
    assert!(output.contains("made"), "{output}");
    assert_eq!((&metadata["toolName"], &metadata["isError"]), (&json!("Bash"), &json!(false)));
}

async fn a_tool_is_not_used_when_people_do_not(world: World) {
    let mut playing = Playing::begin(&world.agent(), turn("room", "play:tool", None));
    let (_, _, answer) = playing.question().await;
    answer.send(PermissionOutcome::Denied { reason: Some("Not on a Friday.".into()) }).unwrap();
    let played = playing.end().await;
    assert!(!world.work().join("made-by-claude.txt").exists());
    if world.kind == "claude" {
        assert_eq!(played.finished().text(), "The tool said: Not on a Friday.");
    }
}

async fn a_stop_ends_the_turn_and_the_session_goes_on(world: World) {
    let agent = world.agent();
    let first = Playing::begin(&agent, turn("room", "Hello", None)).end().await.finished();
    let mut playing = Playing::begin(&agent, turn("room", "play:slow", first.session.as_deref()));
    playing.until("One ").await;
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
    let third =
        Playing::begin(&agent, turn("room", "play:again", first.session.as_deref())).end().await.finished();
    assert!(third.text().starts_with("I have answered "), "{}", third.text());
    assert_ne!(third.text(), "I have answered 0 times.");
}

async fn a_session_is_taken_up_by_another_process(world: World) {
    let first = Playing::begin(&world.agent(), turn("room", "Hello", None)).end().await.finished();
    let second =
        Playing::begin(&world.agent(), turn("room", "play:again", first.session.as_deref())).end().await;
    let second = second.finished();
    assert_eq!(second.text(), "I have answered 1 times.");
    assert_eq!(second.session, None, "it is the same session");
}

async fn a_session_that_is_lost_gives_way_to_a_new_one(world: World) {
    let lost = Some("0b9c1f5e-1111-4222-8333-444455556666");
    let played = Playing::begin(&world.agent(), turn("room", "play:again", lost)).end().await.finished();
    assert_eq!(played.text(), "I have answered 0 times.");
    assert!(played.session.is_some_and(|session| Some(&*session) != lost));
}

async fn a_model_that_is_busy_is_asked_again(world: World) {
    let mut playing = Playing::begin(&world.agent(), turn("room", "play:busy", None));
    if world.kind == "claude" {
        loop {
            match playing.next().await.unwrap() {
                AgentOutput::Event(RunEvent::Status { detail: Some(detail), .. }) => {
                    assert!(detail.starts_with("The model has too much to do; trying again in "), "{detail}");
                    break;
                }
                _ => continue,
            }
        }
    }
    assert_eq!(playing.end().await.finished().text(), "Hello from the model.");
}

async fn a_model_that_refuses_is_a_failure_with_its_words(world: World) {
    let played = Playing::begin(&world.agent(), turn("room", "play:broken", None)).end().await;
    assert!(played.why_failed().contains("not now"), "{}", played.why_failed());
}

async fn the_doctor_finds_it_well(world: World) {
    let findings = world.agent().examine().await;
    assert_eq!((findings.len(), findings[0].state), (1, Health::Ok), "{findings:?}");
    if world.kind == "claude" {
        let mut stranger = world.recipe();
        stranger.environment.remove("ANTHROPIC_API_KEY");
        let findings = AgentKind::new(&stranger).unwrap().examine().await;
        assert_eq!(findings[0].state, Health::Failure);
        assert!(findings[0].what.ends_with("is not signed in."), "{findings:?}");
    }
}
