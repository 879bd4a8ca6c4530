//! Rooms, their members, and each member's room preferences.

use crate::{MemberId, RoomId, RouterId, Seq, Time, UserId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Role of a member in a room, ordered from the fewest to the most permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// Policy that selects the agents that answer an unaddressed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AnswerPolicy {
    /// No agent answers; only a mention starts a run.
    #[default]
    Mention,
    /// Agents selected by triage answer.
    Triage,
    /// All agents of the room answer.
    All,
}

impl AnswerPolicy {
    const ALL: [Self; 3] = [Self::Mention, Self::Triage, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mention => "mention",
            Self::Triage => "triage",
            Self::All => "all",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// Time at which a room was frozen, and the user that did so. `by` is `None` if the operator froze it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub by: Option<UserId>,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    pub id: RoomId,
    pub name: Box<str>,
    pub kind: RoomKind,
    pub policy: AnswerPolicy,
    pub system_prompt: Option<Box<str>>,
    /// Minimum role for addressing agents.
    pub agent_command_role: RoomRole,
    /// Minimum role for deciding approvals.
    pub approve_role: RoomRole,
    /// Router that performs triage in this room; `None` uses the router of the hub.
    pub router: Option<RouterId>,
    /// Present while the room is frozen: its agents post nothing and run nothing.
    pub frozen: Option<Frozen>,
    /// Project root: canonical path (without symbolic links) of a folder on the hub's machine.
    pub project_root: Option<Box<str>>,
    /// Purpose of the room, written by a room admin. Not part of any prompt.
    pub description: Option<Box<str>>,
    pub created_by: UserId,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Room {
    /// Returns the bytes of all texts of the room.
    pub fn length(&self) -> usize {
        let optional = self
            .system_prompt
            .iter()
            .chain(&self.project_root)
            .chain(&self.description)
            .map(|text| text.len());
        self.name.len() + optional.sum::<usize>()
    }

    /// Returns whether triage selects the agents that answer unaddressed messages.
    pub fn uses_triage(&self) -> bool {
        self.policy == AnswerPolicy::Triage
    }

    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub room: RoomId,
    pub member: MemberId,
    pub role: RoomRole,
    /// Purpose of the member in the room, written by a room admin.
    pub role_description: Option<Box<str>>,
    /// Name of the user or agent in the room, which no other member of the room has (see
    /// [`crate::mention::name_key`]).
    pub name: Box<str>,
    /// Second name for mentions: the user's sign-in name or the agent's id. Not stored with the membership.
    pub handle: Box<str>,
    pub joined_at: Time,
    pub read_through: Seq,
    pub read_at: Option<Time>,
    /// The member's own preferences. Never sent to other members.
    pub room_preferences: RoomPreferences,
}

impl Member {
    /// Returns a copy for other members, without the room preferences.
    pub fn seen_by_others(&self) -> Self {
        Self { room_preferences: RoomPreferences::default(), ..self.clone() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomPreferences {
    pub pinned_at: Option<Time>,
    pub archived_at: Option<Time>,
    pub cleared_at: Option<Time>,
    /// Messages up to and including this `Seq` are hidden from the member.
    pub cleared_through: Seq,
    pub notifications: Notifications,
}

/// Messages of a room for which a member is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Notifications {
    #[default]
    All,
    Mentions,
    None,
}

impl Notifications {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Mentions => "mentions",
            Self::None => "none",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::All, Self::Mentions, Self::None].into_iter().find(|level| level.as_str() == text)
    }
}
