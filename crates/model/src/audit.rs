//! Who did what to whom: sign-ins, accounts, roles, memberships, keys, settings, and what agents were allowed.
//!
//! No secret, no token and nothing that was said in a room is ever part of it.

use crate::{KeyId, Time, UserId};
use std::net::IpAddr;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    };
}

words!(Action {
    SignedIn = "signed_in",
    SignInFailed = "sign_in_failed",
    AccountLocked = "account_locked",
    SignedOut = "signed_out",
    TokenReused = "token_reused",
    PasswordChanged = "password_changed",
    SecondFactorOn = "second_factor_on",
    SecondFactorOff = "second_factor_off",
    UserCreated = "user_created",
    UserChanged = "user_changed",
    UserRemoved = "user_removed",
    RoleChanged = "role_changed",
    KeyCreated = "key_created",
    KeyRevoked = "key_revoked",
    InvitationCreated = "invitation_created",
    InvitationRevoked = "invitation_revoked",
    RouterCreated = "router_created",
    RouterChanged = "router_changed",
    RouterRemoved = "router_removed",
    ServiceCreated = "service_agent_created",
    ServiceChanged = "service_agent_changed",
    ServiceRemoved = "service_agent_removed",
    SettingsChanged = "settings_changed",
    RoomCreated = "room_created",
    RoomRemoved = "room_removed",
    RoomFrozen = "room_frozen",
    RoomThawed = "room_thawed",
    ProjectRootSet = "project_root_set",
    MissionSet = "mission_set",
    MissionEnded = "mission_ended",
    OverrideSet = "override_set",
    OverrideRemoved = "override_removed",
    MemberAdded = "member_added",
    MemberChanged = "member_changed",
    MemberRemoved = "member_removed",
    ApprovalAllowed = "approval_allowed",
    ApprovalDenied = "approval_denied",
    ApprovalExpired = "approval_expired",
    ApprovalWithdrawn = "approval_withdrawn",
    ApprovalRuleCreated = "approval_rule_created",
    ApprovalRuleRevoked = "approval_rule_revoked",
    BackedUp = "backed_up",
    Restored = "restored",
});

words!(SubjectKind {
    User = "user",
    Agent = "agent",
    Room = "room",
    Key = "key",
    Invitation = "invitation",
    Router = "router",
});

/// Who did it, with the name of that day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// Nobody who was signed in.
    Nobody,
    /// Whoever runs the hub.
    Operator,
    Person {
        id: UserId,
        name: Box<str>,
    },
    /// A program of this person's.
    Program {
        id: UserId,
        name: Box<str>,
        key: KeyId,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub kind: SubjectKind,
    pub id: Box<str>,
    /// Rooms have none here: what they are called is their members' affair.
    pub name: Option<Box<str>>,
}

/// What is noted once it is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuditEntry {
    pub at: Time,
    pub actor: Actor,
    pub action: Action,
    pub subject: Option<Subject>,
    pub detail: Option<Box<str>>,
    pub address: Option<IpAddr>,
}

/// A note as it is kept. Repeats of one kind are counted instead of written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    pub id: u64,
    pub note: NewAuditEntry,
    pub count: u32,
    pub last_at: Time,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    pub limit: usize,
    /// Older than this one.
    pub before: Option<u64>,
    pub action: Option<Action>,
    /// An id or a name.
    pub actor: Option<Box<str>>,
    /// An id or a name.
    pub subject: Option<Box<str>>,
    /// Both included.
    pub from: Option<Time>,
    pub to: Option<Time>,
}
