//! Why a caller did not get what it asked for, in terms it can act on.
//!
//! Closed, data not sentences: each door has one table that turns a refusal into its own code and words.

use crate::{MessageId, Position, RoomId};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityKind {
    User,
    Room,
    Member,
    Message,
    Pin,
    Bookmark,
    Agent,
    Gateway,
    Key,
    SignIn,
    SetupLink,
    Invitation,
    Pairing,
    SecondFactor,
    Subscription,
    Upload,
    Task,
    Run,
    Approval,
    ApprovalRule,
    Router,
    Plan,
    Service,
    ProjectRoot,
    Mission,
    Override,
}

/// One field that broke one rule. The rule is a stable word; doors may translate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub field: &'static str,
    pub rule: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody is signed in, or no longer: the account, sign-in or key behind the caller is gone.
    NotSignedIn,
    /// Signed in, and not allowed.
    Forbidden,
    /// There is no such thing, or none that the caller may know of.
    NotFound(EntityKind),
    NotAMember {
        room: RoomId,
    },
    AlreadyExists(EntityKind),
    /// The id is somebody else's.
    BelongsToAnother(EntityKind),
    Invalid(Vec<FieldError>),
    TooLarge {
        limit: usize,
        got: usize,
    },
    /// The same `clientMessageId` was used for another message.
    Conflict {
        first: MessageId,
    },
    /// What hosts the agent is not there, so nobody can be asked.
    GatewayOffline,
    WrongCredentials,
    /// A refresh token that is unknown, expired, or was already exchanged.
    TokenRevoked,
    /// So many files of this person wait for a message already.
    TooManyUploads {
        limit: usize,
    },
    RateLimited {
        retry_after: Duration,
    },
    TooManyConnections,
    AtCapacity,
    /// It is over, and cannot go on from there.
    HasEnded(EntityKind),
    /// The last admin, the owner of a room: somebody must remain.
    LastOneRequired(EntityKind),
    /// The position is older than the log or of another history; start over from here.
    Resync {
        now: Position,
    },
    /// The store cannot take writes now; nothing was changed.
    Unavailable,
}

impl Refusal {
    pub fn invalid(field: &'static str, rule: &'static str) -> Self {
        Self::Invalid(vec![FieldError { field, rule }])
    }
}
