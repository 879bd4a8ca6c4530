//! Queries about rooms, members and room preferences, and their answers.

use crate::{AgentId, Member, Room, RoomId, RoomSelection};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All rooms of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRooms;

/// Rooms of the caller, each with the caller's membership.
pub type OwnRooms = Vec<(Room, Member)>;

/// Folders that the setting `project_roots` allows as project roots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListProjectRoots;

/// Checks whether the caller may read the selected rooms, or any rooms if none are selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayReadRooms {
    pub rooms: RoomSelection,
}

/// Project root of the selected rooms, for reading its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetWorkspaceRoot {
    pub rooms: RoomSelection,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRoot {
    /// The selected room, or the first one if several have the project root.
    pub room: RoomId,
    pub root: Box<str>,
}

/// A room with its first members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetRoom {
    pub room: RoomId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomWithMembers {
    pub room: Arc<Room>,
    pub members: MemberPage,
}

/// Members of a room, in the order in which they joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMembers {
    pub room: RoomId,
    pub limit: usize,
    pub offset: usize,
}

impl ListMembers {
    /// Limit for programs that need the names of all members. Further members are unknown to them.
    pub const MAX_NAMES: usize = 10_000;
}

/// Some members of a room. Only the caller's own membership contains room preferences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberPage {
    pub members: Vec<Member>,
    /// Number of all members of the room.
    pub total: usize,
}

/// Checks whether the caller may subscribe to the events of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayFollowRoom {
    pub room: RoomId,
}

/// Rooms of which both the caller and the agent are members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRoomsWithAgent {
    pub agent: AgentId,
}
