//! Kind `claude`: the Claude CLI in its `stream-json` mode.
//!
//! Each turn is a process of its own that takes up the session of its room, so that nothing of it runs between turns
//! and a restart changes nothing. The CLI knows sessions by UUIDs alone: the one of a room is kept with the room.

mod cli_run;
mod frames;
mod translate;

use super::prompt::prompt_text;
use super::{AgentConfig, SlashCommand, version_probe};
use crate::finding::{Finding, Health};
use crate::process::Program;
use crate::run::{RunInput, RunIo, RunResult};
use parking_lot::Mutex;
use parlor_model::RoomId;
use std::collections::HashMap;
use std::env;
use uuid::Uuid;

const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";
/// The first that asks for permission on its standard output.
const OLDEST: [u32; 2] = [2, 0];
/// The CLI believes that it runs within another one where it finds these.
const NESTED_CLI_VARIABLES: &[&str] = &["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

#[derive(Debug)]
pub struct Claude {
    program: Program,
    rooms: Mutex<HashMap<RoomId, RoomSession>>,
    commands: Mutex<Vec<SlashCommand>>,
}

/// What is known of the session of a room. The CLI tells what a session has cost in all, and not the turn.
#[derive(Debug, Clone, Copy)]
struct RoomSession {
    session: Uuid,
    /// In millionths of a dollar.
    cost: u64,
}

impl Claude {
    /// `command` is the CLI and options of it, such as `--model`; `claude` alone if there is none.
    pub fn new(agent_config: &AgentConfig) -> Result<Self, Box<str>> {
        agent_config.reject_unknown_keys(&[])?;
        if let (_, Some(preset)) = agent_config.kind() {
            return Err(format!("claude:{preset} is not known here; say claude, or acp:claude").into());
        }
        let mut program = agent_config.program(Program { program: "claude".into(), ..Program::default() });
        for name in NESTED_CLI_VARIABLES.iter().filter(|name| env::var_os(name).is_some()) {
            program.environment.entry(name.into()).or_default();
        }
        Ok(Self { program, rooms: Mutex::default(), commands: Mutex::default() })
    }

    pub async fn execute(&self, turn: &RunInput, stage: &RunIo) -> RunResult {
        let room = &turn.request.room;
        let earlier = turn.session.as_deref().and_then(|session| Uuid::parse_str(session).ok());
        let words = prompt_text(turn, &self.commands());
        let mut session =
            cli_run::Session { id: earlier.unwrap_or_else(Uuid::now_v7), is_new: earlier.is_none() };
        loop {
            let known = self.rooms.lock().get(room).copied().filter(|known| known.session == session.id);
            let cost_before = if session.is_new { Some(0) } else { known.map(|known| known.cost) };
            let performance = cli_run::CliRun::new(&self.program, session, cost_before, turn, &words, stage);
            let played = performance.play().await;
            if !played.commands.is_empty() {
                *self.commands.lock() = played.commands;
            }
            if let Some(cost) = played.cost {
                self.rooms.lock().insert(room.clone(), RoomSession { session: session.id, cost });
            }
            match played.ending {
                Some(ending) => return ending,
                // What it does not know any more it cannot take up, and begins anew.
                None => session = cli_run::Session { id: Uuid::now_v7(), is_new: true },
            }
        }
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The session of that room is over.
    pub fn forget(&self, room: &RoomId) {
        self.rooms.lock().remove(room);
    }

    /// What it understands after a slash, as far as it has said so.
    pub fn commands(&self) -> Vec<SlashCommand> {
        self.commands.lock().clone()
    }

    /// What `doctor` says of it.
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
        if let Err(error) = self.program.found() {
            return failure(format!("{error}."), INSTALL.into());
        }
        let said = version_probe::output_of(&self.program, &["--version"]).await.unwrap_or_default();
        let Some(version) = version_probe::version(&said) else {
            return failure("It does not say its version as the Claude CLI does.".into(), INSTALL.into());
        };
        let number = version.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        if version[..] < OLDEST[..] {
            let oldest = OLDEST.map(|number| number.to_string()).join(".");
            return failure(
                format!("Claude Code {number} is too old: {oldest} is needed."),
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
                what: format!("Claude Code {number} does not say whether it is signed in.").into(),
                fix: Some("Start `claude` once and see.".into()),
            }],
        }
    }
}
