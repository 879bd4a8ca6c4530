//! Requests of the operator to a running hub over the control socket, and their replies.
//!
//! Owns: the types, which are sent as one JSON line in each direction. Access is controlled by the file
//! system: every process that can open the data directory may send requests.

use crate::agents::local::LocalAgent;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// A request of the operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", rename_all_fields = "snake_case")]
pub enum AdminRequest {
    /// Returns version, store health and open-file limit of the hub.
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
        /// Username of the user on whose behalf the key acts.
        user: String,
        scopes: Vec<String>,
    },
    /// Freezes a room so that no agent responds in it, or thaws it.
    Freeze {
        room: String,
        frozen: bool,
    },
    /// Records in the audit log that a backup was made.
    NoteBackup {
        /// Sequence number of the newest event in the backup.
        through: u64,
    },
    /// Creates a key of the Ably protocol.
    AddAblyKey {
        name: String,
        /// Username of the site admin who owns the key.
        user: String,
        /// Operations by channel, as JSON text.
        capability: String,
    },
    ListAblyKeys,
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
    MoveAgent {
        from: String,
        to: String,
    },
}

/// Reply to an [`AdminRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum AdminReply {
    Noted,
    Status {
        version: String,
        /// `ok`, `full` or `failed`.
        store: String,
        /// Maximum number of open files of the hub process; absent if unlimited.
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
        /// Secret of the key. Only its hash is stored.
        #[serde(with = "crate::secret::exposed")]
        key: Secret,
    },
    Tokens {
        tokens: Vec<TokenRow>,
    },
    AblyKeys {
        tokens: Vec<TokenRow>,
    },
    TokenRevoked {
        id: String,
    },
    AgentAdded {
        name: String,
        /// Whether the agent is online already. Otherwise the hub hosts it once it is started.
        running: bool,
    },
    Agents {
        agents: Vec<AgentRow>,
    },
    AgentRemoved {
        name: String,
    },
    AgentMoved {
        from: String,
        to: String,
    },
    /// The request was refused and had no effect; `reason` is suitable for users.
    Refused {
        reason: String,
    },
}

/// Site-wide role of a user.
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

/// A row of `admin user list`. Times are ISO 8601 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRow {
    pub id: String,
    pub username: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    pub role: Role,
    pub created_at: String,
}

/// A row of `admin audit`.
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

/// A row of `agent list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRow {
    pub name: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// `online`, `busy`, `error` or `offline`.
    pub status: String,
}

/// A row of `admin token list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRow {
    pub id: String,
    pub name: String,
    pub user: String,
    pub scopes: Vec<String>,
    /// Capability of a key of the Ably protocol, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
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
    fn debug_output_of_requests_and_replies_contains_no_secret() {
        let request = AdminRequest::ResetPassword { username: "ada".into(), password: Secret::new("canary") };
        let token = TokenRow {
            id: "1".into(),
            name: "ci".into(),
            user: "ada".into(),
            scopes: vec![],
            capability: None,
            created_at: "2026-01-01T00:00:00Z".into(),
        };
        let reply = AdminReply::TokenAdded { token, key: Secret::new("canary") };
        assert!(!format!("{request:?}{reply:?}").contains("canary"));
    }
}
