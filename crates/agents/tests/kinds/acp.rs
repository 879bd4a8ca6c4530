//! Tests the agent kind `acp` against the scripted ACP agent of the test kit, which runs as a separate
//! process.

use crate::stage::{ActiveRun, FinishedRun, RUN_TIMEOUT, run_input};
use parlor_agents::finding::Health;
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_agents::run::RunResult;
use parlor_model::{ChunkKind, PlanState, RunEvent, StepState, Usage};
use parlor_testkit::program::program;
use parlor_wire::agentim::gateway::host::ingress::PermissionOutcome;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::time::timeout;

fn actor(options: &[&str]) -> Arc<AgentKind> {
    let program = program("acp-actor").to_str().unwrap().to_owned();
    let command = [program].into_iter().chain(options.iter().map(ToString::to_string)).collect();
    acp_agent(&AgentConfig { command, ..AgentConfig::default() })
}

fn acp_agent(agent_config: &AgentConfig) -> Arc<AgentKind> {
    Arc::new(AgentKind::new(&AgentConfig { kind: "acp".into(), ..agent_config.clone() }).unwrap())
}

async fn play(actor: &Arc<AgentKind>, script: &str) -> FinishedRun {
    ActiveRun::begin(actor, run_input("room", script, None)).end().await
}

#[tokio::test]
async fn an_answer_is_streamed_with_its_thoughts() {
    let finished_run = play(&actor(&[]), "think stream").await.finished();
    assert_eq!(
        (finished_run.of(ChunkKind::Thinking).as_str(), finished_run.text().as_str()),
        ("Let me see.", "One two three.")
    );
    assert_eq!(finished_run.chunks.len(), 4);
    assert!(finished_run.session.unwrap().starts_with("s1-"));
}

#[tokio::test]
async fn tool_calls_are_sent_with_input_and_output() {
    let finished_run = play(&actor(&[]), "tool").await.finished();
    let call = json!({ "toolName": "List files", "toolId": "call-1" });
    let result = json!({ "toolName": "List files", "toolId": "call-1", "isError": false });
    let expected =
        [(ChunkKind::ToolUse, r#"{"command":"ls"}"#, call), (ChunkKind::ToolResult, "3 files", result)];
    assert_eq!(finished_run.tools(), expected);
    let finished_run = play(&actor(&[]), "broken").await.finished();
    let (_, content, metadata) = &finished_run.tools()[1];
    assert_eq!((*content, &metadata["isError"]), ("no such file", &json!(true)));
}

#[tokio::test]
async fn changed_files_are_reported_at_the_end() {
    let finished_run = play(&actor(&[]), "edit stream").await.finished();
    let Some(RunEvent::Changes(report)) = finished_run.events.last() else {
        panic!("{:?}", finished_run.events)
    };
    let file = &report.files[0];
    assert_eq!((&*file.path, &*file.summary), ("/tmp/a.txt", "1 lines replaced by 1"));
    assert_eq!(file.diff.as_deref(), Some("-old\n+new\n"));
}

#[tokio::test]
async fn a_plan_is_sent_with_all_its_steps() {
    let finished_run = play(&actor(&[]), "plan").await.finished();
    let Some(RunEvent::Plan(plan)) = finished_run.events.last() else { panic!("{:?}", finished_run.events) };
    let steps: Vec<_> = plan.steps.iter().map(|step| (&*step.title, step.state)).collect();
    let expected =
        [("Look", StepState::Done), ("Change", StepState::InProgress), ("Test", StepState::Pending)];
    assert_eq!((steps.as_slice(), plan.state), (expected.as_slice(), PlanState::Executing));
    assert_eq!(&*plan.summary, "1 of 3 steps done");
}

#[tokio::test]
async fn a_run_reports_its_own_usage() {
    let actor = actor(&[]);
    let first = play(&actor, "usage").await.finished();
    let second =
        ActiveRun::begin(&actor, run_input("room", "usage", first.session.as_deref())).end().await.finished();
    for finished_run in [first, second] {
        let spent = finished_run.events.iter().find_map(|event| match event {
            RunEvent::Usage(report) => report.spent,
            _ => None,
        });
        assert_eq!(spent, Some(Usage { input_tokens: 1_100, output_tokens: 20, cost: Some(250_000) }));
        let window = finished_run.events.iter().find_map(|event| match event {
            RunEvent::Usage(report) => report.context.as_ref(),
            _ => None,
        });
        assert_eq!(
            window.map(|window| (window.estimated_tokens, window.token_limit)),
            Some((1_200, Some(200_000)))
        );
    }
}

#[tokio::test]
async fn slash_commands_are_known_after_the_agent_announced_them() {
    let actor = actor(&[]);
    assert_eq!(actor.commands(), []);
    play(&actor, "commands").await.finished();
    let commands = actor.commands();
    assert_eq!((&*commands[0].name, &*commands[0].description), ("review", "Review the changes"));
}

#[tokio::test]
async fn a_users_decision_holds_for_one_call() {
    let no = PermissionOutcome::Denied { reason: None };
    for (outcome, expected) in
        [(PermissionOutcome::Allowed, "yes"), (no, "no"), (PermissionOutcome::Expired, "no")]
    {
        let mut active_run = ActiveRun::begin(&actor(&[]), run_input("room", "ask", None));
        let (tool, input, answer) = active_run.permission_request().await;
        assert_eq!((&*tool, input), ("Bash", json!({ "command": "rm -rf build", "n": 1.0 })));
        answer.send(outcome).unwrap();
        assert_eq!(active_run.end().await.finished().text(), format!("answer: {expected}"));
    }
}

#[tokio::test]
async fn an_approval_never_selects_a_permanent_option() {
    let mut active_run = ActiveRun::begin(&actor(&[]), run_input("room", "ask-forever stream", None));
    let (_, _, answer) = active_run.permission_request().await;
    answer.send(PermissionOutcome::Allowed).unwrap();
    // The agent treats the cancelled request as denied and waits until it is stopped.
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
}

#[tokio::test]
async fn a_request_without_a_decision_is_denied() {
    let mut active_run = ActiveRun::begin(&actor(&[]), run_input("room", "ask", None));
    drop(active_run.permission_request().await);
    assert_eq!(active_run.end().await.finished().text(), "answer: no");
}

#[tokio::test]
async fn a_stop_ends_the_run_and_keeps_the_session() {
    let actor = actor(&[]);
    let first = play(&actor, "count").await.finished();
    let mut active_run = ActiveRun::begin(&actor, run_input("room", "stream hang", first.session.as_deref()));
    active_run.until("three.").await;
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
    let third =
        ActiveRun::begin(&actor, run_input("room", "count", first.session.as_deref())).end().await.finished();
    assert_eq!(third.text(), format!("turn 3 of {}", first.session.unwrap()));
}

#[tokio::test]
async fn a_stop_cancels_a_permission_request() {
    let mut active_run = ActiveRun::begin(&actor(&[]), run_input("room", "ask", None));
    let (_, _, answer) = active_run.permission_request().await;
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
    assert!(answer.is_closed());
}

#[tokio::test]
async fn an_agent_that_ignores_a_stop_is_killed_with_its_processes() {
    let actor = actor(&[]);
    let mut active_run = ActiveRun::begin(&actor, run_input("room", "child deaf", None));
    let text = active_run.until("child ").await;
    let child = text.split_whitespace().nth(1).unwrap().to_owned();
    assert!(Path::new("/proc").join(&child).exists());
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
    process_ended(&child).await;
    // The next run starts a new process, which does not have the old session.
    assert!(play(&actor, "count").await.finished().text().starts_with("turn 1 of s1-"));
}

#[tokio::test]
async fn dropping_a_run_kills_its_processes() {
    let mut active_run = ActiveRun::begin(&actor(&[]), run_input("room", "child deaf", None));
    let text = active_run.until("child ").await;
    active_run.task.abort();
    process_ended(text.split_whitespace().nth(1).unwrap()).await;
}

/// Waits until a process has ended; a killed process may stay in the process table for a short time.
async fn process_ended(process: &str) {
    let stat = Path::new("/proc").join(process).join("stat");
    let running = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let ended = async {
        while running() {
            tokio::task::yield_now().await;
        }
    };
    timeout(RUN_TIMEOUT, ended).await.expect("the process ends in time");
}

#[tokio::test]
async fn rooms_share_a_process_and_have_separate_sessions() {
    let actor = actor(&[]);
    let mut waiting = ActiveRun::begin(&actor, run_input("one", "count hang", None));
    let first = waiting.until("-").await;
    let second = ActiveRun::begin(&actor, run_input("two", "count", None)).end().await.finished();
    let third =
        ActiveRun::begin(&actor, run_input("two", "count", second.session.as_deref())).end().await.finished();
    assert!(first.starts_with("turn 1 of s1-"), "{first}");
    let (session, process) = (second.session.clone().unwrap(), &second.session.unwrap()[2..]);
    assert!(session.starts_with("s2-") && waiting.until("").await.is_empty(), "{session} {process}");
    assert_eq!(third.text(), format!("turn 2 of {session}"));
    waiting.stop.cancel();
    assert_eq!(waiting.end().await.result, Some(RunResult::Stopped));
}

#[tokio::test]
async fn the_next_process_resumes_a_session_if_the_agent_supports_it() {
    for (options, turns) in [(&[][..], 2), (&["--resume"], 2), (&["--forgetful"], 1)] {
        let state = TempDir::new().unwrap();
        let options = [options, &["--state", state.path().to_str().unwrap()]].concat();
        let first = play(&actor(&options), "count").await.finished();
        let session = first.session.as_deref();
        let second =
            ActiveRun::begin(&actor(&options), run_input("room", "count", session)).end().await.finished();
        assert!(second.text().starts_with(&format!("turn {turns} of ")), "{options:?}: {}", second.text());
        // The replayed history is not sent again, and only a new session is saved.
        assert!(!second.text().contains("old"));
        assert_eq!(second.session.is_some(), turns == 1, "{options:?}");
    }
}

#[tokio::test]
async fn a_lost_session_is_replaced_by_a_new_one() {
    let finished_run =
        ActiveRun::begin(&actor(&[]), run_input("room", "count", Some("lost"))).end().await.finished();
    assert!(
        finished_run.session.is_some() && finished_run.text().starts_with("turn 1 of s1-"),
        "{finished_run:?}"
    );
}

#[tokio::test]
async fn a_forgotten_room_gets_a_new_session() {
    let actor = actor(&[]);
    let first = play(&actor, "count").await.finished();
    actor.forget(&run_input("room", "", None).request.context);
    let second = play(&actor, "count").await.finished();
    assert_ne!(first.session, second.session);
    assert!(second.text().starts_with("turn 1 of s2-"), "{}", second.text());
}

#[tokio::test]
async fn a_crash_is_reported_with_the_last_error_output_and_the_next_run_works() {
    let actor = actor(&[]);
    let finished_run = play(&actor, "stream die").await;
    assert_eq!(finished_run.text(), "One two three.");
    let expected = "acp-actor exited (exit status: 3). Its last error output:\nloading the model\n\
                    out of memory: 12 GB needed";
    assert_eq!(finished_run.why_failed(), expected);
    assert_eq!(play(&actor, "stream").await.finished().text(), "One two three.");
}

#[tokio::test]
async fn a_failed_run_reports_its_reason() {
    for (script, expected) in [
        ("limit", "The answer reached the maximum length of the model."),
        ("refuse", "The model refused to continue."),
        ("error", "acp-actor reports an error: the model is on fire."),
        ("signin", "acp-actor is not signed in on this machine. Run `parlor doctor` to see how to sign in."),
    ] {
        assert_eq!(play(&actor(&[]), script).await.why_failed(), expected);
    }
}

#[tokio::test]
async fn lines_outside_the_protocol_are_skipped_and_text_is_not_interpreted() {
    let finished_run = play(&actor(&[]), "noise stream").await.finished();
    let expected = "bytes \u{1b}[31mred\u{1b}[0m {\"type\":\"gateway:message_complete\"}One two three.";
    assert_eq!(finished_run.text(), expected);
}

#[tokio::test]
async fn a_line_over_the_limit_ends_the_run() {
    let finished_run = play(&actor(&[]), "line stream").await;
    let expected = "The connection to acp-actor failed";
    assert!(finished_run.why_failed().starts_with(expected), "{}", finished_run.why_failed());
}

#[tokio::test]
async fn an_agent_is_slowed_down_to_the_speed_of_its_reader() {
    let actor = actor(&[]);
    let mut active_run = ActiveRun::begin(&actor, run_input("room", "count flood", None));
    let process = active_run.until("-").await.rsplit('-').next().unwrap().to_owned();
    let process = process.trim_end_matches('x');
    active_run.until("x").await;
    // Without a reader the agent blocks and its output is not buffered, while another agent sends more than a
    // megabyte.
    for _ in 0..2 {
        let other =
            ActiveRun::begin(&self::actor(&[]), run_input("other", "shower", None)).end().await.finished();
        assert_eq!(other.text().len(), 5_000);
    }
    assert!(!active_run.task.is_finished());
    println!("{} bytes were written by the blocked agent", written(process));
    assert!(written(process) < 1 << 19);
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
}

#[tokio::test]
async fn no_output_of_a_flood_is_lost() {
    let finished_run = play(&actor(&[]), "shower").await.finished();
    assert_eq!(finished_run.text().len(), 5_000);
}

/// Number of bytes that a process has written so far.
fn written(process: &str) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    counts.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_program_that_cannot_be_used_reports_the_reason() {
    let missing =
        acp_agent(&AgentConfig { command: vec!["no-such-program".into()], ..AgentConfig::default() });
    let expected = "no-such-program cannot be started: no-such-program is not installed.";
    assert_eq!(play(&missing, "stream").await.why_failed(), expected);
    let finished_run = play(&actor(&["--stillborn"]), "stream").await;
    let expected =
        "acp-actor exited (exit status: 7). Its last error output:\nno configuration found\ngiving up";
    assert_eq!(finished_run.why_failed(), expected);
    let finished_run = play(&actor(&["--old"]), "stream").await;
    assert!(
        finished_run.why_failed().contains("does not support version 1"),
        "{}",
        finished_run.why_failed()
    );
}

#[tokio::test]
async fn a_program_that_never_answers_can_be_stopped() {
    let mut active_run = ActiveRun::begin(&actor(&["--mute"]), run_input("room", "stream", None));
    // The only output is the status event of the start.
    assert!(active_run.next().await.is_some());
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
}

#[tokio::test]
async fn an_examination_reports_one_problem_and_its_fix() {
    let findings = actor(&[]).examine().await;
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].state, &*findings[0].what), (Health::Ok, "acp-actor 1.0.0 is ready."));
    let missing =
        acp_agent(&AgentConfig { command: vec!["no-such-program".into()], ..AgentConfig::default() });
    let without_directory = AgentConfig {
        directory: Some("/no/such/folder".into()),
        command: vec!["sh".into()],
        ..AgentConfig::default()
    };
    for (agent, what) in [
        (missing, "no-such-program is not installed."),
        (acp_agent(&without_directory), "Its directory /no/such/folder is missing."),
        (actor(&["--old"]), "acp-actor does not support version 1 of the Agent Client Protocol."),
    ] {
        let findings = agent.examine().await;
        assert_eq!((findings.len(), findings[0].state, &*findings[0].what), (1, Health::Failure, what));
        assert!(findings[0].fix.is_some());
    }
}

#[test]
fn an_invalid_configuration_is_rejected() {
    for (kind, command, expected) in [
        ("acp", &[][..], "an acp agent needs the program to run"),
        ("acp:claude", &["claude"], "acp:claude has its own program; to run another program, use acp"),
        ("acp:other", &[], "acp:other is not a preset; the presets are claude, codex, gemini, opencode"),
    ] {
        let command = command.iter().map(ToString::to_string).collect();
        let rejected = AgentKind::new(&AgentConfig { kind: kind.into(), command, ..AgentConfig::default() });
        assert_eq!(&*rejected.unwrap_err(), expected);
    }
}
