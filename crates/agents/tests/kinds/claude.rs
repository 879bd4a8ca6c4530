//! Tests the agent kind `claude` with scripts in place of the Claude CLI; `real.rs` tests it with the real
//! CLI.

use crate::stage::{ActiveRun, run_input};
use parlor_agents::finding::Health;
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_agents::run::RunResult;
use parlor_model::RunEvent;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// An agent that runs a shell script instead of the CLI; the shell takes the CLI options as script arguments.
fn scripted(script: &str) -> Arc<AgentKind> {
    let command = ["sh", "-c", script, "claude"].map(Into::into).into();
    Arc::new(
        AgentKind::new(&AgentConfig { kind: "claude".into(), command, ..AgentConfig::default() }).unwrap(),
    )
}

#[tokio::test]
async fn a_crash_is_reported_with_the_last_error_output() {
    let finished_run =
        ActiveRun::begin(&scripted("echo 'no licence' >&2; exit 4"), run_input("room", "Hello", None))
            .end()
            .await;
    assert_eq!(
        finished_run.why_failed(),
        "Claude Code exited (exit status: 4). Its last error output:\nno licence"
    );
}

#[tokio::test]
async fn a_cli_that_ignores_a_stop_is_killed() {
    let mut active_run = ActiveRun::begin(
        &scripted(
            r#"trap '' TERM; echo '{"type":"system","subtype":"init","session_id":"s"}'; while :; do sleep 1; done"#,
        ),
        run_input("room", "Hello", None),
    );
    assert!(active_run.next().await.is_some());
    active_run.stop.cancel();
    assert_eq!(active_run.end().await.result, Some(RunResult::Stopped));
}

/// Script functions that echo input lines, as the CLI does when its model has received them.
const ECHO_SCRIPT: &str = r#"read -r first; printf '%s\n' "$first"
    say() { printf '{"type":"assistant","message":{"id":"%s","model":"m","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1" "$1"; }
    result() { printf '{"type":"result","subtype":"success","result":"x","usage":{"input_tokens":3,"output_tokens":2}}\n'; }"#;

#[tokio::test]
async fn an_injected_message_is_accepted_during_the_run_or_right_after_it() {
    let during = "say one; read -r more; printf '%s\\n' \"$more\"; say two; result";
    let after = "say one; read -r more; result; printf '%s\\n' \"$more\"; say two; result";
    // The model never receives the message, so it is left for a separate run.
    let never = "say one; read -r more; say two; result; exec 1>&2; sleep 60";
    for (script, tokens, accepted) in [(during, 3, 1), (after, 6, 1), (never, 3, 0)] {
        let script = format!("{ECHO_SCRIPT}\n{script}");
        let active_run =
            ActiveRun::begin_with(&scripted(&script), run_input("room", "Hello", None), &["and this"]);
        let finished_run = active_run.end().await.finished();
        assert_eq!(finished_run.text(), "onetwo", "{script}");
        assert_eq!(finished_run.accepted.len(), accepted, "{script}");
        let spent = finished_run.events.iter().find_map(|event| match event {
            RunEvent::Usage(report) => report.spent,
            _ => None,
        });
        assert_eq!(spent.map(|spent| spent.input_tokens), Some(tokens));
    }
}

#[tokio::test]
async fn lines_outside_the_protocol_are_skipped() {
    let finished_run = ActiveRun::begin(
        &scripted(
            r#"printf '\377\376\n[]\n{"type":"of_tomorrow"}\n{"type":"server:stop_agent"}\n'
            head -c 20000000 /dev/zero | tr '\0' x; echo
            echo '{"type":"result","subtype":"success","result":"still here"}'"#,
        ),
        run_input("room", "Hello", None),
    );
    assert_eq!(finished_run.end().await.finished().text(), "still here");
}

#[tokio::test]
async fn an_examination_reports_one_problem_and_its_fix() {
    let folder = TempDir::new().unwrap();
    let missing = AgentConfig {
        kind: "claude".into(),
        command: vec!["no-such-claude".into()],
        ..AgentConfig::default()
    };
    let without_directory = AgentConfig {
        kind: "claude".into(),
        directory: Some("/no/such/folder".into()),
        ..AgentConfig::default()
    };
    for (agent_config, what, fix) in [
        (missing, "no-such-claude is not installed.", "npm install -g @anthropic-ai/claude-code"),
        (without_directory, "Its directory /no/such/folder is missing.", "mkdir -p /no/such/folder"),
        (
            printing(&folder, "1.0.128 (Claude Code)"),
            "Claude Code 1.0.128 is too old: version 2.0 or later is needed.",
            "claude update",
        ),
        (
            printing(&folder, "hello"),
            "Its --version output is not that of the Claude CLI.",
            "npm install -g @anthropic-ai/claude-code",
        ),
    ] {
        let findings = AgentKind::new(&agent_config).unwrap().examine().await;
        assert_eq!((findings.len(), findings[0].state), (1, Health::Failure));
        assert_eq!((&*findings[0].what, findings[0].fix.as_deref()), (what, Some(fix)));
    }
    let without_status = AgentKind::new(&printing(&folder, "2.1.0 (Claude Code)")).unwrap().examine().await;
    assert_eq!(without_status[0].state, Health::Warning);
}

/// A program that prints `output`, whatever its arguments are.
fn printing(folder: &TempDir, output: &str) -> AgentConfig {
    let file = folder.path().join(output.split(' ').next().unwrap());
    // Another process writes the file: a program that a parallel test starts would inherit the open file,
    // and a file that is open for writing cannot be executed.
    let write = r#"printf '#!/bin/sh\necho "%s"\n' "$2" > "$1" && chmod 755 "$1""#;
    let written = Command::new("sh").args(["-c", write, "sh"]).arg(&file).arg(output).status().unwrap();
    assert!(written.success());
    let command = vec![file.to_str().unwrap().into()];
    AgentConfig { kind: "claude".into(), command, ..AgentConfig::default() }
}

#[test]
fn an_unknown_preset_is_rejected() {
    let rejected = AgentKind::new(&AgentConfig { kind: "claude:opus".into(), ..AgentConfig::default() });
    assert_eq!(&*rejected.unwrap_err(), "claude:opus is not an agent kind; use claude or acp:claude");
}
