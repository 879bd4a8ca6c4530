//! What people ask of agents and of the gateways that host them. The hub hands on both question and answer.

use crate::{AgentId, AgentStatus, GatewayId, Payload};

/// What somebody in a room asks of an agent there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inquiry {
    /// A command of the agent itself, such as `/clear`.
    Command {
        command: Box<str>,
        args: Box<str>,
    },
    Info,
    Workspace(WorkspaceRequest),
}

impl Inquiry {
    pub fn answer(&self) -> AnswerKind {
        match self {
            Self::Command { .. } => AnswerKind::AgentCommand,
            Self::Info => AnswerKind::AgentInfo,
            Self::Workspace(_) => AnswerKind::Workspace,
        }
    }
}

/// What is to be seen of the folder an agent works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceRequest {
    Status,
    Tree { path: Option<Box<str>> },
    File { path: Box<str> },
}

impl WorkspaceRequest {
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Status => None,
            Self::Tree { path } => path.as_deref(),
            Self::File { path } => Some(path),
        }
    }
}

/// What the owner of a gateway asks of it.
#[derive(Clone, PartialEq, Eq)]
pub enum GatewayRequest {
    Spawn(Spawn),
    /// In the words of whoever asks. It may hold a secret, so nobody is shown it by mistake.
    Credential {
        what: CredentialAction,
        body: Payload,
    },
}

/// An agent that is to be started on the gateway's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    pub kind: Box<str>,
    pub name: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub credential: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialAction {
    List,
    Add,
    Manage,
    StartOauth,
    CompleteOauth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    AgentCommand,
    AgentInfo,
    Spawn,
    CredentialList,
    Credential,
    OauthUrl,
    Oauth,
    Workspace,
    Rewind,
}

/// What was answered, for who asked alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InquiryAnswer {
    pub kind: AnswerKind,
    pub by: Answerer,
    /// In the words of the gateway.
    pub body: Payload,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answerer {
    Agent { agent: AgentId, name: Box<str>, kind: Box<str>, status: AgentStatus },
    Gateway(GatewayId),
}

/// Whether a path that somebody names lies in a folder, whatever machine that is on. Only names are looked at: where links
/// in the folder lead is known there alone.
pub fn is_within_folder(folder: Option<&str>, path: &str) -> bool {
    let separates = |c: char| c == '/' || c == '\\';
    let climbs = path.split(separates).any(|name| name.trim() == "..");
    if climbs || path.chars().any(char::is_control) {
        return false;
    }
    let drive = path.as_bytes().get(1) == Some(&b':');
    if !path.starts_with(separates) && !drive {
        // Not somebody's home either.
        return !path.starts_with('~');
    }
    let parts = |path: &'_ str| -> Vec<String> {
        path.split(separates).filter(|name| !name.is_empty() && *name != ".").map(Into::into).collect()
    };
    let Some(folder) = folder else { return false };
    let root = folder.starts_with(separates) == path.starts_with(separates);
    root && parts(path).starts_with(&parts(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(folder: Option<&str>, path: &str, expected: bool) {
        assert_eq!(is_within_folder(folder, path), expected, "{path} in {folder:?}");
    }

    #[test]
    fn a_path_below_lies_within() {
        for path in
            ["", ".", "src", "src/main.rs", "./a", "a..b", "...", "a/~b", "/desk/x", "/desk", "/desk/./a"]
        {
            check(Some("/desk"), path, true);
        }
        check(Some("/desk/"), "/desk//a", true);
        check(Some("/"), "/etc", true);
        check(Some("C:\\work"), "C:\\work\\a", true);
        check(None, "src", true);
    }

    #[test]
    fn a_path_beside_above_or_elsewhere_does_not() {
        for path in [
            "..",
            "../x",
            "a/../b",
            "a\\..\\..\\b",
            "/etc/passwd",
            "/deskshop",
            "/desk/../etc",
            "/",
            "\\etc",
            "//server/share",
            "C:\\work",
            "c:secret",
            "~",
            "~root/.ssh",
            "a\0b",
            "a\nb",
            ".. /x",
        ] {
            check(Some("/desk"), path, false);
        }
        check(Some("C:\\work"), "/desk", false);
        check(Some("C:\\work"), "C:\\", false);
        check(None, "/desk", false);
    }
}
