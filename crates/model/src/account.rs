//! User accounts, their sign-ins, refresh tokens, API keys and pairing codes.

use crate::{KeyGrant, KeyId, Pattern, SealedKey, SignInId, Time, UserId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SiteRole {
    User,
    Admin,
}

impl SiteRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Admin].into_iter().find(|role| role.as_str() == text)
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    pub username: Box<str>,
    pub display_name: Box<str>,
    pub role: SiteRole,
    /// Path of an uploaded image, such as `/uploads/3f2a.png`.
    pub avatar_url: Option<Box<str>>,
    /// Argon2id hash string. Never leaves the hub.
    pub password_hash: Box<str>,
    /// Whether sign-in requires a second factor in addition to the password.
    pub second_factor: bool,
    pub failed_sign_ins: u32,
    pub locked_until: Option<Time>,
    /// Maximum simultaneous connections of this user; overrides the hub-wide limit.
    pub max_connections: Option<u32>,
    /// Path patterns of external sources that an admin allows this user's agents to receive.
    pub source_patterns: Vec<Pattern>,
    /// Tokens of the user's agents that were issued before this time are revoked.
    pub agent_tokens_valid_from: Time,
    pub created_at: Time,
    pub updated_at: Time,
}

impl User {
    pub fn is_locked(&self, now: Time) -> bool {
        self.locked_until.is_some_and(|until| until > now)
    }
}

/// Omits the password hash, so that it cannot appear in a log.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("id", &self.id).field("username", &self.username).finish_non_exhaustive()
    }
}

/// A user's authenticated device or browser. Valid until its newest refresh token expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    pub id: SignInId,
    pub user: UserId,
    pub device: Box<str>,
    pub address: Box<str>,
    pub created_at: Time,
    /// Time of the sign-in, or of the latest exchange of its refresh token.
    pub used_at: Time,
    pub expires_at: Time,
    /// Number of refresh-token exchanges so far. Each new refresh token carries the next number.
    pub generation: u32,
}

impl SignIn {
    /// Number of exchanges for which a spent refresh token is remembered. Reuse of a remembered token revokes
    /// the sign-in; an older token is treated as unknown. Bounds the stored tokens of a long-lived sign-in.
    const REMEMBERED_REFRESHES: u32 = 100;

    /// Oldest generation whose refresh tokens are still stored.
    pub fn oldest_known(&self) -> u32 {
        self.generation.saturating_sub(Self::REMEMBERED_REFRESHES)
    }
}

/// SHA-256 of a secret that the hub returned once and does not store in clear text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 32]);

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// Stored record of a refresh token, looked up by the hash of the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshToken {
    pub sign_in: SignInId,
    /// A token whose generation is lower than that of its sign-in was already exchanged.
    pub generation: u32,
}

/// Permission of an API key. The key's owner must have the permission as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// Read rooms, messages and users.
    Read,
    /// Post and edit messages, and manage rooms.
    Write,
    /// Act as the owner's agents on the broker, and host them on a gateway.
    Agents,
    /// Host the owner's agents on a gateway only.
    Hosting,
    /// Route messages as an external source such as `slack-bridge`.
    Sources,
    /// Read and clear dead letters.
    DeadLetters,
    /// Read the hub's metrics.
    Metrics,
    /// Use operations reserved for site admins; the key's owner must be a site admin.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Agents,
        Self::Hosting,
        Self::Sources,
        Self::DeadLetters,
        Self::Metrics,
        Self::Admin,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Agents => "agents",
            Self::Hosting => "hosting",
            Self::Sources => "sources",
            Self::DeadLetters => "dead-letters",
            Self::Metrics => "metrics",
            Self::Admin => "admin",
        }
    }

    /// Returns whether a key with this scope may use an operation that requires `needed`.
    pub fn covers(self, needed: Self) -> bool {
        self == needed || (self == Self::Agents && needed == Self::Hosting)
    }

    /// Returns whether the key's owner must be a site admin each time the key uses this scope.
    pub fn is_for_admins(self) -> bool {
        matches!(self, Self::Sources | Self::DeadLetters | Self::Metrics | Self::Admin)
    }

    /// Validation rule returned for an unknown scope name; lists all names.
    pub const ALLOWED_VALUES: &str =
        "must be one of: read, write, agents, hosting, sources, dead-letters, metrics, admin";

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// An open pairing code: a gateway exchanges it once for an API key of this user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    pub user: UserId,
    pub expires_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: KeyId,
    pub owner: UserId,
    pub name: Box<str>,
    pub scopes: Vec<Scope>,
    /// Places and operations to which the key is limited, within its scopes. The secret of such a key signs tokens.
    pub grant: Option<Arc<KeyGrant>>,
    pub created_at: Time,
}

/// An API key whose secret signs tokens, with the encrypted secret and the revocations, for verifying tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    pub key: ApiKey,
    pub secret: SealedKey,
    /// Revocations of its tokens, ordered by target.
    pub revocations: Vec<Revocation>,
}

/// Revocation of the tokens of a key that match a target and were issued before a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revocation {
    /// Property of the revoked tokens, in the notation of the protocol that issues them. Opaque to the engine.
    pub target: Box<str>,
    pub issued_before: Time,
}

impl Revocation {
    /// Time for which a revocation is kept: the maximum lifetime of a token.
    pub const KEPT: Duration = Duration::from_secs(24 * 3600);
}
