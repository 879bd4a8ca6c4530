//! Queries about invitations and pairing codes, and their answers.

use crate::{Room, RoomId, RoomInvitation, SecretHash};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All unexpired invitations, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListInvitations;

/// Checks whether an account can be created with this invitation now, or without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayRegister {
    pub token: Option<SecretHash>,
}

/// Unexpired invitations to a room, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRoomInvitations {
    pub room: RoomId,
}

/// The open invitation to a room with this token, and the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetRoomInvitation {
    pub token: SecretHash,
}

/// An invitation with the room to which it admits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRoomInvitation {
    pub invitation: RoomInvitation,
    pub room: Arc<Room>,
}
