//! Any program: the conversation on its standard input, its output is the answer.

use super::AgentConfig;
use crate::context;
use crate::finding::{Finding, Health};
use crate::process::{Program, RunningProgram};
use crate::run::{OutputClosed, RunInput, RunIo, RunResult};
use crate::sanitize::{EscapeStripper, Utf8Decoder};
use parlor_model::{ChunkKind, RoomId, RunEvent, Stream};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout};

/// Read at once; what comes while the room is told of it waits in the program.
const PIECE: usize = 32 * 1024;
/// Of a line of its errors, so much is shown.
const LINE: usize = 1000;
/// So many lines a second: nobody reads more, and everybody in the room would be sent them.
const LINES: u32 = 50;
const SECOND: Duration = Duration::from_secs(1);
/// Of its terminal.
#[cfg(target_os = "linux")]
const COLUMNS: u16 = 100;
#[cfg(target_os = "linux")]
const ROWS: u16 = 30;

#[derive(Debug)]
pub struct CommandAgent {
    program: Program,
    /// Whether it is given a terminal, which people see beside the answer.
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
            Some(value) => value.as_bool().ok_or("terminal is true or false")?,
        };
        Ok(Self { program: agent_config.program(Program::default()), terminal })
    }

    pub async fn execute(&self, turn: &RunInput, stage: &RunIo) -> RunResult {
        let played = self.run(&context::prompt(turn), stage).await;
        played
            .unwrap_or_else(|error| RunResult::Failed(format!("The program cannot be run: {error}.").into()))
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// It has no sessions.
    pub fn forget(&self, _: &RoomId) {}

    pub async fn examine(&self) -> Vec<Finding> {
        let directory = self.program.directory.as_deref().filter(|directory| !directory.is_dir());
        if let Some(directory) = directory {
            return vec![Finding {
                state: Health::Failure,
                what: format!("Its directory {} is missing.", directory.display()).into(),
                fix: Some(format!("mkdir -p {}", directory.display()).into()),
            }];
        }
        vec![match self.program.found() {
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
                fix: Some("Install it, or give its whole path in the agent's command.".into()),
            },
        }]
    }

    fn name(&self) -> &Path {
        Path::new(&self.program.program)
    }

    async fn run(&self, prompt: &str, stage: &RunIo) -> io::Result<RunResult> {
        let (mut running, mut output) = self.start()?;
        let (stdin, stderr) = (running.stdin.take(), running.stderr.take());
        let mut complaint = None;
        let over = async {
            // One that does not want to know ends its input, and that is its right.
            let ask = async {
                if let Some(mut stdin) = stdin {
                    let _ = stdin.write_all(prompt.as_bytes()).await;
                }
                Ok(())
            };
            let spoken = self.speak(&mut output, stage);
            let complained = self.complain(stderr, stage, &mut complaint);
            let ended = async { running.wait().await.map_err(ProgramFailure::Broken) };
            tokio::try_join!(ask, spoken, complained, ended)
        };
        let over = tokio::select! {
            over = over => Some(over),
            () = stage.stopped() => None,
        };
        match over {
            Some(Ok((_, _, _, status))) => Ok(ending(status, complaint)),
            Some(Err(ProgramFailure::Broken(error))) => Err(error),
            None | Some(Err(ProgramFailure::Deserted)) => {
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

    async fn speak(&self, output: &mut Output, stage: &RunIo) -> Result<(), ProgramFailure> {
        let (mut plain, mut seen) = (EscapeStripper::default(), Utf8Decoder::default());
        let mut piece = vec![0; PIECE];
        loop {
            let count = output.read(&mut piece).await.map_err(ProgramFailure::Broken)?;
            let shown = seen.read(&piece[..count]);
            if self.terminal && !shown.is_empty() {
                stage.print(&*shown).await?;
            }
            let text = plain.pass(&shown);
            if !text.is_empty() {
                stage.say(ChunkKind::Text, text).await?;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Shows the lines of its errors as they come, and keeps the last one.
    async fn complain(
        &self,
        stderr: Option<ChildStderr>,
        stage: &RunIo,
        last: &mut Option<String>,
    ) -> Result<(), ProgramFailure> {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let tool: Box<str> = self.name().file_name().unwrap_or_default().to_string_lossy().into();
        let (mut plain, mut seen) = (EscapeStripper::default(), Utf8Decoder::default());
        let mut piece = vec![0; PIECE];
        let mut line = String::new();
        let (mut shown, mut since) = (0, Instant::now());
        loop {
            let count = stderr.read(&mut piece).await.map_err(ProgramFailure::Broken)?;
            let text = plain.pass(&seen.read(&piece[..count]));
            for part in text.split_inclusive('\n') {
                let room = LINE.saturating_sub(line.chars().count());
                line.extend(part.trim_end_matches('\n').chars().take(room));
                if !part.ends_with('\n') {
                    continue;
                }
                if since.elapsed() >= SECOND {
                    (shown, since) = (0, Instant::now());
                }
                shown += 1;
                match shown <= LINES {
                    true => show(&tool, std::mem::take(&mut line), stage, last).await?,
                    false => *last = Some(std::mem::take(&mut line)),
                }
            }
            if count == 0 {
                return show(&tool, line, stage, last).await;
            }
        }
    }
}

async fn show(
    tool: &str,
    line: String,
    stage: &RunIo,
    last: &mut Option<String>,
) -> Result<(), ProgramFailure> {
    if line.trim().is_empty() {
        return Ok(());
    }
    let tool = tool.chars().take(200).collect::<String>().into();
    let event = RunEvent::ToolProgress { tool, line: line.as_str().into(), stream: Stream::Stderr };
    *last = Some(line);
    Ok(stage.tell(event).await?)
}

enum ProgramFailure {
    Broken(io::Error),
    Deserted,
}

impl From<OutputClosed> for ProgramFailure {
    fn from(_: OutputClosed) -> Self {
        Self::Deserted
    }
}

fn ending(status: ExitStatus, complaint: Option<String>) -> RunResult {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return RunResult::Finished,
        (Some(code), _) => format!("The program ended with code {code}"),
        (None, Some(signal)) => format!("The program was ended by signal {signal}"),
        (None, None) => "The program did not end well".into(),
    };
    RunResult::Failed(complaint.map_or(format!("{how}."), |said| format!("{how}: {said}")).into())
}

enum Output {
    Pipe(ChildStdout),
    #[cfg(target_os = "linux")]
    /// To the runtime it is a pipe like any other.
    Terminal(pipe::Receiver),
}

impl Output {
    async fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.read(piece).await,
            #[cfg(target_os = "linux")]
            Self::Terminal(terminal) => match terminal.read(piece).await {
                // So says a terminal that nobody writes to any more.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
                read => read,
            },
        }
    }
}
