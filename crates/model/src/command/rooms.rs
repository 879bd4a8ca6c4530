//! Commands on rooms, members and room preferences, and their receipts.

use crate::{AnswerPolicy, Edit, MemberId, Notifications, RoomId, RoomKind, RoomRole, RouterId};
use serde::{Deserialize, Serialize};

/// Creates a room, which the caller owns. Returns the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateRoom {
    pub changes: RoomChanges,
    pub members: Vec<MemberId>,
}

/// Changes the settings of a room. Returns the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRoom {
    pub room: RoomId,
    pub changes: RoomChanges,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomChanges {
    pub name: Option<Box<str>>,
    pub kind: Option<RoomKind>,
    pub policy: Option<AnswerPolicy>,
    /// `Clear` removes the prompt.
    pub system_prompt: Edit<Box<str>>,
    pub description: Edit<Box<str>>,
    pub agent_command_role: Option<RoomRole>,
    pub approve_role: Option<RoomRole>,
    /// `Clear` removes the router.
    pub router: Edit<RouterId>,
}

/// Sets the project root of a room; `None` clears it. Returns the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetProjectRoot {
    pub room: RoomId,
    pub root: Option<Box<str>>,
    /// Whether the folder exists. The server checks this, since a decision does no I/O.
    pub there: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteRoom {
    pub room: RoomId,
}

/// Freezes a room: agents post nothing and run nothing there until the room is thawed. Returns the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeRoom {
    pub room: RoomId,
}

/// Ends the freeze of a room. Returns the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThawRoom {
    pub room: RoomId,
}

/// Adds a user or an agent to a room. Returns the new member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddMember {
    pub room: RoomId,
    pub member: MemberId,
    pub role: RoomRole,
    pub description: Option<Box<str>>,
}

/// Changes the membership fields that are `Some`. Returns the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeMember {
    pub room: RoomId,
    pub member: MemberId,
    pub role: Option<RoomRole>,
    /// `Clear` removes the description.
    pub description: Edit<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveMember {
    pub room: RoomId,
    pub member: MemberId,
}

/// Changes the caller's own preferences for a room. Other members are not affected. Returns the caller's
/// membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRoomPreferences {
    pub room: RoomId,
    pub how: RoomPreferenceChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoomPreferenceChange {
    /// Toggles whether the room is pinned to the top of the caller's room list.
    Pin,
    /// Toggles whether the room is archived for the caller.
    Archive,
    /// Hides all current messages of the room from the caller only.
    Clear,
    Notify(Notifications),
}
