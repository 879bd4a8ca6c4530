//! People, their signed-in devices, and the keys of their programs.

use crate::{KeyId, Pattern, SignInId, Time, UserId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub username: Box<str>,
    pub display_name: Box<str>,
    pub role: SiteRole,
    /// A picture among the uploads, such as `/uploads/3f2a.png`.
    pub avatar_url: Option<Box<str>>,
    /// An argon2id string; never leaves the hub.
    pub password_hash: Box<str>,
    /// Whether a password alone is not enough.
    pub second_factor: bool,
    pub failed_sign_ins: u32,
    pub locked_until: Option<Time>,
    /// Overrides the hub's limit of connections for this person.
    pub max_connections: Option<u32>,
    /// What an admin lets this person's agents hear of outside sources.
    pub source_patterns: Vec<Pattern>,
    pub created_at: Time,
    pub updated_at: Time,
}

impl User {
    pub fn is_locked(&self, now: Time) -> bool {
        self.locked_until.is_some_and(|until| until > now)
    }
}

/// Leaves the password hash out, so that no log can carry it.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("id", &self.id).field("username", &self.username).finish_non_exhaustive()
    }
}

/// One signed-in device. It lives as long as its newest refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    pub id: SignInId,
    pub user: UserId,
    pub device: Box<str>,
    pub address: Box<str>,
    pub created_at: Time,
    /// When it began, or its refresh token was exchanged last.
    pub used_at: Time,
    pub expires_at: Time,
    /// How often its refresh token was exchanged; newer tokens carry the higher number.
    pub generation: u32,
}

impl SignIn {
    /// How many exchanges back a spent token is still known for one. Whoever comes with an older one is a
    /// stranger like any other, and a device that stays signed in for years leaves no more than these.
    const REMEMBERED_REFRESHES: u32 = 100;

    /// The oldest generation whose tokens are known.
    pub fn oldest_known(&self) -> u32 {
        self.generation.saturating_sub(Self::REMEMBERED_REFRESHES)
    }
}

/// The SHA-256 of a secret that the hub handed out once and does not keep.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretHash(pub [u8; 32]);

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// What a refresh token, looked up by its hash, stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshToken {
    pub sign_in: SignInId,
    /// Older than the sign-in's own: it was exchanged already.
    pub generation: u32,
}

/// What a program may do with a key, on top of what its owner may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// See rooms, messages and people.
    Read,
    /// Post, edit and manage rooms.
    Write,
    /// Act as the owner's agents on the broker, and host them.
    Agents,
    /// Host the owner's agents on a gateway, and nothing else.
    Hosting,
    /// Route as an outside source such as `slack-bridge`.
    Sources,
    /// Read and clear what reached nobody.
    DeadLetters,
    /// See how the hub is doing, in numbers.
    Metrics,
    /// What only site admins may do, if the owner is one.
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

    /// Whether a key with this scope does what needs that one.
    pub fn covers(self, needed: Self) -> bool {
        self == needed || (self == Self::Agents && needed == Self::Hosting)
    }

    /// What the owner must be an admin for, at the moment of use.
    pub fn is_for_admins(self) -> bool {
        matches!(self, Self::Sources | Self::DeadLetters | Self::Metrics | Self::Admin)
    }

    /// What is said to whoever names another one.
    pub const ALLOWED_VALUES: &str =
        "must be of: read, write, agents, hosting, sources, dead-letters, metrics, admin";

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A code on offer, which whoever has it can give once for a key of this person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairing {
    pub user: UserId,
    pub expires_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    pub owner: UserId,
    pub name: Box<str>,
    pub scopes: Vec<Scope>,
    pub created_at: Time,
}
