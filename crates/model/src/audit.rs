//! Audit log entries: sign-ins, accounts, roles, memberships, keys, settings, backups and approvals.
//!
//! An entry never contains a secret, a token or the text of a message.

use crate::{KeyId, Time, UserId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Defines an enum whose variants have fixed string forms, as stored and as sent to clients.
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }
    };
}

string_enum!(Action {
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
    TokensRevoked = "tokens_revoked",
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
    DeadLetterResent = "dead_letter_resent",
    DeadLettersCleared = "dead_letters_cleared",
    BackedUp = "backed_up",
    Restored = "restored",
});

string_enum!(SubjectKind {
    User = "user",
    Agent = "agent",
    Room = "room",
    Key = "key",
    Invitation = "invitation",
    Router = "router",
});

/// Originator of an audited action, with their name at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Actor {
    /// An unauthenticated caller.
    Nobody,
    /// The operator of the hub, at start-up or on the command line.
    Operator,
    /// A user session.
    Person { id: UserId, name: Box<str> },
    /// An API key of this user.
    Program { id: UserId, name: Box<str>, key: KeyId },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub kind: SubjectKind,
    pub id: Box<str>,
    /// `None` for rooms: only members may know the name of a room.
    pub name: Option<Box<str>>,
}

/// An audit entry before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAuditEntry {
    pub at: Time,
    pub actor: Actor,
    pub action: Action,
    pub subject: Option<Subject>,
    pub detail: Option<Box<str>>,
    pub address: Option<IpAddr>,
}

/// A stored audit entry. Repeated failures of one sign-in increment `count` instead of adding entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub id: u64,
    pub note: NewAuditEntry,
    pub count: u32,
    pub last_at: Time,
}

/// Filter for the audit log, which is returned newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuditFilter {
    pub limit: usize,
    /// Returns only entries with a smaller id.
    pub before: Option<u64>,
    pub action: Option<Action>,
    /// Id or name of the actor.
    pub actor: Option<Box<str>>,
    /// Id or name of the subject.
    pub subject: Option<Box<str>>,
    /// Inclusive.
    pub from: Option<Time>,
    /// Inclusive.
    pub to: Option<Time>,
}
