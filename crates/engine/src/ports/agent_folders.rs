//! Port to the folders of agents on disk: instructions, tools, and whether a folder is missing.
//!
//! Configuration (`jvAgent.json`, session files) does not pass through this port: its owner follows the store and
//! the disk, and keeps both in step.

use parlor_model::{AgentId, Payload};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Folders of agents. All methods block; they must not be called on async threads.
pub trait AgentFolders: Send + Sync {
    /// Returns the folder of an agent, or `None` if the agent has none.
    fn folder(&self, agent: &AgentId) -> Option<FolderInfo>;
    /// Returns the agent's own `CLAUDE.md`, without the inherited ones; an empty text if there is no file.
    fn claude_md(&self, agent: &AgentId) -> Result<String, FolderError>;
    /// Replaces the agent's own `CLAUDE.md` atomically.
    fn set_claude_md(&self, agent: &AgentId, content: &str) -> Result<(), FolderError>;
    /// Returns the instructions of an agent: every `CLAUDE.md` from the root to the agent's folder, joined by
    /// `\n\n---\n\n`, and then the agent's `memory/notes.md`. Empty if there are none.
    fn instructions(&self, agent: &AgentId) -> Result<String, FolderError>;
    /// Returns the programs in the `tools` folders from the root to the agent's folder, by name. A program
    /// replaces one with the same name further up. Invalid descriptions are left out and logged.
    fn tools(&self, agent: &AgentId) -> Result<Vec<ToolProgram>, FolderError>;
    /// Reads all folders again, so that changes for which the operating system sent no notification are applied.
    /// Returns before they are applied.
    fn rescan(&self);
}

/// The folder of an agent, as of the latest scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderInfo {
    /// Path below the root, which equals the id of the agent.
    pub path: Box<str>,
    pub has_claude_md: bool,
    /// Whether the agent has tools of its own or inherits some.
    pub has_tools: bool,
    /// Whether the folder has disappeared. The agent is offline, and its mail is kept.
    pub is_missing: bool,
}

/// A program that an agent can call as a tool: JSON on standard input, JSON on standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProgram {
    pub name: Box<str>,
    pub description: Box<str>,
    /// JSON schema of the input.
    pub input_schema: Payload,
    pub timeout: Duration,
    /// Absolute path of the executable file.
    pub program: PathBuf,
    /// Absolute path of the agent's folder, in which the program runs.
    pub folder: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FolderError {
    #[error("this hub has no agents root")]
    NoRoot,
    #[error("the agent has no folder")]
    NoFolder,
    #[error("the folder of the agent is missing")]
    Missing,
    /// The content or a path is not accepted; the text is for the caller.
    #[error("{0}")]
    Invalid(String),
    /// Error of the operating system, which is logged.
    #[error("the folder of the agent cannot be used")]
    Io,
}

/// The folders of a hub without an agents root.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFolders;

impl AgentFolders for NoFolders {
    fn folder(&self, _agent: &AgentId) -> Option<FolderInfo> {
        None
    }

    fn claude_md(&self, _agent: &AgentId) -> Result<String, FolderError> {
        Err(FolderError::NoRoot)
    }

    fn set_claude_md(&self, _agent: &AgentId, _content: &str) -> Result<(), FolderError> {
        Err(FolderError::NoRoot)
    }

    fn instructions(&self, _agent: &AgentId) -> Result<String, FolderError> {
        Ok(String::new())
    }

    fn tools(&self, _agent: &AgentId) -> Result<Vec<ToolProgram>, FolderError> {
        Ok(Vec::new())
    }

    fn rescan(&self) {}
}
