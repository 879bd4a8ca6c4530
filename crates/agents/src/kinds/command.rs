//! The agent kind `command`: runs any program with the conversation on its stdin; its stdout is the reply.

use super::AgentConfig;
use crate::context;
use crate::finding::{Finding, Health};
use crate::process::{Program, RunningProgram};
use crate::run::{OutputClosed, RunInput, RunIo, RunResult};
use crate::sanitize::{EscapeStripper, Utf8Decoder};
use parlor_model::{ChunkKind, RunContext, RunEvent, Stream};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout};

/// Maximum bytes per read. While they are being sent to the room, the program blocks on its full pipe.
const READ_CHUNK_BYTES: usize = 32 * 1024;
/// Maximum characters of a stderr line; the rest is cut off.
const MAX_LINE_CHARS: usize = 1000;
/// Maximum stderr lines per second that are sent to the room; further lines are dropped.
const MAX_LINES_PER_SECOND: u32 = 50;
const SECOND: Duration = Duration::from_secs(1);
/// Columns of the program's pseudo-terminal.
#[cfg(target_os = "linux")]
const COLUMNS: u16 = 100;
/// Rows of the program's pseudo-terminal.
#[cfg(target_os = "linux")]
const ROWS: u16 = 30;

#[derive(Debug)]
pub struct CommandAgent {
    program: Program,
    /// Whether the program runs in a pseudo-terminal, whose output users see beside the reply.
    terminal: bool,
}

impl CommandAgent {
    pub fn new(agent_config: &AgentConfig) -> Result<Self, Box<str>> {
        agent_config.reject_unknown_keys(&["terminal"])?;
        if agent_config.command.is_empty() {
            return Err("a command agent needs the program to run (on the command line after --)".into());
        }
        let terminal = match agent_config.extra.get("terminal") {
            None => false,
            Some(value) => value.as_bool().ok_or("terminal must be true or false")?,
        };
        Ok(Self { program: agent_config.program(Program::default()), terminal })
    }

    pub async fn execute(&self, run_input: &RunInput, run_io: &RunIo) -> RunResult {
        let result = self.run(&context::prompt(run_input), run_io).await;
        result
            .unwrap_or_else(|error| RunResult::Failed(format!("The program cannot be run: {error}.").into()))
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// Does nothing: this kind has no sessions.
    pub fn forget(&self, _: &RunContext) {}

    pub async fn examine(&self) -> Vec<Finding> {
        let directory = self.program.directory.as_deref().filter(|directory| !directory.is_dir());
        if let Some(directory) = directory {
            return vec![Finding {
                state: Health::Failure,
                what: format!("Its directory {} is missing.", directory.display()).into(),
                fix: Some(format!("mkdir -p {}", directory.display()).into()),
            }];
        }
        vec![match self.program.locate() {
            Ok(place) => {
                Finding { state: Health::Ok, what: format!("It runs {}.", place.display()).into(), fix: None }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Finding {
                state: Health::Failure,
                what: format!("{error}.").into(),
                fix: Some(format!("chmod +x {}", self.name().display()).into()),
            },
            Err(error) => Finding {
                state: Health::Failure,
                what: format!("{error}.").into(),
                fix: Some("Install it, or use its full path in the agent's command.".into()),
            },
        }]
    }

    fn name(&self) -> &Path {
        Path::new(&self.program.program)
    }

    async fn run(&self, prompt: &str, run_io: &RunIo) -> io::Result<RunResult> {
        let (mut running, mut output) = self.start()?;
        let (stdin, stderr) = (running.stdin.take(), running.stderr.take());
        let mut last_error_line = None;
        let completion = async {
            // A write error is ignored: the program may close its stdin without reading the prompt.
            let write_prompt = async {
                if let Some(mut stdin) = stdin {
                    let _ = stdin.write_all(prompt.as_bytes()).await;
                }
                Ok(())
            };
            let stdout = self.forward_stdout(&mut output, run_io);
            let stderr = self.forward_stderr(stderr, run_io, &mut last_error_line);
            let exit = async { running.wait().await.map_err(ProgramFailure::Broken) };
            tokio::try_join!(write_prompt, stdout, stderr, exit)
        };
        let completed = tokio::select! {
            completed = completion => Some(completed),
            () = run_io.stopped() => None,
        };
        match completed {
            Some(Ok((_, _, _, status))) => Ok(run_result(status, last_error_line)),
            Some(Err(ProgramFailure::Broken(error))) => Err(error),
            None | Some(Err(ProgramFailure::OutputClosed)) => {
                running.stop().await;
                Ok(RunResult::Stopped)
            }
        }
    }

    fn start(&self) -> io::Result<(RunningProgram, Output)> {
        #[cfg(target_os = "linux")]
        if self.terminal {
            let (running, terminal) = self.program.start_in_terminal(COLUMNS, ROWS)?;
            rustix::io::ioctl_fionbio(&terminal, true)?;
            return Ok((running, Output::Terminal(pipe::Receiver::from_owned_fd_unchecked(terminal)?)));
        }
        let mut running = self.program.start()?;
        let stdout = running.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((running, Output::Pipe(stdout)))
    }

    async fn forward_stdout(&self, output: &mut Output, run_io: &RunIo) -> Result<(), ProgramFailure> {
        let (mut stripper, mut decoder) = (EscapeStripper::default(), Utf8Decoder::default());
        let mut buffer = vec![0; READ_CHUNK_BYTES];
        loop {
            let count = output.read(&mut buffer).await.map_err(ProgramFailure::Broken)?;
            let raw = decoder.read(&buffer[..count]);
            if self.terminal && !raw.is_empty() {
                run_io.send_terminal(&*raw).await?;
            }
            let text = stripper.pass(&raw);
            if !text.is_empty() {
                run_io.send_text(ChunkKind::Text, text).await?;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Sends stderr to the room line by line as it arrives, and stores the last line in `last`.
    async fn forward_stderr(
        &self,
        stderr: Option<ChildStderr>,
        run_io: &RunIo,
        last: &mut Option<String>,
    ) -> Result<(), ProgramFailure> {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let tool: Box<str> = self.name().file_name().unwrap_or_default().to_string_lossy().into();
        let (mut stripper, mut decoder) = (EscapeStripper::default(), Utf8Decoder::default());
        let mut buffer = vec![0; READ_CHUNK_BYTES];
        let mut line = String::new();
        let (mut lines_sent, mut since) = (0, Instant::now());
        loop {
            let count = stderr.read(&mut buffer).await.map_err(ProgramFailure::Broken)?;
            let text = stripper.pass(&decoder.read(&buffer[..count]));
            for part in text.split_inclusive('\n') {
                let remaining = MAX_LINE_CHARS.saturating_sub(line.chars().count());
                line.extend(part.trim_end_matches('\n').chars().take(remaining));
                if !part.ends_with('\n') {
                    continue;
                }
                if since.elapsed() >= SECOND {
                    (lines_sent, since) = (0, Instant::now());
                }
                lines_sent += 1;
                match lines_sent <= MAX_LINES_PER_SECOND {
                    true => send_line(&tool, std::mem::take(&mut line), run_io, last).await?,
                    false => *last = Some(std::mem::take(&mut line)),
                }
            }
            if count == 0 {
                return send_line(&tool, line, run_io, last).await;
            }
        }
    }
}

async fn send_line(
    tool: &str,
    line: String,
    run_io: &RunIo,
    last: &mut Option<String>,
) -> Result<(), ProgramFailure> {
    if line.trim().is_empty() {
        return Ok(());
    }
    let tool = tool.chars().take(200).collect::<String>().into();
    let event = RunEvent::ToolProgress { tool, line: line.as_str().into(), stream: Stream::Stderr };
    *last = Some(line);
    Ok(run_io.send_event(event).await?)
}

enum ProgramFailure {
    Broken(io::Error),
    OutputClosed,
}

impl From<OutputClosed> for ProgramFailure {
    fn from(_: OutputClosed) -> Self {
        Self::OutputClosed
    }
}

fn run_result(status: ExitStatus, last_error_line: Option<String>) -> RunResult {
    let reason = match (status.code(), status.signal()) {
        (Some(0), _) => return RunResult::Finished,
        (Some(code), _) => format!("The program exited with code {code}"),
        (None, Some(signal)) => format!("The program was killed by signal {signal}"),
        (None, None) => "The program ended with an unknown error".into(),
    };
    RunResult::Failed(last_error_line.map_or(format!("{reason}."), |line| format!("{reason}: {line}")).into())
}

enum Output {
    Pipe(ChildStdout),
    #[cfg(target_os = "linux")]
    /// Controlling end of the pseudo-terminal, wrapped as a pipe because tokio can poll it as one.
    Terminal(pipe::Receiver),
}

impl Output {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(buffer).await,
            #[cfg(target_os = "linux")]
            Self::Terminal(terminal) => match terminal.read(buffer).await {
                // A pseudo-terminal returns EIO when all its writers have closed it: end of file.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
                read => read,
            },
        }
    }
}
