//! What an administrator on the hub's own machine can ask for, and the answers.
//!
//! Owns: the shapes, which cross the control socket as one JSON line each way.
//! Who may ask is decided by the file system: whoever can open the data directory.

use crate::agents::local::LocalAgent;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", rename_all_fields = "snake_case")]
pub enum AdminRequest {
    /// How the hub is.
    Status,
    AddUser {
        username: String,
        role: Role,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
        #[serde(with = "crate::secret::exposed")]
        password: Secret,
    },
    ListUsers,
    ResetPassword {
        username: String,
        #[serde(with = "crate::secret::exposed")]
        password: Secret,
    },
    DisableSecondFactor {
        username: String,
    },
    RemoveUser {
        username: String,
    },
    Audit {
        limit: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
    },
    AddToken {
        name: String,
        /// The name of the user it acts for.
        user: String,
        scopes: Vec<String>,
    },
    /// Silences the agents in a room, or lets them speak again.
    Freeze {
        room: String,
        frozen: bool,
    },
    /// Has it noted that a backup was made, with everything up to this event.
    NoteBackup {
        through: u64,
    },
    ListTokens,
    RevokeToken {
        id: String,
    },
    AddAgent {
        agent: LocalAgent,
    },
    ListAgents,
    RemoveAgent {
        name: String,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum AdminReply {
    Noted,
    Status {
        version: String,
        /// `ok`, `full` or `failed`.
        store: String,
        /// How many files it may have open; absent if as many as it likes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        open_files: Option<u64>,
    },
    UserAdded {
        user: UserRow,
    },
    Users {
        users: Vec<UserRow>,
    },
    PasswordReset {
        username: String,
    },
    SecondFactorDisabled {
        username: String,
    },
    UserRemoved {
        username: String,
    },
    Audit {
        entries: Vec<AuditRow>,
    },
    RoomFrozen {
        room: String,
        frozen: bool,
    },
    TokenAdded {
        token: TokenRow,
        /// The key itself; only its hash is kept.
        #[serde(with = "crate::secret::exposed")]
        key: Secret,
    },
    Tokens {
        tokens: Vec<TokenRow>,
    },
    TokenRevoked {
        id: String,
    },
    AgentAdded {
        name: String,
        /// Whether it is hosted from now on, or from the next start.
        running: bool,
    },
    Agents {
        agents: Vec<AgentRow>,
    },
    AgentRemoved {
        name: String,
    },
    /// Nothing was done; the sentence says why and can be shown.
    Refused {
        reason: String,
    },
}

/// What a person may do on the hub as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Admin,
    User,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
        }
    }
}

/// A person as `user list` shows them. Times are ISO 8601 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRow {
    pub id: String,
    pub username: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    pub role: Role,
    pub created_at: String,
}

/// An entry as `audit` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    pub at: String,
    pub actor: String,
    pub action: String,
    pub subject: String,
    pub detail: String,
    pub address: String,
    pub count: u32,
}

/// An agent of the hub as `agent list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRow {
    pub name: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// `online`, `busy`, `error` or `offline`.
    pub status: String,
}

/// An API key as `token list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRow {
    pub id: String,
    pub name: String,
    pub user: String,
    pub scopes: Vec<String>,
    pub created_at: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_with_a_tag() {
        let request = AdminRequest::ResetPassword { username: "ada".into(), password: Secret::new("a\nb") };
        let line = serde_json::to_string(&request).unwrap();
        assert_eq!(line, r#"{"request":"reset_password","username":"ada","password":"a\nb"}"#);
        assert_eq!(serde_json::from_str::<AdminRequest>(&line).unwrap(), request);
    }

    #[test]
    fn a_logged_request_or_reply_shows_no_secret() {
        let request = AdminRequest::ResetPassword { username: "ada".into(), password: Secret::new("canary") };
        let token = TokenRow {
            id: "1".into(),
            name: "ci".into(),
            user: "ada".into(),
            scopes: vec![],
            created_at: "2026-01-01T00:00:00Z".into(),
        };
        let reply = AdminReply::TokenAdded { token, key: Secret::new("canary") };
        assert!(!format!("{request:?}{reply:?}").contains("canary"));
    }
}
