//! Executes one run as one process of the Claude CLI.
//!
//! Owns: a stop ends the process soon, with everything that it started; a tool runs with exactly the input
//! that was approved.

use super::super::lines::{Line, Lines};
use super::super::stderr_tail::StderrTail;
use super::super::{SlashCommand, tools};
use super::frames::{self, Frame, FullMessage, Permission, ResultFrame, TokenUsage};
use super::translate::{ClaudeOutput, ClaudeTranslator};
use crate::context::injected_prompt;
use crate::process::{Program, RunningProgram};
use crate::run::{OutputClosed, RunInput, RunIo, RunResult};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parlor_model::{Activity, RunEvent, Usage, UsageReport};
use parlor_wire::agentim::gateway::host::ingress::{InjectedMessage, PermissionOutcome};
use std::collections::HashMap;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Time for the CLI to end an interrupted run before its process is killed.
const STOP_GRACE: Duration = Duration::from_millis(300);
/// Time for the process to save its session and exit after a run, or to continue with an injected message.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// Maximum bytes of a line. A file's content or an image is sent as one line.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of open permission requests, which is the hub's limit per run. Further requests are denied.
const MAX_OPEN_REQUESTS: usize = 20;
/// Start of the CLI's error message for an unknown session.
const SESSION_NOT_FOUND: &str = "No conversation found";

#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub id: Uuid,
    pub is_new: bool,
}

/// Result of one process of the CLI.
pub(super) struct CliRunResult {
    /// `None` if the session does not exist, in which case the CLI has done nothing.
    pub result: Option<RunResult>,
    /// Total cost of the session in millionths of a dollar, if the CLI reported it.
    pub cost: Option<u64>,
    pub commands: Vec<SlashCommand>,
}

pub(super) struct CliRun<'a> {
    program: &'a Program,
    session: Session,
    cost_before: Option<u64>,
    run_input: &'a RunInput,
    prompt: &'a str,
    run_io: &'a RunIo,
    translator: ClaudeTranslator,
    usage: TokenUsage,
    cost: Option<u64>,
    commands: Vec<SlashCommand>,
}

/// Why the exchange with the process ended.
enum ProcessEnd {
    Result(Box<ResultFrame>),
    /// The process closed its output without a result.
    NoResult,
    /// The run was stopped, or its output is closed.
    Stopped,
}

impl From<OutputClosed> for ProcessEnd {
    fn from(_: OutputClosed) -> Self {
        Self::Stopped
    }
}

impl<'a> CliRun<'a> {
    pub(super) fn new(
        program: &'a Program,
        session: Session,
        cost_before: Option<u64>,
        run_input: &'a RunInput,
        prompt: &'a str,
        run_io: &'a RunIo,
    ) -> Self {
        let (translator, usage, commands) = (ClaudeTranslator::default(), TokenUsage::default(), Vec::new());
        Self {
            program,
            session,
            cost_before,
            run_input,
            prompt,
            run_io,
            translator,
            usage,
            cost: None,
            commands,
        }
    }

    pub(super) async fn execute(mut self) -> CliRunResult {
        let detail = Some("Starting Claude Code".into());
        let loading = RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None };
        // A closed output is detected again by the next send, so the error is ignored here.
        let _ = self.run_io.send_event(loading).await;
        let result = match self.start() {
            Ok((running, cli_pipes, mut stderr_tail)) => {
                let end = stderr_tail.read_during(self.run(running, cli_pipes)).await;
                match end {
                    Ok(result) => result,
                    Err(mut reason) => {
                        let stderr_tail = stderr_tail.finish().await;
                        if !stderr_tail.is_empty() {
                            reason += &format!(" Its last error output:\n{stderr_tail}");
                        }
                        Some(RunResult::Failed(reason.into()))
                    }
                }
            }
            Err(error) => Some(RunResult::Failed(format!("Claude Code cannot be started: {error}.").into())),
        };
        CliRunResult { result, cost: self.cost, commands: self.commands }
    }

    fn start(&self) -> io::Result<(RunningProgram, CliPipes, StderrTail<ChildStderr>)> {
        let mut program = self.run_io.program(self.program);
        let id = self.session.id.to_string();
        let session = if self.session.is_new { "--session-id" } else { "--resume" };
        // `AskUserQuestion` is disabled because rooms do not support multiple-choice questions yet; the
        // agent then asks in its text instead.
        let options = [
            "--print",
            "--verbose",
            "--output-format=stream-json",
            "--input-format=stream-json",
            "--include-partial-messages",
            "--permission-prompt-tool=stdio",
            // Echoes each input message when the model has received it.
            "--replay-user-messages",
            "--disallowedTools=AskUserQuestion",
            session,
            &id,
        ];
        program.arguments.extend(options.map(Into::into));
        let mut running = program.start()?;
        let pipes = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the process was started without its pipes"));
        };
        Ok((running, CliPipes { stdin, lines: Lines::new(stdout, MAX_LINE_BYTES) }, StderrTail::of(stderr)))
    }

    /// Runs the process to its end. The error explains why it ended without a result; its last error output
    /// is still to be added.
    async fn run(
        &mut self,
        mut running: RunningProgram,
        mut cli_pipes: CliPipes,
    ) -> Result<Option<RunResult>, String> {
        let run_io = self.run_io;
        let end = tokio::select! {
            biased;
            () = run_io.stopped() => ProcessEnd::Stopped,
            end = self.follow(&mut cli_pipes) => end,
        };
        match end {
            ProcessEnd::Result(outcome) => {
                drop(cli_pipes);
                if timeout(EXIT_GRACE, running.wait()).await.is_err() {
                    running.stop().await;
                }
                Ok(self.finish(*outcome).await)
            }
            ProcessEnd::NoResult => {
                drop(cli_pipes);
                let status = timeout(EXIT_GRACE, running.wait()).await;
                running.stop().await;
                Err(match status {
                    Ok(Ok(status)) => format!("Claude Code exited ({status})."),
                    _ => "Claude Code closed its output without a result.".into(),
                })
            }
            ProcessEnd::Stopped => {
                let _ = timeout(STOP_GRACE, cli_pipes.interrupt()).await;
                drop(cli_pipes);
                running.stop().await;
                Ok(Some(RunResult::Stopped))
            }
        }
    }

    /// Exchanges lines with the process until the run ends.
    async fn follow(&mut self, cli_pipes: &mut CliPipes) -> ProcessEnd {
        match self.exchange(cli_pipes).await {
            Ok(end) | Err(end) => end,
        }
    }

    async fn exchange(&mut self, CliPipes { stdin, lines }: &mut CliPipes) -> Result<ProcessEnd, ProcessEnd> {
        write(stdin, &frames::user_message(self.prompt, &Uuid::now_v7().to_string())).await;
        let mut requests = FuturesUnordered::new();
        let mut open: HashMap<Box<str>, CancellationToken> = HashMap::new();
        // Injected messages that the model has not received yet. The CLI continues with them after its
        // current work.
        let mut unread: Vec<(String, InjectedMessage)> = Vec::new();
        let mut result: Option<Box<ResultFrame>> = None;
        loop {
            let continue_timeout = async {
                match result {
                    Some(_) => sleep(EXIT_GRACE).await,
                    None => std::future::pending().await,
                }
            };
            let line = tokio::select! {
                biased;
                Some(answered) = requests.next() => {
                    let (request, answer): (Box<str>, Option<Result<String, OutputClosed>>) = answered;
                    open.remove(&request);
                    if let Some(answer) = answer {
                        write(stdin, &answer?).await;
                    }
                    continue;
                }
                line = lines.next() => line.map_err(|_| ProcessEnd::NoResult)?,
                injection = self.run_io.next_injection(), if result.is_none() => {
                    let id = Uuid::now_v7().to_string();
                    write(stdin, &frames::user_message(&injected_prompt(&injection), &id)).await;
                    unread.push((id, injection));
                    continue;
                }
                // The CLI did not continue with the unread messages.
                () = continue_timeout => None,
            };
            let frame = match line {
                None => return Ok(result.map_or(ProcessEnd::NoResult, ProcessEnd::Result)),
                Some(Line::Text(line)) => frames::read(&line),
                // Only tool results and their echoes are this long; they are skipped.
                Some(Line::TooLong) => None,
            };
            match frame {
                Some(Frame::Permission(permission)) if requests.len() < MAX_OPEN_REQUESTS => {
                    let cancelled = CancellationToken::new();
                    open.insert(permission.request.clone(), cancelled.clone());
                    requests.push(request_permission(self.run_io, permission, cancelled));
                }
                Some(Frame::Permission(permission)) => {
                    write(stdin, &frames::deny(&permission, "Too many permission requests are open.")).await;
                }
                Some(Frame::Unsupported { request }) => write(stdin, &frames::unsupported(&request)).await,
                Some(Frame::Cancelled { request }) => {
                    open.remove(&request).inspect(CancellationToken::cancel);
                }
                Some(Frame::Result(mut outcome)) => {
                    self.usage.add(&outcome.usage);
                    outcome.usage = self.usage;
                    if unread.is_empty() || outcome.is_error {
                        return Ok(ProcessEnd::Result(outcome));
                    }
                    result = Some(outcome);
                }
                Some(frame) => {
                    // Any output after a result means that the CLI continues with an injected message.
                    if !matches!(&frame, Frame::System(system) if &*system.subtype != "init") {
                        result = None;
                    }
                    if let Frame::User(FullMessage { uuid: Some(read), .. }) = &frame {
                        // The model has received the injected message only now. The hub starts a separate
                        // run for a message that is never accepted.
                        for (_, injection) in unread.extract_if(.., |(id, _)| **id == **read) {
                            self.run_io.accept_injection(&injection).await?;
                        }
                    }
                    self.forward(frame).await?;
                }
                None => {}
            }
        }
    }

    async fn forward(&mut self, frame: Frame) -> Result<(), OutputClosed> {
        let output = match frame {
            Frame::Delta(delta) => self.translator.delta(&delta).into_iter().collect(),
            Frame::Assistant(message) => self.translator.assistant(&message),
            Frame::User(message) => self.translator.user(&message),
            Frame::System(system) if &*system.subtype == "init" => {
                // From now on the session exists, with the id that the CLI reports.
                if let Some(id) =
                    system.session_id.as_deref().filter(|id| Some(*id) != self.run_input.session.as_deref())
                {
                    self.run_io.save_session(id).await?;
                }
                self.commands = system
                    .slash_commands
                    .iter()
                    .map(|name| SlashCommand { name: tools::line(name, 100).into(), description: "".into() })
                    .collect();
                Vec::new()
            }
            Frame::System(system) => self.translator.system(&system).into_iter().collect(),
            _ => Vec::new(),
        };
        self.send(output).await
    }

    async fn send(&self, output: Vec<ClaudeOutput>) -> Result<(), OutputClosed> {
        for output in output {
            match output {
                ClaudeOutput::Chunk(chunk) => self.run_io.send_chunk(chunk).await?,
                ClaudeOutput::Event(event) => self.run_io.send_event(event).await?,
            }
        }
        Ok(())
    }

    async fn finish(&mut self, outcome: ResultFrame) -> Option<RunResult> {
        let lost = outcome.errors.iter().any(|error| error.starts_with(SESSION_NOT_FOUND));
        if lost && !self.session.is_new {
            return None;
        }
        self.cost = outcome.total_cost_usd.map(|dollars| (dollars * 1e6).round() as u64);
        let tokens = &outcome.usage;
        let usage = Usage {
            input_tokens: tokens.input_tokens
                + tokens.cache_creation_input_tokens
                + tokens.cache_read_input_tokens,
            output_tokens: tokens.output_tokens,
            cost: self.cost.zip(self.cost_before).map(|(now, before)| now.saturating_sub(before)),
        };
        let mut output =
            vec![ClaudeOutput::Event(RunEvent::Usage(UsageReport { spent: Some(usage), context: None }))];
        let succeeded = !outcome.is_error && &*outcome.subtype == "success";
        if succeeded {
            output.extend(self.translator.result_text(&outcome));
        }
        Some(match self.send(output).await {
            Err(OutputClosed) => RunResult::Stopped,
            Ok(()) if succeeded => RunResult::Finished,
            Ok(()) => RunResult::Failed(failure_reason(&outcome)),
        })
    }
}

/// Why the run failed, as a message for users.
fn failure_reason(outcome: &ResultFrame) -> Box<str> {
    let errors = outcome.errors.join(" ");
    let reason = match (&*outcome.subtype, outcome.result.as_deref()) {
        ("error_max_turns", _) => "It reached the maximum number of model requests for one turn.",
        ("error_max_budget_usd", _) => "It reached its maximum budget.",
        (_, Some(result)) if !result.trim().is_empty() => result,
        _ if !errors.is_empty() => &errors,
        _ => "It failed without an error message.",
    };
    format!("Claude Code: {}", tools::cut(reason, 1_000)).into()
}

/// Stdin and stdout of the CLI process.
struct CliPipes {
    stdin: ChildStdin,
    lines: Lines<ChildStdout>,
}

impl CliPipes {
    /// Interrupts the run and discards output until its result arrives.
    async fn interrupt(&mut self) {
        write(&mut self.stdin, &frames::interrupt()).await;
        while let Ok(Some(line)) = self.lines.next().await {
            if let Line::Text(line) = line
                && let Some(Frame::Result(_)) = frames::read(&line)
            {
                return;
            }
        }
    }
}

/// Writes a line. Errors are ignored: the process's last output or its exit shows the reason.
async fn write(stdin: &mut ChildStdin, line: &str) {
    let line = format!("{line}\n");
    if stdin.write_all(line.as_bytes()).await.is_ok() {
        let _ = stdin.flush().await;
    }
}

/// Requests a permission and returns the CLI's request id with the answer line; no answer if the CLI
/// cancelled it.
async fn request_permission(
    run_io: &RunIo,
    permission: Permission,
    cancelled: CancellationToken,
) -> (Box<str>, Option<Result<String, OutputClosed>>) {
    let outcome = tools::request_permission(run_io, &permission.tool, permission.input.get());
    let answer = cancelled.run_until_cancelled(outcome).await.map(|outcome| {
        outcome.map(|outcome| match outcome {
            PermissionOutcome::Allowed => frames::allow(&permission),
            denied => frames::deny(&permission, &tools::reason(&denied)),
        })
    });
    (permission.request, answer)
}
