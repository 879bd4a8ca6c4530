//! Programs as tools, with real processes: input and output, time limit, bounds, and the end of everything that a
//! program started.

use parlor_agents::process::killed_programs_ended;
use parlor_agents::tool_program::{INHERITED, MAX_OUTPUT_BYTES, ToolProcess};
use parlor_model::{Payload, ToolFailure, ToolFailureCode};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any program of these tests needs.
const LONG: Duration = Duration::from_secs(60);

struct Tool {
    folder: TempDir,
    program: PathBuf,
}

impl Tool {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tool");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, program }
    }

    fn process(&self, timeout: Duration) -> ToolProcess {
        ToolProcess {
            program: self.program.clone(),
            directory: self.folder.path().to_owned(),
            input: Payload(r#"{"city":"Bonn"}"#.into()),
            timeout,
            environment: [("PARLOR_TOKEN".into(), "secret".into())].into(),
        }
    }

    async fn call(&self, timeout: Duration) -> Result<Payload, ToolFailure> {
        self.process(timeout).run().await
    }
}

async fn output(script: &str) -> Payload {
    Tool::new(script).call(LONG).await.unwrap()
}

#[track_caller]
fn check_failure(failure: &ToolFailure, code: ToolFailureCode, message: &str) {
    assert_eq!(failure.code, code, "{failure:?}");
    assert!(failure.message.contains(message), "{failure:?}");
}

async fn failure(script: &str) -> ToolFailure {
    Tool::new(script).call(LONG).await.unwrap_err()
}

#[tokio::test]
async fn a_program_reads_the_input_and_writes_the_output() {
    assert_eq!(output("cat").await, Payload(r#"{"city":"Bonn"}"#.into()));
    assert_eq!(output("echo ' [1.0, null]'").await, Payload("[1.0, null]".into()));
    assert_eq!(output("exec 0<&-; echo true").await, Payload("true".into()), "the input may be ignored");
}

#[tokio::test]
async fn a_program_runs_in_the_folder_without_a_shell_and_with_few_variables() {
    let tool = Tool::new(r#"printf '"%s"' "$(pwd)""#);
    let folder = fs::canonicalize(tool.folder.path()).unwrap();
    assert_eq!(&*tool.call(LONG).await.unwrap().0, format!("\"{}\"", folder.display()));
    let listed = output(r#"printf '"%s"' "$(env | sed 's/=.*//' | tr '\n' ' ')""#).await;
    for name in listed.0.trim_matches('"').split_whitespace() {
        // The last three are set by the shell itself.
        let expected = ["PARLOR_TOKEN", "PWD", "SHLVL", "_", "OLDPWD"];
        assert!(INHERITED.contains(&name) || expected.contains(&name), "{name} is inherited");
    }
    assert_eq!(&*output(r#"printf '"%s"' "$PARLOR_TOKEN""#).await.0, "\"secret\"");
}

#[tokio::test]
async fn an_error_of_the_program_is_explained_by_its_last_lines() {
    let failed = failure("echo '{\"ok\":true}'; echo first >&2; echo no such city >&2; exit 3").await;
    check_failure(&failed, ToolFailureCode::Failed, "exited with code 3");
    assert_eq!(failed.details.as_deref(), Some("first\nno such city"));
    check_failure(&failure("kill -9 $$").await, ToolFailureCode::Failed, "killed by signal 9");
}

#[tokio::test]
async fn output_that_is_not_one_json_value_is_refused() {
    for script in ["true", "echo hello", "echo '{} {}'", "printf '\"\\377\"'", "echo '{\"a\":'"] {
        check_failure(&failure(script).await, ToolFailureCode::InvalidOutput, "not one JSON value");
    }
}

#[tokio::test]
async fn output_is_bounded_and_ends_the_program() {
    let exact = format!("printf '\"'; head -c {} /dev/zero | tr '\\0' x; printf '\"'", MAX_OUTPUT_BYTES - 2);
    assert_eq!(output(&exact).await.0.len(), MAX_OUTPUT_BYTES);
    let endless = failure("yes").await;
    check_failure(&endless, ToolFailureCode::InvalidOutput, "larger than 1 MiB");
    let errors = failure("yes | head -c 300000 >&2; exit 1").await;
    assert!(errors.details.unwrap().len() < 4096);
}

/// Waits until a program has written the process ids of itself and its children.
async fn started(file: &Path, count: usize) -> Vec<PathBuf> {
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(|process| PathBuf::from(format!("/proc/{process}"))).collect();
        }
        tokio::task::yield_now().await;
    }
}

/// Whether a process has ended; one that nobody has waited for yet counts as ended.
fn has_ended(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z') || rest.trim().is_empty())
}

async fn wait_for_end(processes: &[PathBuf]) {
    while !processes.iter().all(|process| has_ended(process)) {
        tokio::task::yield_now().await;
    }
}

/// Starts a child and a grandchild that ignore SIGTERM and keep the output open, and writes all process ids.
const FAMILY: &str = "trap '' TERM\nsh -c 'trap \"\" TERM; sleep 600 & echo $! >> pids; echo $$ >> pids; wait' &\necho $$ >> pids\nwait";

#[tokio::test]
async fn the_time_limit_ends_a_program_with_its_children_and_grandchildren() {
    let tool = Tool::new(FAMILY);
    let pids = tool.folder.path().join("pids");
    let call = tool.call(Duration::from_millis(1500));
    let (ended, processes) = tokio::join!(call, started(&pids, 3));
    check_failure(&ended.unwrap_err(), ToolFailureCode::Timeout, "did not end within 1500 ms");
    wait_for_end(&processes).await;
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it() {
    let tool = Tool::new("sleep 600 & echo $! >> pids\necho '\"done\"'");
    assert_eq!(tool.call(LONG).await, Ok(Payload("\"done\"".into())));
    let processes = started(&tool.folder.path().join("pids"), 1).await;
    wait_for_end(&processes).await;
}

#[tokio::test]
async fn a_dropped_call_ends_the_program() {
    let tool = Tool::new(FAMILY);
    let pids = tool.folder.path().join("pids");
    let process = tool.process(LONG);
    let call = tokio::spawn(process.run());
    let processes = started(&pids, 3).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    killed_programs_ended().await;
    wait_for_end(&processes).await;
}

#[tokio::test]
async fn a_program_that_is_no_executable_file_is_not_started() {
    let tool = Tool::new("echo '\"ran\"'");
    let other = Tool::new("echo '\"other\"'");
    let call = async |program: PathBuf| {
        let failed = ToolProcess { program, ..tool.process(LONG) }.run().await.unwrap_err();
        check_failure(&failed, ToolFailureCode::CannotStart, "cannot be started");
        failed
    };
    let link = tool.folder.path().join("link");
    symlink(&other.program, &link).unwrap();
    check_failure(&call(link).await, ToolFailureCode::CannotStart, "not a regular file");
    call(tool.folder.path().join("missing")).await;
    call(tool.folder.path().to_owned()).await;
    fs::set_permissions(&tool.program, fs::Permissions::from_mode(0o644)).unwrap();
    check_failure(&call(tool.program.clone()).await, ToolFailureCode::CannotStart, "not executable");
    let missing = ToolProcess { directory: tool.folder.path().join("gone"), ..other.process(LONG) };
    check_failure(&missing.run().await.unwrap_err(), ToolFailureCode::CannotStart, "is missing");
}
