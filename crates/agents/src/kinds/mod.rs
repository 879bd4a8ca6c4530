//! The agent kinds that a gateway can host, as a closed list.
//!
//! To add a kind, add a file with a type that has these functions, and a variant in [`AgentKind`]:
//! - `fn new(agent_config: &AgentConfig) -> Result<Self, Box<str>>` validates the configuration.
//! - `async fn execute(&self, run_input: &RunInput, run_io: &RunIo) -> RunResult` executes one run. It is
//!   called concurrently for several contexts (rooms and sessions), but for at most one run per context.
//! - `fn forget(&self, context: &RunContext)` discards what the program keeps of that context.
//! - `async fn examine(&self) -> Vec<Finding>` checks the agent for `parlor gateway doctor`.

pub mod acp;
pub mod claude;
pub mod command;
mod lines;
pub mod model;
mod prompt;
mod stderr_tail;
mod tools;
mod version_probe;

use crate::finding::Finding;
use crate::process::Program;
use crate::run::{RunInput, RunIo, RunResult};
use acp::Acp;
use claude::Claude;
use command::CommandAgent;
use model::Model;
use parlor_model::RunContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The configuration of an agent, as users write it.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentConfig {
    /// Name of the kind, optionally with a preset: `command` or `acp:claude`.
    pub kind: String,
    /// Working directory of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Program and arguments, for kinds that run a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables added to the environment of the program. May contain secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Settings that only this kind defines.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Prints the names of the variables and extra settings without their values, which may be secrets.
impl std::fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let environment: Vec<_> = self.environment.keys().collect();
        let extra: Vec<_> = self.extra.keys().collect();
        f.debug_struct("AgentConfig")
            .field("kind", &self.kind)
            .field("directory", &self.directory)
            .field("command", &self.command)
            .field("environment", &environment)
            .field("extra", &extra)
            .finish()
    }
}

impl AgentConfig {
    /// Splits the configured kind into its name and its preset.
    pub fn kind(&self) -> (&str, Option<&str>) {
        match self.kind.split_once(':') {
            Some((kind, preset)) => (kind, Some(preset)),
            None => (&self.kind, None),
        }
    }

    /// The configured program, or `default` if none is configured, with the configured directory and
    /// environment.
    fn program(&self, default: Program) -> Program {
        let named = match &self.command[..] {
            [program, arguments @ ..] => Program {
                program: program.into(),
                arguments: arguments.iter().map(Into::into).collect(),
                ..Program::default()
            },
            [] => default,
        };
        let environment = self.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Program { environment, directory: self.directory.clone(), ..named }
    }

    /// Returns an error if `extra` has a key that is not in `known`: it is most likely misspelt.
    pub fn reject_unknown_keys(&self, known: &[&str]) -> Result<(), Box<str>> {
        match self.extra.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(format!("{key} is not a setting of the agent kind {}", self.kind().0).into()),
            None => Ok(()),
        }
    }
}

/// A configured agent of one of the supported kinds.
#[derive(Debug)]
pub enum AgentKind {
    Acp(Acp),
    Claude(Claude),
    Command(CommandAgent),
    Model(Model),
}

impl AgentKind {
    pub const NAMES: &[&str] = &["acp", "claude", "command", "model"];

    pub fn new(agent_config: &AgentConfig) -> Result<Self, Box<str>> {
        Ok(match agent_config.kind().0 {
            "acp" => Self::Acp(Acp::new(agent_config)?),
            "claude" => Self::Claude(Claude::new(agent_config)?),
            "command" => Self::Command(CommandAgent::new(agent_config)?),
            "model" => Self::Model(Model::new(agent_config)?),
            other if acp::PRESETS.iter().any(|preset| preset.name == other) => {
                return Err(format!("{other:?} is not an agent kind: use acp:{other}").into());
            }
            other => {
                return Err(format!(
                    "{other:?} is not an agent kind; the kinds are {}",
                    Self::NAMES.join(", ")
                )
                .into());
            }
        })
    }

    pub async fn execute(&self, run_input: &RunInput, run_io: &RunIo) -> RunResult {
        match self {
            Self::Acp(acp) => acp.execute(run_input, run_io).await,
            Self::Claude(claude) => claude.execute(run_input, run_io).await,
            Self::Command(command) => command.execute(run_input, run_io).await,
            Self::Model(model) => model.execute(run_input, run_io).await,
        }
    }

    pub fn forget(&self, context: &RunContext) {
        match self {
            Self::Acp(acp) => acp.forget(context),
            Self::Claude(claude) => claude.forget(context),
            Self::Command(command) => command.forget(context),
            Self::Model(model) => model.forget(context),
        }
    }

    /// Ends the programs and tasks that outlive a run, and waits for their end. Must be called after the last
    /// run has ended. The programs of other kinds end with their run.
    pub async fn close(&self) {
        if let Self::Acp(acp) = self {
            acp.close().await;
        }
    }

    /// Slash commands that the agent has announced so far.
    pub fn commands(&self) -> Vec<SlashCommand> {
        match self {
            Self::Acp(acp) => acp.commands(),
            Self::Claude(claude) => claude.commands(),
            Self::Command(_) | Self::Model(_) => Vec::new(),
        }
    }

    /// Whether messages can be injected into an active run of this agent.
    pub fn accepts_injection(&self) -> bool {
        match self {
            Self::Claude(_) => true,
            Self::Acp(_) | Self::Command(_) | Self::Model(_) => false,
        }
    }

    /// The error for a program that is not installed on this machine. Starts nothing.
    pub fn missing(&self) -> Option<io::Error> {
        let program = match self {
            Self::Acp(acp) => acp.program(),
            Self::Claude(claude) => claude.program(),
            Self::Command(command) => command.program(),
            Self::Model(_) => return None,
        };
        program.locate().err()
    }

    pub async fn examine(&self) -> Vec<Finding> {
        match self {
            Self::Acp(acp) => acp.examine().await,
            Self::Claude(claude) => claude.examine().await,
            Self::Command(command) => command.examine().await,
            Self::Model(model) => model.examine().await,
        }
    }
}

/// A command that users can send to an agent as `/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    pub name: Box<str>,
    pub description: Box<str>,
}
