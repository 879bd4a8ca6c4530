//! Requests of users to agents (inquiries) and to gateways. The hub relays each request and its answer.

use crate::{AgentId, AgentStatus, GatewayId, Payload};
use serde::{Deserialize, Serialize};

/// Request of a room member that is relayed to an agent of the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inquiry {
    /// A command that the agent itself implements, such as `/clear`.
    Command {
        command: Box<str>,
        args: Box<str>,
    },
    Info,
    Workspace(WorkspaceRequest),
}

impl Inquiry {
    /// Returns the kind of answer that the agent must send.
    pub fn answer(&self) -> AnswerKind {
        match self {
            Self::Command { .. } => AnswerKind::AgentCommand,
            Self::Info => AnswerKind::AgentInfo,
            Self::Workspace(_) => AnswerKind::Workspace,
        }
    }
}

/// Request to view the working directory of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// Request of a gateway's owner that is relayed to the gateway.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayRequest {
    Spawn(Spawn),
    /// Operation on the credentials stored by the gateway. `body` is the owner's JSON, relayed unchanged. It
    /// may contain a secret, so this type does not implement `Debug`.
    Credential {
        what: CredentialAction,
        body: Payload,
    },
}

/// Request to start an agent on the gateway's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    pub kind: Box<str>,
    pub name: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub credential: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CredentialAction {
    List,
    Add,
    Manage,
    StartOauth,
    CompleteOauth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Answer to an inquiry or gateway request, delivered only to the user that sent the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryAnswer {
    pub kind: AnswerKind,
    pub by: Answerer,
    /// JSON from the gateway, relayed unchanged.
    pub body: Payload,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answerer {
    Agent { agent: AgentId, name: Box<str>, kind: Box<str>, status: AgentStatus },
    Gateway(GatewayId),
}

/// Returns whether `path` lies in `folder`, for Unix and Windows paths. Compares path components only and
/// does not resolve symbolic links, because the folder may be on another machine.
pub fn is_within_folder(folder: Option<&str>, path: &str) -> bool {
    let is_separator = |c: char| c == '/' || c == '\\';
    let has_parent_component = path.split(is_separator).any(|name| name.trim() == "..");
    if has_parent_component || path.chars().any(char::is_control) {
        return false;
    }
    let drive = path.as_bytes().get(1) == Some(&b':');
    if !path.starts_with(is_separator) && !drive {
        // A relative path lies in the folder, but a shell would expand `~` to a home directory.
        return !path.starts_with('~');
    }
    let parts = |path: &'_ str| -> Vec<String> {
        path.split(is_separator).filter(|name| !name.is_empty() && *name != ".").map(Into::into).collect()
    };
    let Some(folder) = folder else { return false };
    let root = folder.starts_with(is_separator) == path.starts_with(is_separator);
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
    fn a_path_below_the_folder_lies_within_it() {
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
    fn a_path_outside_the_folder_does_not_lie_within_it() {
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
