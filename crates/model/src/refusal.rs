//! Refusals: errors that the caller can act on.
//!
//! A closed enum that holds data instead of messages. Each protocol adapter has one table that maps a refusal
//! to its error code and message.

use crate::{Field, MessageId, Position, RoomId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    DeadLetter,
}

/// Violation of a validation rule by one field. `rule` is a stable text that a protocol adapter may
/// translate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    pub field: Field,
    pub rule: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The caller is not authenticated, or its account, sign-in or key no longer exists.
    NotSignedIn,
    /// The caller is authenticated but lacks the permission.
    Forbidden,
    /// The entity does not exist, or the caller may not know that it exists.
    NotFound(EntityKind),
    NotAMember {
        room: RoomId,
    },
    AlreadyExists(EntityKind),
    /// The id is used by an entity of another user.
    BelongsToAnother(EntityKind),
    Invalid(Vec<FieldError>),
    TooLarge {
        limit: usize,
        got: usize,
    },
    /// The caller already used this client message id for a different message.
    Conflict {
        first: MessageId,
    },
    /// No mailbox subscribes to the path of the message, so that it stays a dead letter.
    NoSubscribers,
    /// The gateway that hosts the agent is offline, so the request cannot be relayed.
    GatewayOffline,
    WrongCredentials,
    /// A refresh token that is unknown, expired, or was already exchanged.
    TokenRevoked,
    /// The user already has the maximum number of files that are not attached to a message.
    TooManyUploads {
        limit: usize,
    },
    RateLimited {
        retry_after: Duration,
    },
    TooManyConnections,
    AtCapacity,
    /// The entity has ended and cannot change any more.
    HasEnded(EntityKind),
    /// The operation would remove the last site admin or the last owner of a room.
    LastOneRequired(EntityKind),
    /// A resume is impossible: the position is older than the log or belongs to another epoch. The client
    /// must reload its state and continue from `now`.
    Resync {
        now: Position,
    },
    /// The store cannot accept writes at present. Nothing was changed.
    Unavailable,
}

impl Refusal {
    pub fn invalid(field: Field, rule: &'static str) -> Self {
        Self::Invalid(vec![FieldError { field, rule: rule.into() }])
    }
}
