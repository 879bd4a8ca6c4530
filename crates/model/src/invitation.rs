//! Invitations: links with which new users create their own accounts, and links with which users join a room.

use crate::{InvitationId, RoomId, RoomRole, SealedKey, SiteRole, Time, UserId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub id: InvitationId,
    /// Role of accounts created with the invitation.
    pub role: SiteRole,
    /// Free-text note of its creator, such as the name of the invited person.
    pub note: Option<Box<str>>,
    /// Number of accounts that the invitation can create in total.
    pub uses: u32,
    pub uses_left: u32,
    /// `None` if the operator created it.
    pub created_by: Option<UserId>,
    pub created_at: Time,
    pub expires_at: Time,
}

impl Invitation {
    pub fn is_open(&self, now: Time) -> bool {
        self.uses_left > 0 && now < self.expires_at
    }
}

/// A link with which one user becomes a member of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomInvitation {
    pub id: InvitationId,
    pub room: RoomId,
    /// Role of the user who accepts the invitation.
    pub role: RoomRole,
    /// Encrypted token, which admins of the room can read again.
    pub token: SealedKey,
    pub created_by: UserId,
    pub created_at: Time,
    pub expires_at: Time,
}
