//! Kind `claude` where there is no Claude CLI, or none that can be used. With the real one: `real.rs`.

use crate::stage::{Playing, turn};
use parlor_agents::finding::Health;
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_agents::run::RunResult;
use parlor_model::RunEvent;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// Options of the CLI follow, which a shell takes for arguments of the script.
fn instead(script: &str) -> Arc<AgentKind> {
    let command = ["sh", "-c", script, "claude"].map(Into::into).into();
    Arc::new(
        AgentKind::new(&AgentConfig { kind: "claude".into(), command, ..AgentConfig::default() }).unwrap(),
    )
}

#[tokio::test]
async fn a_death_is_told_with_the_last_words() {
    let played =
        Playing::begin(&instead("echo 'no licence' >&2; exit 4"), turn("room", "Hello", None)).end().await;
    assert_eq!(played.why_failed(), "Claude Code ended (exit status: 4). It last wrote:\nno licence");
}

#[tokio::test]
async fn who_does_not_stop_is_ended() {
    let mut playing = Playing::begin(
        &instead(
            r#"trap '' TERM; echo '{"type":"system","subtype":"init","session_id":"s"}'; while :; do sleep 1; done"#,
        ),
        turn("room", "Hello", None),
    );
    assert!(playing.next().await.is_some());
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
}

/// Says back each line that it gets, as the CLI does when its model has it.
const SAYS_BACK: &str = r#"read -r first; printf '%s\n' "$first"
    say() { printf '{"type":"assistant","message":{"id":"%s","model":"m","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1" "$1"; }
    result() { printf '{"type":"result","subtype":"success","result":"x","usage":{"input_tokens":3,"output_tokens":2}}\n'; }"#;

#[tokio::test]
async fn what_is_said_meanwhile_is_taken_in_the_same_turn_or_right_behind_it() {
    let at_once = "say one; read -r more; printf '%s\\n' \"$more\"; say two; result";
    let behind = "say one; read -r more; result; printf '%s\\n' \"$more\"; say two; result";
    // Its model never has it: it is another turn's.
    let never = "say one; read -r more; say two; result; exec 1>&2; sleep 60";
    for (script, tokens, taken) in [(at_once, 3, 1), (behind, 6, 1), (never, 3, 0)] {
        let script = format!("{SAYS_BACK}\n{script}");
        let playing = Playing::begin_with(&instead(&script), turn("room", "Hello", None), &["and this"]);
        let played = playing.end().await.finished();
        assert_eq!(played.text(), "onetwo", "{script}");
        assert_eq!(played.taken.len(), taken, "{script}");
        let spent = played.events.iter().find_map(|event| match event {
            RunEvent::Usage(report) => report.spent,
            _ => None,
        });
        assert_eq!(spent.map(|spent| spent.input_tokens), Some(tokens));
    }
}

#[tokio::test]
async fn what_is_no_protocol_is_passed_over() {
    let played = Playing::begin(
        &instead(
            r#"printf '\377\376\n[]\n{"type":"of_tomorrow"}\n{"type":"server:stop_agent"}\n'
            head -c 20000000 /dev/zero | tr '\0' x; echo
            echo '{"type":"result","subtype":"success","result":"still here"}'"#,
        ),
        turn("room", "Hello", None),
    );
    assert_eq!(played.end().await.finished().text(), "still here");
}

#[tokio::test]
async fn the_doctor_says_what_is_missing_and_one_thing_to_do() {
    let folder = TempDir::new().unwrap();
    let missing = AgentConfig {
        kind: "claude".into(),
        command: vec!["no-such-claude".into()],
        ..AgentConfig::default()
    };
    let nowhere = AgentConfig {
        kind: "claude".into(),
        directory: Some("/no/such/folder".into()),
        ..AgentConfig::default()
    };
    for (agent_config, what, fix) in [
        (missing, "no-such-claude is not installed.", "npm install -g @anthropic-ai/claude-code"),
        (nowhere, "Its directory /no/such/folder is missing.", "mkdir -p /no/such/folder"),
        (
            of_version(&folder, "1.0.128 (Claude Code)"),
            "Claude Code 1.0.128 is too old: 2.0 is needed.",
            "claude update",
        ),
        (
            of_version(&folder, "hello"),
            "It does not say its version as the Claude CLI does.",
            "npm install -g @anthropic-ai/claude-code",
        ),
    ] {
        let findings = AgentKind::new(&agent_config).unwrap().examine().await;
        assert_eq!((findings.len(), findings[0].state), (1, Health::Failure));
        assert_eq!((&*findings[0].what, findings[0].fix.as_deref()), (what, Some(fix)));
    }
    let silent = AgentKind::new(&of_version(&folder, "2.1.0 (Claude Code)")).unwrap().examine().await;
    assert_eq!(silent[0].state, Health::Warning);
}

/// A program that says one thing, whatever it is asked.
fn of_version(folder: &TempDir, says: &str) -> AgentConfig {
    let file = folder.path().join(says.split(' ').next().unwrap());
    // Written by another process: one that is started here at this moment would inherit the open file, and a file that
    // is open for writing cannot be run.
    let write = r#"printf '#!/bin/sh\necho "%s"\n' "$2" > "$1" && chmod 755 "$1""#;
    let written = Command::new("sh").args(["-c", write, "sh"]).arg(&file).arg(says).status().unwrap();
    assert!(written.success());
    let command = vec![file.to_str().unwrap().into()];
    AgentConfig { kind: "claude".into(), command, ..AgentConfig::default() }
}

#[test]
fn recipes_that_make_no_sense_are_refused() {
    let refused = AgentKind::new(&AgentConfig { kind: "claude:opus".into(), ..AgentConfig::default() });
    assert_eq!(&*refused.unwrap_err(), "claude:opus is not known here; say claude, or acp:claude");
}
