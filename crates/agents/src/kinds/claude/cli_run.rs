//! One turn as one process of the Claude CLI.
//!
//! Owns: that a stop ends it soon and leaves nothing behind; that what is allowed is what was asked for, to the letter.

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
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// For a turn that was told to stop; then its process is ended.
const GRACE: Duration = Duration::from_millis(300);
/// For a process whose turn is over, to write down its session.
const LAG: Duration = Duration::from_secs(2);
/// A file that was read, or a picture, comes in one line.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// Questions that are open at once; the hub takes no more of a turn.
const MOST_QUESTIONS: usize = 20;
const NOT_FOUND: &str = "No conversation found";

#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub id: Uuid,
    pub is_new: bool,
}

/// How a turn went.
pub(super) struct CliRunResult {
    /// `None` if the session does not exist and nothing has happened.
    pub ending: Option<RunResult>,
    /// Of the session in all, if it said so.
    pub cost: Option<u64>,
    pub commands: Vec<SlashCommand>,
}

pub(super) struct CliRun<'a> {
    program: &'a Program,
    session: Session,
    cost_before: Option<u64>,
    turn: &'a RunInput,
    words: &'a str,
    stage: &'a RunIo,
    translation: ClaudeTranslator,
    spent: TokenUsage,
    cost: Option<u64>,
    commands: Vec<SlashCommand>,
}

/// How the process came to its end.
enum ProcessEnd {
    Result(Box<ResultFrame>),
    /// It closed its output without one.
    Silence,
    Unheard,
}

impl From<OutputClosed> for ProcessEnd {
    fn from(_: OutputClosed) -> Self {
        Self::Unheard
    }
}

impl<'a> CliRun<'a> {
    pub(super) fn new(
        program: &'a Program,
        session: Session,
        cost_before: Option<u64>,
        turn: &'a RunInput,
        words: &'a str,
        stage: &'a RunIo,
    ) -> Self {
        let (translation, spent, commands) = (ClaudeTranslator::default(), TokenUsage::default(), Vec::new());
        Self { program, session, cost_before, turn, words, stage, translation, spent, cost: None, commands }
    }

    pub(super) async fn play(mut self) -> CliRunResult {
        let detail = Some("Starting Claude Code".into());
        let loading = RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None };
        // Who does not listen any more is noticed soon enough.
        let _ = self.stage.tell(loading).await;
        let ending = match self.started() {
            Ok((running, cli_pipes, stderr_tail)) => self.run(running, cli_pipes, stderr_tail).await,
            Err(error) => Some(RunResult::Failed(format!("Claude Code cannot be started: {error}.").into())),
        };
        CliRunResult { ending, cost: self.cost, commands: self.commands }
    }

    fn started(&self) -> io::Result<(RunningProgram, CliPipes, StderrTail)> {
        let mut program = self.program.clone();
        let id = self.session.id.to_string();
        let session = if self.session.is_new { "--session-id" } else { "--resume" };
        // Its questions with several answers have no place in a room yet; it asks in words instead.
        let options = [
            "--print",
            "--verbose",
            "--output-format=stream-json",
            "--input-format=stream-json",
            "--include-partial-messages",
            "--permission-prompt-tool=stdio",
            // Says of each line of ours when the model has it.
            "--replay-user-messages",
            "--disallowedTools=AskUserQuestion",
            session,
            &id,
        ];
        program.arguments.extend(options.map(Into::into));
        let mut running = program.start()?;
        let pipes = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes to talk through"));
        };
        Ok((running, CliPipes { stdin, lines: Lines::new(stdout, LONGEST_LINE) }, StderrTail::of(stderr)))
    }

    async fn run(
        &mut self,
        mut running: RunningProgram,
        mut cli_pipes: CliPipes,
        stderr_tail: StderrTail,
    ) -> Option<RunResult> {
        let stage = self.stage;
        let end = tokio::select! {
            biased;
            () = stage.stopped() => ProcessEnd::Unheard,
            end = self.follow(&mut cli_pipes) => end,
        };
        match end {
            ProcessEnd::Result(outcome) => {
                drop(cli_pipes);
                if timeout(LAG, running.wait()).await.is_err() {
                    running.stop().await;
                }
                self.finish(*outcome).await
            }
            ProcessEnd::Silence => {
                drop(cli_pipes);
                let status = timeout(LAG, running.wait()).await;
                let mut why = match status {
                    Ok(Ok(status)) => format!("Claude Code ended ({status})."),
                    _ => "Claude Code went silent.".into(),
                };
                running.stop().await;
                let last_words = stderr_tail.finish().await;
                if !last_words.is_empty() {
                    why += &format!(" It last wrote:\n{last_words}");
                }
                Some(RunResult::Failed(why.into()))
            }
            ProcessEnd::Unheard => {
                let _ = timeout(GRACE, cli_pipes.wind_up()).await;
                drop(cli_pipes);
                running.stop().await;
                Some(RunResult::Stopped)
            }
        }
    }

    /// Until the turn is over.
    async fn follow(&mut self, cli_pipes: &mut CliPipes) -> ProcessEnd {
        match self.converse(cli_pipes).await {
            Ok(end) | Err(end) => end,
        }
    }

    async fn converse(&mut self, CliPipes { stdin, lines }: &mut CliPipes) -> Result<ProcessEnd, ProcessEnd> {
        write(stdin, &frames::said(self.words, &Uuid::now_v7().to_string())).await;
        let mut questions = FuturesUnordered::new();
        let mut open: HashMap<Box<str>, CancellationToken> = HashMap::new();
        // What was said meanwhile and the model does not have yet: it goes on with that by itself.
        let mut unread: Vec<(String, InjectedMessage)> = Vec::new();
        let mut result: Option<Box<ResultFrame>> = None;
        loop {
            let going_on = async {
                match result {
                    Some(_) => sleep(LAG).await,
                    None => std::future::pending().await,
                }
            };
            let line = tokio::select! {
                biased;
                Some(answered) = questions.next() => {
                    let (request, answer): (Box<str>, Option<Result<String, OutputClosed>>) = answered;
                    open.remove(&request);
                    if let Some(answer) = answer {
                        write(stdin, &answer?).await;
                    }
                    continue;
                }
                line = lines.next() => line.map_err(|_| ProcessEnd::Silence)?,
                more = self.stage.next_injection(), if result.is_none() => {
                    let id = Uuid::now_v7().to_string();
                    write(stdin, &frames::said(&injected_prompt(&more), &id)).await;
                    unread.push((id, more));
                    continue;
                }
                // It does not go on after all.
                () = going_on => None,
            };
            let frame = match line {
                None => return Ok(result.map_or(ProcessEnd::Silence, ProcessEnd::Result)),
                Some(Line::Text(line)) => frames::read(&line),
                // Only results of tools and what they repeat are as long as that.
                Some(Line::TooLong) => None,
            };
            match frame {
                Some(Frame::Permission(permission)) if questions.len() < MOST_QUESTIONS => {
                    let called_off = CancellationToken::new();
                    open.insert(permission.request.clone(), called_off.clone());
                    questions.push(ask(self.stage, permission, called_off));
                }
                Some(Frame::Permission(permission)) => {
                    write(stdin, &frames::deny(&permission, "Too many questions are open at once.")).await;
                }
                Some(Frame::Unknown { request }) => write(stdin, &frames::cannot(&request)).await,
                Some(Frame::CalledOff { request }) => {
                    open.remove(&request).inspect(CancellationToken::cancel);
                }
                Some(Frame::Result(mut outcome)) => {
                    self.spent.add(&outcome.usage);
                    outcome.usage = self.spent;
                    let well = !outcome.is_error;
                    if unread.is_empty() || !well {
                        return Ok(ProcessEnd::Result(outcome));
                    }
                    result = Some(outcome);
                }
                Some(frame) => {
                    // It has begun with what was said meanwhile.
                    if !matches!(&frame, Frame::System(system) if &*system.subtype != "init") {
                        result = None;
                    }
                    if let Frame::User(FullMessage { uuid: Some(read), .. }) = &frame {
                        // Only now it has it; what it does not come to is another turn.
                        for (_, more) in unread.extract_if(.., |(id, _)| **id == **read) {
                            self.stage.accept_injection(&more).await?;
                        }
                    }
                    self.show(frame).await?;
                }
                None => {}
            }
        }
    }

    async fn show(&mut self, frame: Frame) -> Result<(), OutputClosed> {
        let shown = match frame {
            Frame::Piece(piece) => self.translation.piece(&piece).into_iter().collect(),
            Frame::Assistant(whole) => self.translation.assistant(&whole),
            Frame::User(whole) => self.translation.user(&whole),
            Frame::System(system) if &*system.subtype == "init" => {
                // The session exists from now on, under the name that the CLI gives it.
                if let Some(id) =
                    system.session_id.as_deref().filter(|id| Some(*id) != self.turn.session.as_deref())
                {
                    self.stage.remember(id).await?;
                }
                self.commands = system
                    .slash_commands
                    .iter()
                    .map(|name| SlashCommand { name: tools::line(name, 100).into(), description: "".into() })
                    .collect();
                Vec::new()
            }
            Frame::System(system) => self.translation.system(&system).into_iter().collect(),
            _ => Vec::new(),
        };
        self.tell(shown).await
    }

    async fn tell(&self, shown: Vec<ClaudeOutput>) -> Result<(), OutputClosed> {
        for shown in shown {
            match shown {
                ClaudeOutput::Chunk(chunk) => self.stage.show(chunk).await?,
                ClaudeOutput::Event(event) => self.stage.tell(event).await?,
            }
        }
        Ok(())
    }

    async fn finish(&mut self, outcome: ResultFrame) -> Option<RunResult> {
        let lost = outcome.errors.iter().any(|error| error.starts_with(NOT_FOUND));
        if lost && !self.session.is_new {
            return None;
        }
        self.cost = outcome.total_cost_usd.map(|dollars| (dollars * 1e6).round() as u64);
        let tokens = &outcome.usage;
        let spent = Usage {
            input_tokens: tokens.input_tokens
                + tokens.cache_creation_input_tokens
                + tokens.cache_read_input_tokens,
            output_tokens: tokens.output_tokens,
            cost: self.cost.zip(self.cost_before).map(|(now, before)| now.saturating_sub(before)),
        };
        let mut shown =
            vec![ClaudeOutput::Event(RunEvent::Usage(UsageReport { spent: Some(spent), context: None }))];
        let well = !outcome.is_error && &*outcome.subtype == "success";
        if well {
            shown.extend(self.translation.rest(&outcome));
        }
        Some(match self.tell(shown).await {
            Err(OutputClosed) => RunResult::Stopped,
            Ok(()) if well => RunResult::Finished,
            Ok(()) => RunResult::Failed(why(&outcome)),
        })
    }
}

/// Why a turn did not end well, in words for people.
fn why(outcome: &ResultFrame) -> Box<str> {
    let errors = outcome.errors.join(" ");
    let words = match (&*outcome.subtype, outcome.result.as_deref()) {
        ("error_max_turns", _) => "It asked its model as often as it may in one turn.",
        ("error_max_budget_usd", _) => "It has spent what it may.",
        (_, Some(result)) if !result.trim().is_empty() => result,
        _ if !errors.is_empty() => &errors,
        _ => "It ended its turn with an error and did not say which.",
    };
    format!("Claude Code: {}", tools::cut(words, 1_000)).into()
}

/// Its standard input and output.
struct CliPipes {
    stdin: ChildStdin,
    lines: Lines<ChildStdout>,
}

impl CliPipes {
    /// Has it end its turn, and hears no more of it.
    async fn wind_up(&mut self) {
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

/// Why it does not listen any more is told by what it says last, or how it ends.
async fn write(stdin: &mut ChildStdin, line: &str) {
    let line = format!("{line}\n");
    if stdin.write_all(line.as_bytes()).await.is_ok() {
        let _ = stdin.flush().await;
    }
}

/// `None` if it wants no answer any more.
async fn ask(
    stage: &RunIo,
    permission: Permission,
    called_off: CancellationToken,
) -> (Box<str>, Option<Result<String, OutputClosed>>) {
    let verdict = tools::may(stage, &permission.tool, permission.input.get());
    let answer = called_off.run_until_cancelled(verdict).await.map(|verdict| {
        verdict.map(|verdict| match verdict {
            PermissionOutcome::Allowed => frames::allow(&permission),
            no => frames::deny(&permission, &tools::reason(&no)),
        })
    });
    (permission.request, answer)
}
