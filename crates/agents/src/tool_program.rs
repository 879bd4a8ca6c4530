//! Runs a program as a tool of an agent: JSON on standard input, JSON on standard output.
//!
//! Owns: time and output of a call are bounded, and everything that the program started ends with the call, also when
//! the call is dropped. The program is started directly, without a shell, and inherits only a few variables.

use crate::kinds::StderrTail;
use crate::process::{Program, RunningProgram};
use parlor_model::{Payload, ToolFailure, ToolFailureCode};
use parlor_wire::tools;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdout;
use tokio::time::timeout;

/// Maximum bytes that a program may write to standard output.
pub const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// Variables of the hub's environment that a program inherits.
pub const INHERITED: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER"];

/// A program to run once.
#[derive(Debug)]
pub struct ToolProcess {
    /// Absolute path of the executable file, which must not be a symbolic link.
    pub program: PathBuf,
    pub directory: PathBuf,
    pub input: Payload,
    pub timeout: Duration,
    /// Variables added to the inherited ones. May contain secrets.
    pub environment: BTreeMap<OsString, OsString>,
}

/// Why a program has no result.
enum Problem {
    Io(io::Error),
    TooLarge,
}

impl ToolProcess {
    /// Runs the program and returns its output. Dropping the future kills the program.
    pub async fn run(self) -> Result<Payload, ToolFailure> {
        let cannot_start = |reason: String| ToolFailure::new(ToolFailureCode::CannotStart, reason);
        self.check().map_err(|error| cannot_start(format!("the program cannot be started: {error}")))?;
        let program = Program {
            program: self.program.clone().into_os_string(),
            environment: self.environment.clone(),
            inherited: Some(INHERITED),
            directory: Some(self.directory.clone()),
            ..Program::default()
        };
        let mut running = program
            .start()
            .map_err(|error| cannot_start(format!("the program cannot be started: {error}")))?;
        let (Some(stdout), Some(stderr)) = (running.stdout.take(), running.stderr.take()) else {
            return Err(cannot_start("the program has no output".into()));
        };
        let mut tail = StderrTail::of(stderr);
        let work = timeout(self.timeout, work(&mut running, stdout, &self.input));
        let done = tail.read_during(work).await;
        let (code, message) = match done {
            Ok(Ok((output, status))) if status.success() => {
                let text = String::from_utf8(output).ok();
                match text.as_deref().and_then(tools::output) {
                    Some(output) => return Ok(output),
                    None => (
                        ToolFailureCode::InvalidOutput,
                        "the output of the program is not one JSON value".into(),
                    ),
                }
            }
            Ok(Ok((_, status))) => (ToolFailureCode::Failed, ending(status)),
            Ok(Err(Problem::TooLarge)) => {
                running.stop().await;
                (ToolFailureCode::InvalidOutput, "the output of the program is larger than 1 MiB".into())
            }
            Ok(Err(Problem::Io(error))) => {
                running.stop().await;
                (ToolFailureCode::Failed, format!("the program cannot be used: {error}"))
            }
            Err(_) => {
                running.stop().await;
                let millis = self.timeout.as_millis();
                (ToolFailureCode::Timeout, format!("the program did not end within {millis} ms"))
            }
        };
        Err(ToolFailure::new(code, message).with_details(tail.finish().await))
    }

    /// Checks that the program itself is a file: a link could lead out of the folder.
    fn check(&self) -> io::Result<()> {
        let metadata = self.program.symlink_metadata()?;
        match metadata.is_file() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }
}

/// Passes the input to the program, and waits for its output and its end.
async fn work(
    running: &mut RunningProgram,
    mut stdout: ChildStdout,
    input: &Payload,
) -> Result<(Vec<u8>, ExitStatus), Problem> {
    let stdin = running.stdin.take();
    // A write error is ignored: the program may close its stdin without reading the input.
    let write = async {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(input.0.as_bytes()).await;
        }
        Ok(())
    };
    let read = async {
        let mut output = Vec::new();
        let mut limited = (&mut stdout).take(MAX_OUTPUT_BYTES as u64 + 1);
        limited.read_to_end(&mut output).await.map_err(Problem::Io)?;
        if output.len() > MAX_OUTPUT_BYTES { Err(Problem::TooLarge) } else { Ok(output) }
    };
    // Also kills what the program left running, which may keep its output open.
    let exit = async { running.wait().await.map_err(Problem::Io) };
    let ((), output, status) = tokio::try_join!(write, read, exit)?;
    Ok((output, status))
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program exited with code {code}"),
        (None, Some(signal)) => format!("the program was killed by signal {signal}"),
        (None, None) => "the program ended with an unknown error".into(),
    }
}
