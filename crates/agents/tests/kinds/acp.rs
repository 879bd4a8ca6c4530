//! Kind `acp` with the scripted agent of the test kit, as a process of its own.

use crate::stage::{PATIENCE, Played, Playing, turn};
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
    made(&AgentConfig { command, ..AgentConfig::default() })
}

fn made(agent_config: &AgentConfig) -> Arc<AgentKind> {
    Arc::new(AgentKind::new(&AgentConfig { kind: "acp".into(), ..agent_config.clone() }).unwrap())
}

async fn play(actor: &Arc<AgentKind>, script: &str) -> Played {
    Playing::begin(actor, turn("room", script, None)).end().await
}

#[tokio::test]
async fn an_answer_is_streamed_with_its_thoughts() {
    let played = play(&actor(&[]), "think stream").await.finished();
    assert_eq!(
        (played.of(ChunkKind::Thinking).as_str(), played.text().as_str()),
        ("Let me see.", "One two three.")
    );
    assert_eq!(played.chunks.len(), 4);
    assert!(played.session.unwrap().starts_with("s1-"));
}

#[tokio::test]
async fn tools_show_what_went_in_and_what_came_out() {
    let played = play(&actor(&[]), "tool").await.finished();
    let about = json!({ "toolName": "List files", "toolId": "call-1" });
    let after = json!({ "toolName": "List files", "toolId": "call-1", "isError": false });
    let expected =
        [(ChunkKind::ToolUse, r#"{"command":"ls"}"#, about), (ChunkKind::ToolResult, "3 files", after)];
    assert_eq!(played.tools(), expected);
    let played = play(&actor(&[]), "broken").await.finished();
    let (_, content, metadata) = &played.tools()[1];
    assert_eq!((*content, &metadata["isError"]), ("no such file", &json!(true)));
}

#[tokio::test]
async fn changed_files_are_reported_at_the_end() {
    let played = play(&actor(&[]), "edit stream").await.finished();
    let Some(RunEvent::Changes(report)) = played.events.last() else { panic!("{:?}", played.events) };
    let file = &report.files[0];
    assert_eq!((&*file.path, &*file.summary), ("/tmp/a.txt", "1 lines became 1"));
    assert_eq!(file.diff.as_deref(), Some("-old\n+new\n"));
}

#[tokio::test]
async fn plans_are_told_whole() {
    let played = play(&actor(&[]), "plan").await.finished();
    let Some(RunEvent::Plan(plan)) = played.events.last() else { panic!("{:?}", played.events) };
    let steps: Vec<_> = plan.steps.iter().map(|step| (&*step.title, step.state)).collect();
    let expected =
        [("Look", StepState::Done), ("Change", StepState::InProgress), ("Test", StepState::Pending)];
    assert_eq!((steps.as_slice(), plan.state), (expected.as_slice(), PlanState::Executing));
    assert_eq!(&*plan.summary, "1 of 3 steps done");
}

#[tokio::test]
async fn a_turn_tells_what_it_cost_itself() {
    let actor = actor(&[]);
    let first = play(&actor, "usage").await.finished();
    let second =
        Playing::begin(&actor, turn("room", "usage", first.session.as_deref())).end().await.finished();
    for played in [first, second] {
        let spent = played.events.iter().find_map(|event| match event {
            RunEvent::Usage(report) => report.spent,
            _ => None,
        });
        assert_eq!(spent, Some(Usage { input_tokens: 1_100, output_tokens: 20, cost: Some(250_000) }));
        let window = played.events.iter().find_map(|event| match event {
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
async fn commands_are_known_after_they_were_told() {
    let actor = actor(&[]);
    assert_eq!(actor.commands(), []);
    play(&actor, "commands").await.finished();
    let commands = actor.commands();
    assert_eq!((&*commands[0].name, &*commands[0].description), ("review", "Review the changes"));
}

#[tokio::test]
async fn people_decide_and_their_answer_holds_once() {
    let no = PermissionOutcome::Denied { reason: None };
    for (verdict, expected) in
        [(PermissionOutcome::Allowed, "yes"), (no, "no"), (PermissionOutcome::Expired, "no")]
    {
        let mut playing = Playing::begin(&actor(&[]), turn("room", "ask", None));
        let (tool, input, answer) = playing.question().await;
        assert_eq!((&*tool, input), ("Bash", json!({ "command": "rm -rf build", "n": 1.0 })));
        answer.send(verdict).unwrap();
        assert_eq!(playing.end().await.finished().text(), format!("answer: {expected}"));
    }
}

#[tokio::test]
async fn a_yes_for_once_is_never_a_yes_for_ever() {
    let mut playing = Playing::begin(&actor(&[]), turn("room", "ask-forever stream", None));
    let (_, _, answer) = playing.question().await;
    answer.send(PermissionOutcome::Allowed).unwrap();
    // The agent takes the called-off question for a no and waits; a person stops it.
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
}

#[tokio::test]
async fn nobody_who_could_answer_means_no() {
    let mut playing = Playing::begin(&actor(&[]), turn("room", "ask", None));
    drop(playing.question().await);
    assert_eq!(playing.end().await.finished().text(), "answer: no");
}

#[tokio::test]
async fn a_stop_ends_a_turn_and_the_session_goes_on() {
    let actor = actor(&[]);
    let first = play(&actor, "count").await.finished();
    let mut playing = Playing::begin(&actor, turn("room", "stream hang", first.session.as_deref()));
    playing.until("three.").await;
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
    let third =
        Playing::begin(&actor, turn("room", "count", first.session.as_deref())).end().await.finished();
    assert_eq!(third.text(), format!("turn 3 of {}", first.session.unwrap()));
}

#[tokio::test]
async fn a_question_is_called_off_by_a_stop() {
    let mut playing = Playing::begin(&actor(&[]), turn("room", "ask", None));
    let (_, _, answer) = playing.question().await;
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
    assert!(answer.is_closed());
}

#[tokio::test]
async fn who_does_not_stop_is_ended_with_all_it_started() {
    let actor = actor(&[]);
    let mut playing = Playing::begin(&actor, turn("room", "child deaf", None));
    let text = playing.until("child ").await;
    let child = text.split_whitespace().nth(1).unwrap().to_owned();
    assert!(Path::new("/proc").join(&child).exists());
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
    gone(&child).await;
    // The next turn has a new process, in which the old session is not known.
    assert!(play(&actor, "count").await.finished().text().starts_with("turn 1 of s1-"));
}

#[tokio::test]
async fn whoever_drops_a_turn_ends_it() {
    let mut playing = Playing::begin(&actor(&[]), turn("room", "child deaf", None));
    let text = playing.until("child ").await;
    playing.task.abort();
    gone(text.split_whitespace().nth(1).unwrap()).await;
}

/// Processes end a moment after they were told to, and are then taken off the table.
async fn gone(process: &str) {
    let stat = Path::new("/proc").join(process).join("stat");
    let running = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let ended = async {
        while running() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, ended).await.expect("it still runs");
}

#[tokio::test]
async fn rooms_share_a_process_and_have_sessions_of_their_own() {
    let actor = actor(&[]);
    let mut waiting = Playing::begin(&actor, turn("one", "count hang", None));
    let first = waiting.until("-").await;
    let second = Playing::begin(&actor, turn("two", "count", None)).end().await.finished();
    let third =
        Playing::begin(&actor, turn("two", "count", second.session.as_deref())).end().await.finished();
    assert!(first.starts_with("turn 1 of s1-"), "{first}");
    let (session, process) = (second.session.clone().unwrap(), &second.session.unwrap()[2..]);
    assert!(session.starts_with("s2-") && waiting.until("").await.is_empty(), "{session} {process}");
    assert_eq!(third.text(), format!("turn 2 of {session}"));
    waiting.stop.cancel();
    assert_eq!(waiting.end().await.ending, Some(RunResult::Stopped));
}

#[tokio::test]
async fn a_session_is_taken_up_by_the_next_process_if_it_can_be() {
    for (options, turns) in [(&[][..], 2), (&["--resume"], 2), (&["--forgetful"], 1)] {
        let state = TempDir::new().unwrap();
        let options = [options, &["--state", state.path().to_str().unwrap()]].concat();
        let first = play(&actor(&options), "count").await.finished();
        let session = first.session.as_deref();
        let second = Playing::begin(&actor(&options), turn("room", "count", session)).end().await.finished();
        assert!(second.text().starts_with(&format!("turn {turns} of ")), "{options:?}: {}", second.text());
        // What the session said before is not said again, and a new one makes itself known.
        assert!(!second.text().contains("old"));
        assert_eq!(second.session.is_some(), turns == 1, "{options:?}");
    }
}

#[tokio::test]
async fn a_session_that_is_lost_gives_way_to_a_new_one() {
    let played = Playing::begin(&actor(&[]), turn("room", "count", Some("lost"))).end().await.finished();
    assert!(played.session.is_some() && played.text().starts_with("turn 1 of s1-"), "{played:?}");
}

#[tokio::test]
async fn a_room_that_is_forgotten_begins_anew() {
    let actor = actor(&[]);
    let first = play(&actor, "count").await.finished();
    actor.forget(&turn("room", "", None).request.room);
    let second = play(&actor, "count").await.finished();
    assert_ne!(first.session, second.session);
    assert!(second.text().starts_with("turn 1 of s2-"), "{}", second.text());
}

#[tokio::test]
async fn a_death_is_told_with_the_last_words_and_the_next_turn_lives() {
    let actor = actor(&[]);
    let played = play(&actor, "stream die").await;
    assert_eq!(played.text(), "One two three.");
    let why =
        "acp-actor ended (exit status: 3). It last wrote:\nloading the model\nout of memory: 12 GB needed";
    assert_eq!(played.why_failed(), why);
    assert_eq!(play(&actor, "stream").await.finished().text(), "One two three.");
}

#[tokio::test]
async fn endings_that_are_no_success_say_why() {
    for (script, expected) in [
        ("limit", "The answer grew longer than the model may write."),
        ("refuse", "The model refuses to go on with this."),
        ("error", "acp-actor says: the model is on fire."),
        ("signin", "acp-actor is not signed in on this machine. `parlor doctor` says how to do it."),
    ] {
        assert_eq!(play(&actor(&[]), script).await.why_failed(), expected);
    }
}

#[tokio::test]
async fn what_is_no_protocol_is_passed_over_and_what_is_said_is_data() {
    let played = play(&actor(&[]), "noise stream").await.finished();
    let said = "bytes \u{1b}[31mred\u{1b}[0m {\"type\":\"gateway:message_complete\"}One two three.";
    assert_eq!(played.text(), said);
}

#[tokio::test]
async fn a_line_that_does_not_fit_ends_the_turn() {
    let played = play(&actor(&[]), "line stream").await;
    let why = "acp-actor cannot be understood";
    assert!(played.why_failed().starts_with(why), "{}", played.why_failed());
}

#[tokio::test]
async fn a_flood_waits_for_its_readers() {
    let actor = actor(&[]);
    let mut playing = Playing::begin(&actor, turn("room", "count flood", None));
    let process = playing.until("-").await.rsplit('-').next().unwrap().to_owned();
    let process = process.trim_end_matches('x');
    playing.until("x").await;
    // Nobody reads: it stands still and takes no memory, while another one says more than a megabyte.
    for _ in 0..2 {
        let other = Playing::begin(&self::actor(&[]), turn("other", "shower", None)).end().await.finished();
        assert_eq!(other.text().len(), 5_000);
    }
    assert!(!playing.task.is_finished());
    println!("{} bytes of a flood were taken", written(process));
    assert!(written(process) < 1 << 19);
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
}

#[tokio::test]
async fn every_word_of_a_flood_arrives() {
    let played = play(&actor(&[]), "shower").await.finished();
    assert_eq!(played.text().len(), 5_000);
}

/// How many bytes a process has written so far.
fn written(process: &str) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    counts.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

#[tokio::test]
async fn programs_that_cannot_be_used_say_why() {
    let missing = made(&AgentConfig { command: vec!["no-such-program".into()], ..AgentConfig::default() });
    let why = "no-such-program cannot be started: no-such-program is not installed.";
    assert_eq!(play(&missing, "stream").await.why_failed(), why);
    let played = play(&actor(&["--stillborn"]), "stream").await;
    let why = "acp-actor ended (exit status: 7). It last wrote:\nno configuration found\ngiving up";
    assert_eq!(played.why_failed(), why);
    let played = play(&actor(&["--old"]), "stream").await;
    assert!(played.why_failed().contains("another version"), "{}", played.why_failed());
}

#[tokio::test]
async fn a_program_that_never_answers_can_be_stopped() {
    let mut playing = Playing::begin(&actor(&["--mute"]), turn("room", "stream", None));
    // It says that it starts, and then nothing.
    assert!(playing.next().await.is_some());
    playing.stop.cancel();
    assert_eq!(playing.end().await.ending, Some(RunResult::Stopped));
}

#[tokio::test]
async fn the_doctor_says_what_is_missing_and_one_thing_to_do() {
    let findings = actor(&[]).examine().await;
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].state, &*findings[0].what),
        (Health::Ok, "acp-actor 1.0.0 answers and is ready.")
    );
    let missing = made(&AgentConfig { command: vec!["no-such-program".into()], ..AgentConfig::default() });
    let homeless = AgentConfig {
        directory: Some("/no/such/folder".into()),
        command: vec!["sh".into()],
        ..AgentConfig::default()
    };
    for (agent, what) in [
        (missing, "no-such-program is not installed."),
        (made(&homeless), "Its directory /no/such/folder is missing."),
        (actor(&["--old"]), "acp-actor speaks another version of the Agent Client Protocol than 1."),
    ] {
        let findings = agent.examine().await;
        assert_eq!((findings.len(), findings[0].state, &*findings[0].what), (1, Health::Failure, what));
        assert!(findings[0].fix.is_some());
    }
}

#[test]
fn recipes_that_make_no_sense_are_refused() {
    for (kind, command, why) in [
        ("acp", &[][..], "an acp agent needs the program to run"),
        ("acp:claude", &["claude"], "acp:claude brings its own program; for another one, say acp"),
        ("acp:nobody", &[], "acp:nobody is not known here: claude, codex, gemini, opencode"),
    ] {
        let command = command.iter().map(ToString::to_string).collect();
        let refused = AgentKind::new(&AgentConfig { kind: kind.into(), command, ..AgentConfig::default() });
        assert_eq!(&*refused.unwrap_err(), why);
    }
}
