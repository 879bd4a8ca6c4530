//! The kinds of agents that a gateway can host. Each plays turns in its own way; the list is closed.
//!
//! A kind is a file here with a type that has `fn new(recipe: &AgentConfig) -> Result<Self, Box<str>>`,
//! `async fn execute(&self, turn: &RunInput, stage: &RunIo) -> RunResult` (many rooms at once, one turn in each),
//! `fn forget(&self, room: &RoomId)` (the session of that room is over) and
//! `async fn examine(&self) -> Vec<Finding>` (what `doctor` says of it). [`AgentKind`] knows it by name.

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
use parlor_model::RoomId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// What an agent is made of, as people write it down.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentConfig {
    /// Such as `command`, or `acp:claude`: a kind, and a preset of it.
    pub kind: String,
    /// Where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The program and its arguments, for kinds that run one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Added to the environment of that program. May hold secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// What only this kind knows.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Says what is set and not what it is set to.
impl std::fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let environment: Vec<_> = self.environment.keys().collect();
        let further: Vec<_> = self.extra.keys().collect();
        f.debug_struct("Recipe")
            .field("kind", &self.kind)
            .field("directory", &self.directory)
            .field("command", &self.command)
            .field("environment", &environment)
            .field("further", &further)
            .finish()
    }
}

impl AgentConfig {
    /// The kind, and what is said more closely of it.
    pub fn kind(&self) -> (&str, Option<&str>) {
        match self.kind.split_once(':') {
            Some((kind, preset)) => (kind, Some(preset)),
            None => (&self.kind, None),
        }
    }

    /// The program that it is told to run, or another one if it is told none, in its place and surroundings.
    fn program(&self, otherwise: Program) -> Program {
        let named = match &self.command[..] {
            [program, arguments @ ..] => Program {
                program: program.into(),
                arguments: arguments.iter().map(Into::into).collect(),
                ..Program::default()
            },
            [] => otherwise,
        };
        let environment = self.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Program { environment, directory: self.directory.clone(), ..named }
    }

    /// What is left when a kind has taken what it knows: most likely misspelt.
    pub fn reject_unknown_keys(&self, known: &[&str]) -> Result<(), Box<str>> {
        match self.extra.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(format!("{key} is nothing that the kind {} knows", self.kind().0).into()),
            None => Ok(()),
        }
    }
}

/// An agent of some kind.
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
                return Err(format!("{other:?} is no kind of agent: say acp:{other}").into());
            }
            other => {
                return Err(format!("{other:?} is no kind of agent: {}", Self::NAMES.join(", ")).into());
            }
        })
    }

    pub async fn execute(&self, turn: &RunInput, stage: &RunIo) -> RunResult {
        match self {
            Self::Acp(acp) => acp.execute(turn, stage).await,
            Self::Claude(claude) => claude.execute(turn, stage).await,
            Self::Command(command) => command.execute(turn, stage).await,
            Self::Model(model) => model.execute(turn, stage).await,
        }
    }

    pub fn forget(&self, room: &RoomId) {
        match self {
            Self::Acp(acp) => acp.forget(room),
            Self::Claude(claude) => claude.forget(room),
            Self::Command(command) => command.forget(room),
            Self::Model(model) => model.forget(room),
        }
    }

    /// What people can tell it by a slash and a word, as far as it has said so.
    pub fn commands(&self) -> Vec<SlashCommand> {
        match self {
            Self::Acp(acp) => acp.commands(),
            Self::Claude(claude) => claude.commands(),
            Self::Command(_) | Self::Model(_) => Vec::new(),
        }
    }

    /// Whether it listens while it plays a turn.
    pub fn accepts_injection(&self) -> bool {
        match self {
            Self::Claude(_) => true,
            Self::Acp(_) | Self::Command(_) | Self::Model(_) => false,
        }
    }

    /// What it runs and this machine does not have, without starting anything.
    pub fn missing(&self) -> Option<io::Error> {
        let program = match self {
            Self::Acp(acp) => acp.program(),
            Self::Claude(claude) => claude.program(),
            Self::Command(command) => command.program(),
            Self::Model(_) => return None,
        };
        program.found().err()
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

/// What an agent lets people do by a slash and a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    pub name: Box<str>,
    pub description: Box<str>,
}
