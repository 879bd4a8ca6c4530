//! Rooms and who is in them.

use crate::{MemberId, RoomId, Seq, Time, UserId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomKind {
    Group,
    Private,
}

impl RoomKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Private => "private",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Group, Self::Private].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Ordered by power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomRole {
    Member,
    Admin,
    Owner,
}

impl RoomRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Member, Self::Admin, Self::Owner].into_iter().find(|role| role.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub id: RoomId,
    pub name: Box<str>,
    pub kind: RoomKind,
    pub broadcast_mode: bool,
    pub system_prompt: Option<Box<str>>,
    /// The least role that may address agents.
    pub agent_command_role: RoomRole,
    pub created_by: UserId,
    pub created_at: Time,
    pub updated_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub room: RoomId,
    pub member: MemberId,
    pub role: RoomRole,
    /// The name shown and mentioned: the user's or the agent's own, not stored with the membership.
    pub name: Box<str>,
    /// What else they can be mentioned by: the user's sign-in name or the agent's id. Not stored either.
    pub handle: Box<str>,
    pub joined_at: Time,
    pub read_through: Seq,
    pub read_at: Option<Time>,
}
