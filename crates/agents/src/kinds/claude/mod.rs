//! The agent kind `claude`: the Claude CLI in its `stream-json` mode.
//!
//! Each run is a separate process that resumes the session of its context, so no process exists between runs
//! and a restart loses nothing. The CLI identifies sessions by UUID; the gateway stores the UUID with the
//! room.

mod cli_run;
mod frames;
mod translate;

use super::prompt::prompt_text;
use super::{AgentConfig, SlashCommand, version_probe};
use crate::finding::{Finding, Health};
use crate::process::Program;
use crate::run::{RunInput, RunIo, RunResult};
use parking_lot::Mutex;
use parlor_model::RunContext;
use std::collections::HashMap;
use std::env;
use uuid::Uuid;

/// Command that installs the CLI, shown as a remedy.
const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";
/// Minimum version: the first that requests permissions on stdout.
const MIN_VERSION: [u32; 2] = [2, 0];
/// Variables that make the CLI assume that it runs inside another CLI; they are cleared.
const NESTED_CLI_VARIABLES: &[&str] = &["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

#[derive(Debug)]
pub struct Claude {
    program: Program,
    contexts: Mutex<HashMap<RunContext, StoredSession>>,
    commands: Mutex<Vec<SlashCommand>>,
}

/// The session of a context and its total cost. The CLI reports only the session's total, so the cost of a run
/// is a difference of totals.
#[derive(Debug, Clone, Copy)]
struct StoredSession {
    session: Uuid,
    /// Total cost in millionths of a dollar.
    cost: u64,
}

impl Claude {
    /// Creates the agent. `command` is the CLI with options such as `--model`; the default is `claude`.
    pub fn new(agent_config: &AgentConfig) -> Result<Self, Box<str>> {
        agent_config.reject_unknown_keys(&[])?;
        if let (_, Some(preset)) = agent_config.kind() {
            return Err(format!("claude:{preset} is not an agent kind; use claude or acp:claude").into());
        }
        let mut program = agent_config.program(Program { program: "claude".into(), ..Program::default() });
        for name in NESTED_CLI_VARIABLES.iter().filter(|name| env::var_os(name).is_some()) {
            program.environment.entry(name.into()).or_default();
        }
        Ok(Self { program, contexts: Mutex::default(), commands: Mutex::default() })
    }

    pub async fn execute(&self, run_input: &RunInput, run_io: &RunIo) -> RunResult {
        let context = &run_input.request.context;
        let earlier = run_input.session.as_deref().and_then(|session| Uuid::parse_str(session).ok());
        let prompt = prompt_text(run_input, &self.commands());
        let mut session =
            cli_run::Session { id: earlier.unwrap_or_else(Uuid::now_v7), is_new: earlier.is_none() };
        loop {
            let stored =
                self.contexts.lock().get(context).copied().filter(|stored| stored.session == session.id);
            let cost_before = if session.is_new { Some(0) } else { stored.map(|stored| stored.cost) };
            let cli_run =
                cli_run::CliRun::new(&self.program, session, cost_before, run_input, &prompt, run_io);
            let outcome = cli_run.execute().await;
            if !outcome.commands.is_empty() {
                *self.commands.lock() = outcome.commands;
            }
            if let Some(cost) = outcome.cost {
                self.contexts.lock().insert(context.clone(), StoredSession { session: session.id, cost });
            }
            match outcome.result {
                Some(result) => return result,
                // The CLI has lost the session, so the run is repeated in a new session.
                None => session = cli_run::Session { id: Uuid::now_v7(), is_new: true },
            }
        }
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// Discards the stored cost of the session of that context.
    pub fn forget(&self, context: &RunContext) {
        self.contexts.lock().remove(context);
    }

    /// Slash commands that the CLI has announced so far.
    pub fn commands(&self) -> Vec<SlashCommand> {
        self.commands.lock().clone()
    }

    /// Checks the CLI for `parlor gateway doctor`: directory, program, version, sign-in.
    pub async fn examine(&self) -> Vec<Finding> {
        let failure = |what: String, fix: String| {
            vec![Finding { state: Health::Failure, what: what.into(), fix: Some(fix.into()) }]
        };
        if let Some(directory) = self.program.directory.as_deref().filter(|directory| !directory.is_dir()) {
            let directory = directory.display();
            return failure(
                format!("Its directory {directory} is missing."),
                format!("mkdir -p {directory}"),
            );
        }
        if let Err(error) = self.program.locate() {
            return failure(format!("{error}."), INSTALL.into());
        }
        let output = version_probe::output_of(&self.program, &["--version"]).await.unwrap_or_default();
        let Some(version) = version_probe::version(&output) else {
            return failure("Its --version output is not that of the Claude CLI.".into(), INSTALL.into());
        };
        let number = version.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        if version[..] < MIN_VERSION[..] {
            let minimum = MIN_VERSION.map(|number| number.to_string()).join(".");
            return failure(
                format!("Claude Code {number} is too old: version {minimum} or later is needed."),
                "claude update".into(),
            );
        }
        let status = version_probe::output_of(&self.program, &["auth", "status"]).await.unwrap_or_default();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        match status["loggedIn"].as_bool() {
            Some(false) => failure(
                format!("Claude Code {number} is not signed in."),
                "Sign in with `claude auth login`, or set ANTHROPIC_API_KEY.".into(),
            ),
            Some(true) => {
                let what = format!("Claude Code {number} is signed in and ready.").into();
                vec![Finding { state: Health::Ok, what, fix: None }]
            }
            None => vec![Finding {
                state: Health::Warning,
                what: format!("Claude Code {number} does not report whether it is signed in.").into(),
                fix: Some("Start `claude` once and check.".into()),
            }],
        }
    }
}
