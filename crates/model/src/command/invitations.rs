//! Commands on invitations and pairing codes, and their receipts.

use super::NewUser;
use crate::{InvitationId, Member, Room, RoomId, RoomRole, SealedKey, SecretHash, SiteRole, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Creates an invitation: a link with which new users create their own accounts. Returns the invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateInvitation {
    pub role: SiteRole,
    pub note: Option<Box<str>>,
    pub uses: u32,
    pub expires_at: Time,
    pub secret: SecretHash,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeInvitation {
    pub invitation: InvitationId,
}

/// Creates an account with an invitation, or without one if registration is open. The invitation, not
/// `account`, sets the role; without one, it is `User`. Returns the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    pub token: Option<SecretHash>,
    pub account: NewUser,
}

/// Creates a pairing code for the caller. It replaces the caller's earlier code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferPairing {
    pub code: SecretHash,
    pub expires_at: Time,
}

/// Exchanges a pairing code for an API key with the scope `hosting` only. Returns the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedeemPairingCode {
    pub code: SecretHash,
    pub name: Box<str>,
    pub secret: SecretHash,
}

/// Creates an invitation to a room: a link with which one user becomes a member. Returns the invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteToRoom {
    pub room: RoomId,
    pub role: RoomRole,
    pub expires_at: Time,
    pub secret: SecretHash,
    /// The token itself, encrypted.
    pub sealed: SealedKey,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeRoomInvitation {
    pub room: RoomId,
    pub invitation: InvitationId,
}

/// Makes the caller a member of the room of an invitation, which ends with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptRoomInvitation {
    pub token: SecretHash,
}

/// A membership that began with an invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedRoom {
    pub room: Arc<Room>,
    pub member: Arc<Member>,
}
